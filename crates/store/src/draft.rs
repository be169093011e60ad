//! A segment in the making: groups of verified blocks in, a durable file out.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::{Block, Verified, keccak256_each};
use segment::index::{IndexKey, PostingsBuilder};
use segment::{EncodedGroup, Encoder, SegmentWriter, Tables};

use crate::error::StoreError;
use crate::layout::{HeldRange, slot_of};
use crate::lookups::SegmentKeys;
use crate::manifest::SegmentEntry;
use crate::names::segment_name;
use crate::part::{StagedFile, StagingArea};

/// Encodes groups of a segment, on as many threads as there are.
#[derive(Clone, Debug)]
pub struct GroupEncoder {
    held: HeldRange,
    encoder: Arc<Encoder>,
    /// Whether the log index is wanted.
    has_log_index: bool,
}

/// A group of blocks, ready to be written.
#[derive(Debug)]
pub struct Group {
    encoded: EncodedGroup,
    keys: SegmentKeys,
    difficulty: U256,
    chain_id: Option<u64>,
}

impl GroupEncoder {
    /// Encodes the blocks of one aligned group, all that the segment has of it.
    pub fn encode(&self, blocks: &[Verified<Block>]) -> Result<Group, StoreError> {
        let encoded = self
            .encoder
            .encode_group(blocks)
            .map_err(|cause| StoreError::Write { range: self.held.range, cause })?;
        let transactions = || blocks.iter().flat_map(|block| &block.transactions);
        let encodings: Vec<&[u8]> = transactions().map(|tx| tx.encoded.as_ref()).collect();
        let hashes = keccak256_each(&encodings);
        let logs = self.has_log_index.then(|| {
            let mut logs = PostingsBuilder::new(slot_of(self.held.range.first()));
            blocks.iter().try_for_each(|block| logs.push_logs(block)).map(|()| logs)
        });
        Ok(Group {
            encoded,
            keys: SegmentKeys {
                transactions: hashes.iter().map(IndexKey::of_hash).collect(),
                blocks: blocks.iter().map(|block| IndexKey::of_hash(&block.hash)).collect(),
                logs: logs.transpose()?,
            },
            difficulty: blocks
                .iter()
                .fold(U256::ZERO, |sum, block| sum.saturating_add(block.header.difficulty)),
            chain_id: transactions()
                .find_map(|tx| alloy_consensus::Transaction::chain_id(&tx.envelope)),
        })
    }
}

/// A segment that is being written. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    held: HeldRange,
    difficulty: U256,
    encoder: GroupEncoder,
    writer: SegmentWriter,
    part: StagedFile,
    keys: SegmentKeys,
    chain_id: Option<u64>,
}

/// A segment whose file is whole and durable, but neither named nor listed. Dropping it removes the
/// file.
#[derive(Debug)]
pub struct NewSegment {
    pub(crate) entry: SegmentEntry,
    pub(crate) keys: SegmentKeys,
    pub(crate) chain_id: Option<u64>,
    pub(crate) part: StagedFile,
}

impl NewSegment {
    /// What the manifest will say of it.
    #[must_use]
    pub fn entry(&self) -> &SegmentEntry {
        &self.entry
    }
}

impl Draft {
    pub(crate) fn begin(
        workshop: &StagingArea,
        held: HeldRange,
        tables: Tables,
        has_log_index: bool,
    ) -> Result<Self, StoreError> {
        let refused = |cause| StoreError::Write { range: held.range, cause };
        let encoder = Arc::new(Encoder::new(Arc::new(tables), held.has_receipts));
        Ok(Self {
            held,
            difficulty: U256::ZERO,
            writer: SegmentWriter::new(held.range, &encoder).map_err(refused)?,
            encoder: GroupEncoder { held, encoder, has_log_index },
            part: workshop.begin(),
            keys: SegmentKeys::default(),
            chain_id: None,
        })
    }

    /// What encodes this segment's groups.
    #[must_use]
    pub fn encoder(&self) -> &GroupEncoder {
        &self.encoder
    }

    /// Takes the next group.
    pub fn push(&mut self, group: Group) -> Result<(), StoreError> {
        let range = self.held.range;
        let bytes =
            self.writer.push(group.encoded).map_err(|cause| StoreError::Write { range, cause })?;
        self.part.append(&bytes)?;
        self.keys.append(group.keys)?;
        self.difficulty = self.difficulty.saturating_add(group.difficulty);
        self.chain_id = self.chain_id.or(group.chain_id);
        Ok(())
    }

    /// Makes the file whole and durable. It gets its name when it is committed.
    pub fn finish(mut self) -> Result<NewSegment, StoreError> {
        let range = self.held.range;
        let (bytes, footer) =
            self.writer.finish().map_err(|cause| StoreError::Write { range, cause })?;
        self.part.append(&bytes)?;
        let digest = B256::from(footer.digest);
        let finished = self.part.close()?;
        let facts = footer.facts;
        let entry = SegmentEntry {
            range,
            file_name: segment_name(self.held, digest),
            bytes: finished.bytes,
            digest,
            has_receipts: self.held.has_receipts,
            parent_hash: facts.parent_hash,
            last_hash: facts.last_hash,
            transaction_count: facts.transaction_count,
            log_count: facts.log_count,
            difficulty: self.difficulty,
        };
        Ok(NewSegment { entry, keys: self.keys, chain_id: self.chain_id, part: self.part })
    }
}
