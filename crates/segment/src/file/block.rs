//! Rows of one block, all or some that follow each other, from one read.

use std::ops::Range;

use alloy_primitives::B256;
use chain::BlockNumber;

use super::PageKind;
use super::read::{RowPlace, RowPosition, Segment, corrupt};
use crate::bytes::Cursor;
use crate::corrupt::{Corrupt, PageFault};
use crate::page::{Inflater, RowsRoom};
use crate::row::{RowParts, Senders};
use crate::row_set::RowSet;
use crate::tx_position::{TxIndex, TxOrdinal};

/// Where rows of a block lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The bytes from the page of the first row to that of the last, payloads included; empty if there
    /// is none. Pages at the ends may hold other rows too.
    pub range: Range<u64>,
    /// Which of the pages of rows it has a part in.
    row_pages: Range<usize>,
    /// The first row's place in the first page.
    skipped: usize,
    row_count: usize,
}

impl BlockPlace {
    const NONE: Self = Self { range: 0..0, row_pages: 0..0, skipped: 0, row_count: 0 };
}

impl Segment {
    /// Where all rows of a block lie.
    #[must_use]
    pub fn find_block(&self, number: BlockNumber) -> Option<BlockPlace> {
        self.find_rows(self.find_ordinals(number)?)
    }

    /// Where some rows of a block lie; an index that it does not have is left out.
    #[must_use]
    pub fn find_block_part(
        &self,
        number: BlockNumber,
        indices: Range<TxIndex>,
    ) -> Option<BlockPlace> {
        let all = self.find_ordinals(number)?;
        let at = |index| all.start.at(index).unwrap_or(all.end).min(all.end);
        self.find_rows(at(indices.start)..at(indices.end))
    }

    fn find_rows(&self, ordinals: Range<TxOrdinal>) -> Option<BlockPlace> {
        let row_count = ordinals.end.checked_sub(ordinals.start);
        let row_count = usize::try_from(row_count.unwrap_or(0)).ok()?;
        if row_count == 0 {
            return Some(BlockPlace::NONE);
        }
        let first = self.find_row_page(ordinals.start)?;
        let last = self.find_row_page(TxOrdinal(ordinals.end.get().checked_sub(1)?))?;
        let ((first_page, first_ordinal), (last_page, _)) =
            (self.row_page(first)?, self.row_page(last)?);
        let mut end = last_page.number.checked_add(1)?;
        while self.kind(end) == Some(PageKind::Payload) {
            end = end.checked_add(1)?;
        }
        let range = first_page.range.start..self.place(end.checked_sub(1)?)?.range.end;
        let skipped = usize::try_from(ordinals.start.checked_sub(first_ordinal)?).ok()?;
        Some(BlockPlace { range, row_pages: first..last.checked_add(1)?, skipped, row_count })
    }

    /// Reads rows of a block with their receipts, and tells where the first of them stands; `None` if
    /// there is none. `bytes` are those of the place's range.
    pub fn read_block_part(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
    ) -> Result<Option<(RowPosition, RowSet)>, Corrupt> {
        let (first, rows) =
            self.read_rows(inflater, place, bytes, RowParts::Receipt, Senders::LeftOut)?;
        Ok(first.map(|first| (first, rows)))
    }

    /// Reads the rows of a block in order; `bytes` are those of the place's range.
    pub fn read_block(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
        wanted: RowParts,
    ) -> Result<RowSet, Corrupt> {
        Ok(self.read_rows(inflater, place, bytes, wanted, Senders::Told)?.1)
    }

    /// The hashes of a block's transactions in order; `bytes` are those of the place's range.
    pub fn read_hashes(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
    ) -> Result<Vec<B256>, Corrupt> {
        let wanted = RowParts::Transaction;
        let (_, rows) = self.read_rows(inflater, place, bytes, wanted, Senders::LeftOut)?;
        Ok(rows.hashes())
    }

    /// The rows in order, and where the first of them stands.
    fn read_rows(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
        wanted: RowParts,
        senders: Senders,
    ) -> Result<(Option<RowPosition>, RowSet), Corrupt> {
        let offset = place.range.start;
        // Pages take a third of their rows or more: rows that grow out of their room are copied.
        let mut set = RowSet::with_capacity(place.row_count, bytes.len().saturating_mul(3));
        let mut skipped = place.skipped;
        let mut position = None;
        let mut room = RowsRoom::default();
        for (page, _) in place.row_pages.clone().filter_map(|page| self.row_page(page)) {
            let own = part(bytes, offset, &page.range).map_err(|fault| corrupt(&page, fault))?;
            let rows = self.open_rows(inflater, &page, own, &mut room, wanted)?;
            let rows = rows.with_senders(senders);
            let first = std::mem::take(&mut skipped);
            let wanted_count = place.row_count.saturating_sub(set.len());
            let mut place = RowPlace { page, row: first };
            position = position.or_else(|| self.position_of(&place, &rows));
            for row in (0..rows.len()).skip(first).take(wanted_count) {
                place.row = row;
                let payloads = self.find_payloads(&place, &rows);
                let payloads = if payloads.is_empty() {
                    &[][..]
                } else {
                    part(bytes, offset, &payloads).map_err(|fault| corrupt(&place.page, fault))?
                };
                self.read_into(inflater, &place, &rows, payloads, set.add())?;
            }
        }
        Ok((position, set))
    }
}

/// The bytes of a range inside those that begin at `offset`.
fn part<'a>(bytes: &'a [u8], offset: u64, range: &Range<u64>) -> Result<&'a [u8], PageFault> {
    let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut cursor = Cursor::new(bytes);
    cursor.take(narrow(range.start.saturating_sub(offset)), "pages")?;
    Ok(cursor.take(narrow(range.end.saturating_sub(range.start)), "page")?)
}
