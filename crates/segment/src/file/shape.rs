//! Which runs of blocks make a segment, and how such a run is cut up.

use chain::{BlockNumber, BlockRange};

/// Blocks of a complete segment: one aligned slot, as the era archives have it.
pub const SLOT_BLOCKS: u64 = 8192;
/// Blocks of a young segment at the most: one aligned slot of young history.
pub const YOUNG_SLOT_BLOCKS: u64 = 256;
/// Blocks that are encoded together: no page holds blocks of two groups.
pub const GROUP_BLOCKS: u64 = 16;
/// In a complete segment one block of so many is counted. The tables of a whole slot hardly
/// differ from those of this sample, and an importer's first pass is this much shorter.
const COUNTED_STRIDE: u64 = SLOT_BLOCKS / YOUNG_SLOT_BLOCKS;

/// The two kinds of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentShape {
    /// Some blocks of one aligned slot of 256.
    Young,
    /// All blocks of one aligned slot of 8192.
    Complete,
}

impl SegmentShape {
    /// What a segment of these blocks would be; `None` if they make no segment.
    #[must_use]
    pub fn of(range: BlockRange) -> Option<Self> {
        if range.count() == SLOT_BLOCKS && range.first().is_multiple_of(SLOT_BLOCKS) {
            Some(Self::Complete)
        } else if range.first() / YOUNG_SLOT_BLOCKS == range.last() / YOUNG_SLOT_BLOCKS {
            Some(Self::Young)
        } else {
            None
        }
    }
}

/// Whether the tables of a segment of `range` are counted over this block.
#[must_use]
pub fn is_counted(range: BlockRange, number: BlockNumber) -> bool {
    let is_sampled = SegmentShape::of(range) == Some(SegmentShape::Complete);
    range.contains(number) && (!is_sampled || number.get().is_multiple_of(COUNTED_STRIDE))
}

/// The blocks that the tables of a segment of `range` are counted over: 256 at the most.
pub fn counted_blocks(range: BlockRange) -> impl Iterator<Item = BlockNumber> {
    range.numbers().filter(move |number| is_counted(range, *number))
}

/// The groups of a segment of `range`, in order: what [`crate::Encoder::encode_group`] takes.
pub fn groups(range: BlockRange) -> impl Iterator<Item = BlockRange> {
    let first = range.first() / GROUP_BLOCKS;
    let last = range.last() / GROUP_BLOCKS;
    (first..=last).filter_map(move |group| {
        let begin = group.saturating_mul(GROUP_BLOCKS);
        let end = begin.saturating_add(GROUP_BLOCKS - 1);
        BlockRange::from_ends(begin.max(range.first()), end.min(range.last()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> BlockRange {
        BlockRange::from_ends(first, last).unwrap()
    }

    #[test]
    fn a_segment_is_part_of_a_young_slot_or_a_whole_slot() {
        let (young, complete) = (Some(SegmentShape::Young), Some(SegmentShape::Complete));
        for (first, last, expected) in [
            (0, 0, young),
            (0, 255, young),
            (255, 256, None),
            (256, 511, young),
            (0, 256, None),
            (0, 8191, complete),
            (0, 8190, None),
            (8192, 16_383, complete),
            (8191, 16_382, None),
            (0, 16_383, None),
            (u64::MAX - 1, u64::MAX - 1, young),
        ] {
            assert_eq!(SegmentShape::of(range(first, last)), expected, "{first}..{last}");
        }
    }

    #[test]
    fn at_most_256_blocks_are_counted() {
        assert_eq!(counted_blocks(range(5, 20)).count(), 16);
        assert_eq!(counted_blocks(range(256, 511)).count(), 256);
        let counted: Vec<u64> = counted_blocks(range(8192, 16_383)).map(BlockNumber::get).collect();
        assert_eq!(counted.len(), 256);
        assert_eq!(counted.get(..3), Some(&[8192, 8224, 8256][..]));
        assert!(!is_counted(range(8192, 16_383), BlockNumber(8193)));
        assert!(!is_counted(range(8192, 16_383), BlockNumber(0)));
    }

    #[test]
    fn groups_are_aligned_and_cut_at_the_ends() {
        let cut: Vec<BlockRange> = groups(range(5, 40)).collect();
        assert_eq!(cut, [range(5, 15), range(16, 31), range(32, 40)]);
        assert_eq!(groups(range(0, 8191)).count(), 512);
    }
}
