//! Accumulator epochs, found again among blocks that are held.

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
