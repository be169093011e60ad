//! Runs of the log index as long as mainnet's, which nobody has to write: the tail is whole, and buckets
//! are made when they are read. Every key has one place. Made by docs/format-logs.md, without the code
//! that writes such runs.

use segment::lookup::RunSpan;
use segment::postings::PostingKey;

use crate::bit_writer::{BitWriter, bucket_checksum};
use crate::key_buckets::KeyBuckets;
use crate::sized_file::SizedFile;

const KEY_BITS: u32 = 33;
/// Postings of a bucket on average, until there are 2^19 buckets.
pub(crate) const BUCKET_POSTINGS: u64 = 512;

/// A run.
#[derive(Debug)]
pub(crate) struct SizedPostings {
    keys: KeyBuckets,
    place_bits: u32,
    /// Where each bucket begins, and after the last one, the tail.
    offsets: Vec<u64>,
    tail: Vec<u8>,
}

/// A value that is in one transaction of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedValue {
    pub(crate) key: PostingKey,
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
        let tail = tail(span, &keys, &lengths, place_bits);
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        Self { keys, place_bits, offsets, tail }
    }
}

/// The low bits of each key of a bucket, and the zeros among its unary part.
fn shape(keys: &KeyBuckets, bucket: u64) -> (u32, u64) {
    let width = keys.width(bucket);
    let low_bits = (width / keys.count(bucket)).ilog2();
    (low_bits, (width - 1) >> low_bits)
}

fn bucket_bytes(keys: &KeyBuckets, bucket: u64, place_bits: u32) -> u64 {
    let (low_bits, zero_count) = shape(keys, bucket);
    let bits = zero_count + keys.count(bucket) * u64::from(2 + low_bits + place_bits);
    4 + bits.div_ceil(8) + 4
}

fn tail(span: RunSpan, keys: &KeyBuckets, lengths: &[u64], place_bits: u32) -> Vec<u8> {
    let min = lengths.iter().min().unwrap();
    let width = u64::BITS - (lengths.iter().max().unwrap() - min).leading_zeros();
    let mut directory = BitWriter::default();
    directory.push_all(lengths.iter().map(|length| length - min), width);
    let mut tail = directory.into_bytes();
    tail.extend(span.first_slot().to_le_bytes());
    tail.extend(keys.key_count().to_le_bytes());
    tail.extend(keys.key_count().to_le_bytes());
    tail.extend(min.to_le_bytes());
    tail.extend((span.slot_count() as u32).to_le_bytes());
    tail.extend(0_u32.to_le_bytes());
    tail.extend([width as u8, place_bits as u8]);
    tail.extend(1_u16.to_le_bytes());
    tail.extend(crc32fast::hash(&tail).to_le_bytes());
    tail.extend(b"QuipuPst");
    tail
}

impl SizedFile for SizedPostings {
    fn bucket_count(&self) -> u64 {
        self.keys.bucket_count
    }

    fn offset(&self, bucket: u64) -> u64 {
        self.offsets[bucket as usize]
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

    fn tail(&self) -> &[u8] {
        &self.tail
    }
}
