//! Parts of blocks: what a posting points at.
//!
//! A block has 16 parts. The first eight have 16 transactions each, about as many as a page of rows;
//! four have 32 each and three 64, and the last one has all that are left. More and smaller parts would
//! make reads of large blocks a little shorter and every posting a bit longer.

use std::ops::Range;

use crate::SLOT_BLOCKS;

/// Bits of a place that tell the part.
pub(super) const PART_BITS: u32 = 4;
/// Bits of a place inside a slot: its block among 8192, and the part.
pub(super) const SLOT_PLACE_BITS: u32 = 13 + PART_BITS;

const PART_COUNT: u32 = 1 << PART_BITS;
/// The first transaction of each part.
const PART_BEGINS: [u64; 16] =
    [0, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448];

/// The part that has the transaction at this index of its block.
#[must_use]
pub fn part_of(tx_index: u64) -> u32 {
    let begun = PART_BEGINS.partition_point(|begin| *begin <= tx_index);
    u32::try_from(begun.saturating_sub(1)).unwrap_or(0)
}

/// The transactions of a part, by their indices; the last part has no end.
#[must_use]
pub fn transactions_of(part: u32) -> Range<u64> {
    let begin = |part: u32| {
        let part = usize::try_from(part).unwrap_or(usize::MAX);
        PART_BEGINS.get(part).copied().unwrap_or(u64::MAX)
    };
    begin(part)..begin(part.saturating_add(1))
}

/// Some parts of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockParts {
    /// The block, counted from the first of its slot.
    pub block: u32,
    /// A bit for each part.
    pub parts: u16,
}

impl BlockParts {
    /// The parts that are in the set.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..PART_COUNT).filter(move |part| self.parts.checked_shr(*part).unwrap_or(0) & 1 == 1)
    }
}

/// Parts of blocks of one slot, in the order of the blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotParts(Vec<BlockParts>);

impl SlotParts {
    /// These places of a slot, which come in order.
    pub(super) fn of(places: &[u64]) -> Self {
        let mut parts = Self::default();
        for place in places {
            parts.push(*place);
        }
        parts
    }

    fn push(&mut self, slot_place: u64) {
        let block = u32::try_from(slot_place >> PART_BITS).unwrap_or(u32::MAX);
        let part = u32::try_from(slot_place & u64::from(PART_COUNT - 1)).unwrap_or(0);
        let bit = 1_u16.checked_shl(part).unwrap_or(0);
        match self.0.last_mut() {
            Some(last) if last.block == block => last.parts |= bit,
            _ => self.0.push(BlockParts { block, parts: bit }),
        }
    }

    /// The blocks with their parts.
    #[must_use]
    pub fn as_slice(&self) -> &[BlockParts] {
        &self.0
    }

    /// Whether there is no part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut others = other.0.iter().peekable();
        let mut both = Vec::new();
        for one in &self.0 {
            while others.next_if(|other| other.block < one.block).is_some() {}
            let Some(other) = others.next_if(|other| other.block == one.block) else { continue };
            let parts = one.parts & other.parts;
            if parts != 0 {
                both.push(BlockParts { block: one.block, parts });
            }
        }
        Self(both)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(size_of_val(self.0.as_slice()))
    }

    /// What is in either set.
    fn union(&self, other: &Self) -> Self {
        let mut others = other.0.iter().copied().peekable();
        let mut either = Vec::with_capacity(self.0.len().saturating_add(other.0.len()));
        for one in &self.0 {
            while let Some(before) = others.next_if(|other| other.block < one.block) {
                either.push(before);
            }
            let same = others.next_if(|other| other.block == one.block);
            let parts = one.parts | same.map_or(0, |same| same.parts);
            either.push(BlockParts { block: one.block, parts });
        }
        either.extend(others);
        Self(either)
    }
}

/// Blocks of a union that are kept as a list; of more every block of the slot has its place.
const FEW_BLOCKS_MAX: usize = 256;

