//! Collecting the posting lists of one slot.

use alloy_primitives::Address;
use chain::{Block, BlockNumber};

use super::bits::{mask, width_of};
use super::error::BuildError;
use super::file::Shape;
use super::key::{IndexKey, KeyKind, RunSubject};
use super::part::{PART_BITS, SLOT_PLACE_BITS, part_of};
use super::posting::{KeyEntry, PlaceList};
use super::span::RunSpan;
use super::sum::PostingSum;
use super::writer::RunWriter;
use crate::bytes::wide;
use crate::file::shape::SLOT_BLOCKS;
use crate::row_set::{ReceiptView, RowSet};

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
    pub fn push(&mut self, key: IndexKey, number: u64, tx_index: u64) -> Result<(), BuildError> {
        if number / SLOT_BLOCKS != self.slot {
            return Err(BuildError::Slot { slot: number / SLOT_BLOCKS, span: self.span()? });
        }
        let place = (number % SLOT_BLOCKS) << PART_BITS | u64::from(part_of(tx_index));
        self.packed.push(key.number() << SLOT_PLACE_BITS | place);
        Ok(())
    }

    /// Adds the addresses and topics of a block's logs; none where its receipts are not held.
    pub fn push_logs(&mut self, block: &Block) -> Result<(), BuildError> {
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
    pub fn push_rows(&mut self, number: BlockNumber, rows: &RowSet) -> Result<(), BuildError> {
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
    ) -> Result<(), BuildError> {
        self.push(IndexKey::of_address(address), number, tx_index)?;
        for (topic, kind) in topics.zip(KeyKind::TOPICS) {
            self.push(IndexKey::of(kind, topic), number, tx_index)?;
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
    pub fn append(&mut self, other: &Self) -> Result<(), BuildError> {
        if other.slot != self.slot {
            return Err(BuildError::Slot { slot: other.slot, span: self.span()? });
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
    pub fn finish(mut self) -> Result<Vec<u8>, BuildError> {
        self.packed.sort_unstable();
        self.packed.dedup();
        let places = self.packed.iter().map(|posting| posting & mask(SLOT_PLACE_BITS));
        let place_bits = width_of(places.max().unwrap_or(0));
        let shape = Shape::new(RunSubject::Logs, self.span()?, wide(self.packed.len()), place_bits);
        let mut writer = RunWriter::new(shape, Vec::new())?;
        let mut out = Vec::new();
        let key_of = |posting: &u64| posting >> SLOT_PLACE_BITS;
        for postings in self.packed.chunk_by(|one, other| key_of(one) == key_of(other)) {
            let places = postings.iter().map(|posting| posting & mask(SLOT_PLACE_BITS)).collect();
            let key = postings.first().map_or(0, key_of);
            writer.push(key, PlaceList::new(places, 1), &mut out)?;
        }
        writer.finish(&mut out)?;
        Ok(out)
    }

    fn span(&self) -> Result<RunSpan, BuildError> {
        Ok(RunSpan::new(self.slot, 1)?)
    }
}
