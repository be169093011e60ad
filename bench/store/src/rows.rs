//! What is asked of a stored transaction or block: the one place that looks into them.
//!
//! Knows: the fields of rows, headers and receipts as the store gives them.
//! Never knows: what it costs, or why it is asked.

use alloy_primitives::{B256, Bloom};
use anyhow::{Context as _, Result};
use chain::{Receipt, decode_header, keccak256_each, logs_bloom};
use ingest::archive::encode_slim;
use store::{StoredBlock, StoredTransaction};

/// The bloom of a transaction's receipt.
pub fn receipt_bloom(transaction: &StoredTransaction) -> Result<Bloom> {
    let receipt = transaction.row.receipt.as_ref().context("a row without receipt")?;
    Ok(logs_bloom(&receipt.logs))
}

/// The hashes of a block's transactions.
#[must_use]
pub fn transaction_hashes(block: &StoredBlock) -> Vec<B256> {
    let encodings: Vec<&[u8]> = block.rows.iter().map(|row| row.encoded.as_ref()).collect();
    keccak256_each(&encodings)
}

/// The blooms of a block's receipts.
pub fn receipt_blooms(block: &StoredBlock) -> Result<Vec<Bloom>> {
    let receipts = block.rows.iter().map(|row| row.receipt.as_ref().context("no receipt"));
    receipts.map(|receipt| Ok(logs_bloom(&receipt?.logs))).collect()
}

/// The bloom that a block's header commits to.
pub fn header_bloom(block: &StoredBlock) -> Result<Bloom> {
    Ok(decode_header(&block.header.rlp)?.logs_bloom)
}

/// Rows as another store would hold them, before compression: the transaction, its sender and its
/// receipt without bloom, with the block's running sum of gas.
#[must_use]
pub fn plain_rows(block: StoredBlock) -> Vec<Vec<u8>> {
    let mut gas_before = 0;
    let plain = |row: segment::Row| {
        let mut plain = row.encoded.to_vec();
        plain.extend_from_slice(row.sender.as_slice());
        if let Some(receipt) = row.receipt {
            let fields = receipt.into_fields(gas_before);
            gas_before = fields.cumulative_gas_used;
            let tx_type = row.envelope.tx_type();
            plain.extend(encode_slim(&[Receipt { tx_type, fields }]));
        }
        plain
    };
    block.rows.into_iter().map(plain).collect()
}
