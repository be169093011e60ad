//! The server from outside: conformance, what is held and what is not, and bad manners.

use std::fs;

use serde_json::{Value, json};
use testing::shared_data::shared_data;

use crate::harness::data::{Data, write_part};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::wait::wait_until;

/// The conformance corpus of the execution APIs: every case of the methods that are served.
#[test]
fn the_conformance_corpus_is_answered_as_it_expects() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("data");
    let genesis = folder.join("execution-apis/genesis.json");
    let archive = folder.join("ere/hivechain-00000-d226371d-noproofs.ere");
    let import = ["import", "--data-dir", text(&data), "--genesis", text(&genesis), text(&archive)];
    quipu(&import).ends_with(0);
    let served = Served::start(&data, &[]);
    let mut count = 0;
    for method in fs::read_dir(folder.join("execution-apis")).unwrap() {
        let method = method.unwrap().path();
        for case in method.is_dir().then(|| fs::read_dir(&method).unwrap()).into_iter().flatten() {
            let path = case.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let mut lines = text.lines().filter(|line| !line.starts_with("//"));
            let request = lines.next().unwrap().strip_prefix(">> ").unwrap();
            let expected: Value =
                serde_json::from_str(lines.next().unwrap().strip_prefix("<< ").unwrap()).unwrap();
            let found = served.post(request).json();
            let is_same = if expected.get("error").is_some() {
                found["error"]["code"] == expected["error"]["code"]
            } else if text.contains("speconly") && !method.ends_with("eth_feeHistory") {
                found.get("result").is_some_and(|result| !result.is_null())
            } else {
                found == expected
            };
            assert!(is_same, "{}\n{request}\nexpected {expected}\nfound {found}", path.display());
            count += 1;
        }
    }
    assert_eq!(count, 74);
}

/// Blocks 0..39, a gap, and 60..99.
fn with_gap() -> Data {
    let data = Data::new();
    let genesis = data.genesis();
    for (name, blocks) in [("low", 0..=39), ("high", 60..=99)] {
        let part = write_part(&data.archive(), blocks, true, &data.folder.path().join(name));
        let args = ["--genesis", text(&genesis), "--unanchored", text(&part)];
        data.run("import", &args).ends_with(0);
    }
    data
}

const UNKNOWN: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

