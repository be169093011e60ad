//! Where a transaction stands: in its block, or among all of a segment. Two types, so that neither can
//! be given for the other, or for a block's number.

use std::fmt;

/// The position of a transaction in its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxIndex(pub u64);

/// The position of a transaction among all of its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxOrdinal(pub u64);

impl TxIndex {
    /// The index itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position in a list of the block's transactions; none is so long that it does not fit.
    #[must_use]
    pub fn to_usize(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// Of the position in a list of the block's transactions.
    #[must_use]
    pub fn from_usize(index: usize) -> Self {
        Self(u64::try_from(index).unwrap_or(u64::MAX))
    }
}

impl TxOrdinal {
    /// The ordinal itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The transaction so many after this one.
    #[must_use]
    pub const fn checked_add(self, count: u64) -> Option<Self> {
        match self.0.checked_add(count) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// How many transactions it comes after another; `None` if it comes before it.
    #[must_use]
    pub const fn checked_sub(self, first: Self) -> Option<u64> {
        self.0.checked_sub(first.0)
    }

    /// Of a transaction in its block, whose first one is this.
    #[must_use]
    pub const fn at(self, index: TxIndex) -> Option<Self> {
        self.checked_add(index.0)
    }

    /// Where in its block it stands, whose first transaction has this ordinal.
    #[must_use]
    pub fn index_after(self, first: Self) -> Option<TxIndex> {
        self.checked_sub(first).map(TxIndex)
    }
}

impl fmt::Display for TxIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TxOrdinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_and_the_first_ordinal_of_the_block_make_an_ordinal_and_back() {
        let first = TxOrdinal(40);
        assert_eq!(first.at(TxIndex(2)), Some(TxOrdinal(42)));
        assert_eq!(TxOrdinal(42).index_after(first), Some(TxIndex(2)));
        assert_eq!(first.index_after(TxOrdinal(41)), None);
        assert_eq!(TxOrdinal(u64::MAX).at(TxIndex(1)), None);
        assert_eq!(TxIndex::from_usize(3).to_usize(), Some(3));
    }
}
