//! What can be wrong with a run's bytes, and with what a run was to be made of.

use std::fmt;

use thiserror::Error;

use super::geometry::KEY_COUNT_MAX;
use super::span::{RunSpan, SpanError};
use super::{Position, Subject};

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

/// Why bytes are not the run, or the bucket, that they should be. The file is damaged: fetch or
/// build it again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CorruptRun {
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
    /// The file does not end as run files do.
    #[error("not a run file: it ends with {found:02x?}, expected {expected:02x?}")]
    Magic {
        /// How a run file ends.
        expected: [u8; 8],
        /// How this one ends.
        found: [u8; 8],
    },
    /// A format that this build does not know.
    #[error("run format {found}, this build reads {expected}")]
    Version {
        /// The version that this build reads.
        expected: u16,
        /// The version of the file.
        found: u16,
    },
    /// The tail is not what was written.
    #[error("tail: checksum {found:08x}, footer says {expected:08x}")]
    TailChecksum {
        /// The checksum in the footer.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The footer names no known subject.
    #[error("footer: subject {found}, expected 1 (transactions) or 2 (blocks)")]
    Subject {
        /// The number that was read.
        found: u8,
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
    /// The directory counts other keys than the footer.
    #[error("directory: {found} keys in all buckets, footer says {expected}")]
    KeyCount {
        /// The footer's count.
        expected: u64,
        /// The sum over all buckets.
        found: u64,
    },
    /// There is no such bucket.
    #[error("bucket {bucket}: the run has {bucket_count}")]
    NoBucket {
        /// The bucket that was asked for.
        bucket: u64,
        /// How many there are.
        bucket_count: u64,
    },
    /// The bytes are not a whole bucket.
    #[error("bucket {bucket} at byte {offset}: {found} bytes, directory says {expected}")]
    BucketLength {
        /// Which bucket.
        bucket: u64,
        /// Where it begins in the file.
        offset: u64,
        /// Its length by the directory.
        expected: u64,
        /// How many bytes there are.
        found: u64,
    },
    /// A bucket is not what was written.
    #[error("bucket {bucket} at byte {offset}: checksum {found:08x}, bucket says {expected:08x}")]
    BucketChecksum {
        /// Which bucket.
        bucket: u64,
        /// Where it begins in the file.
        offset: u64,
        /// The checksum that the bucket carries.
        expected: u32,
        /// The checksum of its bytes.
        found: u32,
    },
    /// A bucket whose checksum is right holds what no writer wrote.
    #[error("bucket {bucket}: key {index} of {key_count}: {reason}")]
    BucketContent {
        /// Which bucket.
        bucket: u64,
        /// How many of its keys could be read.
        index: u64,
        /// How many keys the directory counts in it.
        key_count: u64,
        /// What is wrong with the next one.
        reason: &'static str,
    },
}

/// Why entries do not make a run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// The position is outside of the run.
    #[error("slot {slot} is not in {span}")]
    Slot {
        /// The slot of the entry.
        slot: u64,
        /// What the run covers.
        span: RunSpan,
    },
    /// The ordinal is not below the count that was announced for its slot.
    #[error("slot {}: ordinal {}, expected less than {ordinal_count}", position.slot, position.ordinal)]
    Ordinal {
        /// The position of the entry.
        position: Position,
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
    #[error("entry {index} (prefix {prefix:010x}) does not come after the one before it")]
    Order {
        /// How many entries came before.
        index: u64,
        /// Its hash prefix.
        prefix: u64,
    },
    /// Not as many entries as announced.
    #[error("{found} entries, {expected} were announced")]
    EntryCount {
        /// What was announced.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// More keys than a run can have.
    #[error("{found} keys in one run, at most {KEY_COUNT_MAX}")]
    TooManyKeys {
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
    /// They are lookups of different things.
    #[error("a run of {left} and one of {right} do not merge")]
    Subjects {
        /// What the left one finds.
        left: Subject,
        /// What the right one finds.
        right: Subject,
    },
    /// One of them is damaged.
    #[error("{side} run: {cause}")]
    Corrupt {
        /// Which one.
        side: Side,
        /// What is wrong with it.
        #[source]
        cause: CorruptRun,
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
