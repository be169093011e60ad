//! What the segments of a manifest cover, worked out once for every head above them.
//!
//! Knows: ranges of blocks, and of those with receipts.
//! Never knows: files.

use chain::{BlockNumber, BlockRange};

use crate::head::HeadView;
use crate::layout::{join_ranges, subtract};
use crate::manifest::Manifest;

use super::MissingFile;

/// What the segments of a manifest cover.
#[derive(Debug)]
pub(super) struct SealedCoverage {
    blocks: Vec<BlockRange>,
    receipts: Vec<BlockRange>,
}

impl SealedCoverage {
    /// Without the segments that cannot be read.
    pub(super) fn of(manifest: &Manifest, missing: &[MissingFile]) -> Self {
        let missing = join_ranges(missing.iter().filter_map(|it| it.blocks));
        let without = |ranges: Vec<BlockRange>| {
            if missing.is_empty() { ranges } else { subtract(&ranges, &missing) }
        };
        Self {
            blocks: without(manifest.coverage()),
            receipts: without(manifest.coverage_receipts()),
        }
    }

    /// The range with a block whose receipts are held.
    pub(super) fn find_receipts(&self, number: BlockNumber) -> Option<&BlockRange> {
        self.receipts.iter().find(|range| range.contains(number))
    }

    /// The blocks of the segments and of a head above them.
    pub(super) fn with_head(&self, head: &HeadView) -> Vec<BlockRange> {
        let blocks = head.blocks();
        let ends = blocks.first().zip(blocks.last());
        let head =
            ends.and_then(|(first, last)| BlockRange::from_ends(first.number(), last.number()));
        join_ranges(self.blocks.iter().copied().chain(head))
    }

    /// Those of them whose receipts are held too.
    pub(super) fn receipts_with_head(&self, head: &HeadView) -> Vec<BlockRange> {
        let head = head.blocks().iter().filter(|block| block.block().receipts.is_some());
        let head = head.filter_map(|block| BlockRange::from_count(block.number(), 1));
        join_ranges(self.receipts.iter().copied().chain(head))
    }
}
