//! Bundles that are committed: each must verify forever, and the Python example reads them too.

use std::path::PathBuf;

use alloy_primitives::{B256, Log};
use proof::{AnchorTrust, ProofBundle, ProvenClaim, verify};

use crate::builder::{Random, TestBlock, TestFilter, accumulator_way, address, chain, check};
use crate::builder::{headers_way, short_way, topic};

/// Writes the files instead of reading them.
const BLESS: &str = "QUIPU_BLESS";

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures"].iter().collect()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect(name)
}

/// What the builder makes today is what it made then. `QUIPU_BLESS=1` writes new files.
fn is_committed(name: &str, text: &str) {
    check(text).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(folder().join(name), format!("{text}\n")).unwrap();
    }
    assert_eq!(read(name), format!("{text}\n"), "{name}");
}

#[test]
fn bundles_of_version_1_are_what_they_were() {
    let mut random = Random::new(40);
    let blocks = chain(100, &[3, 0, 1], &mut random);
    let way = headers_way(&blocks[0], &blocks[1..]);
    let (header, transaction) = (blocks[0].header_member(), blocks[0].transaction_member(1));
    let alone = format!("{{\"version\":1,{header},{transaction},{way}}}");
    is_committed("transaction-headers.json", &alone);
    is_committed("receipt-headers.json", &blocks[0].bundle(2, &way));
    let log = Log::new_unchecked(address(1), vec![topic(2)], vec![3].into());
    let transactions = vec![vec![2, 1]; 140];
    let logs = (0..140).map(|index| vec![log.clone(); index % 4]).collect();
    let block = TestBlock::of(9000, B256::ZERO, transactions, logs);
    let (way, _root) = accumulator_way(&block, &mut random);
    is_committed("log-accumulator.json", &block.bundle(131, &way));
    is_committed("block.json", &blocks[0].whole(&short_way(&blocks[0])));
    let filter = TestFilter {
        addresses: vec![address(1), address(2)],
        topics: vec![vec![], vec![topic(3)]],
    };
    is_committed("logs.json", &filter.bundle(&blocks));
}

/// A real block with an ommer, its epoch's real records and the real list of epochs: `README.md` beside
/// it says where they are from.
#[test]
fn a_block_of_mainnet_leads_to_the_accumulator_that_is_compiled_in() {
    let text = read("mainnet-8187.json");
    let verdict = verify(&ProofBundle::parse(text.as_bytes()).unwrap(), &[]).unwrap();
    assert_eq!(verdict.trust, AnchorTrust::MainnetAccumulator);
    let ProvenClaim::Block { block, .. } = verdict.claim else { panic!("a block was claimed") };
    let hash = "0xda05a0e3d71ff3b81e16267a8384ba46e9462491483ac1b722a6efad1c928f71";
    assert_eq!((block.number, block.hash.to_string().as_str()), (8187, hash));
}
