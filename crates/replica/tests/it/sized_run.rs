//! Lookup runs as long as mainnet's, which nobody has to write: the tail is whole, and buckets are made
//! when they are read. Made by docs/format-lookup.md, without the code that writes runs.

use alloy_primitives::B256;
use segment::lookup::{Geometry, HashPrefix, PREFIX_BITS, Position, RunSpan, Subject};

use crate::bit_writer::{BitWriter, bucket_checksum};
use crate::key_buckets::KeyBuckets;
use crate::sized_file::SizedFile;

/// Keys of a bucket on average, until there are 2^19 buckets.
pub(crate) const BUCKET_KEYS: u64 = 256;

/// A run.
#[derive(Debug)]
pub(crate) struct SizedRun {
    keys: KeyBuckets,
    geometry: Geometry,
    zero_count: u64,
    ordinal_count: u64,
    tail: Vec<u8>,
}

impl SizedRun {
    /// A run with so many keys a slot, which is a multiple of [`BUCKET_KEYS`], and these among them.
    pub(crate) fn new(
        subject: Subject,
        span: RunSpan,
        slot_keys: u64,
        wanted: &[(B256, Position)],
    ) -> Self {
        let slots = span.slot_count();
        let geometry = Geometry::new(slot_keys * slots, slot_keys * slots);
        let base = |slot: u64| (slot - span.first_slot()) * slot_keys;
        let of_span = wanted.iter().filter(|(_, position)| span.contains(position.slot));
        let wanted = of_span.map(|(hash, Position { slot, ordinal })| {
            (HashPrefix::of(hash).number(), base(*slot) + u64::from(*ordinal))
        });
        let bucket_count = geometry.bucket_count();
        let keys = KeyBuckets::new(PREFIX_BITS, slot_keys * slots, bucket_count, wanted.collect());
        let zero_count = ((1_u64 << PREFIX_BITS).div_ceil(bucket_count) - 1) >> geometry.low_bits();
        let tail = tail(subject, span, slot_keys, &keys);
        Self { keys, geometry, zero_count, ordinal_count: slot_keys * slots, tail }
    }
}

fn tail(subject: Subject, span: RunSpan, slot_keys: u64, keys: &KeyBuckets) -> Vec<u8> {
    let counts = || (0..keys.bucket_count).map(|bucket| keys.count(bucket));
    let min = counts().min().unwrap();
    let count_bits = u64::BITS - (counts().max().unwrap() - min).leading_zeros();
    let mut directory = BitWriter::default();
    directory.push_all(counts().map(|count| count - min), count_bits);
    let mut tail: Vec<u8> = Vec::new();
    (0..span.slot_count()).for_each(|_| tail.extend((slot_keys as u32).to_le_bytes()));
    tail.extend(directory.into_bytes());
    tail.extend(span.first_slot().to_le_bytes());
    tail.extend(keys.key_count().to_le_bytes());
    tail.extend(min.to_le_bytes());
    tail.extend((span.slot_count() as u32).to_le_bytes());
    tail.extend([count_bits as u8, if subject == Subject::Transactions { 1 } else { 2 }]);
    tail.extend(1_u16.to_le_bytes());
    tail.extend(crc32fast::hash(&tail).to_le_bytes());
    tail.extend(b"QuipuRun");
    tail
}

impl SizedFile for SizedRun {
    fn bucket_count(&self) -> u64 {
        self.keys.bucket_count
    }

    fn offset(&self, bucket: u64) -> u64 {
        self.geometry.bucket_offset(bucket, self.keys.count_before(bucket))
    }

    fn bucket(&self, number: u64) -> Vec<u8> {
        let entries = self.keys.entries(number, self.ordinal_count);
        let (low_bits, value_bits) = (self.geometry.low_bits(), self.geometry.value_bits());
        let mut bits = BitWriter::default();
        bits.push_unary(entries.iter().map(|it| it.0 >> low_bits), self.zero_count);
        bits.push_all(entries.iter().map(|it| it.0), low_bits);
        bits.push_all(entries.iter().map(|it| it.1), value_bits);
        let mut bytes = bits.into_bytes();
        bytes.resize((self.offset(number + 1) - self.offset(number)) as usize - 4, 0);
        bytes.extend(bucket_checksum(number, &bytes));
        bytes
    }

    fn tail(&self) -> &[u8] {
        &self.tail
    }
}
