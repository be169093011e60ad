//! The head beside the segments: it grows and is reorganised, and what is final is sealed.

use chain::trust::Anchors;
use chain::{Block, BlockNumber, BlockRange, Verified};
use segment::YOUNG_SLOT_BLOCKS;

use alloy_primitives::B256;

use super::{CommitFacts, Writer};
use crate::block_id::BlockId;
use crate::error::StoreError;
use crate::finality::Finality;
use crate::head::{Head, HeadBlock, HeadError, HeadLimits, Recovery, SupersededBlock};
use crate::head_reader::{Seam, check_record, find_seam, record_of, record_with, survey_head};
use crate::layout::HeldRange;
use crate::manifest::HeadRecord;
use crate::notice::{keep_notice, read_notice};
use crate::read::block_on;
use crate::reader::Reader;

impl Writer {
    /// Takes up the head that the folder's log holds. Blocks that were sealed before a crash could
    /// drop them from the log leave it now, and so does a chain in whose place another was sealed.
    /// [`Recovery`] tells what of the log was not taken.
    pub fn open_head(
        &mut self,
        anchors: &Anchors,
        limits: HeadLimits,
    ) -> Result<Recovery, StoreError> {
        let disk = self.store.disk().clone();
        let folder = disk.place();
        let (mut head, mut recovery) = Head::open(disk, &self.spec, anchors, limits)?;
        // Damage above what is final costs what a node tells again. What was final is not given up
        // without a word: that is `quipu repair`.
        check_record(self.view().manifest(), folder, &head.view(), &recovery)?;
        recovery.superseded = self.drop_sealed(&mut head)?;
        self.store.end_reading_head();
        self.head = Some(head);
        self.show_head();
        self.begin_record();
        Ok(recovery)
    }

    /// What a manifest can say now of the head's log.
    pub(super) fn head_record(&self) -> Option<HeadRecord> {
        self.head.as_ref().and_then(record_of)
    }

    /// Records in the manifest that there is a head, as soon as its log is there. What fails here is
    /// done by the next change.
    fn begin_record(&mut self) {
        let view = self.view();
        if view.manifest().head().is_none() && self.head_record().is_some() {
            let _ = self.replace(view.manifest().clone());
        }
    }

    /// Asks no more of the head's log than that it reaches this block: before it loses others.
    pub(super) fn lower_record(&mut self, to: BlockId) -> Result<(), StoreError> {
        let view = self.view();
        let recorded = view.manifest().head().and_then(|record| record.block);
        if recorded.is_none_or(|block| block.number <= to.number) {
            return Ok(());
        }
        self.look()?;
        let record = HeadRecord { block: Some(to) };
        self.replace_as_it_is(&view.manifest().clone().with_head(Some(record)))
    }

    /// Asks no more of the head's log than what it has: what it lost is lost, and the block that was
    /// recorded is remembered as lost.
    pub fn accept_head_loss(&mut self) -> Result<(), StoreError> {
        let view = self.view();
        let found = survey_head(self.store.disk().clone(), &self.spec, view.manifest())?;
        let recorded = view.manifest().head().and_then(|record| record.block);
        let next = view.manifest().clone().with_head(found.record).with_lost(found.lost);
        let next = next.with_lost_hashes(recorded);
        self.replace_as_it_is(&next)
    }

    /// Holds the head's log against what this process wrote, and writes it anew if somebody cut,
    /// replaced or removed it: readers beside us would deny what we answer, and the next start too. Tells
    /// what was found.
    pub fn keep_head_log(&mut self) -> Result<Option<HeadError>, StoreError> {
        self.look()?;
        if self.view().is_head_undecided() {
            self.show_head();
        }
        let head = self.head.as_mut().ok_or(StoreError::NoHead)?;
        Ok(head.keep_log()?)
    }

    /// Adds blocks above the tip.
    pub fn extend(&mut self, blocks: Vec<Verified<Block>>) -> Result<(), StoreError> {
        self.check_first(blocks.first())?;
        self.change_head(|head| head.extend(blocks))
    }

    /// Lets a head that holds no block go on above another block than before: the next one to come
    /// must be its child.
    pub fn begin_head(&mut self, number: BlockNumber, hash: B256) -> Result<(), StoreError> {
        self.check_sealed(number, hash)?;
        let view = self.view();
        if view.head().tip().is_some() || view.holds_final() {
            return Err(StoreError::HeadInUse);
        }
        self.lower_record(BlockId { number, hash })?;
        self.change_head(|head| head.stand_on(number, hash))
    }

