//! A segment, read: which bytes to fetch for a question, and the answer in them.

use std::ops::Range;

use alloy_primitives::{B256, Bytes};
use chain::BlockNumber;

use super::footer::{Footer, SegmentFacts};
use super::parts::PartPages;
use super::row_pages::{RowPageEntry, RowPages};
use super::shape::GROUP_BLOCKS;
use super::{BlockEntry, PageEntry, PageKind, SegmentTail};
use crate::bytes::{Cursor, allocated, wide};
use crate::corrupt::{Corrupt, PageFault, RowFault};
use crate::page::{GasAndLogsBefore, Inflater, Rows, RowsRoom};
use crate::row::RowParts;
use crate::row_set::{Row, RowSlot};
use crate::tables::Tables;
use crate::tx_position::{TxIndex, TxOrdinal};

/// A segment whose footer and tail are in memory.
#[derive(Clone, Debug)]
pub struct Segment {
    footer: Footer,
    pub(super) tables: Tables,
    /// Where every page begins, and where the last one ends.
    offsets: Vec<u64>,
    kinds: Vec<PageKind>,
    row_pages: RowPages,
    header_pages: PartPages,
    other_pages: PartPages,
    blocks: Vec<BlockEntry>,
    /// Ordinal of every block's first transaction, and of the end.
    first_ordinals: Vec<TxOrdinal>,
}

/// A page and the bytes to read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePlace {
    pub(super) number: usize,
    /// Which of the pages of rows it is, if it is one.
    pub(super) row_page: Option<usize>,
    /// The bytes of the file.
    pub range: Range<u64>,
}

/// Where a transaction lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// The page with the row.
    pub page: PagePlace,
    /// Which row of the page.
    pub row: usize,
}

/// Where in its block a row stands, and what is known of the block beside its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPosition {
    /// The block's number.
    pub number: BlockNumber,
    /// The block's hash.
    pub hash: B256,
    /// The header's timestamp.
    pub timestamp: u64,
    /// The header's base fee, from London on.
    pub base_fee: Option<u64>,
    /// The header's excess blob gas, from Cancun on.
    pub excess_blob_gas: Option<u64>,
    /// Position in the block.
    pub index: TxIndex,
    /// Gas used and logs in the block before it, where receipts are held and wanted.
    pub before: Option<GasAndLogsBefore>,
}

/// What the bytes of a segment are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartBytes {
    /// Transactions with their signatures and senders, long call data not counted.
    pub transactions: u64,
    /// Long call data and code.
    pub transaction_payloads: u64,
    /// Receipts, long log data not counted. They share pages with transactions: this is their
    /// share by their tokens before compression.
    pub receipts: u64,
    /// Long log data.
    pub receipt_payloads: u64,
    /// Headers.
    pub headers: u64,
    /// Ommers and withdrawals.
    pub others: u64,
    /// Directory and tables.
    pub tail: u64,
}

/// A header and what answers need beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRecord {
    /// The raw header.
    pub rlp: Bytes,
    /// The length of the RLP of the whole block.
    pub block_bytes: u64,
    /// How many transactions the block has.
    pub transaction_count: u64,
}

/// A block's parts beside its transactions, as raw RLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockExtras {
    /// The list of ommers.
    pub ommers: Bytes,
    /// The list of withdrawals, from Shanghai on.
    pub withdrawals: Option<Bytes>,
}

