//! A receipt as JSON, with its logs and its bloom.

use alloy_consensus::Eip658Value;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::Bloom;
use chain::{ChainSpec, TxFields};
use store::{GasAndLogsBefore, ReceiptView, RowView};

use super::log::put_log;
use super::transaction::TransactionLocation;
use super::{NotABlock, Object, put_list};

/// Appends the receipt of a mined transaction. Without a bloom, its logs and its bloom are null.
pub(crate) fn put_receipt(
    out: &mut Vec<u8>,
    spec: &ChainSpec,
    row: RowView<'_>,
    (receipt, bloom): (ReceiptView<'_>, Option<&Bloom>),
    place: TransactionLocation<'_>,
    before: GasAndLogsBefore,
) -> Result<(), NotABlock> {
    let fields = TxFields::read(row.encoded).map_err(|_| NotABlock)?;
    let mut object = Object::begin(out);
    object.quantity("type", fields.tx_type.into());
    match receipt.outcome {
        Eip658Value::Eip658(is_success) => object.quantity("status", is_success.into()),
        Eip658Value::PostState(root) => object.data("root", root.as_slice()),
    }
    object.quantity("cumulativeGasUsed", before.gas.wrapping_add(receipt.gas_used));
    if let Some(bloom) = bloom {
        let mut index = before.logs;
        put_list(object.member("logs"), receipt.logs(), |out, log| {
            put_log(out, log, place, index, false);
            index = index.saturating_add(1);
        });
        object.data("logsBloom", bloom.as_slice());
    } else {
        object.raw("logs", "null");
        object.raw("logsBloom", "null");
    }
    object.data("transactionHash", place.hash.as_slice());
    object.quantity("transactionIndex", place.index.get());
    object.data("blockHash", place.block.hash.as_slice());
    object.quantity("blockNumber", place.block.number.get());
    object.quantity("gasUsed", receipt.gas_used);
    let price = fields.effective_gas_price(place.block.base_fee);
    object.quantity_u128("effectiveGasPrice", price);
    if let Some(mut blobs) = fields.blobs {
        let hashes = std::iter::from_fn(|| blobs.hashes.next_string());
        let count = u64::try_from(hashes.count()).unwrap_or(u64::MAX);
        object.quantity("blobGasUsed", count.saturating_mul(DATA_GAS_PER_BLOB));
        // Without a schedule the price is not known, and a guess would be worse than none.
        let excess = place.block.excess_blob_gas;
        let price = excess.and_then(|excess| spec.blob_fee(place.block.timestamp, excess));
        if let Some(price) = price {
            object.quantity_u128("blobGasPrice", price);
        }
    }
    object.data("from", row.sender.as_slice());
    if let Some(to) = fields.to {
        object.data("to", to.as_slice());
        object.raw("contractAddress", "null");
    } else {
        object.raw("to", "null");
        object.data("contractAddress", row.sender.create(fields.nonce).as_slice());
    }
    object.end();
    Ok(())
}
