//! Sets of postings, compared without being kept.
//!
//! Postings that are derived from the blocks of a slot on several threads and those that are read from a
//! file sorted by keys have the same sum if the sets are the same. It finds mistakes; it is no proof
//! against an attacker who looks for two sets with one sum.

use chain::SplitMix64;

use super::part::{PART_BITS, SlotParts};
use super::posting::KeyEntry;

/// How many postings there are, and what they add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostingSum {
    /// How many.
    pub count: u64,
    mixed: u128,
}

impl PostingSum {
    pub(super) fn add(&mut self, key: u64, slot_place: u64) {
        self.count = self.count.wrapping_add(1);
        let mut numbers = SplitMix64::new(key.rotate_left(31) ^ slot_place);
        let mixed = u128::from(numbers.next_number()) << 64 | u128::from(numbers.next_number());
        self.mixed = self.mixed.wrapping_add(mixed);
    }

    /// Adds the postings that a key has in one slot.
    pub fn add_slot(&mut self, entry: &KeyEntry, parts: &SlotParts) {
        for block in parts.as_slice() {
            for part in block.iter() {
                let place = u64::from(block.block) << PART_BITS | u64::from(part);
                self.add(entry.key.number(), place);
            }
        }
    }

    /// The sum of both sets, which have no posting in common.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            count: self.count.wrapping_add(other.count),
            mixed: self.mixed.wrapping_add(other.mixed),
        }
    }
}
