//! The tail: the directory of pages and the tables.

use alloy_primitives::B256;

use crate::bytes::{Cursor, put_length, put_marked, put_varint, read_marked};
use crate::corrupt::RowFault;
use crate::tables::Tables;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    Rows,
    /// Long bytes of rows in the page before.
    Payload,
    Headers,
    /// Ommers and withdrawals.
    Others,
}

impl PageKind {
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
    pub(crate) kind: PageKind,
    pub(crate) bytes: u64,
    /// Rows, or blocks; 1 for a payload.
    pub(crate) count: u64,
}

/// What answers about a transaction need of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) transaction_count: usize,
    pub(crate) hash: B256,
    pub(crate) timestamp: u64,
    pub(crate) base_fee: Option<u64>,
    pub(crate) excess_blob_gas: Option<u64>,
}

/// The directory and the tables: the tail, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentTail {
    pub(crate) pages: Vec<PageEntry>,
    pub(crate) blocks: Vec<BlockEntry>,
    pub(crate) tables: Tables,
}

/// The tail's bytes.
pub(crate) fn encode(pages: &[PageEntry], blocks: &[BlockEntry], tables: &Tables) -> Vec<u8> {
    let mut out = Vec::new();
    // Columns: nearly all pages hold as many rows, and of a length only the low byte is noise. So a
    // page costs little more than that byte.
    put_length(&mut out, pages.len());
    for PageEntry { kind, count, .. } in pages {
        put_varint(&mut out, count.saturating_mul(4).saturating_add(kind.code()));
    }
    for page in pages {
        put_varint(&mut out, page.bytes >> 8);
    }
    out.extend(pages.iter().map(|page| page.bytes.to_le_bytes()[0]));
    let mut timestamp_before = 0;
    for block in blocks {
        let optional = [block.base_fee, block.excess_blob_gas];
        put_marked(&mut out, block.transaction_count, optional.map(|value| value.is_some()));
        put_varint(&mut out, block.timestamp.wrapping_sub(timestamp_before));
        timestamp_before = block.timestamp;
        for value in optional.into_iter().flatten() {
            put_varint(&mut out, value);
        }
    }
    out.extend(blocks.iter().flat_map(|block| block.hash.0));
    let Tables { addresses, words, selectors } = tables;
    put_length(&mut out, addresses.len());
    out.extend(addresses.iter().flat_map(|entry| entry.0.0));
    put_length(&mut out, words.len());
    out.extend(words.iter().flat_map(|entry| entry.0));
    put_length(&mut out, selectors.len());
    out.extend(selectors.iter().flatten());
    out
}

impl SegmentTail {
    pub(crate) fn decode(bytes: &[u8], block_count: u64) -> Result<Self, RowFault> {
        let mut cursor = Cursor::new(bytes);
        let page_count = cursor.count("pages")?;
        let mut pages = Vec::with_capacity(page_count);
        for _ in 0..page_count {
            let count_and_kind = cursor.varint("page")?;
            let (kind, count) = (PageKind::from_code(count_and_kind), count_and_kind / 4);
            pages.push(PageEntry { kind, bytes: 0, count });
        }
        for page in &mut pages {
            let high = cursor.varint("page length")?;
            let what = "page length";
            page.bytes = high.checked_mul(256).ok_or(RowFault::TooLarge { what })?;
        }
        for page in &mut pages {
            page.bytes |= u64::from(cursor.byte("page length")?);
        }
        let mut blocks = Vec::new();
        let mut timestamp = 0_u64;
        for _ in 0..block_count {
            let (transaction_count, [has_base_fee, has_excess]) =
                read_marked(&mut cursor, "transaction count")?;
            timestamp = timestamp.wrapping_add(cursor.varint("timestamp")?);
            let mut optional = |is_there: bool, what| {
                if is_there { cursor.varint(what).map(Some) } else { Ok(None) }
            };
            blocks.push(BlockEntry {
                transaction_count,
                hash: B256::ZERO,
                timestamp,
                base_fee: optional(has_base_fee, "base fee")?,
                excess_blob_gas: optional(has_excess, "excess blob gas")?,
            });
        }
        for block in &mut blocks {
            block.hash = cursor.array::<32>("block hash")?.into();
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
            0 => Ok(Self { pages, blocks, tables }),
            left => Err(RowFault::Rest { left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_of_a_block_come_back() {
        let block = |timestamp: u64, optional: Option<u64>| BlockEntry {
            transaction_count: 7,
            hash: B256::repeat_byte(3),
            timestamp,
            base_fee: optional,
            excess_blob_gas: optional,
        };
        let blocks = [block(u64::MAX, None), block(5, Some(u64::MAX)), block(6, Some(0))];
        let bytes = encode(&[], &blocks, &Tables::default());
        assert_eq!(SegmentTail::decode(&bytes, 3).unwrap().blocks, blocks);
        assert!(SegmentTail::decode(&bytes, 2).is_err() && SegmentTail::decode(&bytes, 4).is_err());
    }
}
