//! A lost manifest rebuilt over all cores.

use std::num::NonZeroUsize;

use chain::ChainSpec;
use store::repair::{ProvenSegment, Repair, SegmentProof};
use store::{StoreError, View};

use crate::check::examine_segment;
use crate::prove::Progress;

/// Proves the next segment that the folder may list; tells whether there was one. What is false is
/// left out, which [`Repair`] tells.
pub fn prove_next(
    repair: &mut Repair,
    spec: &ChainSpec,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<bool, StoreError> {
    let Some(position) = repair.next_unproven() else { return Ok(false) };
    let view = repair.view();
    repair.take(position, prove_segment(&view, spec, position, threads, progress))?;
    Ok(true)
}

fn prove_segment(
    view: &View,
    spec: &ChainSpec,
    position: usize,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<ProvenSegment, StoreError> {
    let Some((check, mut proof)) = SegmentProof::begin(view, spec, position)? else {
        return Ok(ProvenSegment::default());
    };
    examine_segment(&check, threads, progress, |examined| proof.take(examined))?;
    proof.finish(&check)
}
