//! What only all blocks of a part show: that they are one chain, and what they add up to.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U256};
use chain::accumulator::{EPOCH_BLOCKS, epoch_root, mainnet_epoch_blocks};
use chain::trust::{Anchors, Epoch, ProvenRun};
use chain::{BlockNumber, BlockRange, ChainSpec, RuleFault, check_step, decode_header};
use store::read::block_on;
use store::{NewSegment, Reader, StoreError, View};

use super::{ImportError, Trust};
use crate::prove::{Blocks, Facts};

/// Two blocks that follow each other and are not parent and child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The upper one.
    pub(crate) number: u64,
    /// The parent that it names.
    pub(crate) found: B256,
    /// The hash of the lower one.
    pub(crate) expected: B256,
}

/// A source that says who told what does not fit.
pub(crate) trait AccountableBlocks: Blocks {
    /// Two blocks do not follow each other.
    fn refuse_link(&self, link: Link) -> Self::Error;

    /// A header does not follow from its parent's by the rules.
    fn refuse_step(&self, number: u64, fault: RuleFault) -> Self::Error;

    /// The folder held `lost` under this number and lost it.
    fn refuse_lost(&self, number: u64, found: B256, lost: B256) -> Self::Error;
}

/// The blocks of one part, block by block in order.
pub(crate) struct Gathered<'a, S> {
    spec: &'a ChainSpec,
    source: &'a S,
    part: BlockRange,
    trust: &'a Trust,
    before: Option<Facts>,
    parent_hash: Option<B256>,
    last_hash: B256,
    hashes: BTreeMap<u64, B256>,
    pub(crate) transaction_count: u64,
    work: Option<WorkSum>,
}

/// Proof of work, added up from a sum that the source tells.
struct WorkSum {
    source_name: String,
    /// Before the first block.
    before: U256,
    /// Up to the last block.
    total: U256,
    /// Hash and sum of every block that has some.
    records: Vec<(B256, U256)>,
}

impl<'a, S: AccountableBlocks> Gathered<'a, S>
where
    ImportError: From<S::Error>,
{
    pub(crate) fn new(
        spec: &'a ChainSpec,
        source: &'a S,
        part: BlockRange,
        trust: &'a Trust,
    ) -> Self {
        Self {
            spec,
            source,
            part,
            trust,
            before: None,
            parent_hash: None,
            last_hash: B256::ZERO,
            hashes: BTreeMap::new(),
            transaction_count: 0,
            work: None,
        }
    }

    /// The same, adding up difficulties from what `source_name` tells that they are before the part.
    pub(crate) fn with_difficulty(self, before: Option<U256>, source_name: &str) -> Self {
        let source_name = source_name.to_owned();
        let work = |before| WorkSum { source_name, before, total: before, records: Vec::new() };
        Self { work: before.map(work), ..self }
    }

    pub(crate) fn add(&mut self, facts: Facts) -> Result<(), ImportError> {
        let before = self.before.filter(|it| it.number.saturating_add(1) == facts.number);
        if let Some(before) = before {
            if before.hash != facts.parent_hash {
                let (found, expected) = (facts.parent_hash, before.hash);
                let link = Link { number: facts.number, found, expected };
                return Err(self.source.refuse_link(link).into());
            }
            check_step(self.spec, &before.step, &facts.step)
                .map_err(|fault| self.source.refuse_step(facts.number, fault))?;
        }
        self.before = Some(facts);
        if let Some(lost) = self.trust.lost_instead_of(facts.number, facts.hash) {
            return Err(self.source.refuse_lost(facts.number, facts.hash, lost).into());
        }
        if self.part.contains(facts.number) {
            self.parent_hash.get_or_insert(facts.parent_hash);
            self.last_hash = facts.hash;
            self.transaction_count = self.transaction_count.saturating_add(facts.transaction_count);
            if self.trust.points.contains(&facts.number) {
                self.hashes.insert(facts.number, facts.hash);
            }
            if let Some(work) = &mut self.work {
                work.total = work.total.saturating_add(facts.difficulty);
                if !facts.difficulty.is_zero() {
                    work.records.push((facts.hash, work.total));
                }
            }
        }
        Ok(())
    }

    /// The part as a run, if the block above it descends from it.
    pub(crate) fn finish(
        self,
        above: Option<B256>,
        anchors: &Anchors,
    ) -> Result<ProvenRun, ImportError> {
        if let Some(found) = above.filter(|hash| *hash != self.last_hash) {
            let link = Link { number: self.part.end(), found, expected: self.last_hash };
            return Err(self.source.refuse_link(link).into());
        }
        let first = self.part.first();
        Ok(ProvenRun {
            range: self.part,
            parent_hash: self.parent_hash.unwrap_or_default(),
            last_hash: self.last_hash,
            hashes: self.hashes,
            epoch: match &self.work {
                Some(work) => work.find_epoch(first, anchors)?,
                None => None,
            },
            difficulty: self.work.map(|work| (work.before, work.total)),
        })
    }
}

