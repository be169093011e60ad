//! Which runs there are: aligned power-of-two groups of slots, a pure function of the coverage.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

/// The most slots in one run, 2^12: 33.5 million blocks. A run begins at level 0, one slot, and
/// can be merged with its neighbour twelve times.
pub const SLOT_COUNT_MAX: u64 = 1 << 12;

/// The slots that a run covers: a power of two of them, beginning at a multiple of their count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunSpan {
    first_slot: u64,
    slot_count: u64,
}

/// Why slots are not a run's span.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SpanError {
    /// Not a level of the merge tree.
    #[error(
        "{slot_count} slots from {first_slot}: a run has a power of two up to {SLOT_COUNT_MAX}"
    )]
    Count {
        /// The slot that was to be the first.
        first_slot: u64,
        /// How many there were to be.
        slot_count: u64,
    },
    /// Between two places of its level, or past the last slot.
    #[error("{slot_count} slots from {first_slot}: a run begins at a multiple of its slot count")]
    Alignment {
        /// The slot that was to be the first.
        first_slot: u64,
        /// How many there were to be.
        slot_count: u64,
    },
}

impl RunSpan {
    /// The `slot_count` slots from `first_slot`.
    pub fn new(first_slot: u64, slot_count: u64) -> Result<Self, SpanError> {
        if !slot_count.is_power_of_two() || slot_count > SLOT_COUNT_MAX {
            return Err(SpanError::Count { first_slot, slot_count });
        }
        let is_aligned = first_slot.is_multiple_of(slot_count);
        if !is_aligned || first_slot.checked_add(slot_count).is_none() {
            return Err(SpanError::Alignment { first_slot, slot_count });
        }
        Ok(Self { first_slot, slot_count })
    }

    /// The lowest slot.
    #[must_use]
    pub fn first_slot(&self) -> u64 {
        self.first_slot
    }

    /// How many slots there are.
    #[must_use]
    pub fn slot_count(&self) -> u64 {
        self.slot_count
    }

    /// The slot after the highest.
    #[must_use]
    pub fn end_slot(&self) -> u64 {
        self.first_slot.saturating_add(self.slot_count)
    }

    /// Whether `slot` is one of them.
    #[must_use]
    pub fn contains(&self, slot: u64) -> bool {
        (self.first_slot..self.end_slot()).contains(&slot)
    }

    /// The span of this run merged with its right neighbour; `None` if they are not the two halves
    /// of one span.
    #[must_use]
    pub fn merged_with(&self, right: &Self) -> Option<Self> {
        let is_right = self.slot_count == right.slot_count && self.end_slot() == right.first_slot;
        let merged = Self::new(self.first_slot, self.slot_count.checked_mul(2)?).ok()?;
        is_right.then_some(merged)
    }
}

impl fmt::Display for RunSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slots {}..{}", self.first_slot, self.end_slot().saturating_sub(1))
    }
}

/// The runs that a coverage has: each contiguous range of slots cut into the largest spans that
/// fit, lowest slot first. Ranges may come in any order, touch or overlap.
#[must_use]
pub fn plan_runs(held: impl IntoIterator<Item = Range<u64>>) -> Vec<RunSpan> {
    let mut ranges: Vec<Range<u64>> = held.into_iter().filter(|range| !range.is_empty()).collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut spans = Vec::new();
    let mut ranges = ranges.into_iter();
    let mut current = ranges.next();
    while let Some(range) = current {
        let mut end = range.end;
        current = ranges.find(|next| {
            let is_separate = next.start > end;
            if !is_separate {
                end = end.max(next.end);
            }
            is_separate
        });
        cut(range.start..end, &mut spans);
    }
    spans
}

fn cut(range: Range<u64>, spans: &mut Vec<RunSpan>) {
    let mut first_slot = range.start;
    while let Some(log) = range.end.saturating_sub(first_slot).checked_ilog2() {
        let aligned_log = first_slot.trailing_zeros().min(SLOT_COUNT_MAX.ilog2());
        let slot_count = 1_u64.checked_shl(log.min(aligned_log)).unwrap_or(1);
        spans.push(RunSpan { first_slot, slot_count });
        first_slot = first_slot.saturating_add(slot_count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(held: &[Range<u64>], expected: &str) {
        let texts: Vec<String> = plan_runs(held.iter().cloned())
            .iter()
            .map(|span| format!("{}+{}", span.first_slot, span.slot_count))
            .collect();
        assert_eq!(texts.join(" "), expected, "{held:?}");
        let backwards: Vec<Range<u64>> = held.iter().rev().cloned().collect();
        assert_eq!(plan_runs(backwards), plan_runs(held.iter().cloned()), "{held:?}");
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one range of slots is meant")]
    fn runs_are_the_largest_aligned_groups_of_each_contiguous_range() {
        check(&[], "");
        check(&[5..5], "");
        check(&[0..1], "0+1");
        check(&[0..7], "0+4 4+2 6+1");
        check(&[3..9], "3+1 4+4 8+1");
        check(&[1..8], "1+1 2+2 4+4");
        check(&[0..3051], "0+2048 2048+512 2560+256 2816+128 2944+64 3008+32 3040+8 3048+2 3050+1");
        check(&[0..8193], "0+4096 4096+4096 8192+1");
        check(&[u64::MAX - 3..u64::MAX], "18446744073709551612+2 18446744073709551614+1");
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_one_and_gaps_keep_runs_apart() {
        check(&[2..4, 0..2], "0+4");
        check(&[0..3, 1..4, 2..3], "0+4");
        check(&[0..2, 3..4], "0+2 3+1");
        check(&[8..16, 0..4, 5..8], "0+4 5+1 6+2 8+8");
    }

    #[test]
    fn every_slot_is_in_exactly_one_run() {
        for first in 0..40 {
            for end in first..90 {
                let spans = plan_runs(std::iter::once(first..end));
                let slots = spans.iter().flat_map(|span| span.first_slot()..span.end_slot());
                assert!(slots.eq(first..end), "{first}..{end}: {spans:?}");
                for span in spans {
                    assert_eq!(RunSpan::new(span.first_slot, span.slot_count), Ok(span));
                }
            }
        }
    }

    #[test]
    fn a_span_that_is_no_node_of_the_merge_tree_is_refused() {
        let check = |first_slot, slot_count, expected: &str| {
            assert_eq!(RunSpan::new(first_slot, slot_count).unwrap_err().to_string(), expected);
        };
        check(0, 0, "0 slots from 0: a run has a power of two up to 4096");
        check(0, 3, "3 slots from 0: a run has a power of two up to 4096");
        check(0, 8192, "8192 slots from 0: a run has a power of two up to 4096");
        check(2, 4, "4 slots from 2: a run begins at a multiple of its slot count");
        let last = u64::MAX - 3;
        check(
            last,
            4,
            &format!("4 slots from {last}: a run begins at a multiple of its slot count"),
        );
    }

    #[test]
    fn only_the_two_halves_of_a_span_merge() {
        let span = |first, count| RunSpan::new(first, count).unwrap();
        assert_eq!(span(4, 2).merged_with(&span(6, 2)), Some(span(4, 4)));
        assert_eq!(span(6, 2).merged_with(&span(4, 2)), None);
        assert_eq!(span(2, 2).merged_with(&span(4, 2)), None);
        assert_eq!(span(4, 2).merged_with(&span(6, 1)), None);
        assert_eq!(span(0, 4096).merged_with(&span(4096, 4096)), None);
        assert_eq!(span(4, 2).to_string(), "slots 4..5");
    }
}
