//! The segment file: pages, then one tail with everything that a reader needs before a page.
//!
//! Knows: the footer, the directory of pages, which page holds which row, header or body part.
//! Never knows: where the file lies; whoever reads it is told which bytes to fetch.
//!
//! ```text
//! transaction page, its payload pages, ... | header pages | other pages | tail | footer
//! ```

pub(crate) mod read;
pub(crate) mod write;

use std::ops::Range;

use alloy_primitives::U256;

use crate::bytes::{Cursor, put_length, put_varint};
use crate::corrupt::{Corrupt, RowFault};
use crate::tables::Tables;

/// The footer's length: the last bytes of every segment.
pub const FOOTER_BYTES: usize = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 32 + 8 + 8 + DIGEST_BYTES;
const DIGEST_BYTES: usize = 32;
const _: () = assert!(FOOTER_BYTES == 128, "docs/format.md draws 128 bytes");

const MAGIC: [u8; 8] = *b"QUIPUSEG";
const VERSION: u32 = 1;

const HAS_RECEIPTS: u32 = 1 << 0;
const HAS_CHAIN_ID: u32 = 1 << 1;
const HAS_DIFFICULTY: u32 = 1 << 2;

/// Blocks that share a header page, and one for ommers and withdrawals.
pub(crate) const GROUP_BLOCKS: u64 = 16;
/// Blocks in a slot at the most.
const BLOCKS_MAX: u64 = 8192;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The first block.
    pub first: u64,
    /// How many blocks.
    pub block_count: u64,
    /// How many transactions.
    pub transaction_count: u64,
    /// The chain id that transactions leave out.
    pub chain_id: Option<u64>,
    /// Whether receipts are in it.
    pub has_receipts: bool,
    /// Total difficulty before the first block, where it is known.
    pub difficulty_before: Option<U256>,
}

/// The footer: facts, the tail's length, and the digest that names the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// What the segment says about itself.
    pub facts: Facts,
    /// SHA-256 of everything before the footer.
    pub digest: [u8; DIGEST_BYTES],
    tail_bytes: u64,
}

impl Footer {
    fn encode(&self) -> Vec<u8> {
        let Self { facts, digest, tail_bytes } = self;
        let mut flags = 0;
        for (is_set, flag) in [
            (facts.has_receipts, HAS_RECEIPTS),
            (facts.chain_id.is_some(), HAS_CHAIN_ID),
            (facts.difficulty_before.is_some(), HAS_DIFFICULTY),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        for number in [
            facts.first,
            facts.block_count,
            facts.transaction_count,
            facts.chain_id.unwrap_or_default(),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&facts.difficulty_before.unwrap_or_default().to_le_bytes::<32>());
        out.extend_from_slice(&tail_bytes.to_le_bytes());
        out.extend_from_slice(digest);
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out
    }

    /// Reads the last [`FOOTER_BYTES`] of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut cursor = Cursor::new(bytes);
        let found = cursor.array::<8>("magic")?;
        if found != MAGIC {
            return Err(Corrupt::Magic { found, expected: MAGIC });
        }
        let version = u32::from_le_bytes(cursor.array("version")?);
        if version != VERSION {
            return Err(Corrupt::Version { found: version, known: VERSION });
        }
        let flags = u32::from_le_bytes(cursor.array("flags")?);
        let mut number = || cursor.array("number").map(u64::from_le_bytes);
        let (first, block_count, transaction_count) = (number()?, number()?, number()?);
        let chain_id = number()?;
        let difficulty = U256::from_le_bytes(cursor.array::<32>("difficulty")?);
        let tail_bytes = u64::from_le_bytes(cursor.array("tail length")?);
        let digest = cursor.array("digest")?;
        let checked = bytes.len().saturating_sub(cursor.rest().len());
        let expected = u32::from_le_bytes(cursor.array("checksum")?);
        let found = crc32fast::hash(bytes.get(..checked).unwrap_or_default());
        if found != expected || cursor.array::<4>("reserved")? != [0; 4] {
            return Err(Corrupt::FooterChecksum { found, expected });
        }
        if !(1..=BLOCKS_MAX).contains(&block_count) || first.checked_add(block_count).is_none() {
            return Err(Corrupt::Range { first, block_count });
        }
        let facts = Facts {
            first,
            block_count,
            transaction_count,
            chain_id: Some(chain_id).filter(|_| flags & HAS_CHAIN_ID != 0),
            has_receipts: flags & HAS_RECEIPTS != 0,
            difficulty_before: Some(difficulty).filter(|_| flags & HAS_DIFFICULTY != 0),
        };
        Ok(Self { facts, digest, tail_bytes })
    }

    /// The bytes of the tail in a file of `file_bytes`.
    pub fn tail_range(&self, file_bytes: u64) -> Result<Range<u64>, Corrupt> {
        let footer_bytes = u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX);
        let end = file_bytes.checked_sub(footer_bytes);
        let start = end.and_then(|end| end.checked_sub(self.tail_bytes));
        match start.zip(end) {
            Some((start, end)) => Ok(start..end),
            None => Err(Corrupt::TailLength { found: self.tail_bytes, file_bytes }),
        }
    }
}

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

/// The directory and the tables: the tail, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Kind, length and number of rows or blocks of every page.
    pub(crate) pages: Vec<(Kind, u64, u64)>,
    /// Transactions of every block.
    pub(crate) transaction_counts: Vec<u64>,
    pub(crate) tables: Tables,
}

impl Tail {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_length(&mut out, self.pages.len());
        for (kind, bytes, count) in &self.pages {
            put_varint(&mut out, bytes.saturating_mul(4).saturating_add(kind.code()));
            put_varint(&mut out, *count);
        }
        for count in &self.transaction_counts {
            put_varint(&mut out, *count);
        }
        let Tables { addresses, words, selectors } = &self.tables;
        put_length(&mut out, addresses.len());
        out.extend(addresses.iter().flat_map(|entry| entry.0.0));
        put_length(&mut out, words.len());
        out.extend(words.iter().flat_map(|entry| entry.0));
        put_length(&mut out, selectors.len());
        out.extend(selectors.iter().flatten());
        out
    }

    pub(crate) fn decode(bytes: &[u8], block_count: u64) -> Result<Self, RowFault> {
        let mut cursor = Cursor::new(bytes);
        let page_count = cursor.count("pages")?;
        let mut pages = Vec::with_capacity(page_count);
        for _ in 0..page_count {
            let length_and_kind = cursor.varint("page")?;
            let count = cursor.varint("page")?;
            pages.push((Kind::from_code(length_and_kind), length_and_kind / 4, count));
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
