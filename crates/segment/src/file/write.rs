//! Encoded groups in, the bytes of a segment out.
//!
//! A segment is written in two passes over its blocks: the census counts what repeats
//! ([`super::encode::count_block`]), an [`super::encode::Encoder`] makes the pages. What is left
//! is cheap, and in order.

use std::sync::Arc;

use alloy_primitives::B256;
use chain::BlockRange;
use sha2::{Digest, Sha256};

use super::encode::{EncodedGroup, Encoder};
use super::footer::{Footer, SegmentFacts};
use super::shape::{GROUP_BLOCKS, SegmentShape};
use super::write_fault::WriteFault;
use super::{BlockEntry, PageEntry, PageKind, tail};
use crate::page::Deflater;
use crate::tables::Tables;

/// Puts groups in order and ends the file.
#[derive(Debug)]
pub struct SegmentWriter {
    facts: SegmentFacts,
    tables: Arc<Tables>,
    next: u64,
    hasher: Sha256,
    pages: Vec<PageEntry>,
    blocks: Vec<BlockEntry>,
    /// Pages that lie after all rows: their bytes and how many blocks they hold.
    header_pages: Vec<(Vec<u8>, u64)>,
    other_pages: Vec<(Vec<u8>, u64)>,
}

impl SegmentWriter {
    /// A writer for exactly these blocks, whose groups come from this encoder or one like it.
    pub fn new(range: BlockRange, encoder: &Encoder) -> Result<Self, WriteFault> {
        if SegmentShape::of(range).is_none() {
            return Err(WriteFault::Shape(range));
        }
        let facts = SegmentFacts {
            range,
            parent_hash: B256::ZERO,
            last_hash: B256::ZERO,
            has_receipts: encoder.has_receipts,
            transaction_count: 0,
            log_count: 0,
            token_bytes: 0,
            receipt_token_bytes: 0,
            receipt_payload_bytes: 0,
        };
        Ok(Self {
            facts,
            tables: Arc::clone(&encoder.tables),
            next: range.first(),
            hasher: Sha256::new(),
            pages: Vec::new(),
            blocks: Vec::new(),
            header_pages: Vec::new(),
            other_pages: Vec::new(),
        })
    }

    /// Takes the next group and hands over the bytes that come next in the file.
    pub fn push(&mut self, group: EncodedGroup) -> Result<Vec<u8>, WriteFault> {
        self.check(&group)?;
        let facts = &mut self.facts;
        if self.next == facts.range.first() {
            facts.parent_hash = group.parent_hash;
        }
        facts.last_hash = group.last_hash;
        for (sum, count) in [
            (&mut facts.log_count, group.log_count),
            (&mut facts.token_bytes, group.token_bytes),
            (&mut facts.receipt_token_bytes, group.receipt_token_bytes),
            (&mut facts.receipt_payload_bytes, group.receipt_payload_bytes),
        ] {
            *sum = sum.saturating_add(count);
        }
        for block in &group.blocks {
            let count = u64::try_from(block.transaction_count).unwrap_or(u64::MAX);
            facts.transaction_count = facts.transaction_count.saturating_add(count);
        }
        self.blocks.extend(group.blocks);
        self.pages.extend(group.page_entries);
        self.header_pages.extend(group.header_pages);
        self.other_pages.extend(group.other_pages);
        self.next = group.range.end();
        self.hasher.update(&group.pages);
        Ok(group.pages)
    }

    /// Whether it is all that the segment has of its next group, after the block before.
    fn check(&self, group: &EncodedGroup) -> Result<(), WriteFault> {
        let (range, first) = (self.facts.range, group.range.first());
        if first != self.next {
            return Err(WriteFault::NotNext { found: first, expected: self.next });
        }
        let group_last = (first / GROUP_BLOCKS).saturating_mul(GROUP_BLOCKS) | (GROUP_BLOCKS - 1);
        let last = group.range.last();
        if last != group_last.min(range.last()) {
            return Err(WriteFault::NotGroup { first, last });
        }
        if first != range.first() && group.parent_hash != self.facts.last_hash {
            return Err(WriteFault::NotChild { number: first });
        }
        let has_receipts = group.has_receipts;
        if has_receipts != self.facts.has_receipts {
            return Err(WriteFault::ReceiptsPresence { number: first, has_receipts });
        }
        let has_same_tables =
            Arc::ptr_eq(&group.tables, &self.tables) || group.tables == self.tables;
        if !has_same_tables {
            return Err(WriteFault::OtherTables { number: first });
        }
        Ok(())
    }

    /// Hands over the rest of the file and tells its digest.
    pub fn finish(mut self) -> Result<(Vec<u8>, Footer), WriteFault> {
        let range = self.facts.range;
        if self.next != range.end() {
            return Err(WriteFault::Missing { expected: self.next, range });
        }
        let mut out = Vec::new();
        let parts = [(PageKind::Headers, self.header_pages), (PageKind::Others, self.other_pages)];
        for (kind, pages) in parts {
            for (page, count) in pages {
                let bytes = u64::try_from(page.len()).unwrap_or(u64::MAX);
                self.pages.push(PageEntry { kind, bytes, count });
                out.extend_from_slice(&page);
            }
        }
        let tail = tail::encode(&self.pages, &self.blocks, &self.tables);
        let tail = Deflater::new()?.frame(&tail)?;
        let tail_bytes = u64::try_from(tail.len()).unwrap_or(u64::MAX);
        out.extend_from_slice(&tail);
        self.hasher.update(&out);
        let digest = self.hasher.finalize().into();
        let footer = Footer { facts: self.facts, digest, tail_bytes };
        out.extend_from_slice(&footer.encode());
        Ok((out, footer))
    }
}
