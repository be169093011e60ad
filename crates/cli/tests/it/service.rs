//! Answers that no golden file can show: settings without a flag, and stores that are damaged.

use std::fs;
use std::sync::Arc;

use rpc::{CatchingUp, Health, Service, ServiceSettings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::hosted::{respond, service, service_of_unknown_chain};
use crate::harness::live::Live;
use crate::harness::served::Served;
use crate::harness::stores::data_folder;

const UNKNOWN: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

fn call(id: u32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn while_a_tip_is_followed_an_unknown_hash_is_null_though_history_has_gaps() {
    let settings = ServiceSettings { is_following: true, ..ServiceSettings::default() };
    let service = service(&data_folder("gap"), settings);
    let ask =
        |method: &str, params: Value| respond(&service, &call(1, method, &params).to_string());
    for (method, params) in [
        ("eth_getBlockByHash", json!([UNKNOWN, false])),
        ("eth_getTransactionByHash", json!([UNKNOWN])),
        ("eth_getTransactionReceipt", json!([UNKNOWN])),
        ("eth_getTransactionByBlockHashAndIndex", json!([UNKNOWN, 0])),
    ] {
        let answer = ask(method, params).unwrap();
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": null }), "{method}");
    }
    // A number in a gap is known not to be held.
    let answer = ask("eth_getBlockByNumber", json!([50, false])).unwrap();
    assert_eq!(answer["error"]["code"], 4444);
}

#[test]
fn a_single_answer_is_never_refused_for_its_size() {
    let settings = ServiceSettings { batch_bytes_max: 100, ..ServiceSettings::default() };
    let service = service(&data_folder("sample"), settings);
    let block = call(1, "eth_getBlockByNumber", &json!([20, true]));
    let answer = respond(&service, &block.to_string()).unwrap();
    assert_eq!(answer["result"]["transactions"].as_array().unwrap().len(), 200);
    // In a batch the first is answered too, and the second pays for it.
    let answer = respond(&service, &json!([block, block]).to_string()).unwrap();
    assert_eq!(answer[0]["result"]["number"], "0x14");
    assert_eq!(answer[1]["error"], json!({ "code": -32003, "message": "response too large" }));
}

#[test]
fn issuance_of_a_chain_that_nobody_described_is_refused_and_not_guessed() {
    let unknown = service_of_unknown_chain(&data_folder("sample"));
    let known = service(&data_folder("sample"), ServiceSettings::default());
    for number in [0, 9, 1023] {
        let refused = ask(&unknown, "ots_getBlockDetails", json!([number]));
        let error = &refused["error"];
        assert_eq!(error["code"], -32000, "{refused}");
        let begin = "block rewards of this chain not known: ";
        assert!(error["message"].as_str().unwrap().starts_with(begin), "{refused}");
        let told = ask(&known, "ots_getBlockDetails", json!([number]));
        assert!(told["result"]["issuance"]["blockReward"].is_string(), "{told}");
        // What does not rest on rewards is told.
        let page = ask(&unknown, "ots_getBlockTransactions", json!([number, 0, 25]));
        assert!(page["result"]["receipts"].is_array(), "{page}");
    }
}

/// Pages are put together to the whole block, and fees to what its receipts say.
#[test]
fn pages_and_fees_of_a_block_are_those_of_its_receipts() {
    let service = service(&data_folder("sample"), ServiceSettings::default());
    for number in [1, 20, 64, 84, 1023] {
        let block = ask(&service, "eth_getBlockByNumber", json!([number, true]))["result"].clone();
        let receipts = ask(&service, "eth_getBlockReceipts", json!([number]))["result"].clone();
        let (mut transactions, mut paged) = (Vec::new(), Vec::new());
        for page in (0..=200 / 7).rev() {
            let page = ask(&service, "ots_getBlockTransactions", json!([number, page, 7]));
            let page = &page["result"];
            transactions.extend_from_slice(page["fullblock"]["transactions"].as_array().unwrap());
            paged.extend_from_slice(page["receipts"].as_array().unwrap());
            assert_eq!(page["fullblock"]["hash"], block["hash"], "block {number}");
        }
        let mut expected = block["transactions"].as_array().unwrap().clone();
        for transaction in &mut expected {
            let input = transaction["input"].as_str().unwrap();
            transaction["input"] = input[..input.len().min(10)].into();
        }
        assert_eq!(transactions, expected, "block {number}");
        let mut expected = receipts.as_array().unwrap().clone();
        let (mut fees, number_of) = (0_u128, |value: &Value| {
            u128::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
        });
        for receipt in &mut expected {
            fees += number_of(&receipt["gasUsed"]) * number_of(&receipt["effectiveGasPrice"]);
            receipt["logs"] = Value::Null;
            receipt["logsBloom"] = Value::Null;
        }
        assert_eq!(paged, expected, "block {number}");
        let details = ask(&service, "ots_getBlockDetails", json!([number]))["result"].clone();
        assert_eq!(number_of(&details["totalFees"]), fees, "block {number}");
        let count = u64::try_from(expected.len()).unwrap();
        assert_eq!(details["block"]["transactionCount"], count, "block {number}");
    }
}

/// A copy of a folder, the beginning of whose segments is damaged: so many bytes of a length.
fn damaged(bytes_of: impl Fn(usize) -> usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(data_folder("gap")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "segment") {
            let end = bytes_of(bytes.len());
            bytes[..end].fill(0x55);
        }
        fs::write(folder.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    folder
}

/// Seen: all transactions of a block were decoded for the number of its uncles.
#[test]
fn uncles_are_answered_without_a_look_at_the_transactions() {
    // The first page is one of transactions.
    let folder = damaged(|_| 16);
    let service = service(folder.path(), ServiceSettings::default());
    let is_damaged = |number: &u64| {
        let block = ask(&service, "eth_getBlockByNumber", json!([number, true]));
        block.get("error").is_some()
    };
    let number = (0..40).find(is_damaged).expect("a block that cannot be read");
    let count = ask(&service, "eth_getUncleCountByBlockNumber", json!([number]));
    assert_eq!(count["result"], "0x0", "{count}");
    let uncle = ask(&service, "eth_getUncleByBlockNumberAndIndex", json!([number, 0]));
    assert_eq!(uncle.get("result"), Some(&Value::Null), "{uncle}");
}

#[test]
fn a_damaged_file_gives_an_internal_error_without_detail() {
    // Pages lie in the middle; what describes them, at the end, stays whole.
    let folder = damaged(|length| length / 2);
    let served = Served::start(folder.path(), &[]);
    let mut count = 0;
    for number in 0..40 {
        let answer = served.call("eth_getBlockByNumber", &json!([number, true]));
        if let Some(error) = answer.get("error") {
            assert_eq!(*error, json!({ "code": -32603, "message": "internal error" }));
            count += 1;
        }
    }
    assert!(count > 0, "no block was damaged");
    // The server goes on.
    assert_eq!(served.result("eth_blockNumber", &json!([])), "0x63");
}

#[expect(clippy::needless_pass_by_value, reason = "what is asked stands in the call")]
fn ask(service: &Service, method: &str, params: Value) -> Value {
    respond(service, &call(1, method, &params).to_string()).unwrap()
}

fn quantity(value: &Value) -> u128 {
    let digits = value.as_str().unwrap_or_else(|| panic!("{value}")).trim_start_matches("0x");
    u128::from_str_radix(digits, 16).unwrap()
}

/// A follower that is behind.
#[derive(Debug)]
struct Behind;

impl Health for Behind {
    fn troubles(&self) -> Vec<String> {
        vec!["9 blocks behind the upstream".to_owned()]
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        None
    }
}

#[test]
fn gas_prices_are_told_at_the_tip_of_a_chain_that_is_followed() {
    let settings = ServiceSettings { is_following: true, ..ServiceSettings::default() };
    let service_at_tip = service(&data_folder("sample"), settings);
    let tip = ask(&service_at_tip, "eth_getBlockByNumber", json!(["latest", false]));
    let found = quantity(&ask(&service_at_tip, "eth_maxPriorityFeePerGas", json!([]))["result"]);
    // The three cheapest of each of the newest twenty blocks that have any, but for the producer's.
    let mut samples = Vec::new();
    let mut blocks = 0;
    for number in (984..=1023).rev() {
        let block = ask(&service_at_tip, "eth_getBlockByNumber", json!([number, true]));
        let block = &block["result"];
        let base_fee = quantity(&block["baseFeePerGas"]);
        let others = block["transactions"].as_array().unwrap().iter();
        let others = others.filter(|tx| tx["from"] != block["miner"]);
        let tips = others.map(|tx| quantity(&tx["gasPrice"]) - base_fee);
        let mut tips: Vec<u128> = tips.filter(|tip| *tip >= 2).collect();
        tips.sort_unstable();
        tips.truncate(3);
        blocks += usize::from(!tips.is_empty());
        samples.extend(tips);
        if blocks == 20 {
            break;
        }
    }
    samples.sort_unstable();
    assert_eq!(found, samples[(samples.len() - 1) * 60 / 100], "of {samples:?}");
    let price = quantity(&ask(&service_at_tip, "eth_gasPrice", json!([]))["result"]);
    assert_eq!(price, found + quantity(&tip["result"]["baseFeePerGas"]));
    // Asked again, it is what was told before.
    let again = ask(&service_at_tip, "eth_maxPriorityFeePerGas", json!([]));
    assert_eq!(quantity(&again["result"]), found);
    let behind = service(&data_folder("sample"), settings).with_health(Arc::new(Behind));
    for method in ["eth_gasPrice", "eth_maxPriorityFeePerGas"] {
        let answer = ask(&behind, method, json!([]));
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
    }
}

#[test]
fn what_cannot_be_known_of_fees_is_refused_and_not_guessed() {
    let forks = "forks of this chain not known: the operator names them with --genesis FILE";
    let unknown = service_of_unknown_chain(&data_folder("sample"));
    let refused = |answer: &Value, begin: &str| {
        let error = &answer["error"];
        assert_eq!(error["code"], -32000, "{answer}");
        assert!(error["message"].as_str().unwrap().starts_with(begin), "{answer}");
    };
    refused(&ask(&unknown, "eth_config", json!([])), forks);
    let blob = "blob schedule of this chain not known at time ";
    refused(&ask(&unknown, "eth_blobBaseFee", json!([])), blob);
    // What headers tell is told, and so is the block above where it is held; prices of blobs are not.
    let told = ask(&unknown, "eth_feeHistory", json!([2, 500, []]))["result"].clone();
    let known = service(&data_folder("sample"), ServiceSettings::default());
    let block = |number: u32| ask(&known, "eth_getBlockByNumber", json!([number, false]));
    let base_fee = |number: u32| block(number)["result"]["baseFeePerGas"].clone();
    assert_eq!(told["baseFeePerGas"], json!([base_fee(499), base_fee(500), base_fee(501)]));
    assert_eq!(told["gasUsedRatio"].as_array().unwrap().len(), 2);
    assert!(told.get("baseFeePerBlobGas").is_none(), "{told}");
    assert!(told.get("blobGasUsedRatio").is_none(), "{told}");
    // Of headers without a base fee nobody knows when they will have one.
    let live = Live::with_blocks(3);
    let service = live.service(ServiceSettings::default());
    refused(&ask(&service, "eth_baseFee", json!([])), forks);
    refused(&ask(&service, "eth_feeHistory", json!([1, "latest", []])), forks);
    let held = ask(&service, "eth_feeHistory", json!([1, 1001, []]));
    assert_eq!(held["result"]["baseFeePerGas"], json!(["0x0", "0x0"]), "{held}");
}
