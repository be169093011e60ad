//! The blocks above one block, by hash, and the canonical branch among them.
//!
//! *Invariant:* every block descends from the base, so every branch can become canonical.
//! A change makes a new tree: it is decided as a whole before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockNumber;

use super::HeadError;
use super::block::HeadBlock;

/// What the lowest block of a head is the child of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    /// The number of the lowest block: 0 has no block below it.
    pub(super) next: BlockNumber,
    /// The parent of the lowest block.
    pub(super) parent_hash: B256,
}

impl Base {
    /// Number and hash of the parent, if there is one.
    pub(super) fn block(self) -> Option<(BlockNumber, B256)> {
        Some((self.next.parent()?, self.parent_hash))
    }
}

/// All blocks of a head.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// `None` until there was a first block.
    base: Option<Base>,
    blocks: BTreeMap<B256, Arc<HeadBlock>>,
    /// Lowest first.
    canonical: Vec<Arc<HeadBlock>>,
}

impl Tree {
    /// A tree that stands on a block and holds none.
    pub(super) fn on(base: Base) -> Self {
        Self { base: Some(base), ..Self::default() }
    }

    pub(super) fn base(&self) -> Option<Base> {
        self.base
    }

    /// The canonical blocks, lowest first.
    pub(super) fn canonical(&self) -> &[Arc<HeadBlock>] {
        &self.canonical
    }

    /// The blocks that are not canonical, parents first.
    pub(super) fn side_blocks(&self) -> Vec<&Arc<HeadBlock>> {
        if self.blocks.len() == self.canonical.len() {
            return Vec::new(); // as a rule
        }
        let canonical: BTreeSet<B256> = self.canonical.iter().map(|block| block.hash()).collect();
        let is_side = |block: &&Arc<HeadBlock>| !canonical.contains(&block.hash());
        let mut blocks: Vec<_> = self.blocks.values().filter(is_side).collect();
        blocks.sort_by_key(|block| block.number());
        blocks
    }

    pub(super) fn find(&self, hash: &B256) -> Option<&Arc<HeadBlock>> {
        self.blocks.get(hash)
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The hash that the next block must name as its parent.
    pub(super) fn tip_hash(&self) -> Option<B256> {
        let tip = self.canonical.last().map(|block| block.hash());
        tip.or(self.base.map(|base| base.parent_hash))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks.values().fold(0, |bytes, block| bytes.saturating_add(block.bytes()))
    }

    /// Whether both have the same canonical chain and hold the same number of blocks.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (self.base, self.tip_hash(), self.blocks.len())
            == (other.base, other.tip_hash(), other.blocks.len())
    }

    /// The number that follows on this block, if the block is in the tree or its base.
    pub(super) fn number_after(&self, hash: &B256) -> Option<BlockNumber> {
        let base = self.base.filter(|base| base.parent_hash == *hash).map(|base| base.next);
        base.or_else(|| Some(self.find(hash)?.number().saturating_add(1)))
    }

    /// Adds a block, canonical or not, whose parent is here.
    pub(super) fn insert(&mut self, block: Arc<HeadBlock>) {
        self.blocks.insert(block.hash(), block);
    }

    /// Drops what is not canonical, but for the branch that ends with `kept`.
    pub(super) fn drop_side_branches(&mut self, kept: Option<B256>) {
        let mut blocks: BTreeMap<B256, Arc<HeadBlock>> =
            self.canonical.iter().map(|block| (block.hash(), Arc::clone(block))).collect();
        let mut hash = kept;
        while let Some(block) = hash.and_then(|hash| self.find(&hash)) {
            hash = Some(block.parent_hash());
            if blocks.insert(block.hash(), Arc::clone(block)).is_some() {
                break; // all below it is canonical
            }
        }
        self.blocks = blocks;
    }

    /// This tree with blocks that are each the child of one that is here, canonical with them if
    /// `tip` is told; and those of them that were not in it or had no receipts.
    pub(super) fn adopted(
        &self,
        blocks: Vec<Arc<HeadBlock>>,
        tip: Option<B256>,
    ) -> Result<(Self, Vec<Arc<HeadBlock>>), HeadError> {
        let mut next = self.clone();
        let mut added = Vec::new();
        for block in blocks {
            let parent_hash = block.parent_hash();
            let expected = next.number_after(&parent_hash);
            let expected = expected.ok_or(HeadError::Unknown { hash: parent_hash })?;
            if block.number() != expected {
                let (hash, found) = (block.hash(), block.number());
                return Err(HeadError::Number { hash, found, expected });
            }
            let is_enough = |known: &Arc<HeadBlock>| has_receipts(known) || !has_receipts(&block);
            if !next.find(&block.hash()).is_some_and(is_enough) {
                next.insert(Arc::clone(&block));
                added.push(block);
            }
        }
        // Without another tip too: canonical blocks may have got their receipts.
        let next = match tip.or(self.tip_hash()) {
            Some(tip) => next.switched_to(tip)?,
            None => next,
        };
        Ok((next, added))
    }

