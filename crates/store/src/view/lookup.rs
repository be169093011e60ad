//! Blocks and transactions by their hashes.

use alloy_primitives::{B256, keccak256};
use chain::BlockNumber;
use futures_util::StreamExt as _;
use segment::index::{IndexKey, Position, Positions, RunSubject};
use segment::{RowParts, SLOT_BLOCKS, TxOrdinal};

use super::sealed::LayerIndex;
use super::{StoredTransaction, View, check_seams};
use crate::error::StoreError;
use crate::files::RunFile;
use crate::missing_file::MissingFile;
use crate::read::fetch;
use crate::reader::{ReadCounts, Reader};

impl View {
    /// A transaction by its hash, proven by hashing it.
    pub async fn find_transaction(
        &self,
        reader: &mut Reader,
        hash: B256,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, StoreError> {
        if let Some(place) = self.head.find_tx(&hash) {
            let found = self.read_transaction(reader, place.number, place.index, wanted).await?;
            // Beside a head others may have published rows that are not those of the head's block.
            let is_it = |it: &StoredTransaction| {
                !self.sealed.is_union() || keccak256(it.row.view().encoded) == hash
            };
            if let Some(found) = found.filter(is_it) {
                return Ok(Some(found));
            }
        }
        if self.sealed.is_union() {
            // A run that cannot be asked matters only if no other one tells of the hash.
            let mut unread = None;
            let mut probed = self.probe_all(RunSubject::Transactions, hash);
            while let Some((layer, positions)) = probed.next().await {
                reader.counts.count_lookup();
                match positions {
                    Err(error) => unread = Some(error),
                    Ok(positions) => {
                        let found = self.transaction_at(reader, layer, positions, hash, wanted);
                        match found.await {
                            Err(error) => unread = Some(error),
                            Ok(None) => {}
                            Ok(found) => return Ok(found),
                        }
                    }
                }
            }
            return unread.map_or(Ok(None), Err);
        }
        for (layer, run) in self.sealed.runs_of(RunSubject::Transactions) {
            let positions = self.probe(reader, run, hash).await?;
            let found = self.transaction_at(reader, layer, positions, hash, wanted);
            if let Some(found) = found.await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The transaction with a hash, if it is at one of these positions.
    async fn transaction_at(
        &self,
        reader: &mut Reader,
        layer: LayerIndex,
        positions: Positions,
        hash: B256,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, StoreError> {
        for Position { slot, ordinal } in positions {
            let Some((file, ordinal)) = self.sealed.locate(layer, slot, ordinal.into()) else {
                continue;
            };
            let was_open = file.is_open();
            let open = self.files.segment(reader, file).await?;
            if !was_open {
                self.fetch_row_ahead(&open, TxOrdinal(ordinal)).await;
            }
            let found = self.row_in(reader, file, &open, TxOrdinal(ordinal), wanted).await?;
            if let Some(found) = found.filter(|found| {
                self.sealed.shows(found.block.number, file)
                    && keccak256(found.row.view().encoded) == hash
            }) {
                if let Some(piece) = self.sealed.find(found.block.number) {
                    check_seams(piece, file, &open)?;
                }
                return Ok(Some(found));
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
        if self.sealed.is_union() {
            let mut unread = None;
            let mut probed = self.probe_all(RunSubject::Blocks, hash);
            while let Some((_, positions)) = probed.next().await {
                reader.counts.count_lookup();
                match positions {
                    Err(error) => unread = Some(error),
                    Ok(positions) => match self.block_at(reader, positions, hash).await {
                        Err(error) => unread = Some(error),
                        Ok(None) => {}
                        Ok(found) => return Ok(found),
                    },
                }
            }
            return unread.map_or(Ok(None), Err);
        }
        for (_, run) in self.sealed.runs_of(RunSubject::Blocks) {
            let positions = self.probe(reader, run, hash).await?;
            let found = self.block_at(reader, positions, hash).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The number of the block with a hash, if it is at one of these positions.
    async fn block_at(
        &self,
        reader: &mut Reader,
        positions: Positions,
        hash: B256,
    ) -> Result<Option<BlockNumber>, StoreError> {
        for Position { slot, ordinal } in positions {
            let first = BlockNumber(slot.saturating_mul(SLOT_BLOCKS));
            let number = first.saturating_add(ordinal.into());
            if self.read_hash(reader, number).await? == Some(hash) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The hash lookups that cannot be read: hashes that only they tell are not found.
    pub fn missing_runs(&self) -> impl Iterator<Item = &MissingFile> {
        let is_of_logs = |it: &&MissingFile| {
            self.find_run(&it.file_name).is_some_and(|run| run.subject == RunSubject::Logs)
        };
        self.missing().iter().filter(move |it| it.blocks.is_none() && !is_of_logs(it))
    }

    /// Where in the slots of a run a hash may be.
    async fn probe(
        &self,
        reader: &mut Reader,
        file: &RunFile,
        hash: B256,
    ) -> Result<Positions, StoreError> {
        self.probe_in(file, hash, &mut reader.bucket, &mut reader.counts).await
    }

    /// The same with a buffer of one's own.
    pub(super) async fn probe_in(
        &self,
        file: &RunFile,
        hash: B256,
        buffer: &mut Vec<u8>,
        counts: &mut ReadCounts,
    ) -> Result<Positions, StoreError> {
        let open = file.opened(&self.files).await?;
        let key = IndexKey::of_hash(&hash);
        let range = open.run.bucket_range(key);
        if range.is_empty() {
            return Ok(Positions::default());
        }
        counts.count_lookup();
        let positions = if let Some(bucket) = open.bytes.resident(&range) {
            open.run.probe_kept(key, bucket, &open.verified)
        } else {
            let fetched = fetch(&*open.bytes, range, buffer).await;
            fetched.map_err(|error| file.unread(error))?;
            open.run.probe(key, buffer)
        };
        positions.map_err(|cause| file.corrupt(cause))
    }

    /// Where in a slot a hash may be, by the run that covers the slot.
    pub(crate) async fn probe_slot(
        &self,
        reader: &mut Reader,
        subject: RunSubject,
        slot: u64,
        hash: B256,
    ) -> Result<Positions, StoreError> {
        let mut runs = self.sealed.runs_of(subject);
        match runs.find(|(_, run)| run.entry.span.contains(slot)) {
            Some((_, run)) => self.probe(reader, run, hash).await,
            None => Ok(Positions::default()),
        }
    }
}
