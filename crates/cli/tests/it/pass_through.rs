//! What is not served here and goes to a node: which calls do, and what comes back.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use rpc::http::HttpSettings;
use rpc::{
    AnswerRoom, CatchingUp, Health, PassThrough, PassThroughError, Passing, Service,
    ServiceSettings,
};
use serde_json::{Value, json};

use crate::harness::hosted::{Hosted, respond, service};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::socket::Socket;
use crate::harness::stores::{self, data_folder};
use crate::harness::upstream::{HALVES_BYTES, SaidIdentity, TOGETHER, Upstream};
use crate::harness::wait::wait_until;

fn passing(store: &str, upstream: &Upstream, methods: &str) -> Served {
    stores::serve(store, &["--pass-through-to", &upstream.url, "--pass-through", methods])
}

fn unknown(method: &str) -> Value {
    let message = format!("the method {method} does not exist/is not available");
    json!({ "code": -32601, "message": message })
}

#[test]
fn methods_that_are_not_served_go_to_the_node_and_come_back_with_the_clients_id() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*,made_*,txpool_content");
    let answer = served.post(
        r#"[{"jsonrpc":"2.0","id":2.50,"method":"eth_call","params":[{"to": "0x1"}, "latest"]},
            {"jsonrpc":"2.0","id":"a","method":"eth_blockNumber"},
            {"jsonrpc":"2.0","method":"eth_call"},
            {"jsonrpc":"2.0","id":null,"method":"made_refuse","params":[]},
            {"jsonrpc":"2.0","id":1,"method":"txpool_status"},
            {"jsonrpc":"2.0","id":2,"method":"eth_sendTransaction","params":[{}]},
            {"jsonrpc":"2.0","id":3,"method":"txpool_content"}]"#,
    );
    let expected = concat!(
        r#"[{"jsonrpc":"2.0","id":2.50,"result":[{"to":"0x1"},"latest"]},"#,
        r#"{"jsonrpc":"2.0","id":"a","result":"0x63"},"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":3,"message":"reverted","data":"0x"}},"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method txpool_status does not exist/is not available"}},"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"the method eth_sendTransaction does not exist/is not available"}},"#,
        r#"{"jsonrpc":"2.0","id":3,"result":[]}]"#,
    );
    assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
    assert_eq!(served.result("eth_call", &json!([1])), json!([1]));
    for method in ["eth_sign", "personal_sign", "admin_peers", "debug_setHead"] {
        assert_eq!(served.call(method, &json!([]))["error"], unknown(method));
    }
    let mut asked = upstream.asked();
    asked.sort();
    assert_eq!(asked, ["eth_call", "eth_call", "made_refuse", "txpool_content"]);
    // Without the flag nothing goes anywhere.
    let closed = stores::serve("gap", &[]);
    let error = closed.call("eth_call", &json!([]))["error"].clone();
    assert_eq!(error["code"], -32601);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("needs state, which Quipu does not store"), "{message}");
    assert!(message.ends_with("--pass-through eth_call"), "{message}");
}

/// It went to the node past the answer that is held here.
#[test]
fn a_name_in_another_case_is_neither_served_nor_forwarded() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*,made_*");
    for method in ["ETH_GETLOGS", "eth_getlogs", "Eth_call", "eth_Call", "MADE_REFUSE"] {
        assert_eq!(served.call(method, &json!([{}]))["error"], unknown(method));
    }
    assert!(upstream.asked().is_empty(), "{:?}", upstream.asked());
    assert_eq!(served.result("eth_call", &json!([1])), json!([1]));
}

/// A list that is not stored is the node's to know, whatever its block is.
#[test]
fn access_lists_are_asked_of_the_node() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*");
    for block in ["0x0", "0x30", "latest", "pending"] {
        let params = json!([block]);
        assert_eq!(served.result("eth_getBlockAccessList", &params), params);
    }
    let error = served.call("debug_getRawBlockAccessList", &json!(["0x0"]))["error"].clone();
    assert_eq!(error["code"], -32001, "{error}");
}

