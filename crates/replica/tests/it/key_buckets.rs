//! Keys that are spread over buckets about as hashes are, without a list of them.
//!
//! The keys of a bucket stand at equal distances, but for those that tests look for. Buckets differ in
//! how many they have: each pair of neighbours has twice the mean.

use std::collections::BTreeMap;

use chain::SplitMix64;

/// Keys of some bits in so many buckets.
#[derive(Debug)]
pub(crate) struct KeyBuckets {
    pub(crate) key_bits: u32,
    pub(crate) bucket_count: u64,
    mean: u64,
    /// Keys that tests look for, with their values.
    wanted: BTreeMap<u64, u64>,
}

impl KeyBuckets {
    /// `key_count` must be a multiple of the number of buckets.
    pub(crate) fn new(
        key_bits: u32,
        key_count: u64,
        bucket_count: u64,
        wanted: BTreeMap<u64, u64>,
    ) -> Self {
        assert_eq!(key_count % bucket_count, 0, "{key_count} keys in {bucket_count} buckets");
        Self { key_bits, bucket_count, mean: key_count / bucket_count, wanted }
    }

    /// By how many keys a bucket and its neighbour differ from the mean: five standard deviations at most.
    fn surplus(&self, pair: u64) -> u64 {
        SplitMix64::at(pair) % (5 * self.mean.isqrt() + 1)
    }

    /// How many keys a bucket has.
    pub(crate) fn count(&self, bucket: u64) -> u64 {
        if bucket == self.bucket_count - 1 && bucket.is_multiple_of(2) {
            self.mean
        } else if bucket.is_multiple_of(2) {
            self.mean + self.surplus(bucket / 2)
        } else {
            self.mean - self.surplus(bucket / 2)
        }
    }

    /// The lowest key of a bucket.
    pub(crate) fn key_min(&self, bucket: u64) -> u64 {
        (bucket << self.key_bits).div_ceil(self.bucket_count)
    }

    /// How many keys there could be in a bucket.
    pub(crate) fn width(&self, bucket: u64) -> u64 {
        self.key_min(bucket + 1) - self.key_min(bucket)
    }

    /// The keys of a bucket, each less the lowest, with their values below `value_end`.
    pub(crate) fn entries(&self, bucket: u64, value_end: u64) -> Vec<(u64, u64)> {
        let (first, width, count) = (self.key_min(bucket), self.width(bucket), self.count(bucket));
        let entry = |index: u64| {
            let distance = (index * width + width / 2) / count;
            (distance, SplitMix64::at(first + distance) % value_end)
        };
        let mut entries: Vec<(u64, u64)> = (0..count).map(entry).collect();
        let mut taken = None;
        for (key, value) in self.wanted.range(first..first + width) {
            let distance = key - first;
            let index = (distance * count / width).min(count - 1);
            assert_ne!(taken.replace(index), Some(index), "two keys in the place of one");
            entries[index as usize] = (distance, *value);
        }
        assert!(entries.is_sorted_by(|one, other| one.0 < other.0), "keys of bucket {bucket}");
        entries
    }
}
