//! What a cached range is called.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// A file of the bucket: the first half of the SHA-256 of its name, so that entries need no table of
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileKey(pub(crate) [u8; 16]);

impl FileKey {
    pub(crate) fn of(file_name: &str) -> Self {
        let digest = Sha256::digest(file_name.as_bytes());
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(digest) {
            *to = from;
        }
        Self(key)
    }
}

/// Where an entry begins: its file, and its first byte.
pub(crate) type EntryKey = (FileKey, u64);

/// What outlasts what when room is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CacheRank {
    /// Parts of lookup runs and tails of segments: each of them saves a round trip of many reads.
    Lookup,
    /// Pages of segments.
    Page,
}

/// Pages keep this part of the room, however many lookups there are.
const PAGE_SHARE: u64 = 8;

impl CacheRank {
    /// Whose entries go when room is short.
    pub(crate) fn to_evict(lookup_bytes: u64, page_bytes: u64, bytes_max: u64) -> Self {
        if page_bytes > bytes_max / PAGE_SHARE || lookup_bytes == 0 {
            Self::Page
        } else {
            Self::Lookup
        }
    }
}

pub(crate) fn range_bytes(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The part `range` of bytes that begin at `start`, as indices; `None` if it is not among them.
pub(crate) fn part_of(start: u64, bytes: usize, range: &Range<u64>) -> Option<Range<usize>> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= bytes).then_some(from..to)
}
