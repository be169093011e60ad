//! A receipt as JSON, with its logs and its bloom.

use alloy_consensus::{Eip658Value, Transaction as _};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::Log;
use chain::{ChainSpec, logs_bloom};
use store::{Row, RowReceipt};

use super::transaction::{Place, effective_gas_price};
use super::{Object, put_data, put_list};

/// What of its block came before a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) gas: u64,
    pub(crate) logs: u64,
}

/// Appends the receipt of a mined transaction.
pub(crate) fn put_receipt(
    out: &mut Vec<u8>,
    spec: &ChainSpec,
    row: &Row,
    receipt: &RowReceipt,
    place: Place<'_>,
    before: Before,
) {
    let envelope = &row.envelope;
    let mut object = Object::begin(out);
    object.quantity("type", u8::from(envelope.tx_type()).into());
    match receipt.outcome {
        Eip658Value::Eip658(is_success) => object.quantity("status", is_success.into()),
        Eip658Value::PostState(root) => object.data("root", root.as_slice()),
    }
    object.quantity("cumulativeGasUsed", before.gas.wrapping_add(receipt.gas_used));
    let mut index = before.logs;
    put_list(object.member("logs"), &receipt.logs, |out, log| {
        put_log(out, log, place, index);
        index = index.saturating_add(1);
    });
    object.data("logsBloom", logs_bloom(&receipt.logs).as_slice());
    object.data("transactionHash", place.hash.as_slice());
    object.quantity("transactionIndex", place.index);
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number);
    object.quantity("gasUsed", receipt.gas_used);
    let price = effective_gas_price(envelope, place.block.base_fee);
    object.quantity_u128("effectiveGasPrice", price);
    if let Some(hashes) = envelope.blob_versioned_hashes() {
        let count = u64::try_from(hashes.len()).unwrap_or(u64::MAX);
        object.quantity("blobGasUsed", count.saturating_mul(DATA_GAS_PER_BLOB));
        // Without a schedule the price is not known, and a guess would be worse than none.
        let params = spec.blob_params_at(place.block.timestamp);
        if let Some((params, excess)) = params.zip(place.block.excess_blob_gas) {
            object.quantity_u128("blobGasPrice", params.calc_blob_fee(excess));
        }
    }
    object.data("from", row.sender.as_slice());
    if let Some(to) = envelope.to() {
        object.data("to", to.as_slice());
        object.raw("contractAddress", "null");
    } else {
        object.raw("to", "null");
        object.data("contractAddress", row.sender.create(envelope.nonce()).as_slice());
    }
    object.end();
}

fn put_log(out: &mut Vec<u8>, log: &Log, place: Place<'_>, index: u64) {
    let mut object = Object::begin(out);
    object.data("address", log.address.as_slice());
    put_list(object.member("topics"), log.topics(), |out, topic| put_data(out, topic.as_slice()));
    object.data("data", &log.data.data);
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number);
    object.quantity("blockTimestamp", place.block.timestamp);
    object.data("transactionHash", place.hash.as_slice());
    object.quantity("transactionIndex", place.index);
    object.quantity("logIndex", index);
    object.raw("removed", "false");
    object.end();
}
