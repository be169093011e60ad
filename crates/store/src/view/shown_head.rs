//! The part of a head that a view shows: the part that is of the same chain as what is sealed.
//!
//! *Invariant:* where a shown head and sealed blocks have the same number, they have the same hash; where
//! they touch, the upper block is the child of the lower one. Both are chains, so one block at each
//! meeting decides.

use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockNumber;

use super::View;
use crate::block_id::BlockId;
use crate::head::{HeadView, SupersededBlock};
use crate::read::block_on;
use crate::reader::Reader;

/// Where a head leaves the sealed chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// Its first block that is not shown.
    end: BlockNumber,
    /// The block that differs; `None` if the sealed block that decides cannot be read.
    superseded: Option<SupersededBlock>,
}

impl View {
    /// Shows a head, as far as it is of the sealed chain.
    pub(super) fn place_head(self, whole_head: Arc<HeadView>) -> Self {
        let departure = self.find_departure(&whole_head);
        let head = match &departure {
            None => Arc::clone(&whole_head),
            Some(departure) => Arc::new(whole_head.below(departure.end)),
        };
        Self { coverage: self.sealed.with_head(&head), head, whole_head, departure, ..self }
    }

    /// Where a head differs from sealed blocks, if it does.
    fn find_departure(&self, head: &HeadView) -> Option<Departure> {
        let (first, tip) = (head.blocks().first()?.number(), head.tip()?.number());
        let mut agreed_end = first;
        for range in self.sealed.ranges_held() {
            if range.end() < first.get() {
                continue;
            }
            let lowest = BlockNumber(range.first());
            let below = lowest.parent().and_then(|it| Some((it, head.find_hash(it)?)));
            let parent_hash = self.parent_hash_at(lowest);
            if let Some((number, found)) = below.filter(|(_, found)| Some(*found) != parent_hash) {
                // Where it left that chain is not known, but it was above what is final.
                let kept = self.finality.finalized.filter(|it| it.number < number);
                let kept = kept.filter(|it| head.find_hash(it.number) == Some(it.hash));
                let end = kept.map_or(agreed_end, |it| it.number.saturating_add(1).max(agreed_end));
                let superseded = |sealed| SupersededBlock { number, found, sealed };
                return Some(Departure { end, superseded: parent_hash.map(superseded) });
            }
            let meeting = tip.min(BlockNumber(range.last()));
            if meeting < lowest {
                break; // the head ends below it
            }
            let sealed = Reader::new().ok().and_then(|mut reader| {
                block_on(self.read_sealed_hash(&mut reader, meeting)).ok().flatten()
            });
            let found = head.find_hash(meeting);
            if found != sealed {
                let superseded = found.zip(sealed).map(|(found, sealed)| SupersededBlock {
                    number: meeting,
                    found,
                    sealed,
                });
                return Some(Departure { end: lowest, superseded });
            }
            agreed_end = meeting.saturating_add(1).max(first);
        }
        None
    }

    /// The hash of the block below the first one of a segment, as its manifest has it.
    pub(crate) fn parent_hash_at(&self, first: BlockNumber) -> Option<B256> {
        let own = || self.manifest.find_segment(first).map(|(_, entry)| entry);
        let entry = self.sealed.find_entry(first).or_else(own)?;
        (entry.range.first() == first.get()).then_some(entry.parent_hash)
    }

    /// The head of the writer, or of the log, with the blocks that are not shown.
    #[must_use]
    pub fn whole_head(&self) -> &HeadView {
        &self.whole_head
    }

    /// The part of the head that is shown.
    pub(crate) fn shown_head(&self) -> Arc<HeadView> {
        Arc::clone(&self.head)
    }

    /// Whether all of the head is shown.
    pub(crate) fn has_whole_head(&self) -> bool {
        self.departure.is_none()
    }

    /// Whether blocks of the head are not shown only because a sealed block cannot be read.
    #[must_use]
    pub fn is_head_undecided(&self) -> bool {
        self.departure.is_some_and(|it| it.superseded.is_none())
    }

    /// The block of the head in whose place another one was sealed, if the head differs.
    #[must_use]
    pub fn superseded(&self) -> Option<SupersededBlock> {
        self.departure?.superseded
    }

    /// Why blocks of the head are not shown, if some are not.
    pub(crate) fn hidden_head(&self) -> Option<String> {
        let Departure { end, superseded } = self.departure?;
        let cause = superseded.map_or_else(
            || "the sealed block that decides whether they are of its chain cannot be read".into(),
            |it| {
                let SupersededBlock { number, found, sealed } = it;
                format!("its block {number} is {found}, but {sealed} was sealed or published")
            },
        );
        Some(format!("the head is not shown from block {end} on: {cause}"))
    }

    /// The newest block of the shown head that is final: by the word of the node, or as an ancestor
    /// of blocks that the folder has sealed or that the node calls final.
    #[must_use]
    pub fn final_in_head(&self) -> Option<BlockNumber> {
        let tip = self.head.tip()?.number();
        let finalized = self.finality.finalized;
        let own = finalized.filter(|it| self.head.find_hash(it.number) == Some(it.hash));
        let held = self.sealed.ranges_held().into_iter();
        let held = held.filter(|range| finalized.is_some_and(|it| range.contains(it.number)));
        let met = self.manifest.coverage().into_iter().chain(held).filter_map(|range| {
            let highest = tip.min(BlockNumber(range.last()));
            let is_met = highest.get().saturating_add(1) >= range.first();
            is_met.then_some(highest)
        });
        let last = met.chain(own.map(|it| it.number)).max();
        last.filter(|last| self.head.find_block(*last).is_some())
    }

    /// Whether the head holds its final block, shown or not.
    pub(crate) fn holds_final(&self) -> bool {
        let told = self.finality.finalized;
        let held = |it: BlockId| Some(self.whole_head.find_block(it.number)?.hash() == it.hash);
        told.and_then(held).unwrap_or_default()
    }

    /// Whether others have published blocks in the place of the head's tip and above it: what is
    /// final counts then.
    pub(crate) fn is_passed_by_published(&self) -> bool {
        let Some(tip) = self.head.tip().filter(|_| self.sealed.is_union()) else { return false };
        let is_shown = |number| self.sealed.find(number).is_some();
        is_shown(tip.number()) && is_shown(tip.number().saturating_add(1))
    }
}
