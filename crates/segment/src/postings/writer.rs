//! Writing a posting file: sorted keys in, the bytes of the file out, in one pass.
//!
//! Knows: the order of a file's parts.
//! Never knows: how keys came to be sorted, where the bytes go.

use alloy_primitives::Address;
use chain::{Block, BlockNumber};

use super::bucket::{KeyPlaces, PlaceList};
use super::error::PostingsBuildError;
use super::key::{PostingKey, PostingKind};
use super::part::{PART_BITS, SLOT_PLACE_BITS, part_of};
use super::reader::KeyEntry;
use super::sum::PostingSum;
use super::tail::{FileFrame, POSTING_COUNT_MAX, TailSource, bucket_count};
use crate::bytes::wide;
use crate::file::shape::SLOT_BLOCKS;
use crate::lookup::RunSpan;
use crate::lookup::bits::{mask, width_of};
use crate::row_set::{ReceiptView, RowSet};

/// Writes a posting file from keys that come in order, holding one bucket at a time. Finished bytes
/// are appended to a buffer that the caller may empty whenever it likes.
#[derive(Debug)]
pub struct PostingsWriter {
    frame: FileFrame,
    posting_count: u64,
    bucket: Vec<KeyPlaces>,
    /// Bytes of the buckets that are written, and of their long lists before them.
    bucket_bytes: Vec<(u64, u64)>,
    key_count: u64,
    postings_taken: u64,
    previous: Option<u64>,
}

impl PostingsWriter {
    /// A file of so many postings, whose places have so many bits.
    pub(super) fn new(
        span: RunSpan,
        posting_count: u64,
        place_bits: u32,
    ) -> Result<Self, PostingsBuildError> {
        if posting_count > POSTING_COUNT_MAX {
            let (max, found) = (POSTING_COUNT_MAX, posting_count);
            return Err(PostingsBuildError::TooMany { max, found });
        }
        Ok(Self {
            frame: FileFrame { span, bucket_count: bucket_count(posting_count), place_bits },
            posting_count,
            bucket: Vec::new(),
            bucket_bytes: Vec::new(),
            key_count: 0,
            postings_taken: 0,
            previous: None,
        })
    }

    /// Adds the next key.
    pub(super) fn push(
        &mut self,
        key: KeyPlaces,
        out: &mut Vec<u8>,
    ) -> Result<(), PostingsBuildError> {
        if self.previous.is_some_and(|previous| previous >= key.prefix) {
            return Err(PostingsBuildError::Order { number: key.prefix });
        }
        self.previous = Some(key.prefix);
        self.key_count = self.key_count.saturating_add(1);
        self.postings_taken = self.postings_taken.saturating_add(key.list.count());
        let bucket = self.frame.bucket_of(PostingKey::from_number(key.prefix));
        self.write_buckets_before(bucket, out);
        self.bucket.push(key);
        Ok(())
    }

    /// Writes what is left: the last buckets and the tail.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), PostingsBuildError> {
        let (expected, found) = (self.posting_count, self.postings_taken);
        if found != expected {
            return Err(PostingsBuildError::PostingCount { expected, found });
        }
        self.write_buckets_before(self.frame.bucket_count, out);
        let Self { frame, posting_count, key_count, bucket_bytes, .. } = self;
        TailSource { frame, posting_count, key_count, bucket_bytes }.put(out);
        Ok(())
    }

    fn write_buckets_before(&mut self, end: u64, out: &mut Vec<u8>) {
        while wide(self.bucket_bytes.len()) < end {
            let bucket = self.frame.bucket(wide(self.bucket_bytes.len()));
            self.bucket_bytes.push(bucket.encode(&self.bucket, out));
            self.bucket.clear();
        }
    }
}

/// Collects the postings of one slot in any order: eight bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingsBuilder {
    slot: u64,
    /// Keys above places.
    packed: Vec<u64>,
}

impl PostingsBuilder {
    /// Nothing yet.
    #[must_use]
    pub fn new(slot: u64) -> Self {
        Self { slot, packed: Vec::new() }
    }

    /// Adds that the transaction at this index of a block of the slot has what the key stands for.
    pub fn push(
        &mut self,
        key: PostingKey,
        number: u64,
        tx_index: u64,
    ) -> Result<(), PostingsBuildError> {
        if number / SLOT_BLOCKS != self.slot {
            return Err(PostingsBuildError::Block { number, slot: self.slot });
        }
        let place = (number % SLOT_BLOCKS) << PART_BITS | u64::from(part_of(tx_index));
        self.packed.push(key.number() << SLOT_PLACE_BITS | place);
        Ok(())
    }

