//! Which blocks are taken together, and in which order.

use std::collections::BTreeSet;

use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange};
use store::layout::{HeldRange, cut, overlap, subtract};
use store::{SLOT_BLOCKS, counted_blocks};

/// Blocks that are taken and committed together: all that is missing of a slot, without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Which blocks.
    pub range: BlockRange,
}

/// What is missing of `wanted`, in an order in which every unit finds what it links to, if there is
/// anything: downwards from a block that is held above a gap or from an anchor in it, else upwards.
/// Only the parent hash of a child proves a block; a chain that descends from a held block or from
/// genesis can be invented.
#[must_use]
pub fn plan_units(wanted: BlockRange, held: &[BlockRange], anchors: &Anchors) -> Vec<Unit> {
    let is_held = |number: u64| held.iter().any(|range| range.contains(number));
    let mut units = Vec::new();
    for gap in subtract(&[wanted], held) {
        let slots = cut(gap, SLOT_BLOCKS);
        let has_anchor = |slot: &BlockRange| anchors.operator().any(|it| slot.contains(it.number));
        let turn = if is_held(gap.end()) {
            slots.len()
        } else {
            // Everything up to the highest anchor is proven by it, from there downwards.
            slots.iter().rposition(has_anchor).map_or(0, |position| position.saturating_add(1))
        };
        let (down, up) = slots.split_at(turn);
        units.extend(down.iter().rev().chain(up).map(|range| Unit { range: *range }));
    }
    units
}

/// The order in which the blocks of a part are read when these segments are built of them: of each
/// the counted ones come first.
pub(crate) fn reading_order(part: BlockRange, targets: &[HeldRange]) -> Vec<u64> {
    let mut order = Vec::new();
    for target in targets {
        let Some(own) = overlap(target.range, part) else { continue };
        let counted: BTreeSet<u64> = counted_blocks(target.range)
            .map(BlockNumber::get)
            .filter(|it| own.contains(*it))
            .collect();
        order.extend(&counted);
        order.extend((own.first()..own.end()).filter(|number| !counted.contains(number)));
    }
    order
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use chain::trust::Anchor;

    use super::*;

    fn range(first: u64, last: u64) -> BlockRange {
        BlockRange::from_ends(first, last).unwrap()
    }

    fn check(
        wanted: (u64, u64),
        held: &[(u64, u64)],
        anchor: Option<u64>,
        expected: &[(u64, u64)],
    ) {
        let held: Vec<_> = held.iter().map(|(first, last)| range(*first, *last)).collect();
        let anchors = anchor.map_or_else(Anchors::none, |number| {
            Anchors::none().with_operator(Anchor { number, hash: B256::ZERO }).unwrap()
        });
        let units = plan_units(range(wanted.0, wanted.1), &held, &anchors);
        let found: Vec<_> = units.iter().map(|it| (it.range.first(), it.range.last())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_gap_with_nothing_held_above_it_is_filled_upwards() {
        check((0, 20_000), &[], None, &[(0, 8191), (8192, 16_383), (16_384, 20_000)]);
        check((0, 20_000), &[(0, 99)], None, &[(100, 8191), (8192, 16_383), (16_384, 20_000)]);
    }

    #[test]
    fn a_gap_is_filled_downwards_from_what_is_held_above_it() {
        // Also where genesis or a held block lies below it.
        check((0, 20_000), &[(9000, 20_000)], None, &[(8192, 8999), (0, 8191)]);
        let held = [(0, 99), (9000, 20_000)];
        check((0, 20_000), &held, None, &[(8192, 8999), (100, 8191)]);
        check(
            (5000, 20_000),
            &[(17_000, 17_999)],
            None,
            &[(16_384, 16_999), (8192, 16_383), (5000, 8191), (18_000, 20_000)],
        );
    }

    #[test]
    fn a_gap_around_an_anchor_is_filled_downwards_from_it_and_then_upwards() {
        let expected = [(8192, 16_383), (5000, 8191), (16_384, 20_000)];
        check((5000, 20_000), &[], Some(9000), &expected);
        let expected = [(8192, 16_383), (0, 8191), (16_384, 20_000)];
        check((0, 20_000), &[], Some(9000), &expected);
    }

    #[test]
    fn every_block_is_read_once_and_counted_ones_first() {
        let part = range(100, 8191);
        let target = HeldRange { range: range(0, 8191), has_receipts: true };
        let order = reading_order(part, &[target]);
        assert!(order.first().is_some_and(|first| *first == 128));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(100..8192));
        let counted = order.iter().take_while(|number| *number % 32 == 0).count();
        assert!(counted >= 252, "{counted}");
    }
}