#[test]
fn value_absent_and_not_held_are_never_mixed_up() {
    let data = with_gap();
    let served = Served::start(&data.path(), &[]);
    assert_eq!(served.result("eth_getBlockByNumber", &json!(["0x5", false]))["number"], "0x5");
    assert_eq!(served.result("eth_getBlockByNumber", &json!([99, false]))["number"], "0x63");
    // Above the tip: absent. In the gap: not held, with what is.
    assert_eq!(served.result("eth_getBlockByNumber", &json!(["0x64", false])), Value::Null);
    let held = json!({ "held": [[0, 39], [60, 99]] });
    for (method, params) in [
        ("eth_getBlockByNumber", json!(["0x28", false])),
        ("eth_getBlockByNumber", json!([59, true])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x30", 0])),
        ("eth_getBlockReceipts", json!(["0x30"])),
        ("eth_getBlockByHash", json!([UNKNOWN, false])),
        ("eth_getTransactionByHash", json!([UNKNOWN])),
        ("eth_getTransactionReceipt", json!([UNKNOWN])),
        ("eth_getTransactionByBlockHashAndIndex", json!([UNKNOWN, "0x0"])),
    ] {
        let error = served.call(method, &params)["error"].clone();
        assert_eq!(error["code"], 4444, "{method} {params}");
        assert_eq!(error["data"], held, "{method} {params}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("pruned history unavailable: "), "{message}");
    }
    // The highest range is not anchored: nothing says that it is final.
    assert_eq!(served.result("eth_getBlockByNumber", &json!(["finalized", false])), Value::Null);
    assert_eq!(served.result("eth_getBlockByNumber", &json!(["pending", false])), Value::Null);
    assert_eq!(served.result("eth_getBlockByNumber", &json!(["earliest", false]))["number"], "0x0");
    assert_eq!(served.result("eth_capabilities", &json!([]))["blocks"]["oldestBlock"], "0x3c");
    let lenient = Served::start(&data.path(), &["--unknown-hash", "null"]);
    assert_eq!(lenient.result("eth_getTransactionReceipt", &json!([UNKNOWN])), Value::Null);
    assert_eq!(lenient.call("eth_getBlockByNumber", &json!([50, true]))["error"]["code"], 4444);
}

#[test]
fn where_all_of_history_is_held_an_unknown_hash_is_absent() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &["--unknown-hash", "refuse"]);
    for (method, params) in [
        ("eth_getBlockByHash", json!([UNKNOWN, true])),
        ("eth_getTransactionByHash", json!([UNKNOWN])),
        ("eth_getTransactionReceipt", json!([UNKNOWN])),
        ("eth_getTransactionByBlockHashAndIndex", json!([UNKNOWN, 0])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", 5000])),
    ] {
        assert_eq!(served.result(method, &params), Value::Null, "{method}");
    }
    let finalized = served.result("eth_getBlockByNumber", &json!(["finalized", false]));
    assert_eq!(finalized, served.result("eth_getBlockByNumber", &json!(["latest", false])));
}

#[test]
fn receipts_that_were_never_held_are_refused_and_not_null() {
    let data = Data::new();
    let part = write_part(&data.archive(), 0..=99, false, &data.folder.path().join("bare"));
    let genesis = data.genesis();
    let args = ["--genesis", text(&genesis), "--without-receipts", text(&part)];
    data.run("import", &args).ends_with(0);
    let served = Served::start(&data.path(), &[]);
    let (hash, _) = a_transaction(&served);
    assert_eq!(served.result("eth_getTransactionByHash", &json!([hash]))["hash"], hash.as_str());
    for (method, params) in
        [("eth_getTransactionReceipt", json!([hash])), ("eth_getBlockReceipts", json!([99]))]
    {
        let error = served.call(method, &params)["error"].clone();
        assert_eq!(error["code"], 4444, "{method}");
        assert!(
            error["message"].as_str().unwrap().starts_with("receipts not found: block "),
            "{error}"
        );
    }
}

/// A transaction's hash and its block.
fn a_transaction(served: &Served) -> (String, Value) {
    for number in (0..100).rev() {
        let block = served.result("eth_getBlockByNumber", &json!([number, false]));
        if let Some(hash) = block["transactions"][0].as_str() {
            return (hash.to_owned(), block);
        }
    }
    panic!("no transaction");
}

#[test]
fn every_way_to_a_transaction_gives_the_same() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &[]);
    for number in 0..100 {
        let block = served.result("eth_getBlockByNumber", &json!([number, true]));
        let hashes = served.result("eth_getBlockByHash", &json!([block["hash"], false]));
        let receipts = served.result("eth_getBlockReceipts", &json!([block["number"]]));
        let count = served.result("eth_getBlockTransactionCountByHash", &json!([block["hash"]]));
        let transactions = block["transactions"].as_array().unwrap();
        assert_eq!(count, json!(format!("{:#x}", transactions.len())));
        for (index, transaction) in transactions.iter().enumerate() {
            let hash = &transaction["hash"];
            assert_eq!(&hashes["transactions"][index], hash);
            for (method, params) in [
                ("eth_getTransactionByHash", json!([hash])),
                ("eth_getTransactionByBlockNumberAndIndex", json!([block["number"], index])),
                (
                    "eth_getTransactionByBlockHashAndIndex",
                    json!([block["hash"], format!("{index:#x}")]),
                ),
            ] {
                assert_eq!(&served.result(method, &params), transaction, "{method}");
            }
            let receipt = served.result("eth_getTransactionReceipt", &json!([hash]));
            assert_eq!(receipt, receipts[index]);
            for name in ["blockHash", "blockNumber", "transactionIndex", "from", "to", "type"] {
                assert_eq!(receipt[name], transaction[name], "{name}");
            }
        }
    }
}

#[test]
fn batches_are_answered_in_order_and_within_their_limits() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &[]);
    let answer = served.post(
        r#"[{"jsonrpc":"2.0","id":2.50,"method":"eth_blockNumber"},
            {"jsonrpc":"2.0","method":"eth_blockNumber"},
            {"jsonrpc":"2.0","id":"a","method":"nothing"},
            7,
            {"jsonrpc":"2.0","id":null,"method":"eth_chainId","params":[1,2,3]}]"#,
    );
    let text = String::from_utf8(answer.body).unwrap();
    let expected = concat!(
        r#"[{"jsonrpc":"2.0","id":2.50,"result":"0x63"},"#,
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"the method nothing does not exist/is not available"}},"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}},"#,
        r#"{"jsonrpc":"2.0","id":null,"result":"0x1352505"}]"#,
    );
    assert_eq!(text, expected);
    let call = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_blockNumber"}}"#);
    let batch = |count: usize| format!("[{}]", (0..count).map(call).collect::<Vec<_>>().join(","));
    let full = served.post(&batch(1000)).json();
    assert!(full.as_array().unwrap().iter().all(|item| item["result"] == "0x63"));
    let over = served.post(&batch(1001)).json();
    assert_eq!(over.as_array().unwrap().len(), 1001);
    let is_refused = |(id, item): (usize, &Value)| {
        item["error"]["message"] == "batch too large" && item["id"] == json!(id)
    };
    assert!(over.as_array().unwrap().iter().enumerate().all(is_refused));
    let silent = served.post(r#"[{"jsonrpc":"2.0","method":"eth_blockNumber"}]"#);
    assert_eq!((silent.status, silent.body.len()), (200, 0));
}

