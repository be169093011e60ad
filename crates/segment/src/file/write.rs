//! Verified blocks in, the bytes of a segment out.
//!
//! Knows: how rows are gathered into pages, and in which order everything comes.
//! Never knows: where the bytes go: they are handed over piece by piece.
//!
//! A segment is written in two passes over its blocks: the census counts what repeats, the writer
//! writes. Every row is read back before it is let go.

use alloy_primitives::Bytes;
use chain::{Block, Receipt, Verified};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{Facts, Footer, GROUP_BLOCKS, Kind, Tail};
use crate::bytes::put_length;
use crate::corrupt::PageFault;
use crate::page::{BlockContext, Deflater, RowPage};
use crate::row::{RowContext, RowSource, count_row, decode_row, encode_row};
use crate::tables::{Census, Codebook, Tables};

/// Why blocks cannot be written.
#[derive(Debug, Error)]
pub enum WriteFault {
    /// Not the block after the one before.
    #[error("block {found}, expected {expected}")]
    NotNext {
        /// The block that was given.
        found: u64,
        /// The one that comes next.
        expected: u64,
    },
    /// Receipts are in every block of a segment or in none.
    #[error("block {number} {} receipts, unlike its segment", if *.has_receipts { "has" } else { "has no" })]
    ReceiptsPresence {
        /// The block.
        number: u64,
        /// Whether it has receipts.
        has_receipts: bool,
    },
    /// A row did not come back as it went in: a bug, and nothing was written.
    #[error("block {number}, transaction {index}: does not come back to the byte")]
    NotExact {
        /// The block.
        number: u64,
        /// Position in the block.
        index: usize,
    },
    /// zstd refused.
    #[error(transparent)]
    Page(#[from] PageFault),
}

/// First pass: counts what a block's rows would refer to.
pub fn count_block(census: &mut Census, block: &Block) {
    for (source, _) in sources(block, None) {
        count_row(census, source);
    }
}

/// Second pass: writes the blocks.
#[derive(Debug)]
pub struct SegmentWriter {
    facts: Facts,
    tables: Tables,
    codebook: Codebook,
    tail: Tail,
    hasher: Sha256,
    deflater: Deflater,
    page: RowPage,
    payloads: Vec<Bytes>,
    headers: Group,
    others: Group,
}

/// A page of parts of consecutive blocks, filled one by one; written after the rows.
#[derive(Debug, Default)]
struct Group {
    plain: Vec<u8>,
    count: u64,
    /// Full ones: their bytes and how many blocks they hold.
    pages: Vec<(Vec<u8>, u64)>,
}

impl Group {
    fn close_if(&mut self, is_due: bool, deflater: &mut Deflater) -> Result<(), PageFault> {
        if is_due && self.count > 0 {
            let plain = std::mem::take(&mut self.plain);
            self.pages.push((deflater.frame(&plain, &[])?, std::mem::take(&mut self.count)));
        }
        Ok(())
    }
}

impl SegmentWriter {
    /// A writer for the blocks that `facts` announces; its counts are filled in as blocks come.
    pub fn new(facts: Facts, tables: Tables) -> Result<Self, WriteFault> {
        let codebook = Codebook::new(&tables);
        Ok(Self {
            facts: Facts { block_count: 0, transaction_count: 0, ..facts },
            tables,
            codebook,
            tail: Tail::default(),
            hasher: Sha256::new(),
            deflater: Deflater::new()?,
            page: RowPage::default(),
            payloads: Vec::new(),
            headers: Group::default(),
            others: Group::default(),
        })
    }

    /// Takes the next block and hands over the bytes of the pages that it filled.
    pub fn push(&mut self, block: &Verified<Block>) -> Result<Vec<u8>, WriteFault> {
        let number = block.header.number;
        let expected = self.facts.first.saturating_add(self.facts.block_count);
        if number != expected {
            return Err(WriteFault::NotNext { found: number, expected });
        }
        let has_receipts = block.receipts.is_some();
        if has_receipts != self.facts.has_receipts {
            return Err(WriteFault::ReceiptsPresence { number, has_receipts });
        }
        let mut out = Vec::new();
        let mut is_begun = false;
        let mut logs_before = 0_u64;
        for (index, (source, log_count)) in sources(block, self.facts.chain_id).enumerate() {
            let (row, payloads) = self.encode_exact(source, number, index)?;
            if self.page.is_full_for(row.len()) {
                self.close_rows(&mut out)?;
                is_begun = false;
            }
            if !is_begun {
                let begins = BlockContext {
                    number,
                    hash: block.hash,
                    timestamp: block.header.timestamp,
                    base_fee: block.header.base_fee_per_gas,
                    excess_blob_gas: block.header.excess_blob_gas,
                    first_index: u64::try_from(index).unwrap_or(u64::MAX),
                    gas_before: source.gas_before,
                    logs_before,
                    row_count: 0,
                };
                self.page.blocks.push(begins);
                is_begun = true;
            }
            self.add_row(&row, payloads.len(), source);
            self.payloads.extend(payloads);
            logs_before = logs_before.saturating_add(log_count);
        }
        self.add_parts(block)?;
        let transaction_count = u64::try_from(block.transactions.len()).unwrap_or(u64::MAX);
        self.tail.transaction_counts.push(transaction_count);
        self.facts.transaction_count =
            self.facts.transaction_count.saturating_add(transaction_count);
        self.facts.block_count = self.facts.block_count.saturating_add(1);
        self.hasher.update(&out);
        Ok(out)
    }

