//! Answers that no golden file can show: settings without a flag, and stores that are damaged.

use std::fs;

use rpc::Settings;
use serde_json::{Value, json};

use crate::hosted::{respond, service};
use crate::served::Served;
use crate::stores::data_folder;

const UNKNOWN: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

fn call(id: u32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn while_a_tip_is_followed_an_unknown_hash_is_null_though_history_has_gaps() {
    let settings = Settings { is_following: true, ..Settings::default() };
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
    let settings = Settings { batch_bytes_max: 100, ..Settings::default() };
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
fn a_damaged_file_gives_an_internal_error_without_detail() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(data_folder("gap")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "segment") {
            // Pages lie in the middle; what describes them, at the end, stays whole.
            let middle = bytes.len() / 2;
            bytes[..middle].fill(0x55);
        }
        fs::write(folder.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
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
