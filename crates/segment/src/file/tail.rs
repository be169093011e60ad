//! The tail: the directory of pages and the tables.
//!
//! Knows: how long every page is and what it holds, and how many transactions a block has.
//! Never knows: what is in a page.

use crate::bytes::{Cursor, put_length, put_varint};
use crate::corrupt::RowFault;
use crate::tables::Tables;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rows,
    /// Long bytes of rows in the page before.
    Payload,
    Headers,
    /// Ommers and withdrawals.
    Others,
}

impl Kind {
    fn code(self) -> u64 {
        match self {
            Self::Rows => 0,
            Self::Payload => 1,
            Self::Headers => 2,
            Self::Others => 3,
        }
    }

    fn from_code(code: u64) -> Self {
        match code % 4 {
            0 => Self::Rows,
            1 => Self::Payload,
            2 => Self::Headers,
            _ => Self::Others,
        }
    }
}

/// A page as the directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageEntry {
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// Rows, or blocks; 1 for a payload.
    pub(crate) count: u64,
}

/// The directory and the tables: the tail, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) pages: Vec<PageEntry>,
    /// Transactions of every block.
    pub(crate) transaction_counts: Vec<u64>,
    pub(crate) tables: Tables,
}

/// The tail's bytes.
pub(crate) fn encode(pages: &[PageEntry], transaction_counts: &[u64], tables: &Tables) -> Vec<u8> {
    let mut out = Vec::new();
    put_length(&mut out, pages.len());
    for PageEntry { kind, bytes, count } in pages {
        put_varint(&mut out, bytes.saturating_mul(4).saturating_add(kind.code()));
        put_varint(&mut out, *count);
    }
    for count in transaction_counts {
        put_varint(&mut out, *count);
    }
    let Tables { addresses, words, selectors } = tables;
    put_length(&mut out, addresses.len());
    out.extend(addresses.iter().flat_map(|entry| entry.0.0));
    put_length(&mut out, words.len());
    out.extend(words.iter().flat_map(|entry| entry.0));
    put_length(&mut out, selectors.len());
    out.extend(selectors.iter().flatten());
    out
}

impl Tail {
    pub(crate) fn decode(bytes: &[u8], block_count: u64) -> Result<Self, RowFault> {
        let mut cursor = Cursor::new(bytes);
        let page_count = cursor.count("pages")?;
        let mut pages = Vec::with_capacity(page_count);
        for _ in 0..page_count {
            let length_and_kind = cursor.varint("page")?;
            let count = cursor.varint("page")?;
            let kind = Kind::from_code(length_and_kind);
            pages.push(PageEntry { kind, bytes: length_and_kind / 4, count });
        }
        let mut transaction_counts = Vec::new();
        for _ in 0..block_count {
            transaction_counts.push(cursor.varint("transaction count")?);
        }
        let mut tables = Tables::default();
        for _ in 0..cursor.count("addresses")? {
            tables.addresses.push(cursor.array::<20>("address")?.into());
        }
        for _ in 0..cursor.count("words")? {
            tables.words.push(cursor.array::<32>("word")?.into());
        }
        for _ in 0..cursor.count("selectors")? {
            tables.selectors.push(cursor.array("selector")?);
        }
        match cursor.rest().len() {
            0 => Ok(Self { pages, transaction_counts, tables }),
            left => Err(RowFault::Rest { left }),
        }
    }
}
