//! Pages: what is compressed together, checked together and read at once.
//!
//! With the directory in memory a transaction page answers alone: its head says how much gas and
//! how many logs came before each row in its block.

use std::ops::Range;

use alloy_primitives::Bytes;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, DParameter, FrameFormat, ParamSwitch};

use crate::bytes::{Cursor, put_length, put_marked, put_varint, read_marked, wide};
use crate::corrupt::{PageFault, RowFault};
use crate::row::{ReceiptHead, RowContext, RowParts, Senders, decode_row};
use crate::row_set::RowSlot;
use crate::tables::Tables;
use crate::tx_position::TxOrdinal;

/// Another level would give other bytes, and so another version of the format.
const ZSTD_LEVEL: i32 = 3;
/// Rows in a page at the most.
const ROWS_MAX: usize = 20;
/// Bytes of tokens in a page of rows, unless a single row has more.
const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// What a page may inflate to: as much as an archive entry, from which all long bytes come.
const INFLATED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a transfer uses.
const TRANSFER_GAS: u64 = 21_000;
/// Gas below this is rotated: see [`gas_code`]. Codes below it take three bytes at the most.
const ROTATED_GAS: u64 = 1 << 21;

const SIGNATURE_BYTES: usize = 64;
const CHECKSUM_BYTES: usize = 4;

/// What a page says about a row before its tokens: what must be known of all rows before one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowHead {
    /// Bytes of its tokens.
    pub(crate) bytes: usize,
    pub(crate) payload_count: usize,
    /// Zero, both, where there are no receipts.
    pub(crate) gas_used: u64,
    pub(crate) log_count: usize,
}

/// A page's rows before they are compressed.
#[derive(Debug, Default)]
pub(crate) struct RowPage {
    /// The chain that the page's transactions leave out: that of the first that names one.
    pub(crate) chain_id: Option<u64>,
    /// Gas used and logs in the first row's block before it.
    pub(crate) gas_before: u64,
    pub(crate) logs_before: u64,
    pub(crate) rows: Vec<RowHead>,
    pub(crate) tokens: Vec<u8>,
    pub(crate) signatures: Vec<u8>,
}

impl RowPage {
    pub(crate) fn is_full_for(&self, row_bytes: usize) -> bool {
        !self.rows.is_empty()
            && (self.rows.len() == ROWS_MAX
                || self.tokens.len().saturating_add(row_bytes) > TOKEN_BYTES_MAX)
    }

    /// The page's bytes.
    pub(crate) fn encode(
        &self,
        deflater: &mut Deflater,
        has_receipts: bool,
    ) -> Result<Vec<u8>, PageFault> {
        let mut plain = Vec::with_capacity(self.tokens.len().saturating_add(256));
        put_marked(&mut plain, self.rows.len(), [self.chain_id.is_some()]);
        if let Some(chain_id) = self.chain_id {
            put_varint(&mut plain, chain_id);
        }
        if has_receipts {
            put_varint(&mut plain, self.gas_before);
            put_varint(&mut plain, self.logs_before);
        }
        for row in &self.rows {
            // Few rows have payloads: one bit says that their number follows.
            put_marked(&mut plain, row.bytes, [row.payload_count > 0]);
            if row.payload_count > 0 {
                put_length(&mut plain, row.payload_count);
            }
        }
        if has_receipts {
            for row in &self.rows {
                put_varint(&mut plain, gas_code(row.gas_used));
            }
            for row in &self.rows {
                put_length(&mut plain, row.log_count);
            }
        }
        plain.extend_from_slice(&self.tokens);
        deflater.frame_rows(&plain, &self.signatures)
    }
}

/// Makes pages. Kept from page to page, since its tables are larger than any page.
pub(crate) struct Deflater {
    /// For rows, headers, and what else blocks have.
    quick: ZstdMethod,
    /// For payloads and the tail.
    with_codes: ZstdMethod,
}

/// How a page is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageCompression {
    /// Whether zstd leaves what it found no match for as it is. Hashes, amounts and
    /// addresses are most of it: Huffman codes save a hundredth and double the time of a read.
    has_plain_literals: bool,
    /// A page is stored as it is unless compression saves one byte of so many; `None`: any byte.
    saved_share: Option<usize>,
}

