//! The head as a process sees it that does not write: placed above what is sealed.
//!
//! Knows: where head and segments meet, and that segments count where they disagree.
//! Never knows: how a log is read, or who writes it.

use std::sync::Arc;

use chain::ChainSpec;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::finality::Finality;
use crate::head::{HeadError, HeadView, LogTail, Recovery, Superseded};
use crate::read::block_on;
use crate::reader::Reader;
use crate::stat::BlockId;
use crate::view::View;

/// Where a head stands beside what is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// Nothing of it is sealed, from its first block on.
    Above,
    /// Its blocks up to this one are sealed; it may be that all of them are.
    Passed(BlockId),
    /// Another chain was sealed in its place, up to this block.
    Superseded(Superseded, BlockId),
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
        let number = range.last();
        let meeting = tip.map_or(number, |tip| number.min(tip));
        let own = head.find_block(meeting).map(|block| (meeting, block.hash()));
        let base = head.base().filter(|(base, _)| range.contains(*base));
        for (number, found) in base.into_iter().chain(own.filter(|_| range.contains(meeting))) {
            let sealed = read(number)?.ok_or(StoreError::NotHeld { number })?;
            if sealed != found {
                let superseded = Superseded { number, found, sealed };
                let hash = read(range.last())?.ok_or(StoreError::NotHeld { number })?;
                return Ok(Seam::Superseded(superseded, BlockId { number: range.last(), hash }));
            }
        }
        if range.contains(next) {
            let hash = read(number)?.ok_or(StoreError::NotHeld { number })?;
            seam = Seam::Passed(BlockId { number, hash });
        }
    }
    Ok(seam)
}

/// Reads the head's log for a store.
#[derive(Debug)]
pub(crate) struct HeadReader {
    tail: LogTail,
    superseded: Option<Superseded>,
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

    /// The view with the blocks of the head that are not sealed, if they stand on what is.
    pub(crate) fn place_in(&mut self, view: &View) -> Result<View, StoreError> {
        let head = self.tail.head()?;
        let (seam, finality) = (find_seam(view, &head)?, self.tail.finality());
        self.superseded = None;
        let (head, finality) = match seam {
            Seam::Above => (head, finality),
            Seam::Passed(sealed) => (self.tail.head_above(sealed)?, finality),
            Seam::Superseded(superseded, _) => {
                self.superseded = Some(superseded);
                (HeadView::default(), Finality::default())
            }
        };
        self.is_shown = true;
        Ok(view.with_head(Arc::new(head), finality))
    }

    /// What of the log was not taken, and why.
    pub(crate) fn recovery(&self) -> Recovery {
        Recovery { superseded: self.superseded, ..self.tail.recovery() }
    }
}

#[cfg(test)]
mod tests;