    /// What is safe and final, as the folder's log has it.
    #[must_use]
    pub fn finality(&self) -> Finality {
        self.head.as_ref().map(Head::finality).unwrap_or_default()
    }

    /// Records what is safe and what is final, then shows it to readers. What was final stays so: see
    /// [`Finality::advanced_by`]. Before a final block is shown, the manifest says that the log has it:
    /// a log that is cut below it is not taken for what a crash left.
    pub fn set_finality(&mut self, told: Finality) -> Result<(), StoreError> {
        self.look()?;
        let head = self.head.as_ref().ok_or(StoreError::NoHead)?;
        let before = head.finality();
        self.set_record(record_with(head, before.advanced_by(told)))?;
        let head = self.head.as_mut().ok_or(StoreError::NoHead)?;
        head.set_finality(told)?;
        if head.finality() != before {
            self.show_head();
        }
        Ok(())
    }

    fn set_record(&mut self, record: Option<HeadRecord>) -> Result<(), StoreError> {
        let view = self.view();
        if record.is_none() || view.manifest().head() == record {
            return Ok(());
        }
        self.replace_as_it_is(&view.manifest().clone().with_head(record))
    }

    /// Asks no more of the log than what is final, if a failure left it so: what is not final may go.
    fn settle_record(&mut self) -> Result<(), StoreError> {
        let own = self.head_record();
        let number =
            |record: Option<HeadRecord>| record.and_then(|it| it.block).map(|it| it.number);
        let recorded = self.view().manifest().head();
        if own.is_some() && number(recorded) > number(own) { self.set_record(own) } else { Ok(()) }
    }

    /// Drops the blocks above a canonical one.
    pub fn rewind(&mut self, to: B256) -> Result<(), StoreError> {
        self.change_head(|head| head.rewind(to))
    }

    /// Drops the blocks above a canonical one and adds others in their place: readers see the old
    /// chain or the new one.
    pub fn reorg(
        &mut self,
        fork_point: B256,
        blocks: Vec<Verified<Block>>,
    ) -> Result<(), StoreError> {
        self.change_head(|head| head.reorg(fork_point, blocks))
    }

    /// Adds blocks, each the child of one that the head holds or stands on, and makes `tip` canonical
    /// in the same change. Without a tip they are a side branch that readers do not see.
    pub fn adopt(
        &mut self,
        blocks: Vec<Verified<Block>>,
        tip: Option<B256>,
    ) -> Result<(), StoreError> {
        self.change_head(|head| head.adopt(blocks, tip))
    }

    /// Leaves a notice in the folder for other processes, or removes the one that is there.
    pub fn set_notice(&self, notice: Option<&str>) -> Result<(), StoreError> {
        self.look()?;
        Ok(keep_notice(&**self.store.disk(), &self.lock, notice)?)
    }

    /// The notice that is in the folder.
    pub fn notice(&self) -> Result<Option<String>, StoreError> {
        Ok(read_notice(&**self.store.disk())?)
    }

    /// Memory of the head's blocks, those of side branches included.
    #[must_use]
    pub fn head_bytes(&self) -> u64 {
        self.head.as_ref().map_or(0, Head::bytes)
    }

    /// How much more memory the head's blocks may take.
    #[must_use]
    pub fn head_room_bytes(&self) -> u64 {
        self.head.as_ref().map_or(0, Head::room_bytes)
    }

    /// Whether the head holds a block, canonical or not.
    #[must_use]
    pub fn is_known(&self, hash: &B256) -> bool {
        self.head.as_ref().is_some_and(|head| head.known(hash))
    }

    /// A block that the head holds, canonical or not.
    #[must_use]
    pub fn find_known(&self, hash: &B256) -> Option<&HeadBlock> {
        self.head.as_ref()?.find(hash)
    }

    /// Seals the aligned runs of 256 blocks that are final, up to and including `finalized` or the
    /// tip, and tells which blocks these were. Reads go on meanwhile: a block is in the head until it
    /// is in a listed segment. A slot that becomes complete stays in its pieces, for somebody else to
    /// merge ([`Manifest::pending_merges`](crate::manifest::Manifest::pending_merges)).
    pub fn seal(
        &mut self,
        finalized: BlockNumber,
        facts: CommitFacts,
    ) -> Result<Option<BlockRange>, StoreError> {
        // What is final may be ahead of what is held.
        let Some(tip) = self.view().head().tip().map(|tip| tip.number()) else { return Ok(None) };
        let end =
            finalized.min(tip).get().saturating_add(1) / YOUNG_SLOT_BLOCKS * YOUNG_SLOT_BLOCKS;
        self.seal_until(BlockNumber(end), facts)
    }