impl WorkSum {
    /// The accumulator epoch that the blocks from `first` on are, if its root is trusted: it must be
    /// theirs.
    fn find_epoch(&self, first: u64, anchors: &Anchors) -> Result<Option<Epoch>, ImportError> {
        let number = first / EPOCH_BLOCKS;
        let count = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
        let is_whole = first.is_multiple_of(EPOCH_BLOCKS)
            && count > 0
            && count == mainnet_epoch_blocks(number);
        let Some(expected) = anchors.expected_epoch_root(number).filter(|_| is_whole) else {
            return Ok(None);
        };
        let found = epoch_root(&self.records);
        if found != expected {
            let said = format!(
                "the accumulator root of epoch {number} is {found} by these blocks and the total \
                 difficulty that is told before them, {expected} is trusted"
            );
            return Err(ImportError::Contradiction { file: self.source_name.clone(), said });
        }
        let last = first.saturating_add(count.saturating_sub(1));
        Ok(Some(Epoch { number, last }))
    }
}

/// The hash of the block before a range, if it is held.
pub(crate) fn hash_below(view: &View, part: BlockRange) -> Result<Option<B256>, StoreError> {
    let Some(number) = part.first().checked_sub(1) else { return Ok(None) };
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    block_on(view.read_hash(&mut reader, BlockNumber(number)))
}

/// The hash that the block after a range says its parent has, if that block is held.
pub(crate) fn parent_above(view: &View, part: BlockRange) -> Result<Option<B256>, StoreError> {
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let header = block_on(view.read_header(&mut reader, BlockNumber(part.end())))?;
    let header = header.and_then(|header| decode_header(&header.rlp).ok());
    Ok(header.map(|header| header.parent_hash))
}

/// Total difficulty before the first segment that begins inside an arriving run, as its source has it.
pub(super) fn difficulty_told(
    view: &View,
    run: &ProvenRun,
    segments: &[NewSegment],
) -> Result<Option<(u64, U256)>, StoreError> {
    let Some((before, _)) = run.difficulty else { return Ok(None) };
    let first = run.range.first();
    let new = segments.iter().map(NewSegment::entry).find(|it| it.range.contains(first));
    let held = view.manifest().find_segment(BlockNumber(first)).map(|(_, entry)| entry);
    // The segment may begin before the run: what lies between is held.
    let begins = new.or(held).map_or(first, |entry| entry.range.first());
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let mut total = Some(before);
    for number in begins..first {
        let header = block_on(view.read_header(&mut reader, BlockNumber(number)))?;
        let header = header.and_then(|header| decode_header(&header.rlp).ok());
        total = total.zip(header).and_then(|(sum, it)| sum.checked_sub(it.difficulty));
    }
    Ok(total.map(|total| (begins, total)))
}
