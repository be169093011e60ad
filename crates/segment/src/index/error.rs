//! What can be wrong with the bytes of a run, and with what a run was to be made of.

use std::fmt;

use thiserror::Error;

use super::key::RunSubject;
use super::span::{RunSpan, SpanError};

/// One of the two runs of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The run of the lower slots.
    Left,
    /// The run of the higher slots.
    Right,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}

/// Why bytes are not the run, or the part of one, that they should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CorruptIndex {
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
    /// The file does not end as index files do.
    #[error("not an index file: it ends with {found:02x?}, expected {expected:02x?}")]
    Magic {
        /// How an index file ends.
        expected: [u8; 8],
        /// How this one ends.
        found: [u8; 8],
    },
    /// A format that was never released.
    #[error("written by a development build: import the archives again, into another folder")]
    Unreleased,
    /// A format that this build does not know.
    #[error("index format {found}, this build reads {expected}")]
    Version {
        /// The version that this build reads.
        expected: u8,
        /// The version of the file.
        found: u8,
    },
    /// The footer names no known subject.
    #[error("footer: unknown subject {found}")]
    Subject {
        /// The number that was read.
        found: u8,
    },
    /// The file is of another subject than the question.
    #[error("a run of {found} has no {expected}")]
    OtherValues {
        /// What was asked for.
        expected: &'static str,
        /// What the run is an index of.
        found: RunSubject,
    },
    /// The footer's slots are no span.
    #[error("footer: {0}")]
    Span(#[from] SpanError),
    /// A number in the footer is out of its bounds.
    #[error("footer: {field} is {found}, at most {max}")]
    TooLarge {
        /// Which number.
        field: &'static str,
        /// The highest valid number.
        max: u64,
        /// What was read.
        found: u64,
    },
    /// A part is not what was written.
    #[error("{part} {at}: checksum {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Which kind of part.
        part: &'static str,
        /// Which of them, or where it begins in the file.
        at: u64,
        /// The checksum beside the bytes.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A part whose checksum is right holds what no writer wrote.
    #[error("{part} {at}: {reason}")]
    Content {
        /// Which kind of part.
        part: &'static str,
        /// Which of them, or where it begins in the file.
        at: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Why entries do not make a run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// A position or block outside of the run.
    #[error("slot {slot} is not in {span}")]
    Slot {
        /// The slot of the entry.
        slot: u64,
        /// What the run covers.
        span: RunSpan,
    },
    /// The slots are no span.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// The ordinal is not below the count that was announced for its slot.
    #[error("slot {slot}: ordinal {ordinal}, expected less than {ordinal_count}")]
    Ordinal {
        /// The slot of the entry.
        slot: u64,
        /// Its ordinal.
        ordinal: u32,
        /// How many ordinals its slot has.
        ordinal_count: u32,
    },
    /// A count is missing or to spare.
    #[error("{span}: ordinal counts for {found} slots, expected {}", span.slot_count())]
    SlotCounts {
        /// What the run covers.
        span: RunSpan,
        /// For how many slots there are counts.
        found: usize,
    },
    /// An entry that does not come after the one before: out of order, or a repetition.
    #[error("key {key:010x} does not come after the one before it")]
    Order {
        /// The key.
        key: u64,
    },
    /// Not as many entries or postings as announced.
    #[error("{found} entries, {expected} were announced")]
    EntryCount {
        /// What was announced.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// More entries or postings than a run can have.
    #[error("{found} entries in one run, at most {max}")]
    TooMany {
        /// The most that a run has.
        max: u64,
        /// How many there were to be.
        found: u64,
    },
}

/// Why two runs do not become one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MergeError {
    /// They are not the two halves of a larger run.
    #[error("{left} and {right} are not the halves of one run")]
    NotHalves {
        /// The span that should come first.
        left: RunSpan,
        /// The span that should follow it.
        right: RunSpan,
    },
    /// They are indexes of different things.
    #[error("a run of {left} and one of {right} do not merge")]
    Subjects {
        /// What the left one finds.
        left: RunSubject,
        /// What the right one finds.
        right: RunSubject,
    },
    /// One of them is damaged.
    #[error("{side} run: {cause}")]
    Corrupt {
        /// Which one.
        side: Side,
        /// What is wrong with it.
        #[source]
        cause: CorruptIndex,
    },
    /// Both are well, and what they give is too large.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Bytes were supplied that the merge did not ask for.
    #[error("{side} run: buckets were supplied before they were needed")]
    NotNeeded {
        /// For which one.
        side: Side,
    },
}
