//! Dropping what should never have been sealed: only a human asks for it.

use std::collections::BTreeSet;

use alloy_primitives::B256;
use chain::{BlockNumber, BlockRange};

use super::{CommitExtras, CommitFacts, Writer, held};
use crate::block_id::BlockId;
use crate::error::StoreError;
use crate::head::HeadError;
use crate::layout::{HeldRange, plan_unmerged, slot_of};
use crate::manifest::{Manifest, SegmentEntry};
use crate::read::block_on;
use crate::reader::Reader;

impl Writer {
    /// Drops every block above this one, which must be held, from the head and from the segments, and keeps
    /// all others. None of the dropped blocks is final any more. Returns the range from the lowest to the
    /// highest sealed block that was dropped.
    pub fn rewind_to(
        &mut self,
        number: BlockNumber,
        hash: B256,
    ) -> Result<Option<BlockRange>, StoreError> {
        let view = self.view();
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let canonical = block_on(view.read_hash(&mut reader, number))?;
        let canonical = canonical.ok_or(StoreError::NotHeld { number })?;
        if canonical != hash {
            let (number, canonical) = (Some(number), Some(canonical));
            return Err(HeadError::NotCanonical { hash, number, canonical }.into());
        }
        let to = BlockId { number, hash };
        self.lower_record(to)?;
        let sealed = view.manifest().coverage();
        let lowest = sealed.iter().find(|range| range.last() > number.get());
        let lowest = lowest.map(|range| range.first().max(number.saturating_add(1).get()));
        let ends = lowest.zip(sealed.last());
        let gone = ends.and_then(|(lowest, last)| BlockRange::from_ends(lowest, last.last()));
        let mut segments = Vec::new();
        if gone.is_some() {
            for target in self.targets_below(view.manifest(), number) {
                segments.push(self.build(target, &|_| None)?);
            }
        }
        // The head goes first: it must not stand on blocks that are not there any more.
        let kept = view.head().blocks().iter().rfind(|block| block.number() <= number);
        self.change_head(|head| {
            head.lower_finality_with(to, |head| match kept {
                Some(block) => head.rewind(block.hash()),
                None => head.stand_on(number, hash),
            })
        })?;
        let extras = CommitExtras { cut: Some(number), ..CommitExtras::default() };
        self.commit_with(segments, CommitFacts::default(), extras)?;
        Ok(gone)
    }

    /// The segments to build: those that are cut, and those whose lookups lay in a run together with
    /// what goes. The latter stay as they are, but a run cannot be taken apart.
    fn targets_below(&self, manifest: &Manifest, number: BlockNumber) -> BTreeSet<HeldRange> {
        let real = held(&self.view());
        let kept: Vec<HeldRange> = real.iter().filter_map(|it| cut_above(*it, number)).collect();
        let is_new = |wanted: &HeldRange| !real.contains(wanted);
        let planned = plan_unmerged(&real, &kept);
        let mut targets: BTreeSet<HeldRange> = planned.into_iter().filter(is_new).collect();
        let slot = slot_of(number.saturating_add(1));
        let spans = manifest.runs().iter().map(|run| run.span);
        let split = spans.filter(|span| span.slot_count() > 1 && span.end_slot() > slot);
        for span in split {
            let shares = |entry: &&SegmentEntry| {
                span.contains(slot_of(entry.range.first())) && entry.range.last() <= number.get()
            };
            targets.extend(manifest.segments().iter().filter(shares).map(SegmentEntry::held));
        }
        targets
    }
}

/// What of held blocks is not above a number.
pub(super) fn cut_above(held: HeldRange, number: BlockNumber) -> Option<HeldRange> {
    let range = BlockRange::from_ends(held.range.first(), held.range.last().min(number.get()))?;
    Some(HeldRange { range, ..held })
}
