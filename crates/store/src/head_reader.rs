//! The head as a process sees it that does not write: placed above what is sealed.

use std::sync::Arc;

use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, ChainSpec};

use crate::block_id::BlockId;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::finality::Finality;
use crate::head::{Head, HeadError, HeadLimits, HeadView, LogTail, Recovery, SupersededBlock};
use crate::manifest::{HeadRecord, Manifest};
use crate::read::block_on;
use crate::reader::Reader;
use crate::view::View;

/// Where a head stands beside what is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// Nothing of it is sealed, from its first block on.
    Above,
    /// Its blocks up to this one are sealed; it may be that all of them are.
    Passed(BlockId),
    /// Another chain was sealed in its place, up to this block.
    Conflict(SupersededBlock, BlockId),
}

/// Finds where a head meets the segments that a view lists, whatever head the view has.
pub(crate) fn find_seam(view: &View, head: &HeadView) -> Result<Seam, StoreError> {
    let first = head.blocks().first().map(|block| block.number());
    let above_base = head.base().map(|(number, _)| number.saturating_add(1));
    let Some(next) = above_base.or(first) else { return Ok(Seam::Above) };
    let tip = head.tip().map(|block| block.number());
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let mut read = |number| block_on(view.read_sealed_hash(&mut reader, number));
    let mut seam = Seam::Above;
    for range in view.manifest().coverage() {
        let number = BlockNumber(range.last());
        let meeting = tip.map_or(number, |tip| number.min(tip));
        let own = head.find_block(meeting).map(|block| (meeting, block.hash()));
        let base = head.base().filter(|(base, _)| range.contains(*base));
        let first = BlockNumber(range.first());
        let below = first.parent().and_then(|it| Some((it, head.find_block(it)?.hash())));
        let meetings = below.into_iter().chain(base).chain(own.filter(|_| range.contains(meeting)));
        for (number, found) in meetings {
            let known = view.parent_hash_at(first).filter(|_| number < first);
            let sealed = match known {
                Some(parent_hash) => parent_hash,
                None => read(number)?.ok_or(StoreError::NotHeld { number })?,
            };
            if sealed != found {
                let superseded = SupersededBlock { number, found, sealed };
                let number = BlockNumber(range.last());
                let hash = read(number)?.ok_or(StoreError::NotHeld { number })?;
                return Ok(Seam::Conflict(superseded, BlockId { number, hash }));
            }
        }
        if range.contains(next) {
            let hash = read(number)?.ok_or(StoreError::NotHeld { number })?;
            seam = Seam::Passed(BlockId { number, hash });
        }
    }
    Ok(seam)
}

/// Whether a head, read from a log if there is one, has what the manifest records of it. What is
/// sealed is not missing.
pub(crate) fn check_record(
    manifest: &Manifest,
    folder: String,
    head: &HeadView,
    recovery: &Recovery,
) -> Result<(), StoreError> {
    let Some(record) = manifest.head() else { return Ok(()) };
    let has_log = recovery.log.is_some();
    let is_sealed = record.block.is_some_and(|it| manifest.find_segment(it.number).is_some());
    if has_log && (is_sealed || is_met_by(record, head)) {
        return Ok(());
    }
    let recorded = record.block.map_or_else(
        || "the manifest says that there is one".to_owned(),
        |it| format!("the manifest says that it reaches block {} ({})", it.number, it.hash),
    );
    let cuts: Vec<String> = recovery.cuts.iter().map(ToString::to_string).collect();
    let found = match (has_log, head.tip(), head.base()) {
        (..) if !cuts.is_empty() => cuts.join("; "),
        (false, ..) => "no log is there".to_owned(),
        (true, Some(tip), _) => format!("it ends with block {} ({})", tip.number(), tip.hash()),
        (true, None, Some((number, hash))) => format!("it is empty above block {number} ({hash})"),
        (true, None, None) => "it is empty".to_owned(),
    };
    Err(StoreError::HeadLost { folder, recorded, found })
}

/// Whether a log that gives this head has what is recorded.
fn is_met_by(record: HeadRecord, head: &HeadView) -> bool {
    let Some(BlockId { number, hash }) = record.block else { return true };
    let is_passed = head.base().is_some_and(|(base, _)| base > number);
    let own = head.find_block(number).map(|block| block.hash());
    let own = own.or(head.base().filter(|(base, _)| *base == number).map(|(_, hash)| hash));
    is_passed || own == Some(hash)
}

/// What a manifest can say of a head's log: its highest block that will not change.
pub(crate) fn record_of(head: &Head) -> Option<HeadRecord> {
    record_with(head, head.finality())
}

/// The same if this is what is final.
pub(crate) fn record_with(head: &Head, finality: Finality) -> Option<HeadRecord> {
    head.next_of_base()?;
    let view = head.view();
    let is_held = |block: &BlockId| {
        view.find_block(block.number).is_some_and(|found| found.hash() == block.hash)
    };
    let base = head.base().map(|(number, hash)| BlockId { number, hash });
    Some(HeadRecord { block: finality.finalized.filter(is_held).or(base) })
}