#[test]
fn calls_of_a_batch_are_on_their_way_together_and_answered_in_order() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "made_together");
    // Each is answered when all have come: one after the other they never would be.
    let call = |id: usize, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": [id] });
    let mut calls: Vec<Value> = (0..TOGETHER * 3).map(|id| call(id, "made_together")).collect();
    calls.insert(5, call(1000, "eth_blockNumber"));
    let answers = served.post(&Value::from(calls.clone()).to_string()).json();
    for (answer, call) in answers.as_array().unwrap().iter().zip(&calls) {
        assert_eq!(answer["id"], call["id"]);
        let expected = if call["id"] == 1000 { json!("0x63") } else { call["params"].clone() };
        assert_eq!(answer["result"], expected);
    }
}

#[test]
fn a_node_that_fails_gives_an_error_and_the_next_call_goes_well() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*,made_*");
    let failed = json!({ "code": -32603, "message": "upstream node gave no answer" });
    for method in ["made_cut", "made_busy", "made_garbage"] {
        assert_eq!(served.call(method, &json!([]))["error"], failed, "{method}");
        assert_eq!(served.result("eth_call", &json!([method])), json!([method]));
    }
    let error = served.call("made_long", &json!([]))["error"].clone();
    assert_eq!(error, json!({ "code": -32003, "message": "response too large" }));
    // What was never sent, because a kept connection was closed, is sent on another.
    assert_eq!(served.result("made_last", &json!([1])), json!([1]));
    upstream.wait_until_left();
    assert_eq!(served.result("eth_call", &json!([2])), json!([2]));
    // Nobody listens there.
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nowhere}");
    let served = stores::serve("gap", &["--pass-through-to", &url, "--pass-through", "eth_call"]);
    assert_eq!(served.call("eth_call", &json!([]))["error"], failed);
}

/// Answers of nodes were counted when they had come whole: 64 of 25 MB were beside the budget.
#[test]
fn answers_of_a_node_are_counted_while_they_come() {
    let upstream = Upstream::start();
    let args = ["--pass-through-to", &upstream.url, "--pass-through", "eth_*,made_*"];
    let limits = ["--body-bytes-max=64KiB", "--bytes-under-way-max=1MiB", "--answer-timeout=60s"];
    let served = stores::serve("gap", &[&args[..], &limits].concat());
    let call = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let told = json!({ "code": -32000, "message": "too many bytes under way; try again" });
    let held_back = upstream.hold_back();
    std::thread::scope(|scope| {
        let longest = scope.spawn(|| served.result("made_in_halves", &json!([])));
        upstream.wait_until_half_sent();
        // The one that is always admitted has come in part: there is no room for another one.
        let refused = served.post(&call(7, "made_middling").to_string());
        let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": told });
        assert_eq!((refused.status, refused.json()), (503, expected));
        let batch = json!([call(1, "eth_call"), call(2, "made_middling")]);
        let refused = served.post(&batch.to_string());
        let expected = json!([
            { "jsonrpc": "2.0", "id": 1, "error": told },
            { "jsonrpc": "2.0", "id": 2, "error": told },
        ]);
        assert_eq!((refused.status, refused.json()), (503, expected));
        // What is short is passed as ever.
        assert_eq!(served.result("eth_call", &json!([1])), json!([1]));
        drop(held_back);
        assert_eq!(longest.join().unwrap().as_str().unwrap().len(), HALVES_BYTES);
    });
    // The place goes to the next one.
    wait_until(|| served.get("/stat.json").json()["live"]["bytes_under_way"] == 0);
    assert_eq!(served.result("made_in_halves", &json!([])).as_str().unwrap().len(), HALVES_BYTES);
}

#[test]
fn a_hash_that_is_not_found_is_asked_of_the_node_where_history_has_gaps() {
    let hash = "0x1111111111111111111111111111111111111111111111111111111111111111";
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_getTransactionReceipt");
    assert_eq!(served.result("eth_getTransactionReceipt", &json!([hash])), json!([hash]));
    // What is not named is answered as ever; so is a number, which is known not to be held.
    assert_eq!(served.call("eth_getTransactionByHash", &json!([hash]))["error"]["code"], 4444);
    assert_eq!(served.call("eth_getBlockByNumber", &json!([50, false]))["error"]["code"], 4444);
    // Where all is held, what is not found does not exist.
    let whole = passing("sample", &upstream, "eth_getTransactionReceipt");
    assert_eq!(whole.result("eth_getTransactionReceipt", &json!([hash])), Value::Null);
    assert_eq!(upstream.asked(), ["eth_getTransactionReceipt"]);
}

