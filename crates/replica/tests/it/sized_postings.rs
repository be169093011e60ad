//! Runs of the log index as long as mainnet's, which nobody has to write: the tail is whole, and buckets
//! are made when they are read. Every key has one place. Made by docs/format-index.md, without the code
//! that writes such runs.

use segment::index::{IndexKey, RunSpan};

use crate::bit_writer::{BitWriter, bucket_checksum};
use crate::key_buckets::KeyBuckets;
use crate::sized_file::{IndexTail, SizedFile};

const KEY_BITS: u32 = 33;
/// Postings of a bucket on average, until there are 2^19 buckets.
pub(crate) const BUCKET_POSTINGS: u64 = 512;

/// A run.
#[derive(Debug)]
pub(crate) struct SizedPostings {
    keys: KeyBuckets,
    place_bits: u32,
    tail: IndexTail,
}

/// A value that is in one transaction of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedValue {
    pub(crate) key: IndexKey,
    pub(crate) slot: u64,
    /// Counted from the first of the slot; the transaction is among the first 16.
    pub(crate) block: u64,
}

impl SizedPostings {
    /// A run with so many postings a slot, which is a multiple of [`BUCKET_POSTINGS`], and these among
    /// them.
    pub(crate) fn new(span: RunSpan, slot_postings: u64, wanted: &[PlacedValue]) -> Self {
        let count = slot_postings * span.slot_count();
        let bucket_count = count.div_ceil(BUCKET_POSTINGS).min(1 << 19);
        let of_span = wanted.iter().filter(|it| span.contains(it.slot));
        let wanted = of_span
            .map(|it| (it.key.number(), (it.slot - span.first_slot()) << 17 | it.block << 4));
        let keys = KeyBuckets::new(KEY_BITS, count, bucket_count, wanted.collect());
        let place_bits = 17 + span.slot_count().trailing_zeros();
        let lengths: Vec<u64> =
            (0..bucket_count).map(|bucket| bucket_bytes(&keys, bucket, place_bits)).collect();
        let tail =
            IndexTail::new(Vec::new(), span, count, &lengths, &lengths, [place_bits as u8, 3]);
        Self { keys, place_bits, tail }
    }
}

/// The low bits of each key of a bucket, and the zeros among its unary part.
fn shape(keys: &KeyBuckets, bucket: u64) -> (u32, u64) {
    let width = (1_u64 << KEY_BITS).div_ceil(keys.bucket_count);
    let low_bits = (width / keys.count(bucket)).ilog2();
    (low_bits, (width - 1) >> low_bits)
}

fn bucket_bytes(keys: &KeyBuckets, bucket: u64, place_bits: u32) -> u64 {
    let (low_bits, zero_count) = shape(keys, bucket);
    let bits = zero_count + keys.count(bucket) * u64::from(2 + low_bits + place_bits);
    4 + bits.div_ceil(8) + 4
}

impl SizedFile for SizedPostings {
    fn index_tail(&self) -> &IndexTail {
        &self.tail
    }

    fn bucket(&self, number: u64) -> Vec<u8> {
        let entries = self.keys.entries(number, 1 << self.place_bits);
        let (low_bits, zero_count) = shape(&self.keys, number);
        let mut bits = BitWriter::default();
        bits.push_unary(entries.iter().map(|it| it.0 >> low_bits), zero_count);
        bits.push_all(entries.iter().map(|it| it.0), low_bits);
        // The code of a single place.
        bits.push_all(entries.iter().map(|_| 1), 1);
        bits.push_all(entries.iter().map(|it| it.1), self.place_bits);
        let mut bytes = (entries.len() as u32).to_le_bytes().to_vec();
        bytes.extend(bits.into_bytes());
        bytes.extend(bucket_checksum(number, &bytes));
        bytes
    }
}
