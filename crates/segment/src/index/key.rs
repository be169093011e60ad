//! What a run is an index of, and the keys by which it is searched.

use std::fmt;

use alloy_primitives::{Address, B256};
use sha2::{Digest as _, Sha256};

/// What a run is an index of, in the order in which a manifest lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunSubject {
    /// Transactions by their hashes: an ordinal counts the transactions of a slot.
    Transactions,
    /// Blocks by their hashes: an ordinal is a block's number less the first of its slot.
    Blocks,
    /// Logs by their addresses and topics: posting lists.
    Logs,
}

impl RunSubject {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Transactions, Self::Blocks, Self::Logs];

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Transactions => 1,
            Self::Blocks => 2,
            Self::Logs => 3,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }

    /// Whether the values are posting lists.
    pub(super) fn has_lists(self) -> bool {
        self == Self::Logs
    }

    pub(super) fn key_bits(self) -> u32 {
        if self.has_lists() { VALUE_KEY_BITS } else { HASH_KEY_BITS }
    }
}

impl fmt::Display for RunSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transactions => "transactions",
            Self::Blocks => "blocks",
            Self::Logs => "logs",
        })
    }
}

/// Bits that runs keep of the hash of a transaction or block, whatever their size: the reason why
/// merging needs nothing but the runs. [`crate::index`] derives the number.
pub const HASH_KEY_BITS: u32 = 39;

/// Bits of the key of an address or topic. A file of 2^30 keys, all of mainnet's, has a place for one
/// value in eight that is not in it, and a page is read in vain. Every further bit costs one per key.
const VALUE_KEY_BITS: u32 = 33;

/// What a value with a posting list is.
///
/// The kind is hashed with the value, so a further kind does not change the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// The address that logged.
    LogAddress,
    /// The first topic.
    Topic0,
    /// The second topic.
    Topic1,
    /// The third topic.
    Topic2,
    /// The fourth topic.
    Topic3,
    /// The sender of a transaction. Only benchmarks write these yet.
    Sender,
    /// The recipient of a transaction. Only benchmarks write these yet.
    Recipient,
}

impl KeyKind {
    /// The topics in their order.
    pub const TOPICS: [Self; 4] = [Self::Topic0, Self::Topic1, Self::Topic2, Self::Topic3];

    fn code(self) -> u8 {
        match self {
            Self::LogAddress => 1,
            Self::Topic0 => 2,
            Self::Topic1 => 3,
            Self::Topic2 => 4,
            Self::Topic3 => 5,
            Self::Sender => 6,
            Self::Recipient => 7,
        }
    }
}

/// The first bits of a hash: what a run keeps of what is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey(u64);

impl IndexKey {
    /// The key of the hash of a transaction or block.
    #[must_use]
    pub fn of_hash(hash: &B256) -> Self {
        Self::first_bits(&hash.0, HASH_KEY_BITS)
    }

    /// The key of a value of some kind. SHA-256 has instructions of its own on current processors, and a
    /// collision with a given key takes some 2^33 attempts.
    #[must_use]
    pub fn of(kind: KeyKind, value: &[u8]) -> Self {
        let digest = Sha256::new_with_prefix([kind.code()]).chain_update(value).finalize();
        Self::first_bits(&digest, VALUE_KEY_BITS)
    }

    /// The key of a log's address.
    #[must_use]
    pub fn of_address(address: &Address) -> Self {
        Self::of(KeyKind::LogAddress, address.as_slice())
    }

    /// The key that is this number.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The bits as a number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    fn first_bits(hash: &[u8], bits: u32) -> Self {
        let first = hash.first_chunk().copied().map_or(0, u64::from_be_bytes);
        Self(first.checked_shr(u64::BITS.saturating_sub(bits)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_hash_is_its_first_39_bits() {
        let mut bytes = [0; 32];
        bytes[..6].copy_from_slice(&[0x80, 0, 0, 0, 0x03, 0xff]);
        assert_eq!(IndexKey::of_hash(&B256::new(bytes)).number(), (1 << 38) | 1);
        assert_eq!(IndexKey::of_hash(&B256::repeat_byte(0xff)).number(), (1 << 39) - 1);
    }

    #[test]
    fn kinds_do_not_meet() {
        let kinds = [KeyKind::LogAddress].into_iter().chain(KeyKind::TOPICS);
        let keys = kinds.chain([KeyKind::Sender, KeyKind::Recipient]);
        let keys: std::collections::BTreeSet<IndexKey> =
            keys.map(|kind| IndexKey::of(kind, &[7; 32])).collect();
        assert_eq!(keys.len(), 7);
    }
}
