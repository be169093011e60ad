//! JSON-RPC over WebSocket: the same answers as over HTTP, the same limits, and how sockets end.

use std::io::Write as _;
use std::time::Duration;

use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::hosted::{Hosted, respond, service, service_that_stalls};
use crate::harness::live::Live;
use crate::harness::socket::Socket;
use crate::harness::stores::data_folder;

fn hosted(settings: HttpSettings) -> Hosted {
    Hosted::start(service(&data_folder("gap"), ServiceSettings::default()), settings)
}

fn call(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn every_call_and_batch_is_answered_as_over_http() {
    let folder = data_folder("sample");
    let over_http = service(&folder, ServiceSettings::default());
    let hosted =
        Hosted::start(service(&folder, ServiceSettings::default()), HttpSettings::default());
    let mut socket = Socket::open(&hosted);
    let long = call(1, "eth_getBlockByNumber", &json!([20, true]));
    let unknown = call(2, "eth_getLogs", &json!([{}]));
    let bad = call(3, "eth_getBlockByNumber", &json!(["10", true]));
    for asked in [long.clone(), unknown.clone(), json!([bad, long, unknown]), json!([]), json!(7)] {
        let asked = asked.to_string();
        socket.send_text(&asked);
        assert_eq!(Some(socket.next()), respond(&over_http, &asked), "{asked}");
    }
    // What is not JSON is refused, and the connection goes on.
    socket.send_text("{");
    assert_eq!(socket.next()["error"]["code"], -32700);
    // Notifications are not answered: what comes next belongs to the call after them.
    socket.send_text(r#"{"jsonrpc":"2.0","method":"eth_blockNumber"}"#);
    assert_eq!(socket.call("eth_chainId", &json!([]))["result"], "0x1352505");
}

#[test]
fn calls_that_are_sent_at_once_are_all_answered_by_their_ids() {
    let hosted = hosted(HttpSettings::default());
    let mut socket = Socket::open(&hosted);
    for id in 0..500 {
        socket.send_text(&call(id, "eth_getBlockByNumber", &json!([id % 40, false])).to_string());
    }
    let mut answers: Vec<(u64, Value)> = Vec::new();
    for _ in 0..500 {
        let answer = socket.next();
        answers.push((answer["id"].as_u64().unwrap(), answer["result"]["number"].clone()));
    }
    answers.sort_by_key(|(id, _)| *id);
    for (position, (id, number)) in answers.into_iter().enumerate() {
        assert_eq!(id, u64::try_from(position).unwrap());
        assert_eq!(number, format!("{:#x}", id % 40));
    }
}

#[test]
fn no_more_calls_are_taken_on_than_may_be_under_way() {
    let service = service_that_stalls(&data_folder("gap"));
    let settings = HttpSettings {
        answer_timeout: Duration::from_millis(300),
        socket_requests_max: 2,
        ..HttpSettings::default()
    };
    let hosted = Hosted::start(service, settings);
    let mut socket = Socket::open(&hosted);
    // Batches of reads of which some wait for ever: the last call is taken on when one has timed out.
    let reads: Vec<Value> = (1..=39)
        .map(|number| call(number, "eth_getBlockByNumber", &json!([number, true])))
        .collect();
    for _ in 0..2 {
        socket.send_text(&Value::from(reads.clone()).to_string());
    }
    socket.send_text(&call(99, "eth_blockNumber", &json!([])).to_string());
    let first = socket.next();
    assert!(first.to_string().contains("request timed out"), "{first}");
    let others = [socket.next(), socket.next()];
    assert!(others.iter().any(|answer| answer["id"] == 99), "{others:?}");
}

#[test]
fn messages_that_are_too_long_or_no_text_end_the_connection_with_a_reason() {
    let settings = HttpSettings { body_bytes_max: 1000, ..HttpSettings::default() };
    let hosted = hosted(settings);
    let fitting = format!("{}{}", call(1, "eth_blockNumber", &json!([])), " ".repeat(900));
    let mut socket = Socket::open(&hosted);
    socket.send_text(&fitting);
    assert_eq!(socket.next()["result"], "0x63");
    socket.send_text(&" ".repeat(1001));
    assert_eq!(socket.closed(), (1009, "message too large".to_owned()));
    let mut socket = Socket::open(&hosted);
    socket.send(Message::binary(fitting.into_bytes()));
    assert_eq!(socket.closed(), (1003, "send text frames".to_owned()));
    // A text frame with half a character, masked with zeros.
    let mut stream = hosted.connect();
    let head = "GET / HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[0x81, 0x81, 0, 0, 0, 0, 0xff]).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut bytes).unwrap();
    let close = [&[0x88, 23, 0x03, 0xef], b"text that is no UTF-8".as_slice()].concat();
    assert!(bytes.ends_with(&close), "{:?}", String::from_utf8_lossy(&bytes));
}

#[test]
fn only_those_who_may_ask_over_http_may_open_a_socket() {
    let settings = HttpSettings {
        cors_origins: vec!["https://a.example".to_owned()],
        hosts: vec!["test".to_owned()],
        ..HttpSettings::default()
    };
    let hosted = hosted(settings);
    let (status, body) = Socket::refused(&hosted, &[("origin", "https://b.example")]);
    assert_eq!((status, &body["error"]["message"]), (403, &json!("origin not allowed")));
    let (status, body) = Socket::refused(&hosted, &[("host", "other")]);
    assert_eq!((status, &body["error"]["message"]), (403, &json!("invalid host specified")));
    let (status, _) = Socket::refused(&hosted, &[("sec-websocket-version", "8")]);
    assert_eq!(status, 400);
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
}

#[test]
fn a_socket_has_its_place_for_as_long_as_it_is_open() {
    let settings = HttpSettings { connections_per_client_max: Some(1), ..HttpSettings::default() };
    let hosted = hosted(settings);
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
    assert_eq!(Socket::refused(&hosted, &[]).0, 429);
}

#[test]
fn a_silent_client_is_asked_for_a_sign_of_life_and_then_given_up() {
    let settings = HttpSettings {
        ping_interval: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(600),
        ..HttpSettings::default()
    };
    let hosted = hosted(settings);
    // This one answers pings, as reading does; it outlives the other, which does not read.
    let (mut alive, mut silent) = (Socket::open(&hosted), Socket::open(&hosted));
    for _ in 0..12 {
        let message = alive.message().unwrap();
        assert!(matches!(message, Message::Ping(_)), "{message:?}");
    }
    assert_eq!(alive.call("eth_blockNumber", &json!([]))["result"], "0x63");
    assert_eq!(silent.closed(), (1008, "silent for too long".to_owned()));
}

#[test]
fn a_server_that_stops_says_so_and_answers_what_it_was_asked() {
    let mut hosted = hosted(HttpSettings::default());
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
    hosted.stop();
    assert_eq!(socket.closed(), (1001, "the server stops".to_owned()));
}

#[test]
fn subscriptions_are_to_new_heads_and_logs_and_so_many_of_a_connection() {
    let live = Live::with_blocks(1);
    let settings = HttpSettings { subscriptions_max: 2, ..HttpSettings::default() };
    let hosted = Hosted::start(live.service(ServiceSettings::default()), settings);
    let mut socket = Socket::open(&hosted);
    for kind in ["newPendingTransactions", "syncing", "x\"y"] {
        let error = socket.call("eth_subscribe", &json!([kind]))["error"].clone();
        let message = format!("no \"{kind}\" subscription in eth namespace");
        assert_eq!(error, json!({ "code": -32601, "message": message }));
    }
    let pending = json!(["logs", { "fromBlock": "pending" }]);
    let downwards = json!(["logs", { "fromBlock": "0x2", "toBlock": "0x1" }]);
    for params in [json!([]), json!([7]), json!(["logs"]), json!(["logs", 7]), pending, downwards] {
        assert_eq!(socket.call("eth_subscribe", &params)["error"]["code"], -32602, "{params}");
    }
    let ids = [socket.subscribe(), socket.subscribe_to_logs(&json!({}))];
    assert_ne!(ids[0], ids[1]);
    let error = socket.call("eth_subscribe", &json!(["newHeads"]))["error"].clone();
    assert_eq!(error["message"], "too many subscriptions: 2 on this connection");
    // Those of another connection are not ours to end.
    let mut other = Socket::open(&hosted);
    let error = other.call("eth_unsubscribe", &json!([ids[0]]))["error"].clone();
    assert_eq!(error["message"], "subscription not found");
    // Over HTTP there is nowhere to send them.
    let over_http = live.service(ServiceSettings::default());
    for method in ["eth_subscribe", "eth_unsubscribe"] {
        let answer = respond(&over_http, &call(1, method, &json!(["newHeads"])).to_string());
        let error = answer.unwrap()["error"].clone();
        assert_eq!(error, json!({ "code": -32601, "message": "notifications not supported" }));
    }
}
