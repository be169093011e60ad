//! How much of a hash a run keeps.

use alloy_primitives::B256;

/// Bits that every run keeps of every hash, whatever its size: the reason why merging needs
/// nothing but the runs. [`crate::lookup`] derives the number.
pub const PREFIX_BITS: u32 = 39;

/// The first [`PREFIX_BITS`] bits of a hash, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashPrefix(u64);

impl HashPrefix {
    /// What a run keeps of `hash`.
    #[must_use]
    pub fn of(hash: &B256) -> Self {
        let first = hash.0.first_chunk().copied().map_or(0, u64::from_be_bytes);
        Self(first >> (u64::BITS - PREFIX_BITS))
    }

    /// The prefix that is `number`, whose higher bits are ignored.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number & ((1 << PREFIX_BITS) - 1))
    }

    /// The bits as a number below 2^[`PREFIX_BITS`].
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_first_39_bits() {
        let mut bytes = [0; 32];
        bytes[..6].copy_from_slice(&[0x80, 0, 0, 0, 0x03, 0xff]);
        assert_eq!(HashPrefix::of(&B256::new(bytes)).number(), (1 << 38) | 1);
        assert_eq!(HashPrefix::of(&B256::repeat_byte(0xff)).number(), (1 << 39) - 1);
        assert_eq!(HashPrefix::from_number(u64::MAX).number(), (1 << 39) - 1);
    }
}
