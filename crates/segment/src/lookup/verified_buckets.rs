//! Buckets whose checksums were verified and whose bytes cannot change any more.
//!
//! Knows: a bit for every bucket of a run.
//! Never knows: how a checksum is verified.
//!
//! For runs that are in memory as a whole: the checksum of a bucket is over twenty times as many
//! bytes as a probe looks at. What comes from a disk is checked each time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets whose bits share a word.
const WORD_BUCKETS: u64 = 64;

/// The buckets of one run whose checksums were verified.
#[derive(Debug)]
pub struct VerifiedBuckets(Box<[AtomicU64]>);

impl VerifiedBuckets {
    /// None of so many buckets, yet.
    #[must_use]
    pub fn none_of(bucket_count: u64) -> Self {
        let words = bucket_count.div_ceil(WORD_BUCKETS);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(super) fn contains(&self, bucket: u64) -> bool {
        let (word, bit) = self.place(bucket);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    pub(super) fn insert(&self, bucket: u64) {
        let (word, bit) = self.place(bucket);
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    #[inline]
    fn place(&self, bucket: u64) -> (Option<&AtomicU64>, u64) {
        let word = usize::try_from(bucket / WORD_BUCKETS).ok();
        (word.and_then(|word| self.0.get(word)), 1 << (bucket % WORD_BUCKETS))
    }
}
