//! What a store should hold, in the simplest words: lists of numbers and hashes.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::B256;
use chain::BlockRange;
use segment::YOUNG_SLOT_BLOCKS;
use store::BlockId;
use store::layout::{HeldRange, join_ranges};

use super::blocks::Place;

/// What segments hold, and what is known of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sealed {
    /// By number: the hash, and whether the receipts are there.
    pub(super) blocks: BTreeMap<u64, (B256, bool)>,
    pub(super) anchors: BTreeMap<u64, B256>,
    pub(super) genesis_hash: Option<B256>,
}

impl Sealed {
    /// A block arrives. Receipts that are there stay.
    pub(super) fn take(&mut self, number: u64, hash: B256, has_receipts: bool) {
        let held = self.blocks.entry(number).or_insert((hash, has_receipts));
        assert_eq!(held.0, hash, "the model has one final chain");
        held.1 |= has_receipts;
    }

    pub(super) fn coverage(&self) -> Vec<BlockRange> {
        join_ranges(self.blocks.keys().filter_map(|number| BlockRange::from_count(*number, 1)))
    }

    pub(super) fn coverage_receipts(&self) -> Vec<BlockRange> {
        let with_receipts = self.blocks.iter().filter(|(_, (_, has_receipts))| *has_receipts);
        join_ranges(with_receipts.filter_map(|(number, _)| BlockRange::from_count(*number, 1)))
    }

    /// Everything, as if it arrived at once.
    pub(super) fn held(&self) -> Vec<HeldRange> {
        let all = self.coverage().into_iter().map(|range| HeldRange { range, has_receipts: false });
        let with_receipts = self.coverage_receipts().into_iter();
        all.chain(with_receipts.map(|range| HeldRange { range, has_receipts: true })).collect()
    }

    /// How far a block can be trusted: a letter for anchored, linked and unanchored.
    pub(super) fn status(&self, number: u64) -> char {
        let coverage = self.coverage();
        let Some(range) = coverage.iter().find(|range| range.contains(number)) else {
            return ' ';
        };
        // Block 1 names its parent, so that block 0 need not be held.
        let is_genesis_known = range.first() <= 1 && self.genesis_hash.is_some();
        let mut anchors = self.anchors.range(range.first()..range.end()).map(|(number, _)| *number);
        if (number == 0 && is_genesis_known) || anchors.clone().any(|anchor| anchor >= number) {
            'a'
        } else if is_genesis_known || anchors.next().is_some() {
            'l'
        } else {
            'u'
        }
    }
}

/// A block of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) has_receipts: bool,
}

/// What the head holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadState {
    /// Where its first block is; `None` until there was one.
    pub(super) base: Option<Place>,
    /// The canonical chain, lowest first.
    pub(super) chain: Vec<B256>,
    /// All blocks, those of side branches too.
    pub(super) tree: BTreeMap<B256, Node>,
    /// What was last said to be final.
    pub(super) finalized: Option<BlockId>,
}

impl HeadState {
    /// The canonical blocks by number.
    pub(super) fn canonical(&self) -> BTreeMap<u64, (B256, bool)> {
        let nodes = self.chain.iter().map(|hash| (hash, self.tree[hash]));
        nodes.map(|(hash, node)| (node.place.number, (*hash, node.has_receipts))).collect()
    }

    /// Where the next block goes.
    pub(super) fn next(&self) -> Option<Place> {
        let tip = self.chain.last().map(|hash| Place::above(self.tree[hash].place.number, *hash));
        tip.or(self.base)
    }

    pub(super) fn tip(&self) -> Option<u64> {
        self.chain.last().map(|hash| self.tree[hash].place.number)
    }

    /// The place above the lowest `kept` canonical blocks.
    pub(super) fn place_above(&self, kept: usize) -> Option<Place> {
        let tip = kept.checked_sub(1).map(|position| self.chain[position]);
        let tip = tip.map(|hash| Place::above(self.tree[&hash].place.number, hash));
        tip.or(self.base)
    }

