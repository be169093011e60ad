//! Accumulator epochs, found again among blocks that are held.
//!
//! Knows: that an epoch counts where its blocks give a trusted root.
//! Never knows: who asks, or how an epoch is recorded.

use std::ops::Range;

use alloy_primitives::{B256, U256};
use chain::accumulator::{EPOCH_BLOCKS, epoch_root, mainnet_epoch_blocks};
use chain::trust::{Anchors, Epoch};
use chain::{BlockNumber, BlockRange, decode_header};
use store::read::block_on;
use store::{Reader, StoreError, View};

/// The accumulator epochs that the blocks from 0 on give, where their roots are trusted. Blocks above
/// a gap do not tell their total difficulty.
pub fn find_epochs(view: &View, anchors: &Anchors) -> Result<Vec<Epoch>, StoreError> {
    let mut found = Vec::new();
    let held = view.coverage().iter().find(|range| range.first() == 0);
    let end = held.map_or(0, BlockRange::end);
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
        let work = read_work(view, &mut reader, first..after)?;
        let is_true = epoch_root(&added_up(&work, total)) == root;
        total = work.iter().fold(total, |sum, (_, own)| sum.saturating_add(*own));
        if is_true {
            found.push(Epoch { number, last: after.saturating_sub(1) });
        }
    }
    Ok(found)
}

/// One accumulator epoch, and the total difficulty before it that its root bears out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProvenEpoch {
    pub(crate) epoch: Epoch,
    pub(crate) first: u64,
    pub(crate) before: U256,
}

/// What the root of an accumulator epoch says of blocks that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpochProof {
    Proven(ProvenEpoch),
    /// With this total difficulty before them they give another root than the trusted one. It may
    /// be no more than the word of whoever told it.
    OtherRoot {
        before: U256,
    },
    /// No root is trusted, or the total difficulty before them is not known.
    Unknown,
}

/// Holds the blocks of an accumulator epoch against its trusted root, with the total difficulty before
/// them that the folder knows, or else with the one that their publisher told. The latter bears nothing
/// out where the root is another.
pub(crate) fn prove_epoch(
    view: &View,
    anchors: &Anchors,
    number: u64,
) -> Result<EpochProof, StoreError> {
    let (Some(root), Some(blocks)) = (anchors.expected_epoch_root(number), epoch_blocks(number))
    else {
        return Ok(EpochProof::Unknown);
    };
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let first = BlockNumber(blocks.first());
    let known = block_on(view.difficulty_before(&mut reader, first))?;
    let mut candidates: Vec<U256> = known.into_iter().collect();
    candidates.extend(view.manifest().told_difficulty(first));
    candidates.dedup();
    if candidates.is_empty() {
        return Ok(EpochProof::Unknown);
    }
    let work = read_work(view, &mut reader, blocks.first()..blocks.end())?;
    let is_true = |before: &U256| epoch_root(&added_up(&work, *before)) == root;
    let epoch = Epoch { number, last: blocks.last() };
    let proven = |before| EpochProof::Proven(ProvenEpoch { epoch, first: blocks.first(), before });
    let refuted = known.map_or(EpochProof::Unknown, |before| EpochProof::OtherRoot { before });
    Ok(candidates.into_iter().find(is_true).map_or(refuted, proven))
}

/// The blocks of an accumulator epoch; `None` after the merge.
pub(crate) fn epoch_blocks(number: u64) -> Option<BlockRange> {
    let count = Some(mainnet_epoch_blocks(number)).filter(|count| *count > 0)?;
    BlockRange::from_count(number.checked_mul(EPOCH_BLOCKS)?, count)
}

/// Hash and difficulty of every block.
fn read_work(
    view: &View,
    reader: &mut Reader,
    blocks: Range<u64>,
) -> Result<Vec<(B256, U256)>, StoreError> {
    let mut work = Vec::new();
    for number in blocks {
        let header = block_on(view.read_header(reader, BlockNumber(number)))?;
        let header = header.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?;
        let difficulty = decode_header(&header.rlp).map_or(U256::ZERO, |it| it.difficulty);
        work.push((header.hash, difficulty));
    }
    Ok(work)
}

/// Hash and total difficulty of every block, by the total before the first.
fn added_up(work: &[(B256, U256)], before: U256) -> Vec<(B256, U256)> {
    let sum = |total: &mut U256, (hash, own): &(B256, U256)| {
        *total = total.saturating_add(*own);
        Some((*hash, *total))
    };
    work.iter().scan(before, sum).collect()
}
