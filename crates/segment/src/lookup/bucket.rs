//! One bucket: sorted keys in Elias-Fano form, their values, a checksum.
//!
//! Knows: the bits of a bucket, given its run's geometry and how many keys it has.
//! Never knows: where the bucket is in a file, what a value means.
//!
//! A key is stored as its distance from the bucket's lowest prefix. The distance without its low
//! bits never falls from key to key, so it is written in unary, as zeros counted up before each
//! key's one; then come all low bits, then all values.

use std::ops::Range;

use super::bits::{Packer, find_zero, mask, read, words};
use super::error::CorruptRun;
use super::geometry::Geometry;

pub(super) const CHECKSUM_BYTES: usize = 4;

/// A key and its value as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) prefix: u64,
    pub(super) value: u64,
}

/// Appends a bucket that takes `length` bytes.
pub(super) fn encode(
    geometry: &Geometry,
    number: u64,
    pairs: &[Pair],
    length: usize,
    bytes: &mut Vec<u8>,
) {
    let begin = bytes.len();
    let prefix_min = geometry.bucket_prefix_min(number);
    let distance = |pair: &Pair| pair.prefix.saturating_sub(prefix_min);
    let quotient = |pair: &Pair| distance(pair).checked_shr(geometry.low_bits()).unwrap_or(0);
    bytes.reserve(length);
    let mut packer = Packer::new(bytes);
    let mut zeros = 0;
    for pair in pairs {
        let quotient = quotient(pair);
        packer.push_unary(quotient.saturating_sub(zeros));
        zeros = quotient;
    }
    packer.push_zeros(geometry.zero_count().saturating_sub(zeros));
    for pair in pairs {
        packer.push(distance(pair), geometry.low_bits());
    }
    for pair in pairs {
        packer.push(pair.value, geometry.value_bits());
    }
    packer.finish();
    let end = begin.saturating_add(length.saturating_sub(CHECKSUM_BYTES));
    assert!(bytes.len() <= end, "bucket {number} is larger than its geometry says");
    bytes.resize(end, 0);
    let sum = checksum(number, bytes.get(begin..).unwrap_or_default());
    bytes.extend(sum.to_le_bytes());
}

/// The checksum begins with the bucket's number, so that a bucket read from a wrong place is
/// refused.
fn checksum(number: u64, body: &[u8]) -> u32 {
    let begin = u32::try_from(number).unwrap_or(u32::MAX);
    let mut hasher = crc32fast::Hasher::new_with_initial(begin);
    hasher.update(body);
    hasher.finalize()
}

/// A bucket and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunBucket<'a> {
    geometry: &'a Geometry,
    number: u64,
    key_count: u64,
    /// Where it is in its file; for errors only.
    offset: u64,
    bytes: &'a [u8],
    prefix_min: u64,
    /// Where the unary part ends and low bits begin, in bits.
    low_at: u64,
    /// Where values begin, in bits.
    value_at: u64,
}

impl<'a> RunBucket<'a> {
    /// A bucket with all of its bytes; [`Self::check`] tells whether they are to be believed.
    #[inline]
    pub(super) fn new(
        geometry: &'a Geometry,
        number: u64,
        key_count: u64,
        offset: u64,
        bytes: &'a [u8],
    ) -> Self {
        let low_at = key_count.saturating_add(geometry.zero_count());
        let low_length = key_count.saturating_mul(u64::from(geometry.low_bits()));
        let value_at = low_at.saturating_add(low_length);
        let prefix_min = geometry.bucket_prefix_min(number);
        Self { geometry, number, key_count, offset, bytes, prefix_min, low_at, value_at }
    }

    /// Whether the checksum is right.
    pub(super) fn check(&self) -> Result<(), CorruptRun> {
        let (body, expected) = self.bytes.split_last_chunk().unwrap_or((&[], &[0; CHECKSUM_BYTES]));
        let expected = u32::from_le_bytes(*expected);
        let found = checksum(self.number, body);
        if found == expected {
            return Ok(());
        }
        let (bucket, offset) = (self.number, self.offset);
        Err(CorruptRun::BucketChecksum { bucket, offset, expected, found })
    }

