//! Blocks and transactions by their hashes.
//!
//! Knows: which runs may hold a hash, and that only what is read proves that it is the one.
//! Never knows: how a run finds a key.

use std::sync::Arc;

use alloy_primitives::{B256, keccak256};
use chain::BlockNumber;
use segment::lookup::{Position, Positions, Subject};
use segment::{RowParts, SLOT_BLOCKS, TxOrdinal};

use super::{MissingFile, StoredTransaction, View};
use crate::error::StoreError;
use crate::files::{RunFile, SegmentFile};
use crate::read::fetch;
use crate::reader::Reader;
use crate::run_subject::RunSubject;

impl View {
    /// A transaction by its hash, proven by hashing it.
    pub async fn find_transaction(
        &self,
        reader: &mut Reader,
        hash: B256,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, StoreError> {
        if let Some(place) = self.head.find_tx(&hash) {
            return self.read_transaction(reader, place.number, place.index, wanted).await;
        }
        for run in self.runs_of(RunSubject::Transactions) {
            for position in self.probe(reader, run, hash).await? {
                let Some((file, ordinal)) = self.locate(position) else { continue };
                let open = self.files.segment(reader, file).await?;
                let found = self.row_in(reader, file, &open, ordinal, wanted).await?;
                if let Some(found) =
                    found.filter(|found| keccak256(found.row.view().encoded) == hash)
                {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The number of the block with a hash. Reading its header proves it by hashing.
    pub async fn find_block(
        &self,
        reader: &mut Reader,
        hash: B256,
    ) -> Result<Option<BlockNumber>, StoreError> {
        if let Some(block) = self.head.find_block_by_hash(&hash) {
            return Ok(Some(block.number()));
        }
        for run in self.runs_of(RunSubject::Blocks) {
            for Position { slot, ordinal } in self.probe(reader, run, hash).await? {
                let first = BlockNumber(slot.saturating_mul(SLOT_BLOCKS));
                let number = first.saturating_add(ordinal.into());
                if self.read_hash(reader, number).await? == Some(hash) {
                    return Ok(Some(number));
                }
            }
        }
        Ok(None)
    }

    /// The hash lookups that cannot be read: hashes that only they tell are not found.
    pub fn missing_runs(&self) -> impl Iterator<Item = &MissingFile> {
        let is_of_logs = |it: &&MissingFile| {
            let mut runs = self.manifest.runs_of(RunSubject::Logs);
            runs.any(|run| run.file_name == it.file_name)
        };
        self.missing.iter().filter(move |it| it.blocks.is_none() && !is_of_logs(it))
    }

    pub(super) fn runs_of(&self, subject: RunSubject) -> impl Iterator<Item = &Arc<RunFile>> {
        let is_there = move |file: &&Arc<RunFile>| {
            self.missing.is_empty() || !self.is_missing(&file.entry.file_name)
        };
        self.runs.iter().filter(move |file| file.entry.subject == subject).filter(is_there)
    }

    /// Where in the slots of a run a hash may be.
    async fn probe(
        &self,
        reader: &mut Reader,
        file: &RunFile,
        hash: B256,
    ) -> Result<Positions, StoreError> {
        let open = file.opened(&self.files).await?;
        let range = open.run.bucket_range(&hash);
        if range.is_empty() {
            return Ok(Positions::default());
        }
        reader.counts.count_lookup();
        let positions = if let Some(bucket) = open.bytes.resident(&range) {
            open.run.probe_kept(&hash, bucket, &open.verified)
        } else {
            let fetched = fetch(&*open.bytes, range, &mut reader.bucket).await;
            fetched.map_err(|error| file.unread(error))?;
            open.run.probe(&hash, &reader.bucket)
        };
        positions.map_err(|cause| file.corrupt(cause))
    }

    /// Where in a slot a hash may be, by the run that covers the slot.
    pub(crate) async fn probe_slot(
        &self,
        reader: &mut Reader,
        subject: Subject,
        slot: u64,
        hash: B256,
    ) -> Result<Positions, StoreError> {
        match self.runs_of(subject.into()).find(|run| run.entry.span.contains(slot)) {
            Some(run) => self.probe(reader, run, hash).await,
            None => Ok(Positions::default()),
        }
    }

    /// The segment with an ordinal of a slot, and the ordinal inside that segment.
    fn locate(&self, position: Position) -> Option<(&Arc<SegmentFile>, TxOrdinal)> {
        let asked = (position.slot, u64::from(position.ordinal));
        let after = self.begins.partition_point(|begin| *begin <= asked);
        // Segments without transactions begin where the next one does: the last has it.
        let place = after.checked_sub(1)?;
        let (slot, first) = *self.begins.get(place)?;
        let file = self.segments.get(place).filter(|_| slot == position.slot)?;
        if self.is_missing(&file.entry.file_name) {
            return None;
        }
        let ordinal = u64::from(position.ordinal).checked_sub(first)?;
        (ordinal < file.entry.transaction_count).then_some((file, TxOrdinal(ordinal)))
    }
}
