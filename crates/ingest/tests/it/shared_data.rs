//! Real chain data, where it is at hand: a folder `shared/data` beside the checkout. It is public
//! and too large to commit; without it these tests say so and pass. The same code is covered by
//! the sample chain.

use std::path::Path;

use alloy_primitives::{B256, Bytes};
use alloy_rlp::Encodable;
use archive::{Archive, ArchiveName, encode_slim};
use chain::accumulator::EpochRoots;
use chain::trust::{Anchors, TrustStatus};
use chain::{
    Body, Candidate, ChainSpec, Start, StepFields, Verifier, check_step, decode_header,
    decode_receipts,
};
use ingest::prove::NoProgress;
use ingest::survey::{Finding, Job, find_archives, survey};
use serde_json::Value;
use testing::shared_data::shared_data;

use crate::harness::made::{proven_blocks, threads};

fn survey_folder(folder: &Path, roots: Option<&EpochRoots>) -> Vec<Finding> {
    let jobs = find_archives(&[folder.to_owned()]).unwrap().into_iter().map(|path| {
        let network = ArchiveName::parse(&path).unwrap().network;
        let spec =
            ChainSpec::known(&network).unwrap_or_else(|| ChainSpec::bare(&network, None, None));
        let anchors = Anchors::of(&spec);
        let anchors = match roots {
            Some(roots) => anchors.with_epoch_roots(roots.clone()),
            None => anchors,
        };
        Job { path, network: Some(network), spec, anchors }
    });
    survey(jobs.collect(), threads(2), &NoProgress, |_, _| {})
}

#[test]
fn real_era1_files_are_proven_and_mainnets_anchored_by_their_accumulators() {
    let Some(folder) = shared_data() else { return };
    let roots = std::fs::read(folder.join("mainnet-accumulators.bin")).unwrap();
    let roots = EpochRoots::parse(&roots).unwrap();
    let findings = survey_folder(&folder.join("era1"), Some(&roots));
    assert_eq!(findings.len(), 4);
    for finding in findings {
        let proven = finding.outcome.unwrap();
        let is_mainnet = finding.path.to_string_lossy().contains("mainnet");
        let is_anchored =
            proven.statuses.iter().all(|(_, status)| matches!(status, TrustStatus::Anchored(_)));
        assert_eq!(is_anchored, is_mainnet, "{}", finding.path.display());
    }
}

#[test]
fn real_ere_files_are_proven_and_geths_dummy_is_refused_by_place() {
    let Some(folder) = shared_data() else { return };
    let findings = survey_folder(&folder.join("ere"), None);
    assert_eq!(findings.len(), 10);
    for finding in findings {
        let file = finding.path.display().to_string();
        match finding.outcome {
            Ok(_) => assert!(!file.contains("deadbeef")),
            Err(error) => {
                assert!(file.contains("deadbeef"), "{error}");
                assert!(error.to_string().contains("block 0, byte 8: hash is"), "{error}");
            }
        }
    }
}

#[test]
fn every_transaction_type_is_proven_on_the_conformance_chain() {
    let Some(folder) = shared_data() else { return };
    let path = folder.join("ere/hivechain-00000-d226371d-noproofs.ere");
    let archive = Archive::open(&path).unwrap();
    let text = std::fs::read(folder.join("execution-apis/genesis.json")).unwrap();
    let genesis = serde_json::from_slice(&text).unwrap();
    let spec = ChainSpec::from_genesis("hivechain", &genesis).unwrap();
    let mut counts = [0; 5];
    for block in proven_blocks(&archive, &spec) {
        for transaction in &block.transactions {
            counts[usize::from(u8::from(transaction.envelope.tx_type()))] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

fn bytes(value: &Value) -> Bytes {
    value.as_str().unwrap().parse().unwrap()
}

pub(crate) fn list(value: &Value) -> Vec<Bytes> {
    value.as_array().unwrap().iter().map(bytes).collect()
}

/// A list of EIP-2718 items as RLP: untyped ones are lists already, typed ones become strings.
pub(crate) fn listed(items: &[Bytes]) -> Vec<u8> {
    let mut payload = Vec::new();
    for item in items {
        if item[0] >= alloy_rlp::EMPTY_LIST_CODE {
            payload.extend_from_slice(item);
        } else {
            item.encode(&mut payload);
        }
    }
    let mut rlp = Vec::new();
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
    rlp.extend(payload);
    rlp
}

/// A block of the folder `blocks`, as it lies there and as a candidate.
pub(crate) fn read_block(path: &Path) -> (Value, Candidate) {
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let candidate = Candidate {
        header: bytes(&json["header"]),
        body: Body {
            transactions: list(&json["transactions"]),
            ommers: bytes(&json["ommers"]),
            withdrawals: json["withdrawals"].as_str().map(|text| text.parse().unwrap()),
        },
        receipts: Some(decode_receipts(&listed(&list(&json["receipts"]))).unwrap()),
        total_difficulty: None,
    };
    (json, candidate)
}

#[test]
fn mainnets_first_blocks_of_forks_follow_from_their_parents() {
    let Some(folder) = shared_data() else { return };
    let spec = ChainSpec::known("mainnet").unwrap();
    let fields = |number: u64| {
        let (_, candidate) = read_block(&folder.join(format!("blocks/mainnet/{number}.json")));
        let header = decode_header(&candidate.header).unwrap();
        assert_eq!(header.number, number);
        StepFields::of(&header, &candidate.header)
    };
    // The merge, Shanghai and Cancun.
    for number in [15_537_394, 17_034_870, 19_426_587] {
        assert_eq!(check_step(&spec, &fields(number - 1), &fields(number)), Ok(()), "{number}");
        assert!(check_step(&spec, &fields(number), &fields(number - 1)).is_err(), "{number}");
    }
}

#[test]
fn single_mainnet_blocks_of_every_fork_are_proven() {
    let Some(folder) = shared_data() else { return };
    let mut tx_types = std::collections::BTreeSet::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder.join("blocks/mainnet")).unwrap() {
        let (json, candidate) = read_block(&entry.unwrap().path());
        if let Some(slim) = json.get("slim_receipts") {
            let receipts = candidate.receipts.as_deref().unwrap();
            assert_eq!(encode_slim(receipts), bytes(slim), "block {}", json["number"]);
        }
        let spec = ChainSpec::known("mainnet").unwrap();
        let anchors = Anchors::of(&spec);
        let number = json["number"].as_u64().unwrap();
        let block = Verifier::new(&spec, &anchors, Start::At(number)).verify(candidate).unwrap();
        let hash: B256 = json["hash"].as_str().unwrap().parse().unwrap();
        assert_eq!(block.hash, hash);
        tx_types.extend(block.transactions.iter().map(|tx| u8::from(tx.envelope.tx_type())));
        count += 1;
    }
    println!("{count} blocks, transaction types {tx_types:?}");
    assert_eq!(count, 12);
    assert!(tx_types.contains(&0) && tx_types.contains(&2) && tx_types.contains(&3));
}
