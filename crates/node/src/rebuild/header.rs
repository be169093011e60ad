//! A header as JSON has it.

use alloy_consensus::Header;
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256};
use serde::Deserialize;

use super::quantity::Quantity;

/// The header's fields, whatever else is beside them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeaderJson {
    pub(crate) hash: B256,
    parent_hash: B256,
    sha3_uncles: B256,
    miner: Address,
    state_root: B256,
    transactions_root: B256,
    receipts_root: B256,
    logs_bloom: Bloom,
    difficulty: U256,
    number: Quantity<u64>,
    gas_limit: Quantity<u64>,
    gas_used: Quantity<u64>,
    timestamp: Quantity<u64>,
    extra_data: Bytes,
    mix_hash: B256,
    nonce: B64,
    base_fee_per_gas: Option<Quantity<u64>>,
    withdrawals_root: Option<B256>,
    blob_gas_used: Option<Quantity<u64>>,
    excess_blob_gas: Option<Quantity<u64>>,
    parent_beacon_block_root: Option<B256>,
    requests_hash: Option<B256>,
    block_access_list_hash: Option<B256>,
    slot_number: Option<Quantity<u64>>,
    /// Beside the header: the hashes of the block's ommers.
    #[serde(default)]
    pub(crate) uncles: Vec<B256>,
}

impl HeaderJson {
    pub(crate) fn into_header(self) -> Header {
        let plain = |quantity: Option<Quantity<u64>>| quantity.map(|it| it.0);
        Header {
            parent_hash: self.parent_hash,
            ommers_hash: self.sha3_uncles,
            beneficiary: self.miner,
            state_root: self.state_root,
            transactions_root: self.transactions_root,
            receipts_root: self.receipts_root,
            logs_bloom: self.logs_bloom,
            difficulty: self.difficulty,
            number: self.number.0,
            gas_limit: self.gas_limit.0,
            gas_used: self.gas_used.0,
            timestamp: self.timestamp.0,
            extra_data: self.extra_data,
            mix_hash: self.mix_hash,
            nonce: self.nonce,
            base_fee_per_gas: plain(self.base_fee_per_gas),
            withdrawals_root: self.withdrawals_root,
            blob_gas_used: plain(self.blob_gas_used),
            excess_blob_gas: plain(self.excess_blob_gas),
            parent_beacon_block_root: self.parent_beacon_block_root,
            requests_hash: self.requests_hash,
            block_access_list_hash: self.block_access_list_hash,
            slot_number: plain(self.slot_number),
        }
    }
}
