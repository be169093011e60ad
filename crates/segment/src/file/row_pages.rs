//! The pages of rows of a segment: which of them has a row, and what is known of it unread.
//!
//! Every read by hash comes here for a row that nobody asked for lately, and waits for the memory
//! that it touches first: entries are small, so that a search touches one line or two.

use crate::bytes::allocated;
use crate::tx_position::TxOrdinal;

/// One of so many ordinals is kept with its page: a search over all pages of a full segment would
/// touch a dozen lines.
const NEAR_ORDINALS: u32 = 64;

/// Pages of rows, by their number among themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct RowPages {
    entries: Vec<PackedPage>,
    /// For every so many ordinals, which of the pages has the first of them.
    near: Vec<u32>,
    /// How many rows they have together.
    row_count: u32,
}

/// A page, packed.
#[derive(Clone, Copy, Debug)]
struct PackedPage {
    first_ordinal: u32,
    page: u32,
    start_low: u32,
    start_high: u16,
    block: u16,
}

/// A page of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowPageEntry {
    /// Which page of the segment it is.
    pub(super) page: usize,
    /// Where it begins in the file.
    pub(super) start: u64,
    /// The ordinal of its first row.
    pub(super) first_ordinal: TxOrdinal,
    /// The position of the block that its first row belongs to.
    pub(super) block: usize,
}

impl RowPages {
    /// Adds a page with so many rows after the others; `None` if anything about it is larger than
    /// segments get.
    pub(super) fn push(
        &mut self,
        page: usize,
        start: u64,
        block: usize,
        row_count: u64,
    ) -> Option<()> {
        let first_ordinal = self.row_count;
        let number = u32::try_from(self.entries.len()).ok()?;
        let [low, high] = [start & u64::from(u32::MAX), start >> u32::BITS];
        self.row_count = first_ordinal.checked_add(u32::try_from(row_count).ok()?)?;
        self.entries.push(PackedPage {
            first_ordinal,
            page: u32::try_from(page).ok()?,
            start_low: u32::try_from(low).ok()?,
            start_high: u16::try_from(high).ok()?,
            block: u16::try_from(block).ok()?,
        });
        let near_count = usize::try_from(self.row_count.div_ceil(NEAR_ORDINALS)).ok()?;
        self.near.resize(near_count, number);
        Some(())
    }

    /// How many rows the pages have together.
    pub(super) fn row_count(&self) -> u64 {
        self.row_count.into()
    }

    /// Which of the pages has a row.
    pub(super) fn find(&self, ordinal: TxOrdinal) -> Option<usize> {
        let ordinal = u32::try_from(ordinal.get()).ok().filter(|it| *it < self.row_count)?;
        let near = *self.near.get(usize::try_from(ordinal / NEAR_ORDINALS).ok()?)?;
        let near = usize::try_from(near).ok()?;
        let pages = self.entries.get(near..)?;
        let begun = pages.iter().take_while(|page| page.first_ordinal <= ordinal).count();
        near.checked_add(begun.checked_sub(1)?)
    }

    /// One of the pages.
    pub(super) fn get(&self, number: usize) -> Option<RowPageEntry> {
        let entry = self.entries.get(number)?;
        Some(RowPageEntry {
            page: usize::try_from(entry.page).ok()?,
            start: u64::from(entry.start_high) << u32::BITS | u64::from(entry.start_low),
            first_ordinal: TxOrdinal(entry.first_ordinal.into()),
            block: entry.block.into(),
        })
    }

    /// The ordinal after the last of one of the pages.
    pub(super) fn end_ordinal(&self, number: usize) -> TxOrdinal {
        let next = number.checked_add(1).and_then(|next| self.entries.get(next));
        TxOrdinal(next.map_or(self.row_count, |entry| entry.first_ordinal).into())
    }

    /// No page is added any more: gives back what room is left.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.near.shrink_to_fit();
    }

    /// How much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(&self.entries).saturating_add(allocated(&self.near))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen: a list that grew entry by entry was counted by its entries, and took up to twice as much.
    #[test]
    fn memory_is_counted_with_the_room_that_is_left_and_none_is_when_all_pages_are_there() {
        let mut pages = RowPages::default();
        for number in 0..1000 {
            pages.push(number, wide(number), 0, 20).unwrap();
        }
        let exact = size_of_val(&*pages.entries) + size_of_val(&*pages.near);
        assert!(pages.memory_bytes() > exact, "1000 is no power of two");
        pages.shrink();
        assert_eq!(pages.memory_bytes(), exact);
    }

    #[test]
    fn every_row_is_found_however_many_are_in_a_page() {
        let counts = [1, 64, 1, 1, 1, 20, 20, 20, 20, 200, 63, 65, 128, 1, 7];
        let mut pages = RowPages::default();
        let mut expected = Vec::new();
        for (number, count) in counts.into_iter().enumerate() {
            pages.push(number * 3, wide(number) << 34, number, count).unwrap();
            expected.extend((0..count).map(|_| number));
        }
        for (ordinal, number) in expected.iter().enumerate() {
            assert_eq!(pages.find(TxOrdinal(wide(ordinal))), Some(*number), "{ordinal}");
            let page = pages.get(*number).unwrap();
            let first = wide(expected.iter().position(|it| it == number).unwrap());
            let (page_number, block) = (number * 3, *number);
            let start = wide(*number) << 34;
            let first_ordinal = TxOrdinal(first);
            let found = RowPageEntry { page: page_number, start, first_ordinal, block };
            assert_eq!(page, found);
            let rows = expected.iter().filter(|it| *it == number).count();
            assert_eq!(pages.end_ordinal(*number), TxOrdinal(first + wide(rows)));
        }
        assert_eq!(pages.row_count(), wide(expected.len()));
        assert_eq!(pages.find(TxOrdinal(pages.row_count())), None);
        assert_eq!(pages.find(TxOrdinal(u64::MAX)), None);
        assert_eq!(pages.get(counts.len()), None);
    }

    #[test]
    fn what_no_segment_has_is_not_taken() {
        let huge = 1_u64 << 48;
        for (page, start, block, count) in
            [(0, huge, 0, 1), (0, 0, 1 << 16, 1), (0, 0, 0, 1 << 32), (1 << 32, 0, 0, 1)]
        {
            assert_eq!(RowPages::default().push(page, start, block, count), None);
        }
        assert_eq!(RowPages::default().push(0, huge - 1, (1 << 16) - 1, (1 << 32) - 1), Some(()));
    }

    fn wide(number: usize) -> u64 {
        u64::try_from(number).unwrap()
    }
}