impl Segment {
    /// Opens a segment from its tail: the bytes that [`Footer::tail_range`] names.
    pub fn open(footer: Footer, inflater: &mut Inflater, tail: &[u8]) -> Result<Self, Corrupt> {
        let facts = footer.facts;
        let opened = inflater.open(tail).map_err(Corrupt::Tail)?;
        let tail = SegmentTail::decode(&opened, facts.range.count())
            .map_err(|fault| Corrupt::Tail(fault.into()))?;
        let mut segment = Self {
            footer,
            tables: tail.tables,
            offsets: room(tail.pages.len()),
            kinds: Vec::with_capacity(tail.pages.len()),
            row_pages: RowPages::default(),
            header_pages: PartPages::default(),
            other_pages: PartPages::default(),
            first_ordinals: room(tail.blocks.len()),
            blocks: tail.blocks,
        };
        let mut ordinal = 0_u64;
        for block in &segment.blocks {
            ordinal = ordinal.saturating_add(wide(block.transaction_count));
            segment.first_ordinals.push(TxOrdinal(ordinal));
        }
        segment.add_pages(&tail.pages)?;
        segment.row_pages.shrink();
        for (what, found, expected) in [
            ("rows", segment.row_pages.row_count(), facts.transaction_count),
            ("transactions", ordinal, facts.transaction_count),
            ("headers", wide(segment.header_pages.block_count()), facts.range.count()),
            ("lists of ommers", wide(segment.other_pages.block_count()), facts.range.count()),
        ] {
            if found != expected {
                return Err(Corrupt::Directory { what, found, expected });
            }
        }
        Ok(segment)
    }

    /// Takes over the directory. No page has rows of two groups.
    fn add_pages(&mut self, pages: &[PageEntry]) -> Result<(), Corrupt> {
        let mut offset = 0_u64;
        for (page, PageEntry { kind, bytes, count }) in pages.iter().enumerate() {
            let start = offset;
            offset = offset.saturating_add(*bytes);
            self.offsets.push(offset);
            self.kinds.push(*kind);
            match kind {
                PageKind::Rows => {
                    let ordinal = TxOrdinal(self.row_pages.row_count());
                    let fault = Corrupt::Group { page, ordinal, count: *count };
                    let last = TxOrdinal(ordinal.get().saturating_add(count.saturating_sub(1)));
                    let (Some(first), Some(last)) = (self.block_of(ordinal), self.block_of(last))
                    else {
                        return Err(fault);
                    };
                    if *count == 0 || self.group_of(first) != self.group_of(last) {
                        return Err(fault);
                    }
                    self.row_pages.push(page, start, first, *count).ok_or(fault)?;
                }
                PageKind::Payload => {}
                PageKind::Headers => self.header_pages.push(page, *count),
                PageKind::Others => self.other_pages.push(page, *count),
            }
        }
        Ok(())
    }

    /// The position of the block that a row belongs to.
    fn block_of(&self, ordinal: TxOrdinal) -> Option<usize> {
        let after = self.first_ordinals.partition_point(|first| *first <= ordinal);
        if after == self.first_ordinals.len() { None } else { after.checked_sub(1) }
    }

    /// The same of a row that is in one of the pages: their blocks are at most a group apart, and a
    /// search over all would touch memory that no read before it did.
    fn block_in(&self, row_page: usize, ordinal: TxOrdinal) -> Option<usize> {
        let first = self.row_pages.get(row_page)?.block;
        let ends = self.first_ordinals.get(first.checked_add(1)?..)?;
        first.checked_add(ends.iter().position(|end| *end > ordinal)?)
    }

    /// The group that a block belongs to, by its position.
    fn group_of(&self, position: usize) -> u64 {
        self.footer.facts.range.first().saturating_add(wide(position)) / GROUP_BLOCKS
    }

    /// Where in its block a row stands, and what answers need of that block.
    #[must_use]
    pub fn position_of(&self, place: &RowPlace, rows: &Rows<'_>) -> Option<RowPosition> {
        let page_first = rows.ordinals().start;
        let ordinal = page_first.checked_add(wide(place.row))?;
        let position = self.block_in(place.page.row_page?, ordinal)?;
        let (block, first) = (self.blocks.get(position)?, *self.first_ordinals.get(position)?);
        let first_here = usize::try_from(first.get().saturating_sub(page_first.get())).ok()?;
        Some(RowPosition {
            number: BlockNumber(self.footer.facts.range.first().saturating_add(wide(position))),
            hash: block.hash,
            timestamp: block.timestamp,
            base_fee: block.base_fee,
            excess_blob_gas: block.excess_blob_gas,
            index: ordinal.index_after(first)?,
            before: rows.before(first_here, place.row),
        })
    }

