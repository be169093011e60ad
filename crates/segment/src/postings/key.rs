//! What is searched for, as 33 bits.
//!
//! Knows: the kinds of values that have posting lists, and how a value becomes a key.
//! Never knows: which values there are.
//!
//! The kind goes into the hash, so a further kind is no change of the format. SHA-256 has instructions
//! of its own on the processors of today, and whoever wants a value to share the key of another one
//! has to try some 2^33.

use alloy_primitives::Address;
use sha2::{Digest as _, Sha256};

/// Bits of a key. A file of 2^30 keys, all of mainnet's, finds a place for one value in eight that has none
/// there: a page is read in vain. Every bit more would be one for each key.
pub(super) const KEY_BITS: u32 = 33;

/// What a value is in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PostingKind {
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
    /// Who sent a transaction. The index of logs has none of these yet: benchmarks tell what they would
    /// take.
    Sender,
    /// Whom a transaction was sent to.
    Recipient,
}

impl PostingKind {
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

/// A value with its kind, as far as posting files keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostingKey(u64);

impl PostingKey {
    /// The key of a log's address.
    #[must_use]
    pub fn of_address(address: &Address) -> Self {
        Self::of(PostingKind::LogAddress, address.as_slice())
    }

    /// The key of a value of some kind.
    #[must_use]
    pub fn of(kind: PostingKind, value: &[u8]) -> Self {
        let digest = Sha256::new_with_prefix([kind.code()]).chain_update(value).finalize();
        let first = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
        Self(first >> (u64::BITS - KEY_BITS))
    }

    /// The key as a number below 2^33.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }
}
