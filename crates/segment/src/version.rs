//! The versions of the segment format: what a writer does in each. A reader reads all of them.
//!
//! Knows: how large a page of rows grows, and how it is compressed.
//! Never knows: what is in a row.

/// A version of the segment format. Their bytes are read alike; what differs is how rows are cut
/// into pages and compressed, and a segment is checked by writing it again as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Pages of 16 rows, literals by Huffman codes.
    One,
    /// Pages of 20 rows, literals as they are, and no compression that hardly saves anything: a
    /// read inflates in half the time, and rows take the same room.
    Two,
}

impl Version {
    /// The one that is written.
    pub const CURRENT: Self = Self::Two;

    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    pub(crate) fn of_number(number: u32) -> Option<Self> {
        [Self::One, Self::Two].into_iter().find(|version| version.number() == number)
    }

    pub(crate) const fn rules(self) -> RowPageRules {
        match self {
            Self::One => RowPageRules {
                rows_max: 16,
                tokens_max: 3 * 1024,
                has_plain_literals: false,
                saved_share: None,
            },
            Self::Two => RowPageRules {
                rows_max: 20,
                tokens_max: 4 * 1024,
                has_plain_literals: true,
                saved_share: Some(16),
            },
        }
    }
}

/// How rows become pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPageRules {
    /// Rows in a page at the most.
    pub(crate) rows_max: usize,
    /// Tokens in a page, unless a single row has more.
    pub(crate) tokens_max: usize,
    /// Whether zstd leaves what it found no match for as it is. Tokens are hashes, amounts and
    /// addresses for the most part: Huffman codes save a hundredth and double the time of a read.
    pub(crate) has_plain_literals: bool,
    /// A page is stored as it is unless compression saves one byte of so many; `None`: any byte.
    pub(crate) saved_share: Option<usize>,
}
