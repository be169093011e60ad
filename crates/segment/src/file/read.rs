//! A segment, read: which bytes to fetch for a question, and the answer in them.

use std::ops::Range;

use alloy_primitives::Bytes;

use super::{Facts, Footer, GROUP_BLOCKS, Kind, Tail};
use crate::bytes::Cursor;
use crate::corrupt::{Corrupt, PageFault, RowFault};
use crate::page::{Inflater, Rows};
use crate::row::{Row, RowContext, decode_row};
use crate::tables::Tables;

/// A segment whose footer and tail are in memory.
#[derive(Clone, Debug)]
pub struct Segment {
    footer: Footer,
    tables: Tables,
    pages: Vec<PagePlace>,
    kinds: Vec<Kind>,
    /// Pages of rows in order: the ordinal of their first row, and which page it is.
    row_pages: Vec<(u64, usize)>,
    header_pages: Vec<usize>,
    other_pages: Vec<usize>,
    /// Ordinal of every block's first transaction, and of the end.
    first_ordinals: Vec<u64>,
}

/// A page and the bytes to read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePlace {
    number: usize,
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
    /// The pages with the long bytes of all rows of the page. They follow it in the file: one
    /// read can take all of them.
    pub payloads: Vec<PagePlace>,
}

/// What the bytes of a segment are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartBytes {
    /// Transactions, senders and receipts.
    pub rows: u64,
    /// Long call data and log data.
    pub payloads: u64,
    /// Headers.
    pub headers: u64,
    /// Ommers and withdrawals.
    pub others: u64,
    /// Directory and tables.
    pub tail: u64,
}