#[test]
fn what_may_never_go_is_refused_when_the_server_starts() {
    let folder = data_folder("gap");
    let serve = ["serve", "--data-dir", text(&folder), "--listen", "127.0.0.1:0"];
    let refused = |args: &[&str]| quipu(&[&serve[..], args].concat()).ends_with(2).err;
    let upstream = ["--pass-through-to", "http://127.0.0.1:1"];
    for methods in ["eth_sign", "eth_call,personal_*", "debug_setHead", "engine_newPayloadV4"] {
        let err = refused(&[&upstream[..], &["--pass-through", methods]].concat());
        assert!(err.contains("is never passed on: it signs with a node's keys"), "{err}");
    }
    let err = refused(&[&upstream[..], &["--pass-through", "*"]].concat());
    assert!(err.contains("write a method such as eth_call"), "{err}");
    assert!(refused(&["--pass-through", "eth_call"]).contains("--pass-through-to"));
}

/// Block 0 of a store as a node tells it.
fn genesis_of(store: &str) -> Value {
    stores::serve(store, &[]).result("eth_getBlockByNumber", &json!(["0x0", false]))
}

/// Block 0 of a chain that shares the chain id and nothing else.
fn another_genesis() -> Value {
    let header = alloy_consensus::Header { gas_limit: 7, ..alloy_consensus::Header::default() };
    serde_json::to_value(alloy_rpc_types_eth::Header::new(header)).unwrap()
}

fn not_passed(reason: &str) -> Value {
    json!({ "code": -32000, "message": format!("not passed to the upstream node: {reason}") })
}

#[test]
fn nothing_is_passed_to_a_node_of_another_chain() {
    let foreign = SaidIdentity { chain_id: 5, genesis: Value::Null };
    let upstream = Upstream::with_identity(foreign.clone());
    let served = passing("gap", &upstream, "eth_*,made_*");
    let error = not_passed("it has chain id 5, expected 20260101");
    for method in ["eth_getBalance", "eth_call", "eth_getBalance"] {
        assert_eq!(served.call(method, &json!([{}]))["error"], error, "{method}");
    }
    assert!(upstream.asked().is_empty(), "{:?}", upstream.asked());
    // One that shares the chain id alone is another chain too.
    let genesis = another_genesis();
    let shadow = SaidIdentity { genesis: genesis.clone(), ..SaidIdentity::default() };
    let shadow = Upstream::with_identity(shadow);
    let served = passing("gap", &shadow, "eth_*");
    let answer = served.call("eth_getBalance", &json!([{}]));
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let begin = format!("not passed to the upstream node: it has genesis hash {}", genesis["hash"]);
    assert!(message.starts_with(&begin.replace('"', "")), "{message}");
    assert!(shadow.asked().is_empty(), "{:?}", shadow.asked());
    // Ours is asked.
    let ours = SaidIdentity { genesis: genesis_of("gap"), ..SaidIdentity::default() };
    let ours = Upstream::with_identity(ours);
    let served = passing("gap", &ours, "eth_*");
    assert_eq!(served.result("eth_getBalance", &json!([{}])), json!([{}]));
    assert_eq!(ours.asked(), ["eth_getBalance"]);
}

#[test]
fn a_node_that_is_exchanged_behind_its_name_is_asked_again_which_chain_it_is() {
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*,made_*");
    assert_eq!(served.result("eth_call", &json!([1])), json!([1]));
    let error = not_passed("it has chain id 5, expected 20260101");
    // After a failure.
    upstream.become_another(SaidIdentity { chain_id: 5, genesis: Value::Null });
    assert_eq!(served.call("made_cut", &json!([]))["error"]["code"], -32603);
    assert_eq!(served.call("eth_call", &json!([2]))["error"], error);
    // On a connection that was made anew, because the other one was closed.
    let upstream = Upstream::start();
    let served = passing("gap", &upstream, "eth_*,made_*");
    assert_eq!(served.result("made_last", &json!([1])), json!([1]));
    upstream.wait_until_left();
    upstream.become_another(SaidIdentity { chain_id: 5, genesis: Value::Null });
    assert_eq!(served.call("eth_call", &json!([2]))["error"], error);
}

