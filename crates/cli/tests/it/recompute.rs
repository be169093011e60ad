//! A client that believes nothing: our JSON is read with alloy's types and hashed again.

use std::collections::BTreeSet;

use alloy_consensus::proofs::{
    calculate_ommers_root, calculate_receipt_root, calculate_transaction_root,
    calculate_withdrawals_root,
};
use alloy_consensus::{BlockBody, Header, ReceiptEnvelope, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Bytes, Log, keccak256};
use alloy_rlp::Encodable as _;
use alloy_rpc_types_eth::{Block, TransactionReceipt};
use serde_json::{Value, json};

use crate::harness::served::Served;
use crate::harness::stores;

/// Blocks whose fork differs from that of the block before, of docs/sample-chain.md, and the last.
const EDGES: [u64; 19] =
    [0, 1, 3, 8, 9, 12, 16, 24, 44, 52, 64, 72, 73, 80, 84, 96, 112, 128, 1023];
/// Blocks that are drawn beside them.
const DRAWN: u64 = 40;

/// A draw that is the same everywhere: Knuth's multiplier, the high bits.
fn draw(seed: u64, below: u64) -> u64 {
    (seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 33) % below
}

#[test]
fn a_client_can_recompute_every_hash_from_our_answers() {
    let served = stores::serve("sample", &[]);
    let drawn = (1..=DRAWN).map(|seed| draw(seed, 1024));
    let numbers: BTreeSet<u64> = EDGES.into_iter().chain(drawn).collect();
    let mut types = BTreeSet::new();
    for number in numbers {
        check(&served, number, &mut types);
    }
    assert_eq!(types, BTreeSet::from([0, 1, 2, 3, 4]), "every type of transaction");
}

fn check(served: &Served, number: u64, types: &mut BTreeSet<u8>) {
    let answer = served.result("eth_getBlockByNumber", &json!([number, true]));
    let block: Block = serde_json::from_value(answer.clone()).unwrap();
    assert_eq!(serde_json::to_value(&block).unwrap(), answer, "block {number} as alloy writes it");
    let header: Header = block.header.inner.clone();
    assert_eq!(header.hash_slow(), block.header.hash, "block {number}");
    let raw = bytes(&served.result("debug_getRawHeader", &json!([number])));
    assert_eq!(alloy_rlp::encode(&header), raw, "header {number}");

    let transactions = block.transactions.clone().into_transactions_vec();
    for transaction in &transactions {
        let envelope: &TxEnvelope = transaction.inner.inner();
        types.insert(u8::from(envelope.tx_type()));
        let encoded = envelope.encoded_2718();
        let hash = keccak256(&encoded);
        assert_eq!(hash, *envelope.tx_hash(), "block {number}");
        let raw = bytes(&served.result("debug_getRawTransaction", &json!([hash])));
        assert_eq!(encoded, raw, "transaction {hash}");
        // Frontier takes signatures that later forks do not.
        let sender =
            envelope.signature().recover_address_from_prehash(&envelope.signature_hash()).unwrap();
        assert_eq!(sender, transaction.inner.signer(), "transaction {hash}");
    }
    let envelopes: Vec<TxEnvelope> =
        transactions.into_iter().map(|transaction| transaction.inner.into_inner()).collect();
    assert_eq!(calculate_transaction_root(&envelopes), header.transactions_root, "{number}");
    let ommers: Vec<Header> =
        (0..block.uncles.len()).map(|index| uncle(served, number, index, &block)).collect();
    assert_eq!(calculate_ommers_root(&ommers), header.ommers_hash, "{number}");
    let withdrawals_root = block.withdrawals.as_ref().map(|list| calculate_withdrawals_root(list));
    assert_eq!(withdrawals_root, header.withdrawals_root, "{number}");
    check_receipts(served, number, &header);

    let body = BlockBody { transactions: envelopes, ommers, withdrawals: block.withdrawals };
    let whole = alloy_consensus::Block { header, body };
    let raw = bytes(&served.result("debug_getRawBlock", &json!([number])));
    assert_eq!(alloy_rlp::encode(&whole), raw, "block {number}");
    assert_eq!(answer["size"], format!("{:#x}", whole.length()), "block {number}");
}

fn uncle(served: &Served, number: u64, index: usize, block: &Block) -> Header {
    let answer = served.result("eth_getUncleByBlockNumberAndIndex", &json!([number, index]));
    let header: alloy_rpc_types_eth::Header = serde_json::from_value(answer).unwrap();
    assert_eq!(header.inner.hash_slow(), header.hash);
    assert_eq!(header.hash, block.uncles[index]);
    header.inner
}

fn check_receipts(served: &Served, number: u64, header: &Header) {
    let answer = served.result("eth_getBlockReceipts", &json!([number]));
    let receipts: Vec<TransactionReceipt> = serde_json::from_value(answer.clone()).unwrap();
    assert_eq!(serde_json::to_value(&receipts).unwrap(), answer, "receipts {number}");
    let envelopes: Vec<ReceiptEnvelope<Log>> = receipts
        .into_iter()
        .map(|receipt| receipt.inner.map_logs(|log: alloy_rpc_types_eth::Log| log.inner))
        .collect();
    assert_eq!(calculate_receipt_root(&envelopes), header.receipts_root, "{number}");
    let raw = served.result("debug_getRawReceipts", &json!([number]));
    let encoded: Vec<Value> =
        envelopes.iter().map(|receipt| json!(Bytes::from(receipt.encoded_2718()))).collect();
    assert_eq!(Value::from(encoded), raw, "receipts {number}");
}

fn bytes(answer: &Value) -> Vec<u8> {
    alloy_primitives::hex::decode(answer.as_str().unwrap()).unwrap()
}