/// What a head's log has of what a manifest records.
#[derive(Debug)]
pub(crate) struct HeadSurvey {
    /// The blocks that it holds.
    pub(crate) range: Option<BlockRange>,
    /// What the manifest can say of the log: as it does if the log has that.
    pub(crate) record: Option<HeadRecord>,
    /// What is missing, if something is.
    pub(crate) missing: Option<StoreError>,
    /// The recorded block, if it is not held any more.
    pub(crate) lost: Option<BlockRange>,
    pub(crate) recovery: Recovery,
}

/// Reads a head's log, proves its blocks, and holds it against what a manifest records. Nothing is
/// changed.
pub(crate) fn survey_head(
    disk: Arc<dyn Disk>,
    spec: &ChainSpec,
    manifest: &Manifest,
) -> Result<HeadSurvey, StoreError> {
    let folder = disk.place();
    let (head, recovery) = Head::open(disk, spec, &Anchors::of(spec), HeadLimits::default())?;
    let missing = match check_record(manifest, folder, &head.view(), &recovery) {
        Err(error @ StoreError::HeadLost { .. }) => Some(error),
        checked => checked.map(|()| None)?,
    };
    let own = recovery.log.as_ref().and_then(|_| record_of(&head));
    let (record, lost) = match missing {
        None => (manifest.head().or(own), None),
        Some(_) => (own, lost_with_head(manifest)),
    };
    let view = head.view();
    let ends = view.blocks().first().zip(view.blocks().last());
    let range = ends.and_then(|(first, last)| BlockRange::from_ends(first.number(), last.number()));
    Ok(HeadSurvey { range, record, missing, lost, recovery })
}

/// The block that a manifest records, if no segment has it. Which blocks below it the log held is not
/// known.
fn lost_with_head(manifest: &Manifest) -> Option<BlockRange> {
    let number = manifest.head()?.block?.number;
    let is_sealed = manifest.find_segment(number).is_some();
    BlockRange::from_count(number, 1).filter(|_| !is_sealed)
}

/// Reads the head's log for a store.
#[derive(Debug)]
pub(crate) struct HeadReader {
    tail: LogTail,
    superseded: Option<SupersededBlock>,
    /// Whether a view shows what was read.
    is_shown: bool,
}

impl HeadReader {
    pub(crate) fn new(spec: ChainSpec) -> Self {
        Self { tail: LogTail::new(spec), superseded: None, is_shown: false }
    }

    /// Reads what is new in the log; tells whether anything was.
    pub(crate) fn look(&mut self, disk: &dyn Disk) -> Result<bool, HeadError> {
        let is_changed = self.tail.look(disk)?;
        self.is_shown &= !is_changed;
        Ok(is_changed)
    }

    /// Whether the view that is shown has all that was read.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Refuses a log that lacks what a manifest records of it: what is missing would be denied.
    pub(crate) fn check_record(
        &self,
        manifest: &Manifest,
        folder: String,
    ) -> Result<(), StoreError> {
        check_record(manifest, folder, &self.tail.head()?, &self.tail.recovery())
    }

    /// The view with the blocks of the head that are not sealed, if they stand on what is.
    pub(crate) fn place_in(&mut self, view: &View) -> Result<View, StoreError> {
        let head = self.tail.head()?;
        let (seam, finality) = (find_seam(view, &head)?, self.tail.finality());
        let head = match seam {
            Seam::Above | Seam::Conflict(..) => head,
            Seam::Passed(sealed) => self.tail.head_above(sealed)?,
        };
        let placed = view.with_head(Arc::new(head), finality);
        self.superseded = match seam {
            Seam::Conflict(superseded, _) => Some(superseded),
            Seam::Above | Seam::Passed(_) => placed.superseded(),
        };
        self.is_shown = true;
        let is_left = placed.head().tip().is_none()
            && (self.superseded.is_some() || !placed.has_whole_head());
        Ok(if is_left || placed.is_passed_by_published() {
            view.with_head(Arc::default(), Finality::default())
        } else if placed.has_whole_head() {
            placed
        } else {
            view.with_head(placed.shown_head(), finality)
        })
    }

    /// Its blocks, and the highest of them that will not change.
    pub(crate) fn final_blocks(&self) -> (HeadView, Option<BlockNumber>) {
        let finalized = self.tail.finality().finalized.map(|it| it.number);
        (self.tail.head().unwrap_or_default(), finalized)
    }

    /// What of the log was not taken, and why.
    pub(crate) fn recovery(&self) -> Recovery {
        Recovery { superseded: self.superseded, ..self.tail.recovery() }
    }
}

#[cfg(test)]
mod tests;