/// A follower whose node contradicts what is final here.
#[derive(Debug)]
struct Contradicted;

impl Health for Contradicted {
    fn troubles(&self) -> Vec<String> {
        self.conflict().into_iter().collect()
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        None
    }

    fn conflict(&self) -> Option<String> {
        Some("block 90 is final as 0x01 here, and 0x02 by the upstream".to_owned())
    }
}

#[test]
fn in_a_conflict_nothing_is_passed_to_a_node() {
    let service = with_node(Some(r#"{"result":"0x7"}"#)).with_health(Arc::new(Contradicted));
    let ask = |method: &str, params: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        respond(&service, &call.to_string()).unwrap()
    };
    let error = not_passed("block 90 is final as 0x01 here, and 0x02 by the upstream");
    assert_eq!(ask("eth_call", json!([]))["error"], error);
    // Nor what we do not find, where history has gaps.
    let hash = "0x1111111111111111111111111111111111111111111111111111111111111111";
    assert_eq!(ask("eth_getTransactionReceipt", json!([hash]))["error"], error);
    assert_eq!(ask("eth_blockNumber", json!([]))["result"], "0x63");
}

/// A node that never answers, or at once.
#[derive(Debug)]
struct Node {
    answer: Option<&'static str>,
}

impl PassThrough for Node {
    fn ask<'a>(&'a self, _: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
        match self.answer {
            Some(answer) => Box::pin(std::future::ready(Ok(answer.into()))),
            None => Box::pin(std::future::pending::<Result<_, PassThroughError>>()),
        }
    }
}

fn with_node(answer: Option<&'static str>) -> Service {
    with_settings_and_node(ServiceSettings::default(), answer)
}

fn with_settings_and_node(settings: ServiceSettings, answer: Option<&'static str>) -> Service {
    let methods = vec!["eth_*".parse().unwrap()];
    let service = service(&data_folder("gap"), settings);
    service.with_pass_through(methods, Arc::new(Node { answer }))
}

#[test]
fn over_websocket_calls_go_to_the_node_too_and_wait_no_longer_than_others() {
    let hosted = Hosted::start(with_node(Some(r#"{"result":"0x7"}"#)), HttpSettings::default());
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_call", &json!([]))["result"], "0x7");
    // Subscriptions are ours or nobody's.
    let error = socket.call("eth_subscribe", &json!(["syncing"]))["error"].clone();
    assert_eq!(error["message"], "no \"syncing\" subscription in eth namespace");
    // A filter that is not ours may be one of pending transactions, which the node has.
    for method in ["eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"] {
        assert_eq!(socket.call(method, &json!(["0x1"]))["result"], "0x7", "{method}");
    }
    let settings =
        HttpSettings { answer_timeout: Duration::from_millis(200), ..HttpSettings::default() };
    let hosted = Hosted::start(with_node(None), settings);
    let mut socket = Socket::open(&hosted);
    let calls = [1, 2].map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_call" }));
    socket.send_text(&json!(calls).to_string());
    // A call that waits for the node holds up none that does not.
    assert_eq!(socket.call("eth_chainId", &json!([]))["result"], "0x1352505");
    let late = socket.kept_or_next();
    for answer in late.as_array().unwrap() {
        assert_eq!(answer["error"], json!({ "code": -32002, "message": "request timed out" }));
    }
}

/// They were made here, over a store that does not grow, and never told of a new block.
#[test]
fn without_a_follower_filters_are_made_by_the_node() {
    let node = Some(r#"{"result":"0x7"}"#);
    let ask = |service: &Service, method: &str, params: &Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        respond(service, &call.to_string()).unwrap()["result"].clone()
    };
    let (still, filters) = (with_node(node), ["eth_newFilter", "eth_newBlockFilter"]);
    for method in filters {
        assert_eq!(ask(&still, method, &json!([{}])), "0x7", "{method}");
    }
    let settings = ServiceSettings { is_following: true, ..ServiceSettings::default() };
    let following = with_settings_and_node(settings, node);
    for method in filters {
        let ours = ask(&following, method, &json!([{}]));
        assert_eq!(ask(&following, "eth_getFilterChanges", &json!([ours])), json!([]), "{ours}");
        assert_eq!(ask(&following, "eth_uninstallFilter", &json!([ours])), true);
    }
}
