//! Which files a coverage has: a pure function of the blocks that are held.
//!
//! A slot of 8192 blocks that is held whole is one segment. Of any other slot each aligned 256
//! blocks have a segment of their own, shorter where some of them are missing. So blocks that arrive
//! change few files, and whatever the order of arrival, the last block of a slot makes the same file.
//!
//! Making that one file takes long, so a slot that becomes complete at the tip stays in its pieces
//! until it is merged beside: a *pending merge*. Which files there are is then a function of the
//! segments that are listed, and of the blocks alone once no merge is pending.

use std::collections::HashSet;

use chain::{BlockNumber, BlockRange};
use segment::index::{RunSpan, plan_runs};
use segment::{SLOT_BLOCKS, YOUNG_SLOT_BLOCKS};

/// Blocks that are held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldRange {
    /// Which blocks.
    pub range: BlockRange,
    /// Whether their receipts are there.
    pub has_receipts: bool,
}

/// The segments for what is held, lowest first. Where ranges overlap, receipts win.
#[must_use]
pub fn plan_segments(held: &[HeldRange]) -> Vec<HeldRange> {
    let of_kind = |has_receipts: bool| {
        join_ranges(held.iter().filter(|held| held.has_receipts == has_receipts).map(|it| it.range))
    };
    let with_receipts = of_kind(true);
    let bare = subtract(&of_kind(false), &with_receipts);
    let mut segments = Vec::new();
    for (ranges, has_receipts) in [(with_receipts, true), (bare, false)] {
        let slots = ranges.into_iter().flat_map(|range| cut(range, SLOT_BLOCKS));
        for part in slots {
            let is_complete = part.count() == SLOT_BLOCKS;
            let pieces = cut(part, if is_complete { SLOT_BLOCKS } else { YOUNG_SLOT_BLOCKS });
            segments.extend(pieces.into_iter().map(|range| HeldRange { range, has_receipts }));
        }
    }
    segments.sort_unstable();
    segments
}

/// The segments for `held`, some of which may be new beside those that are `listed`: as
/// [`plan_segments`] has them, but a slot that becomes complete stays in its pieces, unless it comes
/// as one.
#[must_use]
pub fn plan_unmerged(listed: &[HeldRange], held: &[HeldRange]) -> Vec<HeldRange> {
    let whole: HashSet<&HeldRange> = held.iter().collect();
    let mut segments = Vec::new();
    for wanted in plan_segments(held) {
        let is_slot = wanted.range.count() == SLOT_BLOCKS;
        if !is_slot || whole.contains(&wanted) || is_gathered(listed, wanted.range) {
            segments.push(wanted);
        } else {
            let pieces = cut(wanted.range, YOUNG_SLOT_BLOCKS).into_iter();
            segments.extend(pieces.map(|range| HeldRange { range, ..wanted }));
        }
    }
    segments
}

/// The slots that are held whole and still in pieces, as the segments that are to be made of them.
#[must_use]
pub fn pending_merges(listed: &[HeldRange]) -> Vec<HeldRange> {
    let whole: HashSet<&HeldRange> = listed.iter().collect();
    let is_pending =
        |wanted: &HeldRange| wanted.range.count() == SLOT_BLOCKS && !whole.contains(wanted);
    plan_segments(listed).into_iter().filter(is_pending).collect()
}

/// Whether the lookups of a slot are gathered with those of others: all of it is held, and no merge
/// is pending. A run cannot be taken apart, so a slot that is gathered stays so.
fn is_gathered(listed: &[HeldRange], slot: BlockRange) -> bool {
    let own = listed.iter().filter(|it| overlap(it.range, slot).is_some());
    let own: Vec<HeldRange> = own.copied().collect();
    let covered = join_ranges(own.iter().filter_map(|it| overlap(it.range, slot)));
    covered == [slot] && pending_merges(&own).is_empty()
}