#[test]
fn the_transport_refuses_with_a_reason() {
    let data = Data::imported();
    let served = Served::start(
        &data.path(),
        &["--allowed-host", "test", "--cors-origin", "https://a.example"],
    );
    assert_eq!(served.get("/healthz").body, b"ok\n");
    assert_eq!(served.get("/readyz").status, 200);
    assert_eq!(served.get("/").json()["tip"], "0x63");
    assert_eq!(served.get("/openrpc.json").json()["info"]["title"], "Quipu");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#.as_bytes();
    let too_large = vec![b' '; (5 << 20) + 1];
    let cases: [(u16, &str, &[u8]); 7] = [
        (200, "", body),
        (200, "content-type: application/json-rpc; charset=utf-8\r\n", body),
        (415, "content-type: text/html\r\n", body),
        (415, "content-type: text/plain\r\norigin: https://b.example\r\n", body),
        (415, "content-encoding: compress\r\n", body),
        (400, "content-encoding: gzip\r\n", body),
        (413, "content-type: application/json\r\n", &too_large),
    ];
    for (status, headers, body) in cases {
        let answer = served.post_with(headers, body);
        assert_eq!(answer.status, status, "{headers}");
        assert!(answer.json().get("jsonrpc").is_some(), "{headers}");
    }
    let put = served
        .send(b"PUT / HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    assert!(put.status == 405 && put.head.contains("allow: post"), "{put:?}");
    let foreign = served.send(b"GET / HTTP/1.1\r\nhost: evil\r\nconnection: close\r\n\r\n");
    assert_eq!(foreign.status, 403);
    let asked = "OPTIONS / HTTP/1.1\r\nhost: test\r\nconnection: close\r\norigin: https://a.example\r\n\r\n";
    let preflight = served.send(asked.as_bytes());
    assert!(
        preflight.status == 204
            && preflight.head.contains("access-control-allow-origin: https://a.example")
    );
}

#[test]
fn a_server_stops_when_it_is_told_and_says_why_it_cannot_start() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &[]);
    served.result("eth_blockNumber", &json!([]));
    assert_eq!(served.stop(), Some(0));
    let nowhere = data.folder.path().join("nowhere");
    let ran =
        quipu(&["serve", "--listen", "127.0.0.1:0", "--data-dir", text(&nowhere)]).ends_with(1);
    assert!(ran.err.contains("there is no data folder here"), "{}", ran.err);
    let ran = data.run("serve", &["--listen", "192.0.2.1:1"]).ends_with(1);
    assert!(ran.err.contains("192.0.2.1:1: cannot listen"), "{}", ran.err);
    assert!(ran.err.contains("hint: this machine has no address 192.0.2.1"), "{}", ran.err);
    let metrics = ["--listen", "127.0.0.1:0", "--metrics-listen", "192.0.2.1:1"];
    let ran = data.run("serve", &metrics).ends_with(1);
    assert!(ran.err.contains("with --metrics-listen"), "{}", ran.err);
    data.run("serve", &["--listen", "here"]).ends_with(2);
}

#[test]
fn a_server_says_at_the_start_what_it_serves_and_keeps_its_limits_to_itself() {
    let data = Data::imported();
    let (served, lines) = Served::start_logged(&data.path(), &[]);
    let serving = lines.iter().find(|line| line.contains("serving ")).unwrap();
    for expected in [
        "chain=\"sample\"".to_owned(),
        "chain_id=20260101".to_owned(),
        "blocks=\"0..99\"".to_owned(),
        "tip=99".to_owned(),
        "tip_age=\"".to_owned(),
        format!("address=\"http://{}\"", served.address()),
        format!("explorer=\"http://{}/\"", served.address()),
    ] {
        assert!(serving.contains(&expected), "{expected}: {serving}");
    }
    assert!(!serving.contains("upstream="), "nothing is followed: {serving}");
    assert_eq!(served.stop(), Some(0));
    let rest: Vec<String> = lines.iter().collect();
    assert!(!rest.iter().any(|line| line.contains("descriptors") || line.contains("limits")));
    let node = Served::start(&data.path(), &[]);
    let (upstream, genesis) = (format!("http://{}", node.address()), data.genesis());
    let args = ["--upstream", &upstream, "--genesis", text(&genesis), "--no-explorer"];
    let (_served, lines) = Served::start_logged(&data.folder.path().join("copy"), &args);
    let serving = lines.iter().find(|line| line.contains("serving ")).unwrap();
    assert!(serving.contains(&format!("upstream=\"{}\"", node.address())), "{serving}");
    assert!(!serving.contains("explorer="), "{serving}");
}

#[test]
fn what_an_import_adds_is_seen_without_a_restart() {
    let data = Data::new();
    let genesis = data.genesis();
    let parts = [0..=49, 50..=99].map(|blocks| {
        let name = blocks.start().to_string();
        write_part(&data.archive(), blocks, true, &data.folder.path().join(name))
    });
    data.run("import", &["--genesis", text(&genesis), text(&parts[0])]).ends_with(0);
    let served = Served::start(&data.path(), &[]);
    assert_eq!(served.result("eth_blockNumber", &json!([])), "0x31");
    data.run("import", &[text(&parts[1])]).ends_with(0);
    wait_until(|| served.result("eth_blockNumber", &json!([])) == "0x63");
    assert_eq!(served.result("eth_getBlockByNumber", &json!([70, true]))["number"], "0x46");
}
