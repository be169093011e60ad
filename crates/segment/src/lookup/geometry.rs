//! The arithmetic of a run file: where everything is, from two counts alone.
//!
//! Every number here is bounded by [`KEY_COUNT_MAX`], far below what 64 bits hold: saturation is
//! how the code says that nothing overflows, not something that happens.

use super::bits::width_of;
use super::prefix::{HashPrefix, PREFIX_BITS};

/// Bytes of the footer, at the very end of the file.
pub(super) const FOOTER_BYTES: u64 = 44;
/// The most keys in one run. A run that large would answer one absent key in eight with a false
/// candidate; it is a limit for files, not a goal.
pub const KEY_COUNT_MAX: u64 = 1 << 36;

/// Keys in a bucket on average while the directory is small.
const BUCKET_KEYS_MEAN: u64 = 256;
/// The most buckets: beyond this many, buckets grow instead of the directory.
const BUCKET_COUNT_MAX: u64 = 1 << 19;
const CHECKSUM_BITS: u64 = 32;
/// Spare bits in a bucket: enough to round any bucket up to whole bytes, wherever it begins.
const ROUNDING_BITS: u64 = 7;
const SLOT_ENTRY_BYTES: u64 = 4;

/// How many buckets a run has, how wide its packed numbers are, and where each bucket begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    key_count: u64,
    bucket_count: u64,
    low_bits: u32,
    value_bits: u32,
    /// Zeros in each bucket's unary part: the highest quotient that a bucket's keys can have.
    zero_count: u64,
}

impl Geometry {
    /// The geometry of a run with `key_count` keys, whose slots have `ordinal_count` ordinals
    /// together.
    #[must_use]
    pub fn new(key_count: u64, ordinal_count: u64) -> Self {
        let bucket_count = key_count.div_ceil(BUCKET_KEYS_MEAN).clamp(1, BUCKET_COUNT_MAX);
        let prefix_count = 1_u64 << PREFIX_BITS;
        let prefixes_a_key = prefix_count.checked_div(key_count).unwrap_or(prefix_count);
        let low_bits = prefixes_a_key.checked_ilog2().unwrap_or(0);
        let bucket_width = prefix_count.div_ceil(bucket_count);
        let value_bits = width_of(ordinal_count.saturating_sub(1));
        let zero_count = bucket_width.saturating_sub(1).checked_shr(low_bits).unwrap_or(0);
        Self { key_count, bucket_count, low_bits, value_bits, zero_count }
    }

    /// How many keys the run has.
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// How many buckets the keys are spread over.
    #[must_use]
    pub fn bucket_count(&self) -> u64 {
        self.bucket_count
    }

    /// Bits of a key that are stored as they are.
    #[must_use]
    pub fn low_bits(&self) -> u32 {
        self.low_bits
    }

    /// Bits of a value.
    #[must_use]
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    pub(super) fn zero_count(&self) -> u64 {
        self.zero_count
    }

    /// The bucket of a key: the place of its prefix among all prefixes, scaled.
    #[must_use]
    pub fn bucket_of(&self, prefix: HashPrefix) -> u64 {
        bucket_of(prefix.number(), PREFIX_BITS, self.bucket_count)
    }

    /// The lowest prefix of a bucket; of the one after the last, 2^39.
    pub(super) fn bucket_prefix_min(&self, bucket: u64) -> u64 {
        bucket_prefix_min(bucket, PREFIX_BITS, self.bucket_count)
    }

    /// Where a bucket begins that has `keys_before` keys in the buckets before it. The keys before
    /// a bucket decide alone; rounding down here leaves the bucket before with all the bits that it
    /// needs, because seven bits to spare are counted for each.
    #[must_use]
    pub fn bucket_offset(&self, bucket: u64, keys_before: u64) -> u64 {
        let bucket_bits = self.zero_count.saturating_add(CHECKSUM_BITS + ROUNDING_BITS);
        let key_bits = u64::from(self.low_bits.saturating_add(self.value_bits)).saturating_add(1);
        let bits = bucket.saturating_mul(bucket_bits);
        bits.saturating_add(keys_before.saturating_mul(key_bits)) / 8
    }

    /// Bytes that all buckets take.
    #[must_use]
    pub fn buckets_bytes(&self) -> u64 {
        self.bucket_offset(self.bucket_count, self.key_count)
    }

    /// Bytes of the tail of a run over `slot_count` slots, when the key counts of its buckets are
    /// packed into `count_bits` each.
    #[must_use]
    pub fn tail_bytes(&self, slot_count: u64, count_bits: u32) -> u64 {
        let directory = self.directory_bytes(count_bits);
        slot_table_bytes(slot_count).saturating_add(directory).saturating_add(FOOTER_BYTES)
    }

    pub(super) fn directory_bytes(&self, count_bits: u32) -> u64 {
        self.bucket_count.saturating_mul(u64::from(count_bits)).div_ceil(8)
    }
}

/// Which of so many buckets a prefix of so many bits belongs to.
pub(crate) fn bucket_of(prefix: u64, prefix_bits: u32, bucket_count: u64) -> u64 {
    prefix.saturating_mul(bucket_count).checked_shr(prefix_bits).unwrap_or(0)
}

/// The lowest prefix of one of so many buckets; of the one after the last, 2^`prefix_bits`.
pub(crate) fn bucket_prefix_min(bucket: u64, prefix_bits: u32, bucket_count: u64) -> u64 {
    let scaled = bucket.min(bucket_count).checked_shl(prefix_bits).unwrap_or(u64::MAX);
    scaled.div_ceil(bucket_count.max(1))
}

pub(super) fn slot_table_bytes(slot_count: u64) -> u64 {
    slot_count.saturating_mul(SLOT_ENTRY_BYTES)
}