impl PageCompression {
    const WITH_CODES: Self = Self { has_plain_literals: false, saved_share: None };
    const QUICK: Self = Self { has_plain_literals: true, saved_share: Some(16) };
}

/// A way of compressing.
struct ZstdMethod {
    rule: PageCompression,
    compressor: Compressor<'static>,
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    pub(crate) fn new() -> Result<Self, PageFault> {
        let quick = ZstdMethod::new(PageCompression::QUICK)?;
        Ok(Self { quick, with_codes: ZstdMethod::new(PageCompression::WITH_CODES)? })
    }

    /// A page of rows: `plain` is compressed, `signatures` are not.
    fn frame_rows(&mut self, plain: &[u8], signatures: &[u8]) -> Result<Vec<u8>, PageFault> {
        self.quick.frame(plain, signatures)
    }

    /// A page of headers, or of what else some blocks have.
    pub(crate) fn frame_parts(&mut self, plain: &[u8]) -> Result<Vec<u8>, PageFault> {
        self.quick.frame(plain, &[])
    }

    /// A page of anything else.
    pub(crate) fn frame(&mut self, plain: &[u8]) -> Result<Vec<u8>, PageFault> {
        self.with_codes.frame(plain, &[])
    }
}

impl ZstdMethod {
    fn new(rule: PageCompression) -> Result<Self, PageFault> {
        let mut compressor = Compressor::new(ZSTD_LEVEL)?;
        for parameter in [
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            compressor.set_parameter(parameter)?;
        }
        if rule.has_plain_literals {
            compressor.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Disable))?;
        }
        Ok(Self { rule, compressor })
    }

    /// A page: `plain` is compressed if that is worth it, `beside` is not.
    fn frame(&mut self, plain: &[u8], beside: &[u8]) -> Result<Vec<u8>, PageFault> {
        let compressed = self.compressor.compress(plain)?;
        let worth = self.rule.saved_share.and_then(|share| plain.len().checked_div(share));
        let is_stored = compressed.len().saturating_add(worth.unwrap_or(0)) >= plain.len();
        Ok(framed(plain, if is_stored { &[] } else { &compressed }, beside))
    }
}

/// Puts checksum and lengths around bytes. Without compressed ones, the plain ones are stored.
fn framed(plain: &[u8], compressed: &[u8], beside: &[u8]) -> Vec<u8> {
    let mut page = vec![0; CHECKSUM_BYTES];
    put_length(&mut page, plain.len());
    put_length(&mut page, compressed.len());
    page.extend_from_slice(if compressed.is_empty() { plain } else { compressed });
    page.extend_from_slice(beside);
    let checksum = crc32fast::hash(page.get(CHECKSUM_BYTES..).unwrap_or_default());
    for (place, byte) in page.iter_mut().zip(checksum.to_le_bytes()) {
        *place = byte;
    }
    page
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

    /// Opens a page whose bytes are all compressed or stored.
    pub(crate) fn open(&mut self, page: &[u8]) -> Result<Vec<u8>, PageFault> {
        let mut buffer = Vec::new();
        let (stored, _) = self.take_apart(page, &mut buffer)?;
        Ok(stored.map_or(buffer, <[u8]>::to_vec))
    }

    /// Opens a page: what it holds, and what lies beside that. A stored page is read where it is,
    /// another is inflated to the buffer, which may have room already.
    pub(crate) fn open_into<'a>(
        &mut self,
        page: &'a [u8],
        buffer: &'a mut Vec<u8>,
    ) -> Result<(&'a [u8], &'a [u8]), PageFault> {
        let (stored, beside) = self.take_apart(page, buffer)?;
        Ok((stored.unwrap_or(buffer), beside))
    }

    /// What a page holds if that is stored, or else is inflated to the buffer; and what lies beside.
    fn take_apart<'a>(
        &mut self,
        page: &'a [u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(Option<&'a [u8]>, &'a [u8]), PageFault> {
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
        if compressed_bytes == 0 {
            let plain = cursor.take(plain_bytes, "stored page")?;
            return Ok((Some(plain), cursor.rest()));
        }
        let compressed = cursor.take(compressed_bytes, "page")?;
        buffer.clear();
        buffer.reserve(plain_bytes);
        self.0.decompress_to_buffer(compressed, buffer)?;
        if buffer.len() != plain_bytes {
            return Err(PageFault::Length { found: buffer.len(), expected: plain_bytes });
        }
        Ok((None, cursor.rest()))
    }
}