/// The lookup runs for the segments that are listed, lowest slot first: complete slots are gathered
/// into large runs; any other slot, and one whose merge is pending, has a run of its own, so that
/// young blocks change small files only.
#[must_use]
pub fn plan_lookups(listed: &[HeldRange]) -> Vec<RunSpan> {
    let coverage = join_ranges(listed.iter().map(|it| it.range));
    let pending: Vec<BlockRange> = pending_merges(listed).iter().map(|it| it.range).collect();
    let slots = coverage.iter().flat_map(|range| cut(*range, SLOT_BLOCKS));
    let (complete, partial): (Vec<_>, Vec<_>) =
        slots.partition(|part| part.count() == SLOT_BLOCKS && !pending.contains(part));
    let complete = complete.iter().map(|part| {
        let slot = slot_of(part.first());
        slot..slot.saturating_add(1)
    });
    let mut spans = plan_runs(complete);
    // Ranges with a gap between them may share a slot.
    let mut partial: Vec<u64> = partial.iter().map(|part| slot_of(part.first())).collect();
    partial.dedup();
    spans.extend(partial.into_iter().filter_map(|slot| RunSpan::new(slot, 1).ok()));
    spans.sort_unstable();
    spans
}

/// The slot of a block.
#[must_use]
pub fn slot_of(number: impl Into<BlockNumber>) -> u64 {
    number.into().get() / SLOT_BLOCKS
}

/// The blocks of a slot; `None` past the last number.
#[must_use]
pub fn slot_range(slot: u64) -> Option<BlockRange> {
    BlockRange::from_count(slot.checked_mul(SLOT_BLOCKS)?, SLOT_BLOCKS)
}

/// Ranges in their order, those that touch or overlap made one.
#[must_use]
pub fn join_ranges(ranges: impl IntoIterator<Item = BlockRange>) -> Vec<BlockRange> {
    let mut sorted: Vec<BlockRange> = ranges.into_iter().collect();
    sorted.sort_unstable();
    let mut joined: Vec<BlockRange> = Vec::new();
    for range in sorted {
        let touching = joined.pop_if(|before| before.end() >= range.first());
        let whole = touching.and_then(|before| {
            BlockRange::from_ends(before.first(), before.last().max(range.last()))
        });
        joined.push(whole.unwrap_or(range));
    }
    joined
}

/// What of `ranges` is in none of `taken`. Both are joined ranges in their order.
#[must_use]
pub fn subtract(ranges: &[BlockRange], taken: &[BlockRange]) -> Vec<BlockRange> {
    let mut left = Vec::new();
    for range in ranges {
        let mut next = range.first();
        for hole in taken.iter().filter(|hole| overlap(**hole, *range).is_some()) {
            left.extend(
                hole.first().checked_sub(1).and_then(|last| BlockRange::from_ends(next, last)),
            );
            next = hole.end();
        }
        left.extend(BlockRange::from_ends(next, range.last()));
    }
    left
}

/// The blocks that two ranges share.
#[must_use]
pub fn overlap(one: BlockRange, other: BlockRange) -> Option<BlockRange> {
    BlockRange::from_ends(one.first().max(other.first()), one.last().min(other.last()))
}

