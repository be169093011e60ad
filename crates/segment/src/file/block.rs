//! All rows of one block from one read.
//!
//! Knows: which pages a block's rows lie in, and that each need be inflated only once.
//! Never knows: what an answer makes of the rows.

use std::ops::Range;

use super::Kind;
use super::read::{PagePlace, RowPlace, Segment, corrupt};
use crate::bytes::Cursor;
use crate::corrupt::{Corrupt, PageFault};
use crate::page::{BlockContext, Inflater, Rows};
use crate::row::{Row, Wanted};

/// Where all rows of a block lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The bytes from the block's first page to its last, payloads included; empty if it has no
    /// transactions. Pages at the ends may hold rows of its neighbours too.
    pub range: Range<u64>,
    number: u64,
    pages: Range<usize>,
    /// The first row's place in the first page.
    skipped: usize,
    row_count: usize,
}

/// The rows of a block, still to be decoded.
#[derive(Debug)]
pub struct BlockRows<'a> {
    segment: &'a Segment,
    /// From the first page on.
    bytes: &'a [u8],
    offset: u64,
    number: u64,
    pages: Vec<(PagePlace, Rows)>,
    skipped: usize,
    row_count: usize,
}

impl Segment {
    /// Where all rows of a block lie.
    #[must_use]
    pub fn find_block(&self, number: u64) -> Option<BlockPlace> {
        let ordinals = self.find_ordinals(number)?;
        let row_count = usize::try_from(ordinals.end.checked_sub(ordinals.start)?).ok()?;
        if row_count == 0 {
            return Some(BlockPlace { range: 0..0, number, pages: 0..0, skipped: 0, row_count });
        }
        let (first_ordinal, first) = self.find_row_page(ordinals.start)?;
        let (_, last) = self.find_row_page(ordinals.end.checked_sub(1)?)?;
        let mut end = last.checked_add(1)?;
        while self.kind(end) == Some(Kind::Payload) {
            end = end.checked_add(1)?;
        }
        let range = self.place(first)?.range.start..self.place(end.checked_sub(1)?)?.range.end;
        let skipped = usize::try_from(ordinals.start.checked_sub(first_ordinal)?).ok()?;
        Some(BlockPlace { range, number, pages: first..end, skipped, row_count })
    }

    /// Opens the pages of a block's rows; `bytes` are those of the place's range.
    pub fn open_block<'a>(
        &'a self,
        inflater: &mut Inflater,
        place: &BlockPlace,
        bytes: &'a [u8],
    ) -> Result<BlockRows<'a>, Corrupt> {
        let mut pages = Vec::new();
        let offset = place.range.start;
        for page in place.pages.clone().filter(|page| self.kind(*page) == Some(Kind::Rows)) {
            let Some(page) = self.place(page) else { break };
            let own = part(bytes, offset, &page).map_err(|fault| corrupt(&page, fault))?;
            pages.push((page.clone(), self.open_rows(inflater, &page, own)?));
        }
        let BlockPlace { number, skipped, row_count, .. } = *place;
        Ok(BlockRows { segment: self, bytes, offset, number, pages, skipped, row_count })
    }
}

impl BlockRows<'_> {
    /// What its pages say about the block; `None` if it has no transactions.
    #[must_use]
    pub fn context(&self) -> Option<&BlockContext> {
        let (_, rows) = self.pages.first()?;
        rows.blocks().iter().find(|block| block.number == self.number)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// The rows in order.
    pub fn iter<'b>(
        &'b self,
        inflater: &'b mut Inflater,
        wanted: Wanted,
    ) -> impl Iterator<Item = Result<Row, Corrupt>> + 'b {
        let rows = self
            .pages
            .iter()
            .flat_map(|(page, rows)| (0..rows.len()).map(move |row| (page, rows, row)));
        rows.skip(self.skipped).take(self.row_count).map(move |(page, rows, row)| {
            let place = RowPlace { page: page.clone(), row };
            let payloads = self.segment.find_payloads(&place, rows);
            let payloads = if payloads.is_empty() {
                &[][..]
            } else {
                let whole = PagePlace { number: page.number, range: payloads };
                part(self.bytes, self.offset, &whole).map_err(|fault| corrupt(page, fault))?
            };
            self.segment.read_row(inflater, &place, rows, payloads, wanted)
        })
    }
}

/// A page's bytes inside those that begin at `offset`.
fn part<'a>(bytes: &'a [u8], offset: u64, page: &PagePlace) -> Result<&'a [u8], PageFault> {
    let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut cursor = Cursor::new(bytes);
    cursor.take(narrow(page.range.start.saturating_sub(offset)), "pages")?;
    Ok(cursor.take(narrow(page.range.end.saturating_sub(page.range.start)), "page")?)
}
