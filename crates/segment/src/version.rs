//! The versions of the segment format: what a writer does in each. A reader reads all of them.
//!
//! Knows: how much of what is in a page, and how it is compressed.
//! Never knows: what is in a row.

/// A version of the segment format. Their bytes are read alike; what differs is how rows and headers
/// are cut into pages and compressed, and a segment is checked by writing it again as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Pages of 16 rows, literals by Huffman codes.
    One,
    /// Pages of 20 rows, literals as they are, and no compression that hardly saves anything: a
    /// read inflates in half the time, and rows take the same room.
    Two,
    /// Headers, and what else blocks have, in pages of as many blocks as have 512 transactions instead
    /// of sixteen blocks, and compressed as rows are: a large block is read without those of others.
    Three,
}

impl Version {
    /// The one that is written.
    pub const CURRENT: Self = Self::Three;

    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
        }
    }

    pub(crate) fn of_number(number: u32) -> Option<Self> {
        [Self::One, Self::Two, Self::Three].into_iter().find(|version| version.number() == number)
    }

    pub(crate) const fn rules(self) -> PageRules {
        match self {
            Self::One => PageRules {
                rows_max: 16,
                tokens_max: 3 * 1024,
                rows: Compression::WITH_CODES,
                part_transactions: None,
                parts: Compression::WITH_CODES,
            },
            Self::Two => PageRules {
                rows_max: 20,
                tokens_max: 4 * 1024,
                rows: Compression::QUICK,
                part_transactions: None,
                parts: Compression::WITH_CODES,
            },
            Self::Three => PageRules {
                part_transactions: Some(512),
                parts: Compression::QUICK,
                ..Self::Two.rules()
            },
        }
    }
}

/// What goes into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRules {
    /// Rows in a page at the most.
    pub(crate) rows_max: usize,
    /// Tokens in a page, unless a single row has more.
    pub(crate) tokens_max: usize,
    pub(crate) rows: Compression,
    /// A page of headers, and one of ommers and withdrawals, ends with the block that brings the
    /// transactions of its blocks to so many, or at the end of a group. Small blocks share a page,
    /// since they share much of what is in it.
    pub(crate) part_transactions: Option<usize>,
    pub(crate) parts: Compression,
}

/// How a page is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compression {
    /// Whether zstd leaves what it found no match for as it is. Hashes, amounts and
    /// addresses are most of it: Huffman codes save a hundredth and double the time of a read.
    pub(crate) has_plain_literals: bool,
    /// A page is stored as it is unless compression saves one byte of so many; `None`: any byte.
    pub(crate) saved_share: Option<usize>,
}

impl Compression {
    pub(crate) const WITH_CODES: Self = Self { has_plain_literals: false, saved_share: None };
    const QUICK: Self = Self { has_plain_literals: true, saved_share: Some(16) };
}