    /// Which keys of the bucket have this prefix.
    #[inline]
    pub(super) fn find(&self, prefix: u64) -> Result<Range<u64>, CorruptRun> {
        let distance = prefix.saturating_sub(self.prefix_min);
        let low_sought = distance & mask(self.geometry.low_bits());
        let quotient = distance.checked_shr(self.geometry.low_bits()).unwrap_or(0);
        let mut at = match quotient.checked_sub(1) {
            None => 0,
            Some(rank) => match find_zero(self.bytes, rank) {
                Some(zero) if zero < self.low_at => zero.saturating_add(1),
                _ => return Err(self.misfit(0, "too few zeros in the unary part")),
            },
        };
        let mut index = at.saturating_sub(quotient);
        let mut first = None;
        while at < self.low_at && read(self.bytes, at, 1) == Some(1) {
            let low = self.low(index)?;
            if low > low_sought {
                break;
            }
            if low == low_sought && first.is_none() {
                first = Some(index);
            }
            at = at.saturating_add(1);
            index = index.saturating_add(1);
        }
        Ok(first.unwrap_or(index)..index)
    }

    /// The value of a key.
    #[inline]
    pub(super) fn value(&self, index: u64) -> Result<u64, CorruptRun> {
        self.number_at(self.value_at, index, self.geometry.value_bits())
    }

    /// Appends every key with its value, in order, and checks that this is a writer's order.
    pub(super) fn decode(&self, pairs: &mut Vec<Pair>) -> Result<(), CorruptRun> {
        let prefix_end = self.geometry.bucket_prefix_min(self.number.saturating_add(1));
        let mut index = 0;
        let mut previous = None;
        for (word, word_at) in words(self.bytes).zip((0_u64..).step_by(64)) {
            let mut ones = word;
            while ones != 0 && index < self.key_count {
                let at = word_at.saturating_add(u64::from(ones.trailing_zeros()));
                ones &= ones.wrapping_sub(1);
                let quotient = at.saturating_sub(index);
                let high = quotient.checked_shl(self.geometry.low_bits()).unwrap_or(0);
                let distance = high | self.low(index)?;
                let prefix = self.prefix_min.saturating_add(distance);
                let pair = Pair { prefix, value: self.value(index)? };
                if at >= self.low_at {
                    return Err(self.misfit(index, "too few ones in the unary part"));
                }
                if prefix >= prefix_end {
                    return Err(self.misfit(index, "its prefix belongs to a later bucket"));
                }
                if previous.is_some_and(|previous| previous >= pair) {
                    return Err(self.misfit(index, "it does not come after the one before"));
                }
                previous = Some(pair);
                pairs.push(pair);
                index = index.saturating_add(1);
            }
            if index == self.key_count {
                return Ok(());
            }
        }
        Err(self.misfit(index, "too few ones in the unary part"))
    }

    #[inline]
    fn low(&self, index: u64) -> Result<u64, CorruptRun> {
        self.number_at(self.low_at, index, self.geometry.low_bits())
    }

    #[inline]
    fn number_at(&self, base: u64, index: u64, width: u32) -> Result<u64, CorruptRun> {
        let at = base.saturating_add(index.saturating_mul(u64::from(width)));
        let is_key = index < self.key_count;
        let number = read(self.bytes, at, width).filter(|_| is_key);
        number.ok_or_else(|| self.misfit(index, "it is past the end of the bucket"))
    }

    pub(super) fn misfit(&self, index: u64, reason: &'static str) -> CorruptRun {
        let (bucket, key_count) = (self.number, self.key_count);
        CorruptRun::BucketContent { bucket, index, key_count, reason }
    }
}
