//! A lost manifest rebuilt over all cores.
//!
//! Knows: which parts of the proof can go on at the same time, and how accumulator epochs are found
//! again.
//! Never knows: what is proven, or how the manifest is written; `store::repair` does.

use std::num::NonZeroUsize;

use alloy_primitives::U256;
use chain::accumulator::{EPOCH_BLOCKS, epoch_root, mainnet_epoch_blocks};
use chain::trust::{Anchors, Epoch};
use chain::{BlockNumber, ChainSpec, decode_header};
use store::read::block_on;
use store::repair::{ProvenSegment, Repair, SegmentProof};
use store::{Reader, StoreError, View};

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

/// The accumulator epochs that the blocks from 0 on give, where their roots are trusted. Blocks above
/// a gap do not tell their total difficulty.
pub fn find_epochs(view: &View, anchors: &Anchors) -> Result<Vec<Epoch>, StoreError> {
    let mut found = Vec::new();
    let held = view.coverage().iter().find(|range| range.first() == 0);
    let end = held.map_or(0, chain::BlockRange::end);
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let mut total = U256::ZERO;
    for number in 0.. {
        let (Some(root), count) =
            (anchors.expected_epoch_root(number), mainnet_epoch_blocks(number))
        else {
            break;
        };
        let first = number.saturating_mul(EPOCH_BLOCKS);
        let after = first.saturating_add(count);
        if count == 0 || after > end {
            break;
        }
        let mut records = Vec::new();
        for number in first..after {
            let header = block_on(view.read_header(&mut reader, BlockNumber(number)))?;
            let header = header.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?;
            let difficulty = decode_header(&header.rlp).map_or(U256::ZERO, |it| it.difficulty);
            total = total.saturating_add(difficulty);
            records.push((header.hash, total));
        }
        if epoch_root(&records) == root {
            found.push(Epoch { number, last: after.saturating_sub(1) });
        }
    }
    Ok(found)
}
