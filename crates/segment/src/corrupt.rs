//! What can be wrong with bytes that claim to be ours.

use thiserror::Error;

use crate::tx_position::TxOrdinal;

/// A row that does not decode. The page's checksum held, so it was written wrongly or on purpose.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RowFault {
    /// The bytes end inside a field.
    #[error("{what}: {needed} bytes needed, {left} left")]
    Ends {
        /// The field.
        what: &'static str,
        /// How many bytes it takes.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// A number that does not fit its field.
    #[error("{what}: number too large")]
    TooLarge {
        /// The field.
        what: &'static str,
    },
    /// A reference to a table entry that is not there.
    #[error("{what}: entry {found} of a table with {count}")]
    NoEntry {
        /// The table.
        what: &'static str,
        /// The entry that was asked for.
        found: u64,
        /// How many there are.
        count: usize,
    },
    /// A tag that no writer writes.
    #[error("{what}: unknown tag {found:#04x}")]
    Tag {
        /// The field.
        what: &'static str,
        /// The tag.
        found: u8,
    },
    /// A transaction that was kept raw and does not decode.
    #[error("raw transaction does not decode")]
    Raw,
    /// Long bytes that lie outside the row are not there, or have another length.
    #[error("long bytes outside the row are missing")]
    NoPayload,
    /// A page with another number of rows than the directory says.
    #[error("{found} rows, the directory says {expected}")]
    RowCount {
        /// In the page.
        found: u64,
        /// In the directory.
        expected: u64,
    },
    /// Bytes after the last field.
    #[error("{left} bytes after the last field")]
    Rest {
        /// How many.
        left: usize,
    },
}

/// A page that cannot be read.
#[derive(Debug, Error)]
pub enum PageFault {
    /// The checksum in front is not that of what follows.
    #[error("checksum {found:08x}, the page says {expected:08x}")]
    Checksum {
        /// Of the bytes.
        found: u32,
        /// In the page.
        expected: u32,
    },
    /// zstd refused.
    #[error("zstd: {0}")]
    Zstd(#[from] std::io::Error),
    /// It inflates to another length than it says.
    #[error("inflates to {found} bytes, the page says {expected}")]
    Length {
        /// What came out.
        found: usize,
        /// What the page says.
        expected: usize,
    },
    /// A field does not decode.
    #[error(transparent)]
    Field(#[from] RowFault),
}

/// A segment that cannot be believed.
#[derive(Debug, Error)]
pub enum Corrupt {
    /// The footer does not begin as footers do.
    #[error("footer begins with {found:02x?}, expected {expected:02x?}")]
    Magic {
        /// What is there.
        found: [u8; 8],
        /// What should be.
        expected: [u8; 8],
    },
    /// The footer's own checksum.
    #[error("footer checksum {found:08x}, the footer says {expected:08x}")]
    FooterChecksum {
        /// Of the bytes.
        found: u32,
        /// In the footer.
        expected: u32,
    },
    /// A format that was never released.
    #[error("written by a development build: import the archives again, into another folder")]
    Unreleased,
    /// A format that this build does not know.
    #[error(
        "segment format version {found}, this build reads {known}: the file is damaged, or a newer \
         build wrote it: upgrade quipu"
    )]
    Version {
        /// The file's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Flags that this build does not know.
    #[error("flags {found:#010x}, known is 0x00000001")]
    Flags {
        /// The file's.
        found: u32,
    },
    /// Blocks that make no segment.
    #[error(
        "{block_count} blocks from {first}: neither inside one slot of 256 nor a whole one of 8192"
    )]
    Range {
        /// The first block.
        first: u64,
        /// How many.
        block_count: u64,
    },
    /// A tail longer than the file.
    #[error("tail of {found} bytes in a file of {file_bytes}")]
    TailLength {
        /// What the footer says.
        found: u64,
        /// The file's length.
        file_bytes: u64,
    },
    /// The tail does not decode.
    #[error("tail: {0}")]
    Tail(PageFault),
    /// The directory and the facts disagree.
    #[error("{what}: {found} by the directory, {expected} by the footer")]
    Directory {
        /// Of what.
        what: &'static str,
        /// The directory's word.
        found: u64,
        /// The footer's.
        expected: u64,
    },
    /// Rows that belong to no group of blocks.
    #[error("page {page}: {count} rows from {ordinal} are not all of one group of 16 blocks")]
    Group {
        /// Which page.
        page: usize,
        /// Its first row.
        ordinal: TxOrdinal,
        /// How many rows it has.
        count: u64,
    },
    /// A page cannot be read.
    #[error("page {page} at byte {offset}: {fault}")]
    Page {
        /// Which page.
        page: usize,
        /// Where it lies.
        offset: u64,
        /// What is wrong with it.
        fault: PageFault,
    },
    /// A field of the footer is cut off.
    #[error("footer: {0}")]
    Footer(#[from] RowFault),
}
