//! Merging: the pieces of a slot that is held whole become one segment.

use std::num::NonZeroUsize;
use std::sync::Arc;

use chain::trust::Anchors;
use chain::{BlockRange, ChainSpec};
use store::layout::HeldRange;
use store::{CommitFacts, Drafting, NewSegment, Writer};
use tokio::sync::watch;

use super::blocks::Joined;
use super::build::Builder;
use super::view_blocks::ViewBlocks;
use super::{ImportError, Progress, Prover};
use crate::prove::NO_POINTS;

/// Makes one segment of a slot's pieces.
pub struct Merger<'a> {
    /// The folder, as far as building needs it.
    pub drafting: &'a Drafting,
    /// The chain's facts.
    pub spec: &'a ChainSpec,
    /// How many threads prove and encode.
    pub threads: NonZeroUsize,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
    /// Says when to stop before it is done; `None` never does.
    pub stop: Option<watch::Receiver<bool>>,
}

impl std::fmt::Debug for Merger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merger").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Merger<'_> {
    /// Builds the segment of a slot.
    pub fn build(&self, target: HeldRange) -> Result<NewSegment, ImportError> {
        let view = self.drafting.view();
        let stop = self.stop.clone();
        let pieces = ViewBlocks::new(Arc::clone(&view), target.range, None, stop);
        let anchors = Anchors::none();
        let prover = Prover {
            spec: self.spec,
            anchors: &anchors,
            threads: self.threads,
            progress: self.progress,
            points: NO_POINTS,
        };
        let source = Joined { source: &pieces, part: target.range, view };
        let builder = Builder { drafting: self.drafting, prover, source: &source, target };
        builder.build(&mut |_| Ok(()))
    }
}

/// Merges the next slot that is due, on the thread that has the writer. `begins` hears of it.
/// Returns whether there was one.
pub fn merge_next(
    writer: &mut Writer,
    spec: &ChainSpec,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    begins: &dyn Fn(BlockRange),
) -> Result<bool, ImportError> {
    let pending = writer.view().manifest().pending_merges();
    let Some(target) = pending.first().copied() else { return Ok(false) };
    begins(target.range);
    let drafting = writer.drafting();
    let merger = Merger { drafting: &drafting, spec, threads, progress, stop: None };
    let segment = merger.build(target)?;
    writer.commit(vec![segment], CommitFacts::default())?;
    Ok(true)
}
