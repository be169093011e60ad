//! Pages: what is compressed together, checked together and read at once.
//!
//! Knows: the frame around a page (checksum, lengths, zstd), and how rows and their blocks'
//! context lie in a transaction page.
//! Never knows: where in the file a page lies.
//!
//! A transaction page answers alone: beside its rows it says of every block in it what answers
//! need (number, hash, timestamp, base fee, excess blob gas, and where in the block it begins).

use std::ops::Range;

use alloy_primitives::B256;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, DParameter, FrameFormat};

use crate::bytes::{Cursor, put_length, put_varint};
use crate::corrupt::{PageFault, RowFault};

/// The one zstd level of this format version: another would give other bytes.
const ZSTD_LEVEL: i32 = 12;
/// Rows in a page at the most.
pub(crate) const PAGE_ROWS_MAX: usize = 16;
/// Tokens in a page, unless a single row has more.
pub(crate) const PAGE_TOKENS_MAX: usize = 8 * 1024;
/// What a page may inflate to: as much as an archive entry, from which all long bytes come.
const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;

const SIGNATURE_BYTES: usize = 64;
const CHECKSUM_BYTES: usize = 4;

/// What a transaction page says about a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The header's timestamp.
    pub timestamp: u64,
    /// The header's base fee, from London on.
    pub base_fee: Option<u64>,
    /// The header's excess blob gas, from Cancun on.
    pub excess_blob_gas: Option<u64>,
    /// Index in the block of the first row that is here.
    pub first_index: u64,
    /// Gas used in the block before that row.
    pub gas_before: u64,
    /// Logs in the block before that row.
    pub logs_before: u64,
    /// How many of the block's rows are here.
    pub row_count: usize,
}

/// A page's rows before they are compressed.
#[derive(Debug, Default)]
pub(crate) struct RowPage {
    pub(crate) blocks: Vec<BlockContext>,
    /// Length and number of payloads of every row.
    pub(crate) rows: Vec<(usize, usize)>,
    pub(crate) tokens: Vec<u8>,
    pub(crate) signatures: Vec<u8>,
}

impl RowPage {
    pub(crate) fn is_full_for(&self, row_bytes: usize) -> bool {
        !self.rows.is_empty()
            && (self.rows.len() == PAGE_ROWS_MAX
                || self.tokens.len().saturating_add(row_bytes) > PAGE_TOKENS_MAX)
    }

    /// The page's bytes; numbers are told as distances from the segment's `first` block.
    pub(crate) fn encode(&self, deflater: &mut Deflater, first: u64) -> Result<Vec<u8>, PageFault> {
        let mut plain = Vec::with_capacity(self.tokens.len().saturating_add(256));
        put_length(&mut plain, self.blocks.len());
        for block in &self.blocks {
            put_varint(&mut plain, block.number.saturating_sub(first));
            plain.extend_from_slice(block.hash.as_slice());
            put_varint(&mut plain, block.timestamp);
            for optional in [block.base_fee, block.excess_blob_gas] {
                // Zero stands for none.
                put_varint(&mut plain, optional.map_or(0, |value| value.saturating_add(1)));
            }
            put_varint(&mut plain, block.first_index);
            put_varint(&mut plain, block.gas_before);
            put_varint(&mut plain, block.logs_before);
            put_length(&mut plain, block.row_count);
        }
        for (bytes, payload_count) in &self.rows {
            // Few rows have payloads: one bit says that their number follows.
            let mark = usize::from(*payload_count > 0);
            put_length(&mut plain, bytes.saturating_mul(2).saturating_add(mark));
            if *payload_count > 0 {
                put_length(&mut plain, *payload_count);
            }
        }
        plain.extend_from_slice(&self.tokens);
        deflater.frame(&plain, &self.signatures)
    }
}

/// Makes pages. Kept from page to page, since its tables are larger than any page.
pub(crate) struct Deflater(Compressor<'static>);

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    pub(crate) fn new() -> Result<Self, PageFault> {
        let mut compressor = Compressor::new(ZSTD_LEVEL)?;
        for parameter in [
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            compressor.set_parameter(parameter)?;
        }
        Ok(Self(compressor))
    }

    /// Puts checksum and lengths around bytes: `plain` is compressed, `beside` is not.
    pub(crate) fn frame(&mut self, plain: &[u8], beside: &[u8]) -> Result<Vec<u8>, PageFault> {
        let compressed = self.0.compress(plain)?;
        let is_stored = compressed.len() >= plain.len();
        let body = if is_stored { plain } else { &compressed };
        let mut page = vec![0; CHECKSUM_BYTES];
        put_length(&mut page, plain.len());
        put_length(&mut page, if is_stored { 0 } else { compressed.len() });
        page.extend_from_slice(body);
        page.extend_from_slice(beside);
        let checksum = crc32fast::hash(page.get(CHECKSUM_BYTES..).unwrap_or_default());
        for (place, byte) in page.iter_mut().zip(checksum.to_le_bytes()) {
            *place = byte;
        }
        Ok(page)
    }
}

/// Reads pages. Kept from page to page, since it is dearer to make than a page to read.
pub struct Inflater(Decompressor<'static>);

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inflater")
    }
}

