//! What the files of a data folder are called.
//!
//! Knows: that a finished file is named by its content, and an unfinished one by nothing.
//! Never knows: what is in them.

use alloy_primitives::{B256, hex};
use chain::BlockRange;
use segment::lookup::{RunSpan, Subject};

const SEGMENT_END: &str = ".segment";
const RUN_END: &str = ".run";
const PART_END: &str = ".part";
/// Bytes of a digest that a name tells: enough that two contents do not meet by chance.
const DIGEST_BYTES: usize = 8;

/// A segment's file: first and last block, and the beginning of its digest.
#[must_use]
pub fn segment_name(range: BlockRange, digest: B256) -> String {
    format!("blocks-{:010}-{:010}-{}{SEGMENT_END}", range.first(), range.last(), short(digest))
}

/// A lookup run's file.
#[must_use]
pub fn run_name(subject: Subject, span: RunSpan, digest: B256) -> String {
    let (first, last) = (span.first_slot(), span.end_slot().saturating_sub(1));
    format!("lookup-{subject}-{first:06}-{last:06}-{}{RUN_END}", short(digest))
}

/// A file that is being written.
pub(crate) fn part_name(number: u64) -> String {
    format!("{number}{PART_END}")
}

/// Whether a file is a segment, a run or the beginning of one: if the manifest does not list it,
/// nobody will miss it.
pub(crate) fn is_data_name(name: &str) -> bool {
    [SEGMENT_END, RUN_END, PART_END].iter().any(|end| name.ends_with(end))
}

fn short(digest: B256) -> String {
    hex::encode(digest.get(..DIGEST_BYTES).unwrap_or_default())
}