/// Where a row of an opened page ends; it begins where the one before does.
#[derive(Clone, Copy, Debug, Default)]
struct RowEnd {
    /// In the page's tokens.
    tokens: usize,
    /// In the page's payloads.
    payloads: usize,
}

/// Gas used and logs in a block before one of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GasAndLogsBefore {
    /// Gas used.
    pub gas: u64,
    /// Logs.
    pub logs: u64,
}

/// Room for an opened page of rows, to be used for the next one too.
#[derive(Debug, Default)]
pub struct RowsRoom {
    /// What the page inflates to.
    plain: Vec<u8>,
    ends: Vec<RowEnd>,
    receipts: Vec<ReceiptHead>,
}

/// A transaction page, opened.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    chain_id: Option<u64>,
    /// Which rows of the segment these are.
    ordinals: Range<TxOrdinal>,
    /// Gas used and logs in the first row's block before it.
    before: GasAndLogsBefore,
    ends: &'a [RowEnd],
    /// What the head says of every receipt; `None` if there is none, or none is wanted.
    receipts: Option<&'a [ReceiptHead]>,
    has_receipts: bool,
    senders: Senders,
    tokens: &'a [u8],
    signatures: &'a [[u8; SIGNATURE_BYTES]],
}

impl<'a> Rows<'a> {
    /// Opens a transaction page; `ordinals` are the rows that the directory puts there.
    pub(crate) fn open(
        inflater: &mut Inflater,
        page: &'a [u8],
        room: &'a mut RowsRoom,
        ordinals: Range<TxOrdinal>,
        has_receipts: bool,
        wanted: RowParts,
    ) -> Result<Self, PageFault> {
        let RowsRoom { plain, ends, receipts } = room;
        let (plain, beside) = inflater.open_into(page, plain)?;
        let mut cursor = Cursor::new(plain);
        let (row_count, [has_chain_id]) = read_marked(&mut cursor, "rows")?;
        let expected = ordinals.end.checked_sub(ordinals.start).unwrap_or_default();
        if wide(row_count) != expected {
            return Err(RowFault::RowCount { found: wide(row_count), expected }.into());
        }
        let chain_id = if has_chain_id { Some(cursor.varint("chain id")?) } else { None };
        let mut before = GasAndLogsBefore::default();
        if has_receipts {
            before.gas = cursor.varint("gas before")?;
            before.logs = cursor.varint("logs before")?;
        }
        if row_count > cursor.rest().len() {
            return Err(RowFault::TooLarge { what: "rows" }.into());
        }
        read_ends(&mut cursor, row_count, ends)?;
        let receipts = match wanted {
            RowParts::Receipt if has_receipts => {
                read_receipt_heads(&mut cursor, row_count, receipts)?;
                Some(receipts.as_slice())
            }
            RowParts::Transaction if has_receipts => {
                cursor.skip_varints(row_count.saturating_mul(2), "receipts")?;
                None
            }
            RowParts::Receipt | RowParts::Transaction => None,
        };
        let token_bytes = ends.last().map_or(0, |end| end.tokens);
        let tokens = cursor.take(token_bytes, "rows")?;
        let (signatures, cut) = beside.as_chunks::<SIGNATURE_BYTES>();
        if !cursor.is_empty() || signatures.len() != row_count || !cut.is_empty() {
            return Err(RowFault::Rest { left: cursor.rest().len() }.into());
        }
        Ok(Self {
            chain_id,
            ordinals,
            before,
            ends,
            receipts,
            has_receipts,
            senders: Senders::Told,
            tokens,
            signatures,
        })
    }

    /// The same, but for the senders if they are left out.
    pub(crate) fn with_senders(self, senders: Senders) -> Self {
        Self { senders, ..self }
    }

    /// How many rows are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Which rows of the segment these are.
    pub(crate) fn ordinals(&self) -> &Range<TxOrdinal> {
        &self.ordinals
    }

