//! The chain as far as somebody knows it, and what leads from there to the chain that is.

use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use store::head::HeadBlock;
use store::{BlockId, Reader, StoreError, View};

/// Blocks that are told at once, before the view is looked at again.
pub(crate) const PORTION_BLOCKS_MAX: u64 = 64;

/// As far as a subscriber or a filter knows the chain: up to this block, or `None` as long as there was
/// none. It holds no view: blocks and files go when the store lets them go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainCursor(Option<BlockId>);

/// What leads from what was seen to the chain that is.
#[derive(Clone, Debug)]
pub(crate) enum ChainChange {
    /// Every block between them is known.
    Linked {
        /// Blocks that were seen and left the chain, highest first.
        removed: Vec<Arc<HeadBlock>>,
        /// The blocks above the fork point.
        added: Option<BlockRange>,
    },
    /// Not every one is.
    Unlinked(BrokenLink),
}

/// Why nothing leads from what was seen to the chain that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenLink {
    /// Blocks that were seen left the chain, and the store has dropped them.
    RemovedUnknown,
    /// Blocks below the tip that follow what was seen are not held.
    AddedNotHeld,
}

impl ChainChange {
    /// The blocks that left and those that came, if every one is known.
    pub(crate) fn linked(self) -> Result<(Vec<Arc<HeadBlock>>, Option<BlockRange>), BrokenLink> {
        match self {
            Self::Linked { removed, added } => Ok((removed, added)),
            Self::Unlinked(link) => Err(link),
        }
    }
}

impl ChainCursor {
    /// All of a view.
    pub(crate) async fn at_tip(reader: &mut Reader, view: &View) -> Result<Self, StoreError> {
        match view.tip() {
            Some(tip) => Self::at(reader, view, tip).await,
            None => Ok(Self(None)),
        }
    }

    /// Up to a block.
    pub(crate) fn up_to(block: BlockId) -> Self {
        Self(Some(block))
    }

    /// A view up to one of its blocks.
    pub(crate) async fn at(
        reader: &mut Reader,
        view: &View,
        number: BlockNumber,
    ) -> Result<Self, StoreError> {
        let hash = view.read_hash(reader, number).await?;
        Ok(Self::up_to(BlockId { number, hash: hash.ok_or(StoreError::NotHeld { number })? }))
    }

    /// The chain below a block that left it.
    pub(crate) fn below(block: &HeadBlock) -> Self {
        let hash = block.parent_hash();
        Self(block.number().parent().map(|number| BlockId { number, hash }))
    }

    /// What was seen, without the blocks of it that left, highest first.
    pub(crate) fn without(self, removed: &[Arc<HeadBlock>]) -> Self {
        removed.last().map_or(self, |block| Self::below(block))
    }

    /// Whether no block was seen.
    pub(crate) fn is_nothing(self) -> bool {
        self.0.is_none()
    }

    /// What leads from what was seen to `now`. For whoever has seen nothing, all blocks up to the tip
    /// came, down to the highest gap.
    pub(crate) async fn change_to(
        self,
        reader: &mut Reader,
        now: &View,
    ) -> Result<ChainChange, StoreError> {
        let mut removed = Vec::new();
        let Some(mut at) = self.0 else {
            return Ok(ChainChange::Linked { removed, added: now.coverage().last().copied() });
        };
        // What the head stands on is not always held.
        let is_base = |at: BlockId| now.head().base() == Some((at.number, at.hash));
        let next = loop {
            if is_base(at) || now.read_hash(reader, at.number).await? == Some(at.hash) {
                break at.number.saturating_add(1);
            }
            let Some(block) = now.head().find_side_block(&at.hash) else {
                return Ok(ChainChange::Unlinked(BrokenLink::RemovedUnknown));
            };
            removed.push(Arc::clone(block));
            let Some(number) = at.number.parent() else { break BlockNumber(0) };
            at = BlockId { number, hash: block.parent_hash() };
        };
        let Some(run) = now.coverage().last().filter(|run| run.last() >= next.get()) else {
            return Ok(ChainChange::Linked { removed, added: None });
        };
        if next.get() < run.first() {
            return Ok(ChainChange::Unlinked(BrokenLink::AddedNotHeld));
        }
        let added = BlockRange::from_ends(next.get(), run.last());
        Ok(ChainChange::Linked { removed, added })
    }
}
