//! A node that tells a tip which it does not have.
//!
//! Knows: how often a block below a tip was missing, and that the node's word on its tip counts again
//! when it has that block.
//! Never knows: who missed the block, or what becomes of the node.

use std::sync::{Mutex, PoisonError};

/// So often in a row a block below a node's tip may be missing: behind one address there may be several
/// nodes, one of which is ahead.
const MISSES_MAX: u32 = 3;

/// What is known of the blocks below a node's tip.
#[derive(Debug, Default)]
pub(super) struct TipDoubt(Mutex<Option<Misses>>);

#[derive(Clone, Copy, Debug)]
struct Misses {
    count: u32,
    /// The last block that was missing.
    missing: u64,
}

impl TipDoubt {
    /// A block below the tip is missing. Tells whether that was once too often.
    pub(super) fn miss(&self, missing: u64) -> bool {
        let mut misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = misses.map_or(0, |misses| misses.count).saturating_add(1);
        *misses = Some(Misses { count, missing });
        count >= MISSES_MAX
    }

    /// The block is there.
    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The block that the node must have before it is believed that this is its tip.
    pub(super) fn find_missing(&self, tip: u64) -> Option<u64> {
        let misses = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let misses = misses.filter(|misses| misses.count >= MISSES_MAX)?;
        Some(misses.missing).filter(|missing| *missing <= tip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_is_doubted_when_a_block_below_it_was_missing_three_times_in_a_row() {
        let doubt = TipDoubt::default();
        assert!(!doubt.miss(7) && !doubt.miss(7));
        assert_eq!(doubt.find_missing(9), None);
        doubt.clear();
        assert!(!doubt.miss(7) && !doubt.miss(8) && doubt.miss(7));
        assert_eq!(doubt.find_missing(9), Some(7));
        assert_eq!(doubt.find_missing(6), None, "a lower tip is another word");
        doubt.clear();
        assert_eq!(doubt.find_missing(9), None);
    }
}
