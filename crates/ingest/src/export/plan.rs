//! What is written for a question, and what of it is not held: decided before anything is done.

use chain::{BlockNumber, BlockRange};
use store::View;
use store::layout::{HeldRange, join_ranges, overlap, subtract};
use store::manifest::SegmentEntry;

/// What to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Blocks without a gap, all with or all without receipts, lowest first.
    pub runs: Vec<HeldRange>,
    /// Of the blocks that were asked for, or between those that are held: what is missing.
    pub missing: Vec<BlockRange>,
    /// The first block that was asked for, if the one before it is held too.
    pub cut_before: Option<u64>,
    /// The last block that was asked for, if the one after it is held too.
    pub cut_after: Option<u64>,
}

impl Plan {
    /// How many blocks are written.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        self.runs.iter().map(|run| run.range.count()).fold(0, u64::saturating_add)
    }
}

/// What a view holds: all that is sealed, and of the head the blocks up to a number, if any.
#[must_use]
pub fn held_by(view: &View, head_last: Option<BlockNumber>) -> Vec<HeldRange> {
    let head = view.head().blocks().iter();
    let head = head.take_while(|it| head_last.is_some_and(|last| it.number() <= last));
    let head = head.filter_map(|it| {
        let range = BlockRange::from_count(it.number(), 1)?;
        Some(HeldRange { range, has_receipts: it.block().receipts.is_some() })
    });
    view.manifest().segments().iter().map(SegmentEntry::held).chain(head).collect()
}

/// What to write of `held`, whose ranges do not overlap: what is asked for, or all of it.
#[must_use]
pub fn plan(held: &[HeldRange], asked: Option<BlockRange>) -> Plan {
    let wanted = |range: BlockRange| asked.map_or(Some(range), |asked| overlap(range, asked));
    let of_kind = |has_receipts: bool| {
        let kind = held.iter().filter(move |held| held.has_receipts == has_receipts);
        let ranges = join_ranges(kind.filter_map(|held| wanted(held.range)));
        ranges.into_iter().map(move |range| HeldRange { range, has_receipts })
    };
    let mut runs: Vec<HeldRange> = of_kind(true).chain(of_kind(false)).collect();
    runs.sort_unstable();
    let covered = join_ranges(runs.iter().map(|run| run.range));
    let ends = || BlockRange::from_ends(covered.first()?.first(), covered.last()?.last());
    let whole: Vec<BlockRange> = asked.or_else(ends).into_iter().collect();
    let is_held = |number: u64| held.iter().any(|held| held.range.contains(number));
    let first = asked.map(|asked| asked.first());
    let cut_before = first.filter(|first| first.checked_sub(1).is_some_and(is_held));
    let last = asked.map(|asked| asked.last());
    let cut_after = last.filter(|last| last.checked_add(1).is_some_and(is_held));
    Plan { runs, missing: subtract(&whole, &covered), cut_before, cut_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range((first, last): (u64, u64)) -> BlockRange {
        BlockRange::from_ends(first, last).unwrap()
    }

    fn check(held: &[(u64, u64, bool)], asked: Option<(u64, u64)>, expected: &str) {
        let held: Vec<HeldRange> = held
            .iter()
            .map(|(first, last, has_receipts)| HeldRange {
                range: range((*first, *last)),
                has_receipts: *has_receipts,
            })
            .collect();
        let plan = plan(&held, asked.map(range));
        let run = |run: &HeldRange| {
            format!("{}{}", run.range, if run.has_receipts { "" } else { " bare" })
        };
        let mut parts: Vec<String> = plan.runs.iter().map(run).collect();
        parts.extend(plan.missing.iter().map(|range| format!("not {range}")));
        assert_eq!(parts.join(", "), expected);
    }

    #[test]
    fn ranges_are_joined_and_gaps_are_told() {
        check(&[], None, "");
        check(&[(0, 255, true), (256, 299, true)], None, "0..299");
        check(&[(0, 9, true), (20, 29, true)], None, "0..9, 20..29, not 10..19");
        check(&[(5, 9, true)], None, "5..9");
    }

    #[test]
    fn blocks_with_and_without_receipts_are_kept_apart() {
        check(&[(0, 35, true), (36, 54, false)], None, "0..35, 36..54 bare");
        check(
            &[(0, 9, false), (10, 20, true), (21, 54, false)],
            None,
            "0..9 bare, 10..20, 21..54 bare",
        );
    }

    #[test]
    fn only_what_is_asked_for_is_written_and_what_is_not_held_of_it_is_told() {
        let held = [(0, 99, true), (200, 299, true)];
        check(&held, Some((10, 19)), "10..19");
        check(&held, Some((90, 209)), "90..99, 200..209, not 100..199");
        check(&held, Some((290, 309)), "290..299, not 300..309");
        check(&held, Some((120, 130)), "not 120..130");
    }
}
