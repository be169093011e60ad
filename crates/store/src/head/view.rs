//! What readers see of the head: one canonical chain that never changes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockNumber;
use segment::TxIndex;

use super::block::HeadBlock;
use super::tree::{Base, Tree};

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxPlace {
    /// Its block.
    pub number: BlockNumber,
    /// Its position there.
    pub index: TxIndex,
}

/// The canonical chain of the head at one moment.
#[derive(Default)]
pub struct HeadView {
    base: Option<(BlockNumber, B256)>,
    blocks: Vec<Arc<HeadBlock>>,
    /// Positions in `blocks`.
    by_hash: HashMap<B256, usize>,
    by_tx_hash: HashMap<B256, TxPlace>,
    side_blocks: HashMap<B256, Arc<HeadBlock>>,
}

impl HeadView {
    pub(super) fn new(tree: &Tree) -> Self {
        let side_blocks = tree.side_blocks().into_iter();
        let side_blocks = side_blocks.map(|block| (block.hash(), Arc::clone(block))).collect();
        Self::of(tree.base().and_then(Base::block), tree.canonical().to_vec(), side_blocks)
    }

    fn of(
        base: Option<(BlockNumber, B256)>,
        blocks: Vec<Arc<HeadBlock>>,
        side_blocks: HashMap<B256, Arc<HeadBlock>>,
    ) -> Self {
        let by_hash =
            blocks.iter().enumerate().map(|(position, block)| (block.hash(), position)).collect();
        let tx_count = blocks.iter().map(|block| block.tx_hashes().len()).sum();
        let mut by_tx_hash = HashMap::with_capacity(tx_count);
        for block in &blocks {
            for (index, hash) in block.tx_hashes().iter().enumerate() {
                let (number, index) = (block.number(), TxIndex::from_usize(index));
                let place = TxPlace { number, index };
                by_tx_hash.entry(*hash).or_insert(place);
            }
        }
        Self { base, blocks, by_hash, by_tx_hash, side_blocks }
    }

    /// Number and hash of the block that the first one stands on, if it is known.
    #[must_use]
    pub fn base(&self) -> Option<(BlockNumber, B256)> {
        self.base
    }

    /// The blocks, lowest first.
    #[must_use]
    pub fn blocks(&self) -> &[Arc<HeadBlock>] {
        &self.blocks
    }

    /// The hash of a block, or of the one that the lowest block stands on.
    pub(crate) fn find_hash(&self, number: BlockNumber) -> Option<B256> {
        let base = self.base.filter(|(base, _)| *base == number).map(|(_, hash)| hash);
        base.or_else(|| self.find_block(number).map(|block| block.hash()))
    }

    /// The same head without the blocks from this number on, which leave the canonical chain. A head
    /// that keeps none stands nowhere: the block below may be of another chain too.
    pub(crate) fn below(&self, end: BlockNumber) -> Self {
        let (kept, left): (Vec<_>, Vec<_>) =
            self.blocks.iter().cloned().partition(|block| block.number() < end);
        let base = self.base.filter(|_| !kept.is_empty());
        let mut side_blocks = self.side_blocks.clone();
        side_blocks.extend(left.into_iter().map(|block| (block.hash(), block)));
        Self::of(base, kept, side_blocks)
    }

    /// The newest block.
    #[must_use]
    pub fn tip(&self) -> Option<&Arc<HeadBlock>> {
        self.blocks.last()
    }

    /// The block of this number.
    #[must_use]
    pub fn find_block(&self, number: BlockNumber) -> Option<&Arc<HeadBlock>> {
        let first = self.blocks.first()?.number();
        self.blocks.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The block of this hash.
    #[must_use]
    pub fn find_block_by_hash(&self, hash: &B256) -> Option<&Arc<HeadBlock>> {
        self.blocks.get(*self.by_hash.get(hash)?)
    }

    /// The block of this hash that is not canonical. Such blocks stay until one of their number is
    /// sealed, or until the head is full.
    #[must_use]
    pub fn find_side_block(&self, hash: &B256) -> Option<&Arc<HeadBlock>> {
        self.side_blocks.get(hash)
    }

    /// Where the transaction of this hash is.
    #[must_use]
    pub fn find_tx(&self, hash: &B256) -> Option<TxPlace> {
        self.by_tx_hash.get(hash).copied()
    }
}

impl fmt::Debug for HeadView {
    /// Numbers and hashes: whole blocks would fill pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = self.blocks.iter().map(|block| (block.number(), block.hash()));
        f.debug_struct("HeadView")
            .field("base", &self.base)
            .field("blocks", &blocks.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
