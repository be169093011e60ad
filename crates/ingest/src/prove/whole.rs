//! What only a whole file shows: total difficulties, the accumulator, which hashes are where.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{B256, U256};
use archive::{Archive, ArchiveError, ArchiveFault, ReadAt};
use chain::accumulator::{self, EPOCH_BLOCKS};
use chain::trust::{Anchors, Epoch, ProvenRun};
use chain::{BlockPart, BlockRange, StepFields};

use super::ProofReport;

/// What the whole-file checks need of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) number: u64,
    pub(crate) hash: B256,
    pub(crate) parent_hash: B256,
    pub(crate) difficulty: U256,
    pub(crate) total_difficulty: Option<U256>,
    pub(crate) transaction_count: u64,
    /// What its child is held against.
    pub(crate) step: StepFields,
}

/// What only the whole file shows, gathered block by block.
pub(crate) struct WholeFile<'a, S> {
    archive: &'a Archive<S>,
    /// What is taken of it; only the whole gives its accumulator.
    part: BlockRange,
    anchors: &'a Anchors,
    points: &'a BTreeSet<u64>,
    transaction_count: u64,
    parent_hash: Option<B256>,
    last_hash: B256,
    hashes: BTreeMap<u64, B256>,
    /// Total difficulty before the first block and up to the last that was added.
    difficulty: Option<(U256, U256)>,
    /// Hash and total difficulty of the pre-merge blocks.
    records: Vec<(B256, U256)>,
}

impl<'a, S: ReadAt> WholeFile<'a, S> {
    pub(crate) fn new(
        archive: &'a Archive<S>,
        part: BlockRange,
        anchors: &'a Anchors,
        points: &'a BTreeSet<u64>,
    ) -> Self {
        Self {
            archive,
            part,
            anchors,
            points,
            transaction_count: 0,
            parent_hash: None,
            last_hash: B256::ZERO,
            hashes: BTreeMap::new(),
            difficulty: None,
            records: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, block: Facts) -> Result<(), ArchiveError> {
        self.transaction_count += block.transaction_count;
        if let Some(hash_before) = self.parent_hash.map(|_| self.last_hash)
            && hash_before != block.parent_hash
        {
            // Each piece read the header before it from the file: this can only be seen if the
            // file changed in between.
            let fault =
                chain::Fault::ParentHash { found: block.parent_hash, expected: hash_before };
            let mismatch = chain::Mismatch { number: block.number, fault: Box::new(fault) };
            return Err(self.archive.refuse_part(
                block.number,
                BlockPart::Header,
                ArchiveFault::Block(mismatch),
            ));
        }
        self.parent_hash.get_or_insert(block.parent_hash);
        self.last_hash = block.hash;
        if self.points.contains(&block.number) {
            self.hashes.insert(block.number, block.hash);
        }
        let Some(found) = block.total_difficulty else { return Ok(()) };
        // The first sum of a file is its own claim, unless it begins with block 0.
        let before = match self.difficulty {
            Some((_, before)) => before,
            None if block.number == 0 => U256::ZERO,
            None => found.saturating_sub(block.difficulty),
        };
        let expected = before.checked_add(block.difficulty);
        if Some(found) != expected {
            let expected = expected.unwrap_or(U256::MAX);
            let fault = ArchiveFault::TotalDifficulty { found, expected };
            return Err(self.archive.refuse_total_difficulty(block.number, fault));
        }
        let (before_first, _) = self.difficulty.unwrap_or((before, before));
        self.difficulty = Some((before_first, found));
        if !block.difficulty.is_zero() {
            self.records.push((block.hash, found));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<ProofReport, ArchiveError> {
        let epoch =
            if self.part == self.archive.range() { self.check_accumulator()? } else { None };
        Ok(ProofReport {
            format: self.archive.format(),
            has_receipts: self.archive.has_receipts(),
            transaction_count: self.transaction_count,
            accumulator: self.archive.accumulator(),
            first_header_offset: self.archive.first_header_offset(),
            run: ProvenRun {
                range: self.part,
                parent_hash: self.parent_hash.unwrap_or_default(),
                last_hash: self.last_hash,
                hashes: self.hashes,
                epoch,
                difficulty: self.difficulty,
            },
        })
    }

    /// Holds the accumulator against the blocks; the epoch, if its root is trusted.
    fn check_accumulator(&self) -> Result<Option<Epoch>, ArchiveError> {
        let range = self.archive.range();
        let computed = accumulator::epoch_root(&self.records);
        let is_accumulated = !self.records.is_empty();
        match self.archive.accumulator() {
            Some(found) if found != computed => {
                let fault = ArchiveFault::Accumulator { found, expected: computed };
                return Err(self.archive.refuse_accumulator(fault));
            }
            // Nothing else in the file commits to the sums.
            None if is_accumulated => {
                let fault = ArchiveFault::NoAccumulator { expected: computed };
                return Err(self.archive.refuse_accumulator(fault));
            }
            Some(_) | None => {}
        }
        let epoch = range.first() / EPOCH_BLOCKS;
        let record_count = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
        if let Some(expected) = self.anchors.expected_epoch_root(epoch)
            && is_accumulated
        {
            if computed == expected {
                let last = range.first() + record_count - 1;
                return Ok(Some(Epoch { number: epoch, last }));
            }
            if range.first().is_multiple_of(EPOCH_BLOCKS)
                && record_count == accumulator::mainnet_epoch_blocks(epoch)
            {
                let fault = ArchiveFault::TrustedAccumulator { found: computed, expected };
                return Err(self.archive.refuse_accumulator(fault));
            }
        }
        Ok(None)
    }
}
