//! Consensus bytes of blocks and receipts, for the `debug_getRaw...` methods.

use alloy_primitives::bytes::BufMut as _;
use alloy_primitives::{Bloom, Bytes};
use chain::{Body, Receipt};
use store::StoredBlock;

/// The RLP of a whole block.
pub(crate) fn block(block: &StoredBlock) -> Vec<u8> {
    let body = Body {
        transactions: block.rows.iter().map(|row| Bytes::copy_from_slice(row.encoded)).collect(),
        ommers: block.extras.ommers.clone(),
        withdrawals: block.extras.withdrawals.clone(),
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
    let encoded = |(receipt, bloom): (Receipt, Bloom)| {
        let mut out = Vec::new();
        receipt.encode_2718(&bloom, &mut out);
        out
    };
    block.receipts().into_iter().zip(block.rows.blooms()).map(encoded).collect()
}