    /// Adds the addresses and topics of a block's logs; none where its receipts are not held.
    pub fn push_logs(&mut self, block: &Block) -> Result<(), PostingsBuildError> {
        let begin = self.packed.len();
        let number = block.header.number;
        let receipts = block.receipts.as_deref().unwrap_or_default();
        for (receipt, index) in receipts.iter().zip(0..) {
            for log in &receipt.fields.logs {
                let topics = log.data.topics().iter().map(|topic| &**topic);
                self.push_log(number, index, &log.address, topics)?;
            }
        }
        self.dedup_from(begin);
        Ok(())
    }

    /// Adds the addresses and topics of the logs of a block, whose rows these are.
    pub fn push_rows(
        &mut self,
        number: BlockNumber,
        rows: &RowSet,
    ) -> Result<(), PostingsBuildError> {
        let begin = self.packed.len();
        for (row, index) in rows.iter().zip(0..) {
            for log in row.receipt.iter().flat_map(ReceiptView::logs) {
                self.push_log(number.get(), index, &log.address, log.topics.iter())?;
            }
        }
        self.dedup_from(begin);
        Ok(())
    }

    fn push_log<'a>(
        &mut self,
        number: u64,
        tx_index: u64,
        address: &Address,
        topics: impl Iterator<Item = &'a [u8; 32]>,
    ) -> Result<(), PostingsBuildError> {
        self.push(PostingKey::of_address(address), number, tx_index)?;
        for (topic, kind) in topics.zip(PostingKind::TOPICS) {
            self.push(PostingKey::of(kind, topic), number, tx_index)?;
        }
        Ok(())
    }

    /// Adds the places of a key that a file of the slot has, as far as `is_kept` says so of their
    /// blocks, which are counted from the first of the slot.
    pub fn push_entry(&mut self, entry: &KeyEntry, is_kept: impl Fn(u32) -> bool) {
        for (_, parts) in &entry.slots {
            for block in parts.as_slice().iter().filter(|it| is_kept(it.block)) {
                for part in block.iter() {
                    let place = u64::from(block.block) << PART_BITS | u64::from(part);
                    self.packed.push(entry.key.number() << SLOT_PLACE_BITS | place);
                }
            }
        }
    }

    /// Adds what was collected of other blocks of the slot.
    pub fn append(&mut self, other: &Self) -> Result<(), PostingsBuildError> {
        if other.slot != self.slot {
            let number = other.slot.saturating_mul(SLOT_BLOCKS);
            return Err(PostingsBuildError::Block { number, slot: self.slot });
        }
        self.packed.extend_from_slice(&other.packed);
        Ok(())
    }

    /// What sets of postings are compared by.
    #[must_use]
    pub fn sum(&self) -> PostingSum {
        let mut sum = PostingSum::default();
        for posting in &self.packed {
            sum.add(posting >> SLOT_PLACE_BITS, posting & mask(SLOT_PLACE_BITS));
        }
        sum
    }

    /// Drops what was added more than once since there were `begin` postings: the values of one block
    /// repeat, and those of another block do not meet them.
    fn dedup_from(&mut self, begin: usize) {
        let mut added = self.packed.split_off(begin.min(self.packed.len()));
        added.sort_unstable();
        added.dedup();
        self.packed.append(&mut added);
    }

    /// The bytes of the slot's file: the same whatever the order in which postings came.
    pub fn finish(mut self) -> Result<Vec<u8>, PostingsBuildError> {
        self.packed.sort_unstable();
        self.packed.dedup();
        let (number, slot) = (u64::MAX, self.slot);
        let span = RunSpan::new(slot, 1).map_err(|_| PostingsBuildError::Block { number, slot })?;
        let places = self.packed.iter().map(|posting| posting & mask(SLOT_PLACE_BITS));
        let place_bits = width_of(places.max().unwrap_or(0));
        let mut writer = PostingsWriter::new(span, wide(self.packed.len()), place_bits)?;
        let mut out = Vec::new();
        let prefix_of = |posting: &u64| posting >> SLOT_PLACE_BITS;
        for postings in self.packed.chunk_by(|one, other| prefix_of(one) == prefix_of(other)) {
            let places: Vec<u64> =
                postings.iter().map(|posting| posting & mask(SLOT_PLACE_BITS)).collect();
            let prefix = postings.first().map_or(0, prefix_of);
            writer.push(KeyPlaces { prefix, list: PlaceList::new(places, 1) }, &mut out)?;
        }
        writer.finish(&mut out)?;
        Ok(out)
    }
}