    /// What came before a row in its block, whose first row here is `first`; `None` if receipts are
    /// not wanted.
    pub(crate) fn before(&self, first: usize, row: usize) -> Option<GasAndLogsBefore> {
        // What the page says is of the block of its first row.
        let begin = if first == 0 { self.before } else { GasAndLogsBefore::default() };
        let receipts = self.receipts?.get(first..row)?;
        Some(receipts.iter().fold(begin, |sum, receipt| GasAndLogsBefore {
            gas: sum.gas.wrapping_add(receipt.gas_used),
            logs: sum.logs.saturating_add(wide(receipt.log_count)),
        }))
    }

    /// Where a row begins and where it ends.
    fn bounds(&self, row: usize) -> Option<(RowEnd, RowEnd)> {
        let end = *self.ends.get(row)?;
        let before = row.checked_sub(1).and_then(|before| self.ends.get(before));
        Some((before.copied().unwrap_or_default(), end))
    }

    /// Which of the page's payloads a row needs.
    pub(crate) fn payloads_of(&self, row: usize) -> Range<usize> {
        self.bounds(row).map_or(0..0, |(begin, end)| begin.payloads..end.payloads)
    }

    /// Decodes a row; `payload` gives its long bytes in order.
    pub(crate) fn decode(
        &self,
        row: usize,
        tables: &Tables,
        payload: &mut dyn FnMut() -> Option<Bytes>,
        slot: RowSlot<'_>,
    ) -> Result<(), RowFault> {
        let missing = RowFault::NoEntry { what: "row", found: wide(row), count: self.len() };
        let (Some((begin, end)), Some(signature)) = (self.bounds(row), self.signatures.get(row))
        else {
            return Err(missing);
        };
        let tokens = self.tokens.get(begin.tokens..end.tokens).ok_or(missing)?;
        let receipt = self.receipts.and_then(|receipts| receipts.get(row));
        let context = RowContext {
            tables,
            chain_id: self.chain_id,
            receipt: receipt.copied(),
            is_whole: !self.has_receipts || receipt.is_some(),
            signature,
            senders: self.senders,
        };
        decode_row(tokens, context, payload, slot)
    }
}

/// What the head says of every row's tokens and payloads.
fn read_ends(
    cursor: &mut Cursor<'_>,
    row_count: usize,
    ends: &mut Vec<RowEnd>,
) -> Result<(), RowFault> {
    ends.clear();
    ends.reserve(row_count);
    let mut end = RowEnd::default();
    for _ in 0..row_count {
        let (bytes, [has_payloads]) = read_marked(cursor, "row length")?;
        let payload_count = if has_payloads { cursor.length("payloads")? } else { 0 };
        end.tokens = end.tokens.saturating_add(bytes);
        end.payloads = end.payloads.saturating_add(payload_count);
        ends.push(end);
    }
    Ok(())
}

/// What the head says of every receipt.
fn read_receipt_heads(
    cursor: &mut Cursor<'_>,
    row_count: usize,
    heads: &mut Vec<ReceiptHead>,
) -> Result<(), RowFault> {
    heads.clear();
    heads.reserve(row_count);
    for _ in 0..row_count {
        let gas_used = gas_of_code(cursor.varint("gas used")?);
        heads.push(ReceiptHead { gas_used, log_count: 0 });
    }
    for head in heads {
        head.log_count = cursor.length("logs")?;
    }
    Ok(())
}

/// How a page says the gas that a transaction used. Many use what a transfer does: that is zero, and
/// what is above it is counted from there. Gas below it, which EIP-2780 allows, wraps around within
/// what three bytes say, instead of within 64 bits, which took ten bytes; it costs a byte where
/// gas is up to 21,000 above 2^21 or 2^28, which is rare. An alternating sign in the lowest bit would
/// cost the byte where gas is between 29,192 and 37,383, which token transfers use.
fn gas_code(gas_used: u64) -> u64 {
    if gas_used < ROTATED_GAS {
        gas_used.wrapping_sub(TRANSFER_GAS) % ROTATED_GAS
    } else {
        gas_used
    }
}

