//! Real chain data, where it is at hand: a folder `shared/data` beside the checkout. It is public and
//! too large to commit; without it these tests say so and pass.

use std::fs;
use std::path::Path;

use archive::{Archive, ArchiveName};
use ingest::survey::find_archives;
use serde_json::{Value, json};
use testing::shared_data::shared_data;

use crate::harness::run::{quipu, text};
use crate::harness::served::Served;

/// Archives of other writers come out to the byte: their blocks, their order, their compression.
#[test]
fn every_real_archive_is_exported_as_the_file_that_was_imported() {
    let Some(folder) = shared_data() else { return };
    let mut count = 0;
    for path in find_archives(&[folder]).unwrap() {
        let work = tempfile::tempdir().unwrap();
        let (data, out) = (work.path().join("data"), work.path().join("out"));
        let import = ["import", "--data-dir", text(&data), "--unanchored", "--without-receipts"];
        let imported = quipu(&[&import[..], &[text(&path)]].concat());
        if path.to_string_lossy().contains("deadbeef") {
            let imported = imported.ends_with(1);
            assert!(imported.err.contains("block 0, byte 8"), "{}", imported.err);
            continue;
        }
        imported.ends_with(0);
        let format = ArchiveName::parse(&path).unwrap().format.extension();
        let export = ["export", "--data-dir", text(&data), "--format", format];
        quipu(&[&export[..], &["--to", text(&out)]].concat()).ends_with(0);
        let written = out.join(path.file_name().unwrap());
        check_blocks(&written, &path);
        assert!(fs::read(&written).unwrap() == fs::read(&path).unwrap(), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 14);
}

fn check_blocks(written: &Path, original: &Path) {
    let (written, original) = (Archive::open(written).unwrap(), Archive::open(original).unwrap());
    assert_eq!(written.range(), original.range());
    for number in original.range().first()..original.range().end() {
        let (found, expected) = (written.read_block(number), original.read_block(number));
        assert!(found.unwrap() == expected.unwrap(), "{}: block {number}", original.file());
    }
}

#[test]
fn mainnet_from_the_middle_is_anchored_by_its_accumulator_and_stays_so() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let (data, out) = (work.path().join("data"), work.path().join("out"));
    let file = folder.join("era1/mainnet-00001-a5364e9a.era1");
    let import = ["import", "--data-dir", text(&data), text(&file)];
    let ran = quipu(&import).ends_with(0);
    assert!(ran.out.contains("anchored by accumulator epoch 1"), "{}", ran.out);
    let ran = quipu(&["verify", text(&file)]).ends_with(0);
    assert!(ran.out.contains("anchored by accumulator epoch 1"), "{}", ran.out);
    let stat = quipu(&["stat", "--json", "--data-dir", text(&data)]).ends_with(0).json();
    assert_eq!(stat["coverage"][0]["anchor"], "accumulator epoch 1");
    assert_eq!(stat["finalized"]["number"], 16383);
    // Total difficulty was told by the archive, so that era1 can be written from the middle too.
    let export = ["export", "--data-dir", text(&data), "--format", "era1", "--to", text(&out)];
    quipu(&[&export[..], &["--blocks", "9000..9099"]].concat()).ends_with(0);
    quipu(&["verify", "--network", "mainnet", text(&out)]).ends_with(0);
}

/// The root of the epoch proves the total difficulty that the publisher reports.
#[test]
fn mainnet_from_the_middle_of_a_bucket_is_anchored() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let (data, copy) = (work.path().join("data"), work.path().join("copy"));
    let bucket = format!("file://{}", work.path().join("bucket").display());
    let file = folder.join("era1/mainnet-00001-a5364e9a.era1");
    quipu(&["import", "--data-dir", text(&data), text(&file)]).ends_with(0);
    quipu(&["publish", "--data-dir", text(&data), "--to", &bucket]).ends_with(0);
    let from = ["fetch", "--data-dir", text(&copy), "--from", &bucket];
    quipu(&from).ends_with(0);
    let stat = ["stat", "--json", "--data-dir", text(&copy)];
    let stat = quipu(&stat).ends_with(0).json();
    assert_eq!(stat["coverage"][0]["anchor"], "accumulator epoch 1", "{stat}");
    // All is recorded that an import records, total difficulty included.
    let manifest = |data: &Path| fs::read_to_string(data.join("manifest")).unwrap();
    assert_eq!(manifest(&copy), manifest(&data));
}

