//! Groups of verified blocks as the pages of a segment.
//!
//! A group is 16 aligned blocks, and no page holds rows of two groups: so groups can be encoded
//! anywhere and in any order, and the bytes are the same.

use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{B256, Log};
use chain::{Block, BlockRange, Receipt, Verified};

use super::shape::GROUP_BLOCKS;
use super::write_fault::WriteFault;
use super::{BlockEntry, PageEntry, PageKind};
use crate::bytes::{put_length, put_varint, wide};
use crate::corrupt::PageFault;
use crate::page::{Deflater, RowHead, RowPage};
use crate::row::{
    ReceiptHead, RowContext, RowPayload, RowSource, Senders, count_row, decode_row, encode_row,
};
use crate::row_set::{LogView, ReceiptView, Row, RowView};
use crate::tables::{Census, Codebook, Tables};

/// Room that is enough for most rows.
const ROW_BYTES_USUAL: usize = 512;

/// A page of headers, and one of ommers and withdrawals, ends with the block that brings the
/// transactions of its blocks to so many, or at the end of a group. Small blocks share a page,
/// since they share much of what is in it; large ones are read without those of others.
const PART_TRANSACTIONS: usize = 512;

/// First pass: counts what a block's rows would refer to.
pub fn count_block(census: &mut Census, block: &Block) {
    for (source, _) in sources(block) {
        count_row(census, source);
    }
}

/// Second pass: encodes groups of blocks, on as many threads as share it.
#[derive(Debug)]
pub struct Encoder {
    pub(super) tables: Arc<Tables>,
    codebook: Codebook,
    pub(super) has_receipts: bool,
    /// Those that no thread is using: they are dearer to make than a page to write.
    deflaters: Mutex<Vec<Deflater>>,
}

/// The pages of one group.
#[derive(Clone, Debug)]
pub struct EncodedGroup {
    pub(super) range: BlockRange,
    pub(super) tables: Arc<Tables>,
    pub(super) has_receipts: bool,
    pub(super) parent_hash: B256,
    pub(super) last_hash: B256,
    pub(super) blocks: Vec<BlockEntry>,
    pub(super) log_count: u64,
    pub(super) token_bytes: u64,
    pub(super) receipt_token_bytes: u64,
    pub(super) receipt_payload_bytes: u64,
    /// Pages of rows and of payloads, one after the other.
    pub(super) pages: Vec<u8>,
    pub(super) page_entries: Vec<PageEntry>,
    /// Pages of headers and of what else blocks have, and how many blocks each holds.
    pub(super) header_pages: Vec<(Vec<u8>, u64)>,
    pub(super) other_pages: Vec<(Vec<u8>, u64)>,
}

impl EncodedGroup {
    /// The blocks.
    #[must_use]
    pub fn range(&self) -> BlockRange {
        self.range
    }

    /// How many bytes its pages take.
    #[must_use]
    pub fn bytes_count(&self) -> usize {
        let parts = self.header_pages.iter().chain(&self.other_pages).map(|(page, _)| page);
        parts.fold(self.pages.len(), |sum, part| part.len().saturating_add(sum))
    }
}

impl Encoder {
    /// An encoder for the blocks of one segment, whose tables these are.
    #[must_use]
    pub fn new(tables: Arc<Tables>, has_receipts: bool) -> Self {
        let codebook = Codebook::new(&tables);
        Self { tables, codebook, has_receipts, deflaters: Mutex::default() }
    }