/// What is in any of many sets. Adding one takes as long as it is, however many came before.
#[derive(Clone, Debug, Default)]
pub struct PartsUnion {
    few: SlotParts,
    /// The parts of every block of the slot, once there are more than a few blocks.
    many: Vec<u16>,
}

impl PartsUnion {
    /// Adds a set.
    pub fn add(&mut self, parts: &SlotParts) {
        if self.many.is_empty() {
            if self.few.0.len().saturating_add(parts.0.len()) <= FEW_BLOCKS_MAX {
                self.few = self.few.union(parts);
                return;
            }
            if self.few.is_empty() {
                self.few = parts.clone();
                return;
            }
            self.many = vec![0; usize::try_from(SLOT_BLOCKS).unwrap_or(0)];
            let few = std::mem::take(&mut self.few);
            self.spread(&few);
        }
        self.spread(parts);
    }

    fn spread(&mut self, parts: &SlotParts) {
        for BlockParts { block, parts } in &parts.0 {
            let place = usize::try_from(*block).ok().and_then(|block| self.many.get_mut(block));
            // A slot has no further blocks.
            if let Some(place) = place {
                *place |= parts;
            }
        }
    }

    /// What is in any of the sets.
    #[must_use]
    pub fn into_parts(self) -> SlotParts {
        if self.many.is_empty() {
            return self.few;
        }
        let blocks = (0_u32..).zip(self.many).filter(|(_, parts)| *parts != 0);
        SlotParts(blocks.map(|(block, parts)| BlockParts { block, parts }).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_transaction_is_in_the_part_that_says_so() {
        for index in (0..3000).chain([u64::MAX - 1]) {
            assert!(transactions_of(part_of(index)).contains(&index), "{index}");
        }
        let ends: Vec<_> = (0..PART_COUNT).map(transactions_of).collect();
        assert!(ends.iter().zip(ends.iter().skip(1)).all(|(one, next)| one.end == next.start));
        assert_eq!(transactions_of(0), 0..16);
        assert_eq!(transactions_of(8), 128..160);
        assert_eq!(transactions_of(15), 448..u64::MAX);
    }

    #[test]
    fn sets_are_combined_part_by_part() {
        let of = |places: &[(u64, u64)]| {
            let places: Vec<u64> =
                places.iter().map(|(block, part)| block << PART_BITS | part).collect();
            SlotParts::of(&places)
        };
        let one = of(&[(1, 0), (1, 3), (4, 2), (9, 15)]);
        let other = of(&[(0, 1), (1, 3), (4, 1), (8191, 0)]);
        assert_eq!(one.intersection(&other), of(&[(1, 3)]));
        assert_eq!(other.intersection(&one), of(&[(1, 3)]));
        let either = of(&[(0, 1), (1, 0), (1, 3), (4, 1), (4, 2), (9, 15), (8191, 0)]);
        assert_eq!(one.union(&other), either);
        assert_eq!(other.union(&one), either);
        assert_eq!(BlockParts { block: 0, parts: 0b1001 }.iter().collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn a_union_has_what_any_set_has_however_many_there_are() {
        for (sets, blocks) in [(1, 1), (1, 8192), (3, 2), (40, 5), (300, 3), (50, 400), (2, 8192)] {
            let (mut union, mut expected) = (PartsUnion::default(), BTreeMap::<u64, u16>::new());
            for set in 0..sets {
                let step = 8192 / blocks;
                let places: Vec<u64> = (0..blocks)
                    .map(|at| (at * step + set * 7 % step, (set + at) % u64::from(PART_COUNT)))
                    .inspect(|(block, part)| *expected.entry(*block).or_default() |= 1 << part)
                    .map(|(block, part)| block << PART_BITS | part)
                    .collect();
                union.add(&SlotParts::of(&places));
            }
            let found = union.into_parts();
            let found = found.as_slice().iter().map(|it| (u64::from(it.block), it.parts));
            assert!(found.eq(expected), "{sets} sets of {blocks}");
        }
    }
}
