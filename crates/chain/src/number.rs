//! A block's number, as a type: the store and its readers take no index, count or ordinal in its place.
//! Headers, requests and files have plain numbers, which become this where a block is looked up.

use std::fmt;

/// The number of a block: how many blocks come before it on its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u64);

impl BlockNumber {
    /// Above every block.
    pub const MAX: Self = Self(u64::MAX);

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of a child; `None` above the highest.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// The number of the parent; `None` below block 0.
    #[must_use]
    pub const fn parent(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(parent) => Some(Self(parent)),
            None => None,
        }
    }

    /// The number so many blocks above, or the highest.
    #[must_use]
    pub const fn saturating_add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The number so many blocks below, or 0.
    #[must_use]
    pub const fn saturating_sub(self, count: u64) -> Self {
        Self(self.0.saturating_sub(count))
    }

    /// How many blocks it comes after another; `None` if it comes before it.
    #[must_use]
    pub const fn checked_sub(self, first: Self) -> Option<u64> {
        self.0.checked_sub(first.0)
    }
}

impl From<u64> for BlockNumber {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for BlockNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_end_where_numbers_do() {
        assert_eq!(BlockNumber(0).parent(), None);
        assert_eq!(BlockNumber(7).parent(), Some(BlockNumber(6)));
        assert_eq!(BlockNumber(7).next(), Some(BlockNumber(8)));
        assert_eq!(BlockNumber::MAX.next(), None);
        assert_eq!(BlockNumber(7).checked_sub(BlockNumber(5)), Some(2));
        assert_eq!(BlockNumber(5).checked_sub(BlockNumber(7)), None);
        assert_eq!(format!("{:>3}", BlockNumber(5)), "  5");
    }
}
