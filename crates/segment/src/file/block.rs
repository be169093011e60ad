//! All rows of one block from one read.
//!
//! Knows: which pages a block's rows lie in, and that each need be inflated only once.
//! Never knows: what an answer makes of the rows.

use std::ops::Range;

use alloy_primitives::B256;
use chain::BlockNumber;

use super::PageKind;
use super::read::{RowPlace, Segment, corrupt};
use crate::bytes::Cursor;
use crate::corrupt::{Corrupt, PageFault};
use crate::page::{Inflater, RowsRoom};
use crate::row::{RowParts, Senders};
use crate::row_set::RowSet;
use crate::tx_position::TxOrdinal;

/// Where all rows of a block lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The bytes from the block's first page to its last, payloads included; empty if it has no
    /// transactions. Pages at the ends may hold rows of its neighbours too.
    pub range: Range<u64>,
    /// Which of the pages of rows it has a part in.
    row_pages: Range<usize>,
    /// The first row's place in the first page.
    skipped: usize,
    row_count: usize,
}

impl Segment {
    /// Where all rows of a block lie.
    #[must_use]
    pub fn find_block(&self, number: BlockNumber) -> Option<BlockPlace> {
        let ordinals = self.find_ordinals(number)?;
        let row_count = usize::try_from(ordinals.end.checked_sub(ordinals.start)?).ok()?;
        if row_count == 0 {
            return Some(BlockPlace { range: 0..0, row_pages: 0..0, skipped: 0, row_count });
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

    /// Reads the rows of a block in order; `bytes` are those of the place's range.
    pub fn read_block(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
        wanted: RowParts,
    ) -> Result<RowSet, Corrupt> {
        self.read_rows(inflater, place, bytes, wanted, Senders::Told)
    }

    /// The hashes of a block's transactions in order; `bytes` are those of the place's range.
    pub fn read_hashes(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
    ) -> Result<Vec<B256>, Corrupt> {
        let wanted = RowParts::Transaction;
        let rows = self.read_rows(inflater, place, bytes, wanted, Senders::LeftOut)?;
        Ok(rows.hashes())
    }

    fn read_rows(
        &self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &[u8],
        wanted: RowParts,
        senders: Senders,
    ) -> Result<RowSet, Corrupt> {
        let offset = place.range.start;
        let mut set = RowSet::with_capacity(place.row_count, bytes.len());
        let mut skipped = place.skipped;
        let mut room = RowsRoom::default();
        for (page, _) in place.row_pages.clone().filter_map(|page| self.row_page(page)) {
            let own = part(bytes, offset, &page.range).map_err(|fault| corrupt(&page, fault))?;
            let rows = self.open_rows(inflater, &page, own, &mut room, wanted)?;
            let rows = rows.with_senders(senders);
            let first = std::mem::take(&mut skipped);
            let wanted_count = place.row_count.saturating_sub(set.len());
            let mut place = RowPlace { page, row: first };
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
        Ok(set)
    }
}

/// The bytes of a range inside those that begin at `offset`.
fn part<'a>(bytes: &'a [u8], offset: u64, range: &Range<u64>) -> Result<&'a [u8], PageFault> {
    let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut cursor = Cursor::new(bytes);
    cursor.take(narrow(range.start.saturating_sub(offset)), "pages")?;
    Ok(cursor.take(narrow(range.end.saturating_sub(range.start)), "page")?)
}
