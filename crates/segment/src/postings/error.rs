//! What can be wrong with a posting file's bytes, and with what one was to be made of.

use thiserror::Error;

use crate::lookup::{RunSpan, Side, SpanError};

/// Why bytes are not the posting file, or the part of one, that they should be. The file is damaged:
/// build it again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CorruptPostings {
    /// Fewer or more bytes than the part has.
    #[error("{part}: {found} bytes, expected {expected}")]
    Length {
        /// Which part of the file.
        part: &'static str,
        /// How many bytes it has.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// The file does not end as posting files do.
    #[error("not a posting file: it ends with {found:02x?}, expected {expected:02x?}")]
    Magic {
        /// How a posting file ends.
        expected: [u8; 8],
        /// How this one ends.
        found: [u8; 8],
    },
    /// A format that this build does not know.
    #[error("posting format {found}, this build reads {expected}")]
    Version {
        /// The version that this build reads.
        expected: u16,
        /// The version of the file.
        found: u16,
    },
    /// The footer's slots are no span.
    #[error("footer: {0}")]
    Span(#[from] SpanError),
    /// A number in the footer is out of its bounds.
    #[error("footer: {field} is {found}, at most {max}")]
    TooLarge {
        /// Which number.
        field: &'static str,
        /// The highest that can be right.
        max: u64,
        /// What was read.
        found: u64,
    },
    /// A part is not what was written.
    #[error("{part} {number}: checksum {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Which kind of part.
        part: &'static str,
        /// Which of them.
        number: u64,
        /// The checksum beside the bytes.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A part whose checksum is right holds what no writer wrote.
    #[error("{part} {number}: {reason}")]
    Content {
        /// Which kind of part.
        part: &'static str,
        /// Which of them.
        number: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Why postings do not make a file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PostingsBuildError {
    /// A block that is not of the slot.
    #[error("block {number} is not in slot {slot}")]
    Block {
        /// Its number.
        number: u64,
        /// The slot of the file.
        slot: u64,
    },
    /// A key that does not come after the one before.
    #[error("key {number:010x} does not come after the one before it")]
    Order {
        /// The key.
        number: u64,
    },
    /// Not as many postings as announced.
    #[error("{found} postings, {expected} were announced")]
    PostingCount {
        /// What was announced.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// More postings than a file can have.
    #[error("{found} postings in one file, at most {max}")]
    TooMany {
        /// The most that a file has.
        max: u64,
        /// How many there were to be.
        found: u64,
    },
}

/// Why two posting files do not become one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PostingsMergeError {
    /// They are not the two halves of a larger file.
    #[error("{left} and {right} are not the halves of one posting file")]
    NotHalves {
        /// The span that should come first.
        left: RunSpan,
        /// The span that should follow it.
        right: RunSpan,
    },
    /// One of them is damaged.
    #[error("{side} posting file: {cause}")]
    Corrupt {
        /// Which one.
        side: Side,
        /// What is wrong with it.
        #[source]
        cause: CorruptPostings,
    },
    /// Together they have too many postings, or others than they announced.
    #[error(transparent)]
    Build(#[from] PostingsBuildError),
    /// Bytes were supplied that the merge did not ask for.
    #[error("{side} posting file: buckets were supplied before they were needed")]
    NotNeeded {
        /// For which one.
        side: Side,
    },
}