    /// A block's hash.
    #[must_use]
    pub fn find_hash(&self, number: BlockNumber) -> Option<B256> {
        Some(self.blocks.get(self.position(number)?)?.hash)
    }

    /// What the segment says about itself.
    #[must_use]
    pub fn facts(&self) -> &SegmentFacts {
        &self.footer.facts
    }

    /// The footer it was opened with.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The tables that its rows refer to.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// About how much memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let bytes = allocated(&self.offsets)
            .saturating_add(allocated(&self.kinds))
            .saturating_add(self.row_pages.memory_bytes())
            .saturating_add(self.header_pages.memory_bytes())
            .saturating_add(self.other_pages.memory_bytes())
            .saturating_add(allocated(&self.blocks))
            .saturating_add(allocated(&self.first_ordinals))
            .saturating_add(self.tables.memory_bytes());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// How many bytes each part takes.
    #[must_use]
    pub fn part_bytes(&self) -> PartBytes {
        let facts = self.footer.facts;
        let (mut rows, mut payloads, mut headers, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
        for (page, kind) in self.kinds.iter().enumerate() {
            let part = match kind {
                PageKind::Rows => &mut rows,
                PageKind::Payload => &mut payloads,
                PageKind::Headers => &mut headers,
                PageKind::Others => &mut others,
            };
            let range = self.place(page).map_or(0..0, |place| place.range);
            *part = part.saturating_add(range.end.saturating_sub(range.start));
        }
        // Signatures are not compressed and no part of the tokens.
        let signatures = facts.transaction_count.saturating_mul(64).min(rows);
        let compressed = u128::from(rows.saturating_sub(signatures));
        let share = compressed.saturating_mul(facts.receipt_token_bytes.into());
        let receipts = share.checked_div(facts.token_bytes.into()).unwrap_or_default();
        let receipts = u64::try_from(receipts).unwrap_or(u64::MAX).min(rows);
        PartBytes {
            transactions: rows.saturating_sub(receipts),
            transaction_payloads: payloads.saturating_sub(facts.receipt_payload_bytes),
            receipts,
            receipt_payloads: facts.receipt_payload_bytes.min(payloads),
            headers,
            others,
            tail: self.footer.tail_bytes,
        }
    }

    /// The ordinals, inside the segment, of a block's transactions.
    #[must_use]
    pub fn find_ordinals(&self, number: BlockNumber) -> Option<Range<TxOrdinal>> {
        let position = self.position(number)?;
        let first = self.first_ordinals.get(position)?;
        Some(*first..*self.first_ordinals.get(position.checked_add(1)?)?)
    }

    /// Where a transaction lies.
    #[must_use]
    pub fn find_row(&self, ordinal: TxOrdinal) -> Option<RowPlace> {
        let row_page = self.find_row_page(ordinal)?;
        let (page, first) = self.row_page(row_page)?;
        let row = usize::try_from(ordinal.checked_sub(first)?).ok()?;
        Some(RowPlace { page, row })
    }

    /// Which of the pages of rows has a row.
    pub(super) fn find_row_page(&self, ordinal: TxOrdinal) -> Option<usize> {
        self.row_pages.find(ordinal)
    }

    /// A page of rows by its number among them: where it lies, and the ordinal of its first row.
    pub(super) fn row_page(&self, row_page: usize) -> Option<(PagePlace, TxOrdinal)> {
        let RowPageEntry { page, start, first_ordinal, .. } = self.row_pages.get(row_page)?;
        let after = page.checked_add(1)?;
        // Where the next one follows at once, its entry lies beside this one and tells the end.
        let next = row_page.checked_add(1).and_then(|next| self.row_pages.get(next));
        let end = match next.filter(|next| next.page == after) {
            Some(next) => next.start,
            None => *self.offsets.get(after)?,
        };
        let place = PagePlace { number: page, row_page: Some(row_page), range: start..end };
        Some((place, first_ordinal))
    }

    /// Opens a page of rows.
    pub fn open_rows<'a>(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &'a [u8],
        room: &'a mut RowsRoom,
        wanted: RowParts,
    ) -> Result<Rows<'a>, Corrupt> {
        let ordinals = place.row_page.and_then(|number| {
            let first = self.row_pages.get(number)?.first_ordinal;
            Some(first..self.row_pages.end_ordinal(number))
        });
        let ordinals = ordinals.unwrap_or_default();
        let has_receipts = self.footer.facts.has_receipts;
        Rows::open(inflater, bytes, room, ordinals, has_receipts, wanted)
            .map_err(|fault| corrupt(place, fault))
    }

    /// The bytes with everything of a row that is too long for its page; an empty range for most
    /// rows. It follows the page, though not always at once.
    #[must_use]
    pub fn find_payloads(&self, place: &RowPlace, rows: &Rows<'_>) -> Range<u64> {
        let pages = self.payload_pages(place, rows);
        let ends = (self.offsets.get(pages.start), self.offsets.get(pages.end));
        match ends {
            (Some(start), Some(end)) if start < end => *start..*end,
            _ => 0..0,
        }
    }

    /// The bytes with what is too long for a page of rows, of all rows of the page; an empty range for most
    /// pages. Known before the page is read.
    #[must_use]
    pub fn find_page_payloads(&self, page: &PagePlace) -> Range<u64> {
        let first = page.number.saturating_add(1);
        let kinds = self.kinds.iter().skip(first);
        let count = kinds.take_while(|kind| **kind == PageKind::Payload).count();
        let ends = (self.offsets.get(first), self.offsets.get(first.saturating_add(count)));
        match ends {
            (Some(start), Some(end)) if start < end => *start..*end,
            _ => 0..0,
        }
    }

    /// The pages with a row's payloads, as far as there are such.
    pub(super) fn payload_pages(&self, place: &RowPlace, rows: &Rows<'_>) -> Range<usize> {
        let own = rows.payloads_of(place.row);
        if own.is_empty() {
            return 0..0;
        }
        let after_rows = place.page.number.saturating_add(1);
        let payloads = self.kinds.iter().skip(after_rows).take(own.end);
        let count = payloads.take_while(|kind| **kind == PageKind::Payload).count();
        let shift = |position: usize| after_rows.saturating_add(position.min(count));
        shift(own.start)..shift(own.end)
    }

    /// Reads one row. `payloads` are the bytes that [`Self::find_payloads`] names.
    pub fn read_row(
        &self,
        inflater: &mut Inflater,
        place: &RowPlace,
        rows: &Rows<'_>,
        payloads: &[u8],
    ) -> Result<Row, Corrupt> {
        Row::read(|slot| self.read_into(inflater, place, rows, payloads, slot))
    }

    /// Reads one row to where it goes.
    pub(super) fn read_into(
        &self,
        inflater: &mut Inflater,
        place: &RowPlace,
        rows: &Rows<'_>,
        payloads: &[u8],
        slot: RowSlot<'_>,
    ) -> Result<(), Corrupt> {
        let faulty = |fault: RowFault| corrupt(&place.page, fault.into());
        if rows.payloads_of(place.row).is_empty() {
            return rows.decode(place.row, &self.tables, &mut || None, slot).map_err(faulty);
        }
        let mut long_bytes = Vec::new();
        let mut rest = Cursor::new(payloads);
        for page in self.payload_pages(place, rows) {
            let Some(payload) = self.place(page) else { break };
            let length = payload.range.end.saturating_sub(payload.range.start);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let opened = rest
                .take(length, "payload page")
                .map_err(PageFault::from)
                .and_then(|bytes| inflater.open(bytes))
                .map_err(|fault| corrupt(&payload, fault))?;
            long_bytes.push(Bytes::from(opened));
        }
        let mut given = long_bytes.into_iter();
        rows.decode(place.row, &self.tables, &mut || given.next(), slot).map_err(faulty)
    }

    /// Where a block's header lies.
    #[must_use]
    pub fn find_header(&self, number: BlockNumber) -> Option<PagePlace> {
        self.find_part(&self.header_pages, number)
    }

    /// Reads a header out of its page.
    pub fn read_header(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
        number: BlockNumber,
    ) -> Result<HeaderRecord, Corrupt> {
        let opened = inflater.open(bytes).map_err(|fault| corrupt(place, fault))?;
        let (plain, skipped) = (Bytes::from(opened), self.skipped(&self.header_pages, number));
        let mut cursor = Cursor::new(&plain);
        let mut read = || Ok((read_part(&mut cursor)?, cursor.varint("block bytes")?));
        let (rlp, block_bytes) = nth(skipped, &mut read).map_err(|fault| corrupt(place, fault))?;
        let rlp = plain.slice_ref(rlp);
        let ordinals = self.find_ordinals(number).unwrap_or_default();
        let transaction_count = ordinals.end.checked_sub(ordinals.start).unwrap_or_default();
        Ok(HeaderRecord { rlp, block_bytes, transaction_count })
    }

    /// Where a block's ommers and withdrawals lie.
    #[must_use]
    pub fn find_extras(&self, number: BlockNumber) -> Option<PagePlace> {
        self.find_part(&self.other_pages, number)
    }

    /// Reads a block's ommers and withdrawals out of their page.
    pub fn read_extras(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
        number: BlockNumber,
    ) -> Result<BlockExtras, Corrupt> {
        let opened = inflater.open(bytes).map_err(|fault| corrupt(place, fault))?;
        let (plain, skipped) = (Bytes::from(opened), self.skipped(&self.other_pages, number));
        let mut cursor = Cursor::new(&plain);
        let mut read = || Ok((read_part(&mut cursor)?, read_part(&mut cursor)?));
        let (ommers, withdrawals) =
            nth(skipped, &mut read).map_err(|fault| corrupt(place, fault))?;
        let withdrawals = Some(withdrawals).filter(|list| !list.is_empty());
        Ok(BlockExtras {
            ommers: plain.slice_ref(ommers),
            withdrawals: withdrawals.map(|list| plain.slice_ref(list)),
        })
    }

    pub(super) fn place(&self, page: usize) -> Option<PagePlace> {
        let start = *self.offsets.get(page)?;
        let end = *self.offsets.get(page.checked_add(1)?)?;
        Some(PagePlace { number: page, row_page: None, range: start..end })
    }

    pub(super) fn kind(&self, page: usize) -> Option<PageKind> {
        self.kinds.get(page).copied()
    }

    fn position(&self, number: BlockNumber) -> Option<usize> {
        let range = self.footer.facts.range;
        let position = number.checked_sub(BlockNumber(range.first()))?;
        usize::try_from(position).ok().filter(|_| range.contains(number))
    }

    /// The page of these that a block has a part in.
    fn find_part(&self, pages: &PartPages, number: BlockNumber) -> Option<PagePlace> {
        let (page, _) = pages.find(self.position(number)?)?;
        self.place(page)
    }

    /// How many blocks have their parts before a block's in its page.
    fn skipped(&self, pages: &PartPages, number: BlockNumber) -> usize {
        self.position(number).and_then(|at| pages.find(at)).map_or(0, |(_, skipped)| skipped)
    }
}

/// A list that begins with zero and has room for one more of each: grown by and by, half of its room
/// would be empty.
fn room<T: Default>(count: usize) -> Vec<T> {
    let mut numbers = Vec::with_capacity(count.saturating_add(1));
    numbers.push(T::default());
    numbers
}

/// Reads what comes after `skipped` of the same.
fn nth<T>(skipped: usize, read: &mut impl FnMut() -> Result<T, RowFault>) -> Result<T, PageFault> {
    for _ in 0..skipped {
        read()?;
    }
    Ok(read()?)
}

fn read_part<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RowFault> {
    let length = cursor.length("part")?;
    cursor.take(length, "part")
}

pub(super) fn corrupt(place: &PagePlace, fault: PageFault) -> Corrupt {
    Corrupt::Page { page: place.number, offset: place.range.start, fault }
}