#[test]
fn the_conformance_chain_keeps_its_genesis_and_refuses_another() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("data");
    let genesis = folder.join("execution-apis/genesis.json");
    let early = folder.join("ere/hivechain-00000-7c27d1f9.era1");
    let full = folder.join("ere/hivechain-00000-d226371d-noproofs.ere");
    let import = ["import", "--data-dir", text(&data)];
    let with_genesis = ["--genesis", text(&genesis), text(&early)];
    quipu(&[&import[..], &with_genesis].concat()).ends_with(0);
    let ran = quipu(&[&import[..], &[text(&full)]].concat()).ends_with(0);
    assert!(ran.out.contains("linked to genesis"), "{}", ran.out);
    let mainnet = folder.join("era1/mainnet-00000-5ec1ffb8.era1");
    let ran = quipu(&[&import[..], &[text(&mainnet)]].concat()).ends_with(2);
    assert!(ran.err.contains("holds hivechain, the archives say mainnet"), "{}", ran.err);
}

/// A folder with the beginning of mainnet that follows nobody: the network has gone on, and nothing
/// that is not held is called absent.
#[test]
fn of_a_public_network_that_nobody_follows_what_lies_above_the_tip_is_not_held() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("data");
    let file = folder.join("era1/mainnet-00000-5ec1ffb8.era1");
    quipu(&["import", "--data-dir", text(&data), text(&file)]).ends_with(0);
    let served = Served::start(&data, &[]);
    // Block 46,147 is the first with a transaction, and this is its hash and the transaction's.
    let block = "0x4e3a3754410177e6937ef1f84bba68ea139e8d1a2258c5f85db9f1cd715a1bdd";
    let transaction = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060";
    let by_number = [
        ("eth_getBlockByNumber", json!(["0xb443", false])),
        ("eth_getBlockByNumber", json!(["0x2000", true])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0xb443", 0])),
        ("eth_getBlockReceipts", json!(["0xb443"])),
        ("eth_getBlockTransactionCountByNumber", json!(["0xb443"])),
        ("eth_getUncleCountByBlockNumber", json!(["0xb443"])),
        ("eth_feeHistory", json!([1, "0xb443", []])),
        ("eth_getUncleByBlockNumberAndIndex", json!(["0xb443", 0])),
        ("eth_getHeaderByNumber", json!(["0xb443"])),
        ("debug_getRawHeader", json!(["0xb443"])),
        ("debug_getRawBlock", json!([{ "blockNumber": "0xb443" }])),
        ("debug_getRawReceipts", json!(["0xb443"])),
    ];
    let by_hash = [
        ("eth_getBlockByHash", json!([block, false])),
        ("eth_getTransactionByHash", json!([transaction])),
        ("eth_getTransactionReceipt", json!([transaction])),
        ("eth_getTransactionByBlockHashAndIndex", json!([block, 0])),
        ("eth_getBlockReceipts", json!([block])),
        ("eth_getBlockTransactionCountByHash", json!([block])),
        ("eth_getUncleCountByBlockHash", json!([block])),
        ("eth_getUncleByBlockHashAndIndex", json!([block, 0])),
        ("eth_getHeaderByHash", json!([block])),
        ("debug_getRawHeader", json!([block])),
        ("debug_getRawBlock", json!([{ "blockHash": block }])),
        ("debug_getRawReceipts", json!([block])),
        ("debug_getRawTransaction", json!([transaction])),
    ];
    for (method, params) in by_number.iter().chain(&by_hash) {
        let error = served.call(method, params)["error"].clone();
        assert_eq!(error["code"], 4444, "{method} {params}: {error}");
        assert_eq!(error["data"], json!({ "held": [[0, 8191]] }), "{method} {params}");
    }
    // What is held is answered, and so are positions of it that do not exist, and tags.
    assert_eq!(served.result("eth_getBlockByNumber", &json!([8191, false]))["number"], "0x1fff");
    for (method, params) in [
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1fff", 0])),
        ("eth_getBlockByNumber", json!(["pending", false])),
    ] {
        assert_eq!(served.result(method, &params), Value::Null, "{method}");
    }
    // Of more than 1024 blocks the newest are told.
    let fees = served.result("eth_feeHistory", &json!(["0x1000", "latest", []]));
    assert_eq!(fees["oldestBlock"], "0x1c00");
    assert_eq!(fees["gasUsedRatio"].as_array().unwrap().len(), 1024);
    assert_eq!(fees["baseFeePerGas"].as_array().unwrap().len(), 1025);
    let lenient = Served::start(&data, &["--unknown-hash", "null"]);
    for (method, params) in &by_hash {
        assert_eq!(lenient.result(method, params), Value::Null, "{method}");
    }
    for (method, params) in &by_number {
        assert_eq!(lenient.call(method, params)["error"]["code"], 4444, "{method}");
    }
}
