//! A transaction as JSON, every type with its own members in alloy's order.

use alloy_consensus::{EthereumTxEnvelope, Transaction as _, TxEip4844};
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{B256, U256};
use store::{BlockFacts, Row};

use super::{Object, put_data, put_list};

/// Where a transaction is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) block: &'a BlockFacts,
    pub(crate) index: u64,
    pub(crate) hash: B256,
}

/// Appends a mined transaction.
pub(crate) fn put_transaction(out: &mut Vec<u8>, row: &Row, place: Place<'_>) {
    // The signature alone takes 200 bytes, hashes and addresses 500 more.
    out.reserve(row.encoded.len().saturating_mul(2).saturating_add(1024));
    let envelope = &row.envelope;
    let mut object = Object::begin(out);
    object.quantity("type", u8::from(envelope.tx_type()).into());
    if let Some(chain_id) = envelope.chain_id() {
        object.quantity("chainId", chain_id);
    }
    object.quantity("nonce", envelope.nonce());
    if let Some(gas_price) = envelope.gas_price() {
        object.quantity_u128("gasPrice", gas_price);
    }
    object.quantity("gas", envelope.gas_limit());
    if envelope.is_dynamic_fee() {
        object.quantity_u128("maxFeePerGas", envelope.max_fee_per_gas());
        let tip = envelope.max_priority_fee_per_gas().unwrap_or_default();
        object.quantity_u128("maxPriorityFeePerGas", tip);
    }
    match envelope.to() {
        Some(to) => object.data("to", to.as_slice()),
        None => object.raw("to", "null"),
    }
    object.quantity_u256("value", &envelope.value());
    if let Some(list) = envelope.access_list() {
        put_access_list(object.member("accessList"), list);
    }
    if let Some(hashes) = envelope.blob_versioned_hashes() {
        put_list(object.member("blobVersionedHashes"), hashes, |out, hash| {
            put_data(out, hash.as_slice());
        });
        let fee = envelope.max_fee_per_blob_gas().unwrap_or_default();
        object.quantity_u128("maxFeePerBlobGas", fee);
    }
    if let Some(list) = envelope.authorization_list() {
        put_list(object.member("authorizationList"), list, put_authorization);
    }
    object.data("input", envelope.input());
    put_signature(&mut object, envelope);
    object.data("hash", place.hash.as_slice());
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number);
    object.quantity("transactionIndex", place.index);
    object.data("from", row.sender.as_slice());
    if envelope.is_dynamic_fee() {
        object.quantity_u128("gasPrice", effective_gas_price(envelope, place.block.base_fee));
    }
    object.quantity("blockTimestamp", place.block.timestamp);
    object.end();
}

/// What a unit of gas cost: the signed price, or what the block's base fee and the tip come to.
pub(crate) fn effective_gas_price(
    envelope: &EthereumTxEnvelope<TxEip4844>,
    base_fee: Option<u64>,
) -> u128 {
    envelope.effective_gas_price(base_fee)
}

fn put_signature(object: &mut Object<'_>, envelope: &EthereumTxEnvelope<TxEip4844>) {
    let signature = envelope.signature();
    object.quantity_u256("r", &signature.r());
    object.quantity_u256("s", &signature.s());
    let parity = u64::from(signature.v());
    if envelope.is_legacy() {
        // EIP-155 puts the chain into it.
        let base = envelope.chain_id().map_or(U256::from(27), |chain_id| {
            U256::from(chain_id).saturating_mul(U256::from(2)).saturating_add(U256::from(35))
        });
        object.quantity_u256("v", &base.saturating_add(U256::from(parity)));
    } else {
        object.quantity("yParity", parity);
        object.quantity("v", parity);
    }
}

fn put_access_list(out: &mut Vec<u8>, list: &AccessList) {
    put_list(out, &list.0, |out, item| {
        let mut object = Object::begin(out);
        object.data("address", item.address.as_slice());
        put_list(object.member("storageKeys"), &item.storage_keys, |out, key| {
            put_data(out, key.as_slice());
        });
        object.end();
    });
}

fn put_authorization(out: &mut Vec<u8>, signed: &SignedAuthorization) {
    let mut object = Object::begin(out);
    object.quantity_u256("chainId", signed.chain_id());
    object.data("address", signed.address().as_slice());
    object.quantity("nonce", signed.nonce());
    object.quantity("yParity", signed.y_parity().into());
    object.quantity_u256("r", &signed.r());
    object.quantity_u256("s", &signed.s());
    object.end();
}
