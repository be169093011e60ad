//! A run of block numbers.

use std::fmt;

use crate::number::BlockNumber;

/// Consecutive block numbers, never empty. Half-open inside; written `first..last` for people,
/// both ends included, as the command line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRange {
    first: u64,
    end: u64,
}

impl BlockRange {
    /// The `count` blocks from `first`, or `None` if there are none or they pass the last number.
    #[must_use]
    pub fn from_count(first: impl Into<BlockNumber>, count: u64) -> Option<Self> {
        let first = first.into().get();
        let end = first.checked_add(count)?;
        (count > 0).then_some(Self { first, end })
    }

    /// The blocks from `first` to `last`, both included, or `None` if `last` comes before `first`.
    #[must_use]
    pub fn from_ends(first: impl Into<BlockNumber>, last: impl Into<BlockNumber>) -> Option<Self> {
        let (first, last) = (first.into().get(), last.into().get());
        let end = last.checked_add(1)?;
        (first < end).then_some(Self { first, end })
    }

    /// The lowest number.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The highest number.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.end - 1
    }

    /// The number after the highest.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many blocks these are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.end - self.first
    }

    /// The numbers, lowest first.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = BlockNumber> + use<> {
        (self.first..self.end).map(BlockNumber)
    }

    /// Whether `number` is one of them.
    #[must_use]
    pub fn contains(&self, number: impl Into<BlockNumber>) -> bool {
        (self.first..self.end).contains(&number.into().get())
    }
}

impl fmt::Display for BlockRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last())
    }
}
