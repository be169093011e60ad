//! Accumulator epochs, found again among blocks that are held.
//!
//! Knows: that an epoch counts where its blocks give a trusted root.
//! Never knows: who asks, or how an epoch is recorded.

use alloy_primitives::U256;
use chain::accumulator::{EPOCH_BLOCKS, epoch_root, mainnet_epoch_blocks};
use chain::trust::{Anchors, Epoch};
use chain::{BlockNumber, decode_header};
use store::read::block_on;
use store::{Reader, StoreError, View};

/// The accumulator epochs that the blocks from 0 on give, where their roots are trusted. Blocks above
/// a gap do not tell their total difficulty.
pub fn find_epochs(view: &View, anchors: &Anchors) -> Result<Vec<Epoch>, StoreError> {
    find_epochs_below(view, anchors, u64::MAX)
}

/// The same of the blocks below a number.
pub(crate) fn find_epochs_below(
    view: &View,
    anchors: &Anchors,
    end: u64,
) -> Result<Vec<Epoch>, StoreError> {
    let mut found = Vec::new();
    let held = view.coverage().iter().find(|range| range.first() == 0);
    let end = held.map_or(0, chain::BlockRange::end).min(end);
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