    /// Hands over the rest of the file and tells its digest.
    pub fn finish(mut self) -> Result<(Vec<u8>, Footer), WriteFault> {
        let mut out = Vec::new();
        self.close_rows(&mut out)?;
        self.headers.close_if(true, &mut self.deflater)?;
        self.others.close_if(true, &mut self.deflater)?;
        let groups = [
            (Kind::Headers, std::mem::take(&mut self.headers.pages)),
            (Kind::Others, std::mem::take(&mut self.others.pages)),
        ];
        for (kind, pages) in groups {
            for (bytes, count) in pages {
                self.add_page(&mut out, kind, &bytes, count);
            }
        }
        self.tail.tables = self.tables;
        let tail = self.deflater.frame(&self.tail.encode(), &[])?;
        let tail_bytes = u64::try_from(tail.len()).unwrap_or(u64::MAX);
        out.extend_from_slice(&tail);
        self.hasher.update(&out);
        let digest = self.hasher.finalize().into();
        let footer = Footer { facts: self.facts, digest, tail_bytes };
        out.extend_from_slice(&footer.encode());
        Ok((out, footer))
    }

    /// Encodes a row and reads it back.
    fn encode_exact(
        &self,
        source: RowSource<'_>,
        number: u64,
        index: usize,
    ) -> Result<(Vec<u8>, Vec<Bytes>), WriteFault> {
        let (mut row, mut payloads) = (Vec::new(), Vec::new());
        encode_row(&mut row, &self.codebook, source, &mut payloads);
        let signature = signature(source);
        let context = RowContext {
            tables: &self.tables,
            chain_id: self.facts.chain_id,
            has_receipt: source.receipt.is_some(),
            signature: &signature,
        };
        let mut given = payloads.iter().cloned();
        let read = decode_row(&row, context, &mut || given.next());
        let is_exact = read.is_ok_and(|read| {
            let receipt = read.receipt.map(|receipt| receipt.into_fields(source.gas_before));
            read.encoded == source.transaction.encoded
                && read.sender == source.transaction.sender
                && receipt.as_ref() == source.receipt.map(|receipt| &receipt.fields)
        });
        if is_exact { Ok((row, payloads)) } else { Err(WriteFault::NotExact { number, index }) }
    }

    fn add_row(&mut self, row: &[u8], payload_count: usize, source: RowSource<'_>) {
        self.page.rows.push((row.len(), payload_count));
        self.page.tokens.extend_from_slice(row);
        self.page.signatures.extend_from_slice(&signature(source));
        if let Some(block) = self.page.blocks.last_mut() {
            block.row_count = block.row_count.saturating_add(1);
        }
    }

    /// Headers, ommers and withdrawals, a group of aligned blocks a page.
    fn add_parts(&mut self, block: &Block) -> Result<(), PageFault> {
        let is_due = block.header.number.is_multiple_of(GROUP_BLOCKS);
        self.headers.close_if(is_due, &mut self.deflater)?;
        self.others.close_if(is_due, &mut self.deflater)?;
        put_part(&mut self.headers.plain, &block.header_rlp);
        put_part(&mut self.others.plain, &block.ommers_rlp);
        // An empty part stands for none: a list has at least one byte.
        put_part(
            &mut self.others.plain,
            block.withdrawals_rlp.as_ref().map_or(&[][..], |list| list),
        );
        self.headers.count = self.headers.count.saturating_add(1);
        self.others.count = self.others.count.saturating_add(1);
        Ok(())
    }

    fn close_rows(&mut self, out: &mut Vec<u8>) -> Result<(), PageFault> {
        let page = std::mem::take(&mut self.page);
        if page.rows.is_empty() {
            return Ok(());
        }
        let row_count = u64::try_from(page.rows.len()).unwrap_or(u64::MAX);
        let bytes = page.encode(&mut self.deflater, self.facts.first)?;
        self.add_page(out, Kind::Rows, &bytes, row_count);
        for payload in std::mem::take(&mut self.payloads) {
            let bytes = self.deflater.frame(&payload, &[])?;
            self.add_page(out, Kind::Payload, &bytes, 1);
        }
        Ok(())
    }

    fn add_page(&mut self, out: &mut Vec<u8>, kind: Kind, bytes: &[u8], count: u64) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.tail.pages.push((kind, length, count));
        out.extend_from_slice(bytes);
    }
}

fn put_part(plain: &mut Vec<u8>, part: &[u8]) {
    put_length(plain, part.len());
    plain.extend_from_slice(part);
}

/// What each row of a block is made of, and how many logs it has.
fn sources(block: &Block, chain_id: Option<u64>) -> impl Iterator<Item = (RowSource<'_>, u64)> {
    let receipts = block.receipts.as_deref();
    let mut gas_before = 0;
    block.transactions.iter().enumerate().map(move |(index, transaction)| {
        let receipt: Option<&Receipt> = receipts.and_then(|receipts| receipts.get(index));
        let source = RowSource { transaction, receipt, gas_before, chain_id };
        let log_count = receipt.map_or(0, |receipt| receipt.fields.logs.len());
        gas_before = receipt.map_or(0, |receipt| receipt.fields.cumulative_gas_used);
        (source, u64::try_from(log_count).unwrap_or(u64::MAX))
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