/// A block's parts beside its transactions, as raw RLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
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
        let tail = Tail::decode(&opened.plain, facts.block_count)
            .map_err(|fault| Corrupt::Tail(fault.into()))?;
        let mut segment = Self {
            footer,
            tables: tail.tables,
            pages: Vec::with_capacity(tail.pages.len()),
            kinds: Vec::with_capacity(tail.pages.len()),
            row_pages: Vec::new(),
            header_pages: Vec::new(),
            other_pages: Vec::new(),
            first_ordinals: vec![0],
        };
        let (mut offset, mut ordinal) = (0_u64, 0_u64);
        for (number, (kind, bytes, count)) in tail.pages.into_iter().enumerate() {
            let end = offset.saturating_add(bytes);
            segment.pages.push(PagePlace { number, range: offset..end });
            segment.kinds.push(kind);
            match kind {
                Kind::Rows => {
                    segment.row_pages.push((ordinal, number));
                    ordinal = ordinal.saturating_add(count);
                }
                Kind::Payload => {}
                Kind::Headers => segment.header_pages.push(number),
                Kind::Others => segment.other_pages.push(number),
            }
            offset = end;
        }
        let mut transaction_count = 0_u64;
        for count in tail.transaction_counts {
            transaction_count = transaction_count.saturating_add(count);
            segment.first_ordinals.push(transaction_count);
        }
        for (what, found) in [("rows", ordinal), ("transactions", transaction_count)] {
            if found != facts.transaction_count {
                let expected = facts.transaction_count;
                return Err(Corrupt::Directory { what, found, expected });
            }
        }
        Ok(segment)
    }

    /// What the segment says about itself.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.footer.facts
    }

    /// How many bytes each part takes.
    #[must_use]
    pub fn part_bytes(&self) -> PartBytes {
        let mut parts = PartBytes { tail: self.footer.tail_bytes, ..PartBytes::default() };
        for (place, kind) in self.pages.iter().zip(&self.kinds) {
            let part = match kind {
                Kind::Rows => &mut parts.rows,
                Kind::Payload => &mut parts.payloads,
                Kind::Headers => &mut parts.headers,
                Kind::Others => &mut parts.others,
            };
            let bytes = place.range.end.saturating_sub(place.range.start);
            *part = part.saturating_add(bytes);
        }
        parts
    }

    /// The ordinals, inside the segment, of a block's transactions.
    #[must_use]
    pub fn find_ordinals(&self, number: u64) -> Option<Range<u64>> {
        let position = self.position(number)?;
        let first = self.first_ordinals.get(position)?;
        Some(*first..*self.first_ordinals.get(position.checked_add(1)?)?)
    }

    /// Where a transaction lies.
    #[must_use]
    pub fn find_row(&self, ordinal: u64) -> Option<RowPlace> {
        if ordinal >= self.footer.facts.transaction_count {
            return None;
        }
        let after = self.row_pages.partition_point(|(first, _)| *first <= ordinal);
        let (first, number) = self.row_pages.get(after.checked_sub(1)?)?;
        let payloads = self.pages.iter().zip(&self.kinds).skip(number.checked_add(1)?);
        Some(RowPlace {
            page: self.pages.get(*number)?.clone(),
            row: usize::try_from(ordinal.checked_sub(*first)?).ok()?,
            payloads: payloads
                .take_while(|(_, kind)| **kind == Kind::Payload)
                .map(|(place, _)| place.clone())
                .collect(),
        })
    }

    /// Opens a page of rows.
    pub fn open_rows(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
    ) -> Result<Rows, Corrupt> {
        let first = self.footer.facts.first;
        Rows::open(inflater, bytes, first).map_err(|fault| corrupt(place, fault))
    }

    /// Reads one row. `payloads` are the bytes of the payload pages that [`Rows::payloads_of`]
    /// names, in their order.
    pub fn read_row(
        &self,
        inflater: &mut Inflater,
        place: &RowPlace,
        rows: &Rows,
        payloads: &[&[u8]],
    ) -> Result<Row, Corrupt> {
        let fault = |fault: RowFault| corrupt(&place.page, fault.into());
        let own = place.payloads.iter().skip(rows.payloads_of(place.row).start);
        let mut long_bytes = Vec::with_capacity(payloads.len());
        for (payload, bytes) in own.zip(payloads) {
            let opened = inflater.open(bytes).map_err(|fault| corrupt(payload, fault))?;
            long_bytes.push(Bytes::from(opened.plain));
        }
        let found = u64::try_from(place.row).unwrap_or(u64::MAX);
        let missing = RowFault::NoEntry { what: "row", found, count: rows.len() };
        let (row, signature) = rows.row(place.row).ok_or_else(|| fault(missing))?;
        let facts = self.footer.facts;
        let context = RowContext {
            tables: &self.tables,
            chain_id: facts.chain_id,
            has_receipt: facts.has_receipts,
            signature,
        };
        let mut given = long_bytes.into_iter();
        decode_row(row, context, &mut || given.next()).map_err(fault)
    }

    /// Where a block's header lies.
    #[must_use]
    pub fn find_header(&self, number: u64) -> Option<PagePlace> {
        self.find_group(&self.header_pages, number)
    }

    /// Reads a header's raw RLP out of its page.
    pub fn read_header(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
        number: u64,
    ) -> Result<Bytes, Corrupt> {
        let [header] = self.read_parts(inflater, place, bytes, number)?;
        Ok(header)
    }

    /// Where a block's ommers and withdrawals lie.
    #[must_use]
    pub fn find_others(&self, number: u64) -> Option<PagePlace> {
        self.find_group(&self.other_pages, number)
    }

    /// Reads a block's ommers and withdrawals out of their page.
    pub fn read_others(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
        number: u64,
    ) -> Result<Others, Corrupt> {
        let [ommers, withdrawals] = self.read_parts(inflater, place, bytes, number)?;
        Ok(Others { ommers, withdrawals: Some(withdrawals).filter(|list| !list.is_empty()) })
    }

    fn position(&self, number: u64) -> Option<usize> {
        let facts = self.footer.facts;
        let position = number.checked_sub(facts.first)?;
        usize::try_from(position).ok().filter(|_| position < facts.block_count)
    }

    fn find_group(&self, pages: &[usize], number: u64) -> Option<PagePlace> {
        self.position(number)?;
        let first_group = self.footer.facts.first / GROUP_BLOCKS;
        let group = (number / GROUP_BLOCKS).checked_sub(first_group)?;
        let page = pages.get(usize::try_from(group).ok()?)?;
        self.pages.get(*page).cloned()
    }

    /// The `N` parts of one block in a page that holds those of its group.
    fn read_parts<const N: usize>(
        &self,
        inflater: &mut Inflater,
        place: &PagePlace,
        bytes: &[u8],
        number: u64,
    ) -> Result<[Bytes; N], Corrupt> {
        let fault = |fault: PageFault| corrupt(place, fault);
        let opened = inflater.open(bytes).map_err(fault)?;
        let group_first = number.saturating_sub(number % GROUP_BLOCKS);
        let skipped = number.saturating_sub(group_first.max(self.footer.facts.first));
        let mut cursor = Cursor::new(&opened.plain);
        let mut part = || {
            let length = cursor.length("part")?;
            cursor.take(length, "part").map(Bytes::copy_from_slice)
        };
        let mut parts = [const { Bytes::new() }; N];
        for _ in 0..=skipped {
            for place in &mut parts {
                *place = part().map_err(|error| fault(error.into()))?;
            }
        }
        Ok(parts)
    }
}

fn corrupt(place: &PagePlace, fault: PageFault) -> Corrupt {
    Corrupt::Page { page: place.number, offset: place.range.start, fault }
}