impl Inflater {
    /// One for as many pages as you like, one at a time.
    pub fn new() -> Result<Self, PageFault> {
        let mut decompressor = Decompressor::new()?;
        decompressor.set_parameter(DParameter::Format(FrameFormat::Magicless))?;
        Ok(Self(decompressor))
    }

    /// Undoes [`Deflater::frame`].
    pub(crate) fn open(&mut self, page: &[u8]) -> Result<Opened, PageFault> {
        let mut cursor = Cursor::new(page);
        let expected = u32::from_le_bytes(cursor.array("page checksum")?);
        let found = crc32fast::hash(cursor.rest());
        if found != expected {
            return Err(PageFault::Checksum { found, expected });
        }
        let plain_bytes = cursor.length("page length")?;
        let compressed_bytes = cursor.length("page length")?;
        if plain_bytes > INFLATED_BYTES_MAX {
            return Err(RowFault::TooLarge { what: "page length" }.into());
        }
        let plain = if compressed_bytes == 0 {
            cursor.take(plain_bytes, "stored page")?.to_vec()
        } else {
            self.0.decompress(cursor.take(compressed_bytes, "page")?, plain_bytes)?
        };
        if plain.len() != plain_bytes {
            return Err(PageFault::Length { found: plain.len(), expected: plain_bytes });
        }
        Ok(Opened { plain, beside: cursor.rest().to_vec() })
    }
}

/// A page whose checksum held, inflated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) plain: Vec<u8>,
    pub(crate) beside: Vec<u8>,
}

/// A transaction page, opened.
#[derive(Clone, Debug)]
pub struct Rows {
    blocks: Vec<BlockContext>,
    /// Where each row lies in the plain bytes, and which of the page's payloads are its own.
    places: Vec<(Range<usize>, Range<usize>)>,
    opened: Opened,
}

impl Rows {
    /// Opens a transaction page of the segment that begins with block `first`.
    pub(crate) fn open(
        inflater: &mut Inflater,
        page: &[u8],
        first: u64,
    ) -> Result<Self, PageFault> {
        let opened = inflater.open(page)?;
        let mut cursor = Cursor::new(&opened.plain);
        let block_count = cursor.count("blocks")?;
        let mut blocks = Vec::with_capacity(block_count);
        let mut row_count = 0_usize;
        for _ in 0..block_count {
            let block = read_context(&mut cursor, first)?;
            row_count = row_count.saturating_add(block.row_count);
            blocks.push(block);
        }
        if row_count > cursor.rest().len() {
            return Err(RowFault::TooLarge { what: "rows" }.into());
        }
        let mut lengths = Vec::with_capacity(row_count);
        for _ in 0..row_count {
            let length_and_mark = cursor.length("row length")?;
            let is_marked = length_and_mark % 2 == 1;
            let payload_count = if is_marked { cursor.length("payloads")? } else { 0 };
            lengths.push((length_and_mark / 2, payload_count));
        }
        let mut start = opened.plain.len().saturating_sub(cursor.rest().len());
        let mut first_payload = 0_usize;
        let mut places = Vec::with_capacity(row_count);
        for (length, payload_count) in lengths {
            cursor.take(length, "row")?;
            let end = start.saturating_add(length);
            let next_payload = first_payload.saturating_add(payload_count);
            places.push((start..end, first_payload..next_payload));
            (start, first_payload) = (end, next_payload);
        }
        let signature_bytes = row_count.saturating_mul(SIGNATURE_BYTES);
        if !cursor.is_empty() || opened.beside.len() != signature_bytes {
            return Err(RowFault::Rest { left: cursor.rest().len() }.into());
        }
        Ok(Self { blocks, places, opened })
    }

    /// The blocks that have rows here.
    #[must_use]
    pub fn blocks(&self) -> &[BlockContext] {
        &self.blocks
    }

    /// How many rows are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Which of the page's payloads a row needs: positions in [`crate::RowPlace::payloads`].
    #[must_use]
    pub fn payloads_of(&self, position: usize) -> Range<usize> {
        self.places.get(position).map_or(0..0, |(_, payloads)| payloads.clone())
    }

    pub(crate) fn row(&self, position: usize) -> Option<(&[u8], &[u8; SIGNATURE_BYTES])> {
        let (place, _) = self.places.get(position)?;
        let row = self.opened.plain.get(place.clone())?;
        let (signatures, _) = self.opened.beside.as_chunks::<SIGNATURE_BYTES>();
        Some((row, signatures.get(position)?))
    }
}

fn read_context(cursor: &mut Cursor<'_>, first: u64) -> Result<BlockContext, RowFault> {
    let number = first.saturating_add(cursor.varint("block number")?);
    let hash = B256::from(cursor.array::<32>("block hash")?);
    let timestamp = cursor.varint("timestamp")?;
    let base_fee = cursor.varint("base fee")?.checked_sub(1);
    let excess_blob_gas = cursor.varint("excess blob gas")?.checked_sub(1);
    Ok(BlockContext {
        number,
        hash,
        timestamp,
        base_fee,
        excess_blob_gas,
        first_index: cursor.varint("first index")?,
        gas_before: cursor.varint("gas before")?,
        logs_before: cursor.varint("logs before")?,
        row_count: cursor.length("row count")?,
    })
}
