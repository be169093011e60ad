//! Runs of hashes as long as mainnet's, which nobody has to write: the tail is whole, and buckets are made
//! when they are read. Made by docs/format-index.md, without the code that writes runs.

use alloy_primitives::B256;
use segment::index::{HASH_KEY_BITS, IndexKey, Position, RunSpan, RunSubject};

use crate::bit_writer::{BitWriter, bucket_checksum};
use crate::key_buckets::KeyBuckets;
use crate::sized_file::{IndexTail, SizedFile};

/// Keys of a bucket on average, until there are 2^19 buckets.
pub(crate) const BUCKET_KEYS: u64 = 256;

/// A run.
#[derive(Debug)]
pub(crate) struct SizedRun {
    keys: KeyBuckets,
    low_bits: u32,
    value_bits: u32,
    zero_count: u64,
    ordinal_count: u64,
    tail: IndexTail,
}

impl SizedRun {
    /// A run with so many keys a slot, which is a multiple of [`BUCKET_KEYS`], and these among them.
    pub(crate) fn new(
        subject: RunSubject,
        span: RunSpan,
        slot_keys: u64,
        wanted: &[(B256, Position)],
    ) -> Self {
        let key_count = slot_keys * span.slot_count();
        let bucket_count = key_count.div_ceil(BUCKET_KEYS).min(1 << 19);
        let base = |slot: u64| (slot - span.first_slot()) * slot_keys;
        let of_span = wanted.iter().filter(|(_, position)| span.contains(position.slot));
        let wanted = of_span.map(|(hash, Position { slot, ordinal })| {
            (IndexKey::of_hash(hash).number(), base(*slot) + u64::from(*ordinal))
        });
        let keys = KeyBuckets::new(HASH_KEY_BITS, key_count, bucket_count, wanted.collect());
        let all_keys = 1_u64 << HASH_KEY_BITS;
        let low_bits = (all_keys / key_count).ilog2();
        let zero_count = (all_keys.div_ceil(bucket_count) - 1) >> low_bits;
        let value_bits = (u64::BITS - (key_count - 1).leading_zeros()).max(4);
        let key_bits = u64::from(1 + low_bits + value_bits);
        let sizes: Vec<u64> = (0..bucket_count).map(|bucket| keys.count(bucket)).collect();
        let lengths: Vec<u64> =
            sizes.iter().map(|count| (zero_count + count * key_bits).div_ceil(8) + 4).collect();
        let slots: Vec<u8> =
            (0..span.slot_count()).flat_map(|_| (slot_keys as u32).to_le_bytes()).collect();
        let code = if subject == RunSubject::Transactions { 1 } else { 2 };
        let tail =
            IndexTail::new(slots, span, key_count, &lengths, &sizes, [value_bits as u8, code]);
        Self { keys, low_bits, value_bits, zero_count, ordinal_count: key_count, tail }
    }
}

impl SizedFile for SizedRun {
    fn index_tail(&self) -> &IndexTail {
        &self.tail
    }

    fn bucket(&self, number: u64) -> Vec<u8> {
        let entries = self.keys.entries(number, self.ordinal_count);
        let mut bits = BitWriter::default();
        bits.push_unary(entries.iter().map(|it| it.0 >> self.low_bits), self.zero_count);
        bits.push_all(entries.iter().map(|it| it.0), self.low_bits);
        bits.push_all(entries.iter().map(|it| it.1), self.value_bits);
        let mut bytes = bits.into_bytes();
        bytes.extend(bucket_checksum(number, &bytes));
        bytes
    }
}