/// A range cut at the multiples of `size`.
#[must_use]
pub fn cut(range: BlockRange, size: u64) -> Vec<BlockRange> {
    let mut parts = Vec::new();
    let mut first = range.first();
    while first < range.end() {
        let beyond = (first / size).saturating_add(1).saturating_mul(size).min(range.end());
        parts.extend(BlockRange::from_ends(first, beyond.saturating_sub(1)));
        first = beyond;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> BlockRange {
        BlockRange::from_ends(first, last).unwrap()
    }

    fn held(first: u64, last: u64, has_receipts: bool) -> HeldRange {
        HeldRange { range: range(first, last), has_receipts }
    }

    /// A slot in its 32 pieces.
    fn pieces(slot: u64) -> Vec<HeldRange> {
        let pieces = cut(slot_range(slot).unwrap(), YOUNG_SLOT_BLOCKS).into_iter();
        pieces.map(|range| HeldRange { range, has_receipts: true }).collect()
    }

    fn check(blocks: &[(u64, u64, bool)], expected: &str) {
        let held: Vec<HeldRange> = blocks.iter().map(|it| held(it.0, it.1, it.2)).collect();
        let show = |segment: &HeldRange| {
            format!("{}{}", segment.range, if segment.has_receipts { "" } else { " bare" })
        };
        let planned = plan_segments(&held);
        assert_eq!(planned.iter().map(show).collect::<Vec<_>>().join(", "), expected);
        // Segments that are held already are left as they are.
        assert_eq!(plan_segments(&planned), planned);
        let reversed: Vec<HeldRange> = held.into_iter().rev().collect();
        assert_eq!(plan_segments(&reversed), planned);
    }

    #[test]
    fn a_complete_slot_is_one_segment_and_any_other_is_cut_at_256() {
        check(&[(0, 8191, true)], "0..8191");
        check(&[(0, 54, true)], "0..54");
        check(&[(100, 600, true)], "100..255, 256..511, 512..600");
        check(&[(8000, 8500, true)], "8000..8191, 8192..8447, 8448..8500");
        check(&[(0, 4000, true), (4001, 8191, true), (8192, 8200, true)], "0..8191, 8192..8200");
        check(&[(0, 10, true), (12, 20, true)], "0..10, 12..20");
        check(&[(0, 10, true), (11, 20, true), (15, 30, true)], "0..30");
    }

    #[test]
    fn receipts_win_and_split_what_has_none() {
        check(&[(0, 54, false)], "0..54 bare");
        check(&[(0, 54, false), (0, 35, true)], "0..35, 36..54 bare");
        check(&[(0, 54, false), (10, 20, true)], "0..9 bare, 10..20, 21..54 bare");
        check(&[(0, 54, false), (0, 100, true)], "0..100");
        check(&[(0, 8191, false), (0, 8191, true)], "0..8191");
    }

    #[test]
    fn complete_slots_share_runs_and_others_have_their_own() {
        let spans = |ranges: &[(u64, u64)]| {
            let held: Vec<_> =
                ranges.iter().map(|(first, last)| held(*first, *last, true)).collect();
            let plan = plan_lookups(&plan_segments(&held));
            plan.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(spans(&[]), "");
        assert_eq!(spans(&[(0, 54)]), "slots 0..0");
        assert_eq!(spans(&[(0, 8191)]), "slots 0..0");
        assert_eq!(spans(&[(0, 4 * 8192 - 1)]), "slots 0..3");
        assert_eq!(spans(&[(0, 4 * 8192)]), "slots 0..3, slots 4..4");
        assert_eq!(spans(&[(0, 4 * 8192 - 2)]), "slots 0..1, slots 2..2, slots 3..3");
        assert_eq!(spans(&[(1, 5), (9, 16), (8191, 2 * 8192 - 1)]), "slots 0..0, slots 1..1");
    }

    #[test]
    fn a_slot_that_becomes_complete_stays_in_pieces_until_it_is_merged() {
        let all = pieces(1);
        let (listed, last) = all.split_at(31);
        assert_eq!(pending_merges(listed), []);
        assert_eq!(plan_unmerged(listed, &all), all);
        assert_eq!(pending_merges(&all), [held(8192, 16_383, true)]);
        // It has a run of its own until then, and stays as it is whatever else comes.
        let spans = |held: &[HeldRange]| {
            plan_lookups(held).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let with = |first: &[HeldRange], more: &[HeldRange]| [first, more].concat();
        let below = [held(0, 8191, true)];
        assert_eq!(spans(&with(&below, &all)), "slots 0..0, slots 1..1");
        let next = [held(16_384, 16_639, true)];
        assert_eq!(plan_unmerged(&all, &with(&all, &next)), with(&all, &next));
        // Merged, it is one, and its lookups are gathered.
        let merged = [held(8192, 16_383, true)];
        assert_eq!(plan_unmerged(&all, &with(&all, &merged)), merged);
        assert_eq!(pending_merges(&merged), []);
        assert_eq!(spans(&with(&below, &merged)), "slots 0..1");
        assert_eq!(last, [held(16_128, 16_383, true)]);
    }

    #[test]
    fn a_slot_whose_lookups_are_gathered_is_made_one_at_once() {
        // Held whole without receipts, and then with those of some blocks.
        let listed = plan_segments(&[held(0, 8191, false), held(0, 99, true)]);
        assert_eq!(pending_merges(&listed), []);
        let rest = [held(100, 8191, true)];
        let all = [&listed[..], &rest].concat();
        assert_eq!(plan_unmerged(&listed, &all), [held(0, 8191, true)]);
    }

    #[test]
    fn ranges_are_joined_subtracted_and_cut() {
        let joined = join_ranges([range(5, 9), range(0, 4), range(11, 12), range(8, 9)]);
        assert_eq!(joined, [range(0, 9), range(11, 12)]);
        let left = subtract(&joined, &[range(0, 0), range(3, 4), range(9, 11)]);
        assert_eq!(left, [range(1, 2), range(5, 8), range(12, 12)]);
        assert_eq!(subtract(&[range(0, 9)], &[range(0, 9)]), []);
        let last = u64::MAX - 1;
        assert_eq!(cut(range(last - 1, last), 8192), [range(last - 1, last)]);
    }
}
