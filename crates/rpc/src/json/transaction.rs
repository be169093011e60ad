//! A transaction as JSON, every type with its own members in alloy's order.

use alloy_primitives::B256;
use chain::{RlpItems, TxFields};
use store::{BlockFacts, RowView, TxIndex};

use super::{NotABlock, Object, put_data, put_list};

/// Where a transaction is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionLocation<'a> {
    pub(crate) block: &'a BlockFacts,
    pub(crate) index: TxIndex,
    pub(crate) hash: B256,
}

/// Appends a mined transaction.
pub(crate) fn put_transaction(
    out: &mut Vec<u8>,
    row: RowView<'_>,
    place: TransactionLocation<'_>,
) -> Result<(), NotABlock> {
    put_transaction_cut(out, row, place, usize::MAX)
}

/// The same with no more than the first bytes of its input.
pub(crate) fn put_transaction_cut(
    out: &mut Vec<u8>,
    row: RowView<'_>,
    place: TransactionLocation<'_>,
    input_bytes_max: usize,
) -> Result<(), NotABlock> {
    let fields = TxFields::read(row.encoded).map_err(|_| NotABlock)?;
    // The signature alone takes 200 bytes, hashes and addresses 500 more.
    out.reserve(row.encoded.len().saturating_mul(2).saturating_add(1024));
    let mut object = Object::begin(out);
    object.quantity("type", fields.tx_type.into());
    if let Some(chain_id) = fields.chain_id {
        object.quantity("chainId", chain_id);
    }
    object.quantity("nonce", fields.nonce);
    if fields.tip_max.is_none() {
        object.quantity_u128("gasPrice", fields.fee_max);
    }
    object.quantity("gas", fields.gas_limit);
    if let Some(tip_max) = fields.tip_max {
        object.quantity_u128("maxFeePerGas", fields.fee_max);
        object.quantity_u128("maxPriorityFeePerGas", tip_max);
    }
    match fields.to {
        Some(to) => object.data("to", to.as_slice()),
        None => object.raw("to", "null"),
    }
    object.quantity_bytes("value", fields.value);
    if let Some(list) = fields.access_list {
        put_access_list(object.member("accessList"), list);
    }
    if let Some(mut blobs) = fields.blobs {
        let hashes = std::iter::from_fn(|| blobs.hashes.next_string());
        put_list(object.member("blobVersionedHashes"), hashes, put_data);
        object.quantity_u128("maxFeePerBlobGas", blobs.fee_max);
    }
    if let Some(mut list) = fields.authorizations {
        let authorizations = std::iter::from_fn(|| list.next_list());
        put_list(object.member("authorizationList"), authorizations, put_authorization);
    }
    object.data("input", fields.input.get(..input_bytes_max).unwrap_or(fields.input));
    object.quantity_bytes("r", fields.r);
    object.quantity_bytes("s", fields.s);
    if fields.tx_type > 0 {
        object.quantity_bytes("yParity", fields.v);
    }
    object.quantity_bytes("v", fields.v);
    object.data("hash", place.hash.as_slice());
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number.get());
    object.quantity("transactionIndex", place.index.get());
    object.data("from", row.sender.as_slice());
    if fields.tip_max.is_some() {
        object.quantity_u128("gasPrice", fields.effective_gas_price(place.block.base_fee));
    }
    object.quantity("blockTimestamp", place.block.timestamp);
    object.end();
    Ok(())
}

fn put_access_list(out: &mut Vec<u8>, mut list: RlpItems<'_>) {
    put_list(out, std::iter::from_fn(|| list.next_list()), |out, mut item| {
        let mut object = Object::begin(out);
        object.data("address", item.next_string().unwrap_or_default());
        let mut keys = item.next_list();
        let keys = std::iter::from_fn(|| keys.as_mut()?.next_string());
        put_list(object.member("storageKeys"), keys, put_data);
        object.end();
    });
}

fn put_authorization(out: &mut Vec<u8>, mut signed: RlpItems<'_>) {
    let mut object = Object::begin(out);
    let mut next = || signed.next_string().unwrap_or_default();
    object.quantity_bytes("chainId", next());
    object.data("address", next());
    for name in ["nonce", "yParity", "r", "s"] {
        object.quantity_bytes(name, next());
    }
    object.end();
}