    /// The same with the final blocks that are no whole run of 256: for a head that is given up.
    pub fn seal_all(
        &mut self,
        finalized: BlockNumber,
        facts: CommitFacts,
    ) -> Result<Option<BlockRange>, StoreError> {
        self.seal_until(finalized.saturating_add(1), facts)
    }

    fn seal_until(
        &mut self,
        end: BlockNumber,
        facts: CommitFacts,
    ) -> Result<Option<BlockRange>, StoreError> {
        let view = self.view();
        let blocks = view.head().blocks();
        let count = blocks.partition_point(|block| block.number() < end);
        let Some(due) = blocks.get(..count) else { return Ok(None) };
        let (Some(first), Some(last)) = (due.first(), due.last()) else { return Ok(None) };
        let range = BlockRange::from_ends(first.number(), last.number());
        let arriving = due.iter().filter_map(|block| {
            let range = BlockRange::from_count(block.number(), 1)?;
            Some(HeldRange { range, has_receipts: block.block().receipts.is_some() })
        });
        let arriving: Vec<HeldRange> = arriving.collect();
        let from_head = |number| view.head().find_block(number).map(|it| it.block().clone());
        let mut segments = Vec::new();
        for target in self.drafting.plan_unmerged(&arriving) {
            segments.push(self.build(target, &from_head)?);
        }
        self.commit(segments, facts)?;
        let (number, hash) = (last.number(), last.hash());
        self.change_head(|head| head.seal_below(number, hash))?;
        Ok(range)
    }

    /// Makes the head durable as it is. The log may hold a change that failed: a crash must not
    /// bring it back against what is sealed meanwhile.
    pub(super) fn settle_head(&mut self) -> Result<(), StoreError> {
        match &mut self.head {
            Some(head) => Ok(head.extend(Vec::new())?),
            None => Ok(()),
        }
    }

    pub(super) fn change_head(
        &mut self,
        change: impl FnOnce(&mut Head) -> Result<(), HeadError>,
    ) -> Result<(), StoreError> {
        self.look()?;
        self.settle_record()?;
        let head = self.head.as_mut().ok_or(StoreError::NoHead)?;
        change(head)?;
        self.show_head();
        self.begin_record();
        Ok(())
    }

    fn show_head(&self) {
        if let Some(head) = &self.head {
            self.store.show_head(&head.view(), head.finality());
        }
    }

    /// The first block of a head that never had one may be any, but no other than what is sealed.
    fn check_first(&self, first: Option<&Verified<Block>>) -> Result<(), StoreError> {
        let is_fresh = self.head.as_ref().is_some_and(|head| head.next_of_base().is_none());
        let Some(block) = first.filter(|_| is_fresh) else { return Ok(()) };
        let number = BlockNumber(block.header.number);
        self.check_sealed(number, block.hash)?;
        match number.parent() {
            Some(parent) => self.check_sealed(parent, block.header.parent_hash),
            None => Ok(()),
        }
    }

    /// What is sealed under a number must be the block that is claimed to be there.
    fn check_sealed(&self, number: BlockNumber, found: B256) -> Result<(), StoreError> {
        let view = self.view();
        if view.manifest().find_segment(number).is_none() {
            return Ok(());
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        match block_on(view.read_hash(&mut reader, number))? {
            Some(sealed) if sealed != found => Err(StoreError::Seam { number, found, sealed }),
            Some(_) | None => Ok(()),
        }
    }

    /// Drops blocks from a head that a crash kept from leaving it, and moves up one that others have
    /// passed. Where others sealed another chain, that one counts: it is told, and the head keeps
    /// what is shown beside it, or begins anew above it.
    fn drop_sealed(&mut self, head: &mut Head) -> Result<Option<SupersededBlock>, StoreError> {
        match find_seam(&self.view(), &head.view())? {
            Seam::Above => Ok(None),
            Seam::Passed(BlockId { number, hash }) => {
                head.seal_below(number, hash)?;
                Ok(None)
            }
            Seam::Conflict(superseded, sealed) => {
                let view = self.view().with_head(head.view(), head.finality());
                let kept = view.head().tip();
                let kept = kept.map(|tip| BlockId { number: tip.number(), hash: tip.hash() });
                // What was final of the other chain is not any more.
                let to = kept.unwrap_or(sealed);
                self.lower_record(to)?;
                head.lower_finality_with(to, |head| match kept {
                    Some(tip) => head.rewind(tip.hash),
                    None => head.stand_on(to.number, to.hash),
                })?;
                Ok(Some(superseded))
            }
        }
    }
}