    /// Encodes consecutive blocks of one group: all that the segment has of it.
    pub fn encode_group(&self, blocks: &[Verified<Block>]) -> Result<EncodedGroup, WriteFault> {
        let range = self.check(blocks)?;
        let mut deflater = match self.idle().pop() {
            Some(deflater) => deflater,
            None => Deflater::new()?,
        };
        let mut maker = GroupMaker {
            encoder: self,
            deflater: &mut deflater,
            page: RowPage::default(),
            payloads: Vec::new(),
            group: self.empty(range, blocks),
        };
        for block in blocks {
            maker.add_rows(block)?;
        }
        maker.close_rows()?;
        let mut group = maker.group;
        for blocks in in_parts(blocks) {
            let count = wide(blocks.len());
            group.header_pages.push((deflater.frame_parts(&header_parts(blocks))?, count));
            group.other_pages.push((deflater.frame_parts(&other_parts(blocks))?, count));
        }
        self.idle().push(deflater);
        Ok(group)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Deflater>> {
        // What a panicking thread left behind is a list of whole deflaters.
        self.deflaters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these are consecutive blocks of one group, each with receipts or each without.
    fn check(&self, blocks: &[Verified<Block>]) -> Result<BlockRange, WriteFault> {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Err(WriteFault::Empty);
        };
        for (block, next) in blocks.iter().zip(blocks.iter().skip(1)) {
            let (found, expected) = (next.header.number, block.header.number.saturating_add(1));
            if found != expected {
                return Err(WriteFault::NotNext { found, expected });
            }
            if next.header.parent_hash != block.hash {
                return Err(WriteFault::NotChild { number: found });
            }
        }
        let has_receipts = !self.has_receipts;
        if let Some(other) = blocks.iter().find(|block| block.receipts.is_some() == has_receipts) {
            return Err(WriteFault::ReceiptsPresence { number: other.header.number, has_receipts });
        }
        let (first, last) = (first.header.number, last.header.number);
        BlockRange::from_ends(first, last)
            .filter(|_| first / GROUP_BLOCKS == last / GROUP_BLOCKS)
            .ok_or(WriteFault::NotGroup { first, last })
    }

    fn empty(&self, range: BlockRange, blocks: &[Verified<Block>]) -> EncodedGroup {
        EncodedGroup {
            range,
            tables: Arc::clone(&self.tables),
            has_receipts: self.has_receipts,
            parent_hash: blocks.first().map_or(B256::ZERO, |block| block.header.parent_hash),
            last_hash: blocks.last().map_or(B256::ZERO, |block| block.hash),
            blocks: blocks.iter().map(|block| entry(block)).collect(),
            log_count: 0,
            token_bytes: 0,
            receipt_token_bytes: 0,
            receipt_payload_bytes: 0,
            pages: Vec::new(),
            page_entries: Vec::new(),
            header_pages: Vec::new(),
            other_pages: Vec::new(),
        }
    }
}

/// A group in the making.
struct GroupMaker<'a> {
    encoder: &'a Encoder,
    deflater: &'a mut Deflater,
    page: RowPage,
    /// The long bytes of the page's rows.
    payloads: Vec<RowPayload>,
    group: EncodedGroup,
}

/// A row that was read back.
struct ExactRow {
    tokens: Vec<u8>,
    receipt_token_bytes: usize,
    receipt: Option<ReceiptHead>,
    payloads: Vec<RowPayload>,
    signature: [u8; 64],
}

impl GroupMaker<'_> {
    fn add_rows(&mut self, block: &Block) -> Result<(), WriteFault> {
        let number = block.header.number;
        let mut logs_before = 0_u64;
        for (index, (mut source, log_count)) in sources(block).enumerate() {
            let chain_id_own = source.chain_id;
            source.chain_id = self.page.chain_id.or(chain_id_own);
            let mut row = self.encode_exact(source, number, index)?;
            if self.page.is_full_for(row.tokens.len()) {
                self.close_rows()?;
                if source.chain_id != chain_id_own {
                    source.chain_id = chain_id_own;
                    row = self.encode_exact(source, number, index)?;
                }
            }
            if self.page.rows.is_empty() {
                (self.page.gas_before, self.page.logs_before) = (source.gas_before, logs_before);
            }
            self.page.chain_id = source.chain_id;
            self.add_row(row);
            logs_before = logs_before.saturating_add(log_count);
        }
        self.group.log_count = self.group.log_count.saturating_add(logs_before);
        Ok(())
    }

    /// Encodes a row and reads it back. alloy decodes leniently in a few places: a transaction
    /// that its types do not say to the byte is kept as it came.
    fn encode_exact(
        &self,
        source: RowSource<'_>,
        number: u64,
        index: usize,
    ) -> Result<ExactRow, WriteFault> {
        let signature = signature(source);
        let receipt = source.receipt_head();
        let context = RowContext {
            tables: &self.encoder.tables,
            chain_id: source.chain_id,
            receipt,
            is_whole: true,
            signature: &signature,
            senders: Senders::Told,
        };
        let codebook = &self.encoder.codebook;
        for is_raw in [!source.says_chain(), true] {
            let (mut tokens, mut payloads) = (Vec::with_capacity(ROW_BYTES_USUAL), Vec::new());
            let receipt_token_bytes =
                encode_row(&mut tokens, codebook, source, &mut payloads, is_raw);
            let mut given = payloads.iter().map(|payload| payload.bytes.clone());
            let mut next = || given.next();
            let read = Row::read(|slot| decode_row(&tokens, context, &mut next, slot));
            if read.is_ok_and(|read| is_same(read.view(), source)) {
                return Ok(ExactRow { tokens, receipt_token_bytes, receipt, payloads, signature });
            }
        }
        Err(WriteFault::NotExact { number, index })
    }

    fn add_row(&mut self, row: ExactRow) {
        let ExactRow { tokens, receipt_token_bytes, receipt, payloads, signature } = row;
        let ReceiptHead { gas_used, log_count } = receipt.unwrap_or_default();
        let group = &mut self.group;
        group.token_bytes = group.token_bytes.saturating_add(wide(tokens.len()));
        group.receipt_token_bytes =
            group.receipt_token_bytes.saturating_add(wide(receipt_token_bytes));
        let (bytes, payload_count) = (tokens.len(), payloads.len());
        self.page.rows.push(RowHead { bytes, payload_count, gas_used, log_count });
        self.page.tokens.extend_from_slice(&tokens);
        self.page.signatures.extend_from_slice(&signature);
        self.payloads.extend(payloads);
    }

    fn close_rows(&mut self) -> Result<(), PageFault> {
        let page = std::mem::take(&mut self.page);
        if page.rows.is_empty() {
            return Ok(());
        }
        let bytes = page.encode(self.deflater, self.encoder.has_receipts)?;
        self.add_page(PageKind::Rows, &bytes, wide(page.rows.len()));
        for payload in std::mem::take(&mut self.payloads) {
            let bytes = self.deflater.frame(&payload.bytes)?;
            self.add_page(PageKind::Payload, &bytes, 1);
            if payload.is_of_receipt {
                let sum = &mut self.group.receipt_payload_bytes;
                *sum = sum.saturating_add(wide(bytes.len()));
            }
        }
        Ok(())
    }

    fn add_page(&mut self, kind: PageKind, bytes: &[u8], count: u64) {
        self.group.page_entries.push(PageEntry { kind, bytes: wide(bytes.len()), count });
        self.group.pages.extend_from_slice(bytes);
    }
}

