//! A chain that go-ethereum made across the Amsterdam fork, where `shared/data` lies beside the
//! checkout. The sample chain's Amsterdam stretch covers the same code without it.

use std::path::Path;

use alloy_primitives::{B256, Bytes};
use archive::Archive;
use chain::trust::{Anchor, Anchors};
use chain::{Candidate, ChainSpec, Start, Verifier, decode_receipts};
use testing::shared_data::shared_data;

use crate::harness::made::proven_blocks;
use crate::shared_data::{list, listed, read_block};

const CHAIN_ID: u64 = 7_928_001;

fn described(data: &Path) -> ChainSpec {
    let text = std::fs::read(data.join("amsterdam/genesis.json")).unwrap();
    ChainSpec::from_genesis("amsterdam", &serde_json::from_slice(&text).unwrap()).unwrap()
}

#[test]
fn a_chain_across_amsterdam_is_proven_with_its_genesis_and_with_its_chain_id_alone() {
    let Some(data) = shared_data() else { return };
    let file = data.join("amsterdam/amsterdam-00000-41511eb0-noproofs.ere");
    let archive = Archive::open(&file).unwrap();
    let last = "0x41511eb04964a7847cfcecc89dd14e074df107dab0835d6fc8ae855efb6456be";
    for spec in [described(&data), ChainSpec::bare("amsterdam", Some(CHAIN_ID), None)] {
        let blocks = proven_blocks(&archive, &spec);
        assert_eq!(blocks.len(), 61);
        assert_eq!(blocks[60].hash.to_string(), last);
        // The receipts' gas is the header's in all blocks before the fork and in 22 after it.
        let mut orders = [0; 3];
        for block in &blocks {
            let receipts = block.receipts.as_deref().unwrap();
            let sum = receipts.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used);
            orders[usize::from((sum.cmp(&block.header.gas_used) as i8 + 1).unsigned_abs())] += 1;
        }
        assert_eq!(orders, [3, 11 + 22, 25]);
    }
}

/// A block of Amsterdam whose receipts pay less than its header says, with every kind of call.
const FLIPPED: u64 = 55;

#[test]
fn every_flipped_byte_of_an_amsterdam_block_is_refused() {
    let Some(data) = shared_data() else { return };
    let folder = data.join("amsterdam/blocks/amsterdam");
    let (json, sound) = read_block(&folder.join(format!("{FLIPPED}.json")));
    let (_, parent) = read_block(&folder.join(format!("{}.json", FLIPPED - 1)));
    let hash: B256 = json["hash"].as_str().unwrap().parse().unwrap();
    let start = Start::After { number: FLIPPED - 1, hash: chain::hash_header(&parent.header) };
    let anchors = Anchors::none().with_operator(Anchor { number: FLIPPED, hash }).unwrap();
    for spec in [described(&data), ChainSpec::bare("amsterdam", Some(CHAIN_ID), None)] {
        let verify = |candidate| Verifier::new(&spec, &anchors, start).verify(candidate);
        assert_eq!(verify(sound.clone()).unwrap().hash, hash);
        let mut count = 0;
        let mut refuse = |what: &str, at: usize, candidate: Option<Candidate>| {
            count += 1;
            // What does not decode is refused before it is a candidate.
            let Some(candidate) = candidate else { return };
            assert!(verify(candidate).is_err(), "byte {at} of {what} was flipped unnoticed");
        };
        flip(&sound.header, |at, header| {
            refuse("the header", at, Some(Candidate { header, ..sound.clone() }));
        });
        flip(&sound.body.ommers, |at, ommers| {
            let mut candidate = sound.clone();
            candidate.body.ommers = ommers;
            refuse("the ommers", at, Some(candidate));
        });
        flip(sound.body.withdrawals.as_ref().unwrap(), |at, withdrawals| {
            let mut candidate = sound.clone();
            candidate.body.withdrawals = Some(withdrawals);
            refuse("the withdrawals", at, Some(candidate));
        });
        for (index, transaction) in sound.body.transactions.iter().enumerate() {
            flip(transaction, |at, transaction| {
                let mut candidate = sound.clone();
                candidate.body.transactions[index] = transaction;
                refuse(&format!("transaction {index}"), at, Some(candidate));
            });
        }
        let receipts = list(&json["receipts"]);
        for (index, receipt) in receipts.iter().enumerate() {
            flip(receipt, |at, receipt| {
                let mut flipped = receipts.clone();
                flipped[index] = receipt;
                let decoded = decode_receipts(&listed(&flipped)).ok();
                let candidate = decoded.map(|it| Candidate { receipts: Some(it), ..sound.clone() });
                refuse(&format!("receipt {index}"), at, candidate);
            });
        }
        println!("{count} flips refused");
        assert!(count > 5_000, "{count}");
    }
}

/// The bytes with one of them flipped, another bit of each.
fn flip(bytes: &Bytes, mut with: impl FnMut(usize, Bytes)) {
    for at in 0..bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        with(at, flipped.into());
    }
}