    /// This tree with `blocks` above the canonical block `fork_point`, and those of them that were
    /// not in it or had no receipts.
    pub(super) fn branched_off(
        &self,
        fork_point: Option<B256>,
        blocks: Vec<Arc<HeadBlock>>,
    ) -> Result<(Self, Vec<Arc<HeadBlock>>), HeadError> {
        let mut next = self.clone();
        if let Some(hash) = fork_point {
            next.rewind(hash)?;
        } else if let Some(first) = blocks.first() {
            next.base = Some(Base { next: first.number(), parent_hash: first.parent_hash() });
        }
        let mut added = Vec::new();
        for block in blocks {
            next.check_link(&block)?;
            let known = next.find(&block.hash());
            let is_enough = |known: &&Arc<HeadBlock>| has_receipts(known) || !has_receipts(&block);
            if let Some(known) = known.filter(is_enough).cloned() {
                next.canonical.push(known);
            } else {
                next.canonical.push(Arc::clone(&block));
                next.insert(Arc::clone(&block));
                added.push(block);
            }
        }
        Ok((next, added))
    }

    /// This tree with the branch canonical that ends with `tip`.
    pub(super) fn switched_to(&self, tip: B256) -> Result<Self, HeadError> {
        let base = self.base.ok_or(HeadError::Unknown { hash: tip })?;
        let mut canonical = Vec::new();
        let mut hash = tip;
        while hash != base.parent_hash {
            let block = self.find(&hash).ok_or(HeadError::Unknown { hash })?;
            canonical.push(Arc::clone(block));
            hash = block.parent_hash();
        }
        canonical.reverse();
        Ok(Self { canonical, ..self.clone() })
    }

    /// What stays when the blocks up to this one leave; `None` if they have left before.
    pub(super) fn sealed_below(
        &self,
        number: BlockNumber,
        hash: B256,
    ) -> Result<Option<Self>, HeadError> {
        let next = number.saturating_add(1);
        if let Some(base) = self.base {
            if next < base.next {
                return Ok(None);
            }
            let at_base = base.block().filter(|(base_number, _)| *base_number == number);
            let canonical = at_base.map(|(_, hash)| hash).or_else(|| self.canonical_hash(number));
            let is_held = self.canonical.last().is_some_and(|tip| number <= tip.number());
            if (is_held || at_base.is_some()) && canonical != Some(hash) {
                return Err(HeadError::NotCanonical { hash, number: Some(number), canonical });
            }
            if at_base.is_some() {
                return Ok(None);
            }
        }
        let mut kept = Self::on(Base { next, parent_hash: hash });
        let mut blocks: Vec<&Arc<HeadBlock>> = self.blocks.values().collect();
        blocks.sort_by_key(|block| block.number());
        for block in blocks {
            if kept.number_after(&block.parent_hash()) == Some(block.number()) {
                kept.insert(Arc::clone(block));
            }
        }
        let stays = |block: &&Arc<HeadBlock>| kept.blocks.contains_key(&block.hash());
        kept.canonical = self.canonical.iter().filter(stays).cloned().collect();
        Ok(Some(kept))
    }

    /// The hash of the canonical block of a number.
    pub(super) fn canonical_hash(&self, number: BlockNumber) -> Option<B256> {
        let first = self.canonical.first()?.number();
        let position = usize::try_from(number.checked_sub(first)?).ok()?;
        self.canonical.get(position).map(|block| block.hash())
    }

    fn rewind(&mut self, to: B256) -> Result<(), HeadError> {
        let position = self.canonical.iter().rposition(|block| block.hash() == to);
        let is_base = self.base.is_some_and(|base| base.parent_hash == to);
        let kept = match position {
            Some(position) => position.saturating_add(1),
            None if is_base => 0,
            None => {
                return Err(HeadError::NotCanonical { hash: to, number: None, canonical: None });
            }
        };
        self.canonical.truncate(kept);
        Ok(())
    }

    fn check_link(&self, block: &HeadBlock) -> Result<(), HeadError> {
        let (number, hash, found) = (block.number(), block.hash(), block.parent_hash());
        let Some(expected) = self.tip_hash() else {
            return Ok(());
        };
        if found != expected {
            return Err(HeadError::ParentHash { number, hash, found, expected });
        }
        match self.number_after(&expected) {
            Some(expected) if number != expected => {
                Err(HeadError::Number { hash, found: number, expected })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn has_receipts(block: &HeadBlock) -> bool {
    block.block().receipts.is_some()
}
