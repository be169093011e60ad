//! Buckets: bytes with a checksum that begin with sorted keys in Elias-Fano form.
//!
//! A key is stored as its distance from the bucket's lowest one. The distance without its low bits never
//! falls from key to key, so it is written in unary, as zeros counted up before each key's one; then come
//! all low bits, then the values.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bits::{Packer, find_zero, mask, read, words};
use super::error::CorruptIndex;

pub(super) const CHECKSUM_BYTES: usize = 4;

/// Appends the checksum of what follows `begin`. The seed of a bucket is its number, so that a bucket
/// read from a wrong place is refused.
pub(super) fn seal(seed: u64, begin: usize, out: &mut Vec<u8>) {
    let sum = checksum(seed, out.get(begin..).unwrap_or_default());
    out.extend(sum.to_le_bytes());
}

/// The bytes before a checksum, if it is right; `at` is where they begin in the file.
pub(super) fn unseal<'a>(
    part: &'static str,
    at: u64,
    seed: u64,
    bytes: &'a [u8],
) -> Result<&'a [u8], CorruptIndex> {
    let Some((body, expected)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(CorruptIndex::Content { part, at, reason: "it has no checksum" });
    };
    let (expected, found) = (u32::from_le_bytes(*expected), checksum(seed, body));
    if found == expected {
        return Ok(body);
    }
    Err(CorruptIndex::Checksum { part, at, expected, found })
}

fn checksum(seed: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::try_from(seed).unwrap_or(u32::MAX));
    hasher.update(body);
    hasher.finalize()
}

/// How the keys of a bucket are packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyLayout {
    pub(super) key_count: u64,
    pub(super) low_bits: u32,
    /// Zeros in the unary part: the highest quotient that a key can have.
    pub(super) zero_count: u64,
}

impl KeyLayout {
    fn low_at(&self) -> u64 {
        self.key_count.saturating_add(self.zero_count)
    }

    /// The first bit after the keys.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.low_at().saturating_add(self.key_count.saturating_mul(self.low_bits.into()))
    }

    /// Appends the keys of a bucket whose lowest possible one is `key_min`.
    pub(super) fn put(
        &self,
        key_min: u64,
        keys: impl Iterator<Item = u64> + Clone,
        packer: &mut Packer<'_>,
    ) {
        let distances = keys.map(|key| key.saturating_sub(key_min));
        let mut zeros = 0;
        for distance in distances.clone() {
            let quotient = distance.checked_shr(self.low_bits).unwrap_or(0);
            packer.push_unary(quotient.saturating_sub(zeros));
            zeros = quotient;
        }
        packer.push_zeros(self.zero_count.saturating_sub(zeros));
        distances.for_each(|distance| packer.push(distance, self.low_bits));
    }
}

/// The keys of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'a> {
    pub(super) layout: KeyLayout,
    /// Keys and values.
    pub(super) bits: &'a [u8],
    /// The lowest possible key.
    pub(super) key_min: u64,
    /// Where the bucket is in its file; for errors only.
    pub(super) at: u64,
}

impl Keys<'_> {
    /// Which keys are equal to this one.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Result<Range<u64>, CorruptIndex> {
        let low_bits = self.layout.low_bits;
        let distance = key.saturating_sub(self.key_min);
        let low_sought = distance & mask(low_bits);
        let quotient = distance.checked_shr(low_bits).unwrap_or(0);
        let low_at = self.layout.low_at();
        let mut at = match quotient.checked_sub(1) {
            None => 0,
            Some(rank) => match find_zero(self.bits, rank) {
                Some(zero) if zero < low_at => zero.saturating_add(1),
                _ => return Err(self.fault("too few zeros in the unary part")),
            },
        };
        let mut index = at.saturating_sub(quotient);
        let mut first = None;
        while at < low_at && read(self.bits, at, 1) == Some(1) {
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

    /// Gives every key with its index, in order, and checks that it is below `key_end`.
    pub(super) fn for_each(
        &self,
        key_end: u64,
        mut take: impl FnMut(u64, u64) -> Result<(), CorruptIndex>,
    ) -> Result<(), CorruptIndex> {
        let (key_count, low_at) = (self.layout.key_count, self.layout.low_at());
        let mut index = 0;
        for (word, word_at) in words(self.bits).zip((0_u64..).step_by(64)) {
            let mut ones = word;
            while ones != 0 && index < key_count {
                let at = word_at.saturating_add(u64::from(ones.trailing_zeros()));
                ones &= ones.wrapping_sub(1);
                if at >= low_at {
                    return Err(self.fault("too few ones in the unary part"));
                }
                let quotient = at.saturating_sub(index);
                let high = quotient.checked_shl(self.layout.low_bits).unwrap_or(0);
                let key = self.key_min.saturating_add(high | self.low(index)?);
                if key >= key_end {
                    return Err(self.fault("one of its keys belongs to a later bucket"));
                }
                take(index, key)?;
                index = index.saturating_add(1);
            }
            if index == key_count {
                return Ok(());
            }
        }
        if index == key_count { Ok(()) } else { Err(self.fault("too few ones in the unary part")) }
    }

    #[inline]
    fn low(&self, index: u64) -> Result<u64, CorruptIndex> {
        self.number_at(self.layout.low_at(), index, self.layout.low_bits)
    }

    /// The number of a key, where those of all keys begin at bit `base`.
    #[inline]
    pub(super) fn number_at(&self, base: u64, index: u64, width: u32) -> Result<u64, CorruptIndex> {
        let at = base.saturating_add(index.saturating_mul(u64::from(width)));
        let is_key = index < self.layout.key_count;
        let number = read(self.bits, at, width).filter(|_| is_key);
        number.ok_or_else(|| self.fault("a key is past its end"))
    }

    pub(super) fn fault(&self, reason: &'static str) -> CorruptIndex {
        CorruptIndex::Content { part: "bucket at byte", at: self.at, reason }
    }
}

/// The buckets of one run whose checksums were verified, for runs that are in memory as a whole: the
/// checksum covers over twenty times as many bytes as a probe reads. What comes from a disk is checked
/// each time.
#[derive(Debug)]
pub struct VerifiedBuckets(Box<[AtomicU64]>);

impl VerifiedBuckets {
    /// None of `bucket_count` buckets, yet.
    #[must_use]
    pub fn none_of(bucket_count: u64) -> Self {
        let words = bucket_count.div_ceil(u64::BITS.into());
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
        let word = usize::try_from(bucket >> 6).ok();
        (word.and_then(|word| self.0.get(word)), 1 << (bucket & 63))
    }
}
