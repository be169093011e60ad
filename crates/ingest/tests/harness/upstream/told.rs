//! A block as nodes tell it: alloy's JSON, which others wrote.

use alloy_consensus::{Eip658Value, Header};
use alloy_primitives::{B256, hex};
use chain::{Block, Verified, decode_header};
use serde_json::{Value, json};

/// A block, and the JSON of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What is proven of it; of a block that this build cannot prove, what it was made from.
    pub(crate) verified: Verified<Block>,
    pub(crate) hash: B256,
    pub(crate) block: Value,
    pub(crate) header: Value,
    pub(crate) receipts: Vec<Value>,
    pub(crate) ommers: Vec<Value>,
}

impl Told {
    pub(crate) fn of(verified: &Verified<Block>) -> Self {
        let mut header = serde_json::to_value(&verified.header).unwrap();
        header["hash"] = json!(verified.hash);
        let transactions = verified.transactions.iter().enumerate().map(|(index, tx)| {
            let mut value = serde_json::to_value(&tx.envelope).unwrap();
            value["from"] = json!(tx.sender);
            value["blockHash"] = json!(verified.hash);
            value["transactionIndex"] = json!(format!("{index:#x}"));
            value
        });
        let ommer_hashes: Vec<B256> = verified.ommers.iter().map(Header::hash_slow).collect();
        header["uncles"] = json!(ommer_hashes);
        if let Some(withdrawals) = &verified.withdrawals {
            let told = withdrawals.iter().map(|it| {
                json!({
                    "index": format!("{:#x}", it.index),
                    "validatorIndex": format!("{:#x}", it.validator_index),
                    "address": it.address,
                    "amount": format!("{:#x}", it.amount),
                })
            });
            header["withdrawals"] = told.collect();
        }
        let mut block = header.clone();
        block["transactions"] = transactions.collect();
        header["transactions"] =
            verified.transactions.iter().map(|tx| json!(tx.envelope.tx_hash())).collect();
        let ommers = verified.ommers.iter().map(|ommer| {
            let mut value = serde_json::to_value(ommer).unwrap();
            value["hash"] = json!(ommer.hash_slow());
            value
        });
        let ommers = ommers.collect();
        let receipts = receipts(verified);
        let (verified, hash) = (verified.clone(), verified.hash);
        Self { verified, hash, block, header, receipts, ommers }
    }

    pub(crate) fn number(&self) -> u64 {
        self.verified.header.number
    }

    pub(crate) fn hash(&self) -> B256 {
        self.hash
    }
}

impl Told {
    /// Another block in its place: with other fields of the header, in JSON as a node would tell it.
    pub(crate) fn with_header(&self, header: &Header) -> Self {
        let mut told = self.clone();
        told.hash = header.hash_slow();
        let fields = serde_json::to_value(header).unwrap();
        for json in [&mut told.block, &mut told.header] {
            for (name, value) in fields.as_object().unwrap() {
                json[name] = value.clone();
            }
            json["hash"] = json!(told.hash);
        }
        for receipt in &mut told.receipts {
            receipt["blockHash"] = json!(told.hash);
        }
        told
    }
}

fn receipts(block: &Block) -> Vec<Value> {
    let header = decode_header(&block.header_rlp).unwrap();
    let told = block.receipts.iter().flatten().zip(&block.transactions).enumerate();
    let told = told.map(|(index, (receipt, tx))| {
        let logs = receipt.fields.logs.iter().map(|log| {
            json!({
                "address": log.address,
                "topics": log.data.topics(),
                "data": hex::encode_prefixed(&log.data.data),
                "removed": false,
            })
        });
        let logs: Vec<Value> = logs.collect();
        let mut value = json!({
            "transactionHash": tx.envelope.tx_hash(),
            "transactionIndex": format!("{index:#x}"),
            "blockHash": block.hash,
            "blockNumber": format!("{:#x}", header.number),
            "from": tx.sender,
            "type": format!("{:#x}", u8::from(receipt.tx_type)),
            "cumulativeGasUsed": format!("{:#x}", receipt.fields.cumulative_gas_used),
            "logs": logs,
        });
        match receipt.fields.status {
            Eip658Value::Eip658(status) => {
                value["status"] = json!(format!("{:#x}", u8::from(status)));
            }
            Eip658Value::PostState(root) => value["root"] = json!(root),
        }
        value
    });
    told.collect()
}