    /// Keeps the lowest `kept` blocks canonical and puts `blocks` above them.
    pub(super) fn branch_off(&mut self, kept: usize, blocks: &[B256], has_receipts: bool) {
        self.chain.truncate(kept);
        for hash in blocks {
            let place = self.next().unwrap();
            let node = self.tree.entry(*hash).or_insert(Node { place, has_receipts });
            node.has_receipts |= has_receipts;
            self.chain.push(*hash);
        }
    }

    /// Keeps the canonical blocks up to this one; without any, the next one is its child.
    pub(super) fn rewind_to(&mut self, to: BlockId) {
        let kept = self.canonical().range(..=to.number.get()).count();
        if kept > 0 {
            self.branch_off(kept, &[], false);
        } else {
            let base = Some(Place::above(to.number.get(), to.hash));
            *self = Self { base, finalized: self.finalized, ..Self::default() };
        }
        self.finalized = self.finalized.map(|it| if it.number > to.number { to } else { it });
    }

    /// The canonical chain that ends with a block of the tree.
    pub(super) fn switch_to(&mut self, tip: B256) {
        let mut chain = Vec::new();
        let mut hash = tip;
        while let Some(node) = self.tree.get(&hash) {
            chain.push(hash);
            hash = node.place.parent;
        }
        chain.reverse();
        self.chain = chain;
    }

    /// The blocks that a seal at `finalized` takes: whole aligned runs of 256, up to the tip.
    pub(super) fn due(&self, finalized: u64) -> Vec<u64> {
        let Some(tip) = self.tip() else { return Vec::new() };
        let end = (finalized.min(tip) + 1) / YOUNG_SLOT_BLOCKS * YOUNG_SLOT_BLOCKS;
        self.canonical().range(..end).map(|(number, _)| *number).collect()
    }

    /// The same as a range.
    pub(super) fn due_range(&self, finalized: u64) -> Option<BlockRange> {
        let due = self.due(finalized);
        BlockRange::from_ends(*due.first()?, *due.last()?)
    }

    /// Everything that does not descend from this block leaves.
    pub(super) fn seal_below(&mut self, number: u64, hash: B256) {
        let base = Place::above(number, hash);
        let mut kept = BTreeSet::from([hash]);
        let mut nodes: Vec<(B256, Node)> =
            self.tree.iter().map(|(it, node)| (*it, *node)).collect();
        nodes.sort_by_key(|(_, node)| node.place.number);
        for (hash, node) in nodes {
            if node.place.number > number && kept.contains(&node.place.parent) {
                kept.insert(hash);
            }
        }
        kept.remove(&hash);
        self.tree.retain(|hash, _| kept.contains(hash));
        self.chain.retain(|hash| kept.contains(hash));
        self.base = Some(base);
    }

    /// What opening makes of it: blocks that segments hold leave.
    pub(super) fn opened_beside(&mut self, sealed: &Sealed) {
        let first = self.base.map(|base| base.number);
        let coverage = sealed.coverage();
        let holds = |number| coverage.iter().find(|range| range.contains(number));
        if let Some(range) = first.and_then(holds) {
            self.seal_below(range.last(), sealed.blocks[&range.last()].0);
        }
    }
}

/// Something of which readers see one state, while a crash may show another one that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Durable<T> {
    pub(super) now: T,
    pub(super) maybe: Vec<T>,
}

impl<T: Clone + PartialEq> Durable<T> {
    /// A change that was acknowledged.
    pub(super) fn acknowledge(&mut self, next: T) {
        self.now = next;
        self.maybe.clear();
    }

    /// A change that failed, and may be found done all the same.
    pub(super) fn doubt(&mut self, next: T) {
        if next != self.now && !self.maybe.contains(&next) {
            self.maybe.push(next);
        }
    }

    /// Settles for the state that was found, if it is one of those that can be; the others can
    /// still come back.
    pub(super) fn find(&mut self, is_found: impl Fn(&T) -> bool) -> bool {
        if is_found(&self.now) {
            return true;
        }
        let Some(position) = self.maybe.iter().position(is_found) else { return false };
        std::mem::swap(&mut self.now, &mut self.maybe[position]);
        true
    }
}