/// Whether a row gives back what it was made of.
fn is_same(read: RowView<'_>, source: RowSource<'_>) -> bool {
    *read.encoded == *source.transaction.encoded
        && read.sender == source.transaction.sender
        && match (read.receipt, source.receipt) {
            (Some(read), Some(receipt)) => is_same_receipt(read, receipt, source.gas_before),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
}

fn is_same_receipt(read: ReceiptView<'_>, receipt: &Receipt, gas_before: u64) -> bool {
    let fields = &receipt.fields;
    let is_same_log = |(read, log): (LogView<'_>, &Log)| {
        read.address == log.address
            && read.topics.iter().eq(log.data.topics().iter().map(|topic| &topic.0))
            && *read.data == *log.data.data
    };
    read.outcome == fields.status
        && gas_before.wrapping_add(read.gas_used) == fields.cumulative_gas_used
        && read.log_count() == fields.logs.len()
        && read.logs().zip(&fields.logs).all(is_same_log)
}

fn entry(block: &Block) -> BlockEntry {
    BlockEntry {
        transaction_count: block.transactions.len(),
        hash: block.hash,
        timestamp: block.header.timestamp,
        base_fee: block.header.base_fee_per_gas,
        excess_blob_gas: block.header.excess_blob_gas,
    }
}

/// The blocks of each page of headers, and of others.
fn in_parts(blocks: &[Verified<Block>]) -> impl Iterator<Item = &[Verified<Block>]> {
    let mut sum = 0_usize;
    blocks.split_inclusive(move |block| {
        sum = sum.saturating_add(block.transactions.len());
        let is_last = sum >= PART_TRANSACTIONS;
        if is_last {
            sum = 0;
        }
        is_last
    })
}

/// Raw headers, and the length of each block's RLP.
fn header_parts(blocks: &[Verified<Block>]) -> Vec<u8> {
    let mut plain = Vec::new();
    for block in blocks {
        put_part(&mut plain, &block.header_rlp);
        put_varint(&mut plain, block.rlp_bytes());
    }
    plain
}

/// Ommers and withdrawals.
fn other_parts(blocks: &[Verified<Block>]) -> Vec<u8> {
    let mut plain = Vec::new();
    for block in blocks {
        put_part(&mut plain, &block.ommers_rlp);
        // An empty part stands for none: a list has at least one byte.
        put_part(&mut plain, block.withdrawals_rlp.as_ref().map_or(&[][..], |list| list));
    }
    plain
}

fn put_part(plain: &mut Vec<u8>, part: &[u8]) {
    put_length(plain, part.len());
    plain.extend_from_slice(part);
}

/// What each row of a block is made of, and how many logs it has.
fn sources(block: &Block) -> impl Iterator<Item = (RowSource<'_>, u64)> {
    let receipts = block.receipts.as_deref();
    let mut gas_before = 0;
    block.transactions.iter().enumerate().map(move |(index, transaction)| {
        let receipt: Option<&Receipt> = receipts.and_then(|receipts| receipts.get(index));
        let chain_id = alloy_consensus::Transaction::chain_id(&transaction.envelope);
        let source = RowSource { transaction, receipt, gas_before, chain_id };
        let log_count = receipt.map_or(0, |receipt| receipt.fields.logs.len());
        gas_before = receipt.map_or(0, |receipt| receipt.fields.cumulative_gas_used);
        (source, wide(log_count))
    })
}

/// r and s, 32 bytes each.
fn signature(source: RowSource<'_>) -> [u8; 64] {
    let signature = source.transaction.envelope.signature();
    let mut bytes = [0; 64];
    let (r, s) = bytes.split_at_mut(32);
    r.copy_from_slice(&signature.r().to_be_bytes::<32>());
    s.copy_from_slice(&signature.s().to_be_bytes::<32>());
    bytes
}
