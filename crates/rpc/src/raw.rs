//! Consensus bytes of blocks and receipts, for the `debug_getRaw...` methods.

use alloy_primitives::bytes::BufMut as _;
use chain::{Body, Receipt, logs_bloom};
use store::StoredBlock;

/// The RLP of a whole block.
pub(crate) fn block(block: &StoredBlock) -> Vec<u8> {
    let body = Body {
        transactions: block.rows.iter().map(|row| row.encoded.clone()).collect(),
        ommers: block.others.ommers.clone(),
        withdrawals: block.others.withdrawals.clone(),
    };
    let body = body.encode();
    // A body is a list of the parts that follow the header in a block.
    let parts = chain::whole_list(&body).unwrap_or_default();
    let payload_length = block.header.rlp.len().saturating_add(parts.len());
    let mut out = Vec::with_capacity(payload_length.saturating_add(9));
    alloy_rlp::Header { list: true, payload_length }.encode(&mut out);
    out.put_slice(&block.header.rlp);
    out.put_slice(parts);
    out
}

/// The receipts of a block in their EIP-2718 form.
pub(crate) fn receipts(block: &StoredBlock) -> Vec<Vec<u8>> {
    let mut gas_before = 0;
    let mut receipts = Vec::with_capacity(block.rows.len());
    for row in &block.rows {
        let Some(receipt) = &row.receipt else { continue };
        let bloom = logs_bloom(&receipt.logs);
        let fields = receipt.clone().into_fields(gas_before);
        gas_before = fields.cumulative_gas_used;
        let mut out = Vec::new();
        Receipt { tx_type: row.envelope.tx_type(), fields }.encode_2718(&bloom, &mut out);
        receipts.push(out);
    }
    receipts
}