fn gas_of_code(code: u64) -> u64 {
    if code < ROTATED_GAS { code.wrapping_add(TRANSFER_GAS) % ROTATED_GAS } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gas_comes_back_and_takes_three_bytes_at_the_most_if_it_is_little() {
        let rotated = ROTATED_GAS;
        for (gas_used, length) in [
            (0, 3),
            (4_500, 3),
            (12_000, 3),
            (20_999, 3),
            (21_000, 1),
            (21_127, 1),
            (21_128, 2),
            (37_383, 2),
            (37_384, 3),
            (rotated - 1, 3),
            (rotated, 4),
            (rotated + TRANSFER_GAS, 4),
            (60_000_000, 4),
            (u64::MAX, 10),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, gas_code(gas_used));
            assert_eq!(out.len(), length, "{gas_used}");
            assert_eq!(gas_of_code(gas_code(gas_used)), gas_used);
        }
        // Whatever lies near a bound comes back, and no two amounts have one code.
        let near = |bound: u64| bound.saturating_sub(30_000)..bound.saturating_add(30_000);
        let amounts = near(0).chain(near(rotated)).chain(near(u64::MAX));
        let codes: std::collections::BTreeSet<u64> = amounts
            .clone()
            .map(|gas_used| {
                assert_eq!(gas_of_code(gas_code(gas_used)), gas_used);
                gas_code(gas_used)
            })
            .collect();
        assert_eq!(codes.len(), amounts.count());
    }

    /// How long a page's head and tokens are before compression if each row used so much gas.
    fn plain_bytes(gas: Range<u64>) -> usize {
        let rows = gas.map(|gas_used| RowHead { bytes: 1, gas_used, ..RowHead::default() });
        let rows: Vec<RowHead> = rows.collect();
        let (tokens, signatures) = (vec![0; rows.len()], vec![0; rows.len() * SIGNATURE_BYTES]);
        let page = RowPage { rows, tokens, signatures, ..RowPage::default() };
        let bytes = page.encode(&mut Deflater::new().unwrap(), true).unwrap();
        let mut buffer = Vec::new();
        let (plain, _) = Inflater::new().unwrap().open_into(&bytes, &mut buffer).unwrap();
        plain.len()
    }

    #[test]
    fn rows_below_the_gas_of_a_transfer_take_no_more_room_than_others() {
        let usual = plain_bytes(46_000..46_020);
        for first in [0, 4_500, 12_000, 20_980] {
            assert_eq!(plain_bytes(first..first + 20), usual, "from {first}");
        }
    }

    #[test]
    fn the_largest_numbers_of_a_page_head_come_back() {
        for chain_id in [None, Some(0), Some(u64::MAX)] {
            let before = GasAndLogsBefore { gas: u64::MAX, logs: 4 };
            let head = RowHead { bytes: 1, payload_count: 2, gas_used: u64::MAX, log_count: 5 };
            let page = RowPage {
                chain_id,
                gas_before: before.gas,
                logs_before: before.logs,
                rows: vec![head],
                tokens: vec![0],
                signatures: vec![0; SIGNATURE_BYTES],
            };
            let bytes = page.encode(&mut Deflater::new().unwrap(), true).unwrap();
            let inflater = &mut Inflater::new().unwrap();
            let mut opened = [(); 3].map(|()| RowsRoom::default());
            let [first, second, third] = &mut opened;
            let mut open =
                |room, ordinals, wanted| Rows::open(inflater, &bytes, room, ordinals, true, wanted);
            let rows = open(first, TxOrdinal(7)..TxOrdinal(8), RowParts::Receipt).unwrap();
            assert_eq!((rows.chain_id, rows.before(0, 0)), (chain_id, Some(before)));
            assert_eq!(rows.ordinals(), &(TxOrdinal(7)..TxOrdinal(8)));
            let receipt = ReceiptHead { gas_used: u64::MAX, log_count: 5 };
            assert_eq!(rows.receipts, Some(&[receipt][..]));
            assert_eq!(rows.payloads_of(0), 0..2);
            let rows = open(second, TxOrdinal(7)..TxOrdinal(8), RowParts::Transaction).unwrap();
            assert_eq!((rows.chain_id, rows.before(0, 0)), (chain_id, None));
            assert_eq!((rows.tokens, rows.payloads_of(0)), (&[0][..], 0..2));
            let fault = open(third, TxOrdinal(7)..TxOrdinal(7), RowParts::Receipt).unwrap_err();
            assert!(matches!(fault, PageFault::Field(RowFault::RowCount { found: 1, .. })));
        }
    }
}
