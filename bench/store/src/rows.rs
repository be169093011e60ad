//! What is asked of a stored transaction or block: the one place that looks into them.

use alloy_primitives::Bloom;
use anyhow::{Context as _, Result, ensure};
use archive::encode_slim;
use chain::{Receipt, decode_header};
use store::{RowView, StoredBlock, StoredTransaction};

/// The bloom of a transaction's receipt.
pub fn receipt_bloom(transaction: &StoredTransaction) -> Result<Bloom> {
    let receipt = transaction.row.view().receipt.context("a row without receipt")?;
    Ok(receipt.bloom())
}

/// The blooms of a block's receipts.
pub fn receipt_blooms(block: &StoredBlock) -> Result<Vec<Bloom>> {
    let blooms = block.rows.blooms();
    ensure!(blooms.len() == block.rows.len(), "a row without receipt");
    Ok(blooms)
}

/// The bloom that a block's header commits to.
pub fn header_bloom(block: &StoredBlock) -> Result<Bloom> {
    Ok(decode_header(&block.header.rlp)?.logs_bloom)
}

/// Rows as another store would hold them, before compression: the transaction, its sender and its
/// receipt without bloom, with the block's running sum of gas.
#[must_use]
pub fn plain_rows(block: &StoredBlock) -> Vec<Vec<u8>> {
    let receipts = block.receipts();
    let plain = |(row, receipt): (RowView<'_>, &Receipt)| {
        let mut plain = row.encoded.to_vec();
        plain.extend_from_slice(row.sender.as_slice());
        plain.extend(encode_slim(std::slice::from_ref(receipt)));
        plain
    };
    block.rows.iter().zip(&receipts).map(plain).collect()
}
