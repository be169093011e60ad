//! What was read of bytes from outside, as bytes again, for fuzzers.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::prune::ORPHANS_TITLE;
use crate::published::{Listing, RETRACTION_TITLE};
use crate::range_cache::reencode_records;
use crate::signed_text::{decode_lines, encode_lines};

/// A retraction, a note of orphans or an index, decoded and encoded again; `None` if these bytes are none.
#[doc(hidden)]
#[must_use]
pub fn reencode_bucket_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let of = |title| {
        let lines: BTreeSet<String> = decode_lines(title, bytes).ok()?;
        Some(encode_lines(title, &lines))
    };
    let index = || Listing::decode(bytes).ok().map(|it| it.encode());
    of(RETRACTION_TITLE).or_else(|| of(ORPHANS_TITLE)).or_else(index)
}

/// The records of a file of the disk cache that a read would believe: where each lies, and the same record
/// as it would be written.
#[doc(hidden)]
#[must_use]
pub fn reencode_cache_file(bytes: &[u8]) -> Vec<(Range<usize>, Vec<u8>)> {
    reencode_records(bytes)
}
