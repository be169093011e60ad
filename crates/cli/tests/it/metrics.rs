//! `/metrics`: what was asked is counted, and shown where it is to be.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::admission::{ASKED, Kept, new_key};
use crate::harness::long::Long;
use crate::harness::run::text;
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::wait::{wait_for, wait_for_line};

/// Samples by name and labels, as they are written.
type Samples = BTreeMap<String, f64>;

fn samples(served: &Served) -> Samples {
    let answer = served.get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    let content_type = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(answer.head.contains(content_type), "{}", answer.head);
    let text = String::from_utf8(answer.body).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    };
    lines.map(sample).collect()
}

fn check(samples: &Samples, expected: &[(&str, f64)]) {
    let found: Vec<(&str, Option<f64>)> =
        expected.iter().map(|(name, _)| (*name, samples.get(*name).copied())).collect();
    let expected: Vec<_> = expected.iter().map(|(name, value)| (*name, Some(*value))).collect();
    assert_eq!(found, expected, "{samples:#?}");
}

#[test]
fn calls_are_counted_by_method_and_by_how_they_end() {
    let served = Served::start(&data_folder("gap"), &[]);
    let tip = served.result("eth_getBlockByNumber", &json!(["latest", false]));
    let transaction = &tip["transactions"][0];
    // Made, made again and kept, and then taken from the cache.
    for _ in 0..3 {
        served.result("eth_getTransactionByHash", &json!([transaction]));
    }
    served.call("eth_getTransactionByHash", &json!(["0x12"]));
    served.call("eth_getTransactionByBlockNumberAndIndex", &json!(["latest", "0xffff"]));
    served.call("eth_sendRawTransaction", &json!([]));
    served.post("no JSON");
    served.post(r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},7]"#);
    assert_eq!(served.get("/nothing").status, 404);
    let samples = samples(&served);
    let calls = |method: &str, outcome: &str| {
        let name = format!("quipu_rpc_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}}");
        samples.get(&name).copied()
    };
    for (method, outcome, count) in [
        ("eth_getBlockByNumber", "result", 1.0),
        ("eth_getTransactionByHash", "result", 3.0),
        ("eth_getTransactionByHash", "invalid_params", 1.0),
        ("eth_getTransactionByBlockNumberAndIndex", "null", 1.0),
        ("eth_chainId", "result", 1.0),
        ("unknown", "unknown_method", 1.0),
        ("invalid", "invalid_request", 2.0),
        ("forwarded", "result", 0.0),
    ] {
        assert_eq!(calls(method, outcome), Some(count), "{method} {outcome}: {samples:#?}");
    }
    assert_eq!(calls("eth_getLogs", "result"), None, "nobody called it");
    let method = "method=\"eth_getTransactionByHash\"";
    check(
        &samples,
        &[
            (&format!("quipu_rpc_call_duration_seconds_count{{{method}}}"), 4.0),
            (&format!("quipu_rpc_call_duration_seconds_bucket{{{method},le=\"+Inf\"}}"), 4.0),
            ("quipu_rpc_requests_total{transport=\"http\"}", 9.0),
            ("quipu_rpc_cache_hits_total", 1.0),
            // The block and the first two times of the transaction.
            ("quipu_rpc_cache_misses_total", 3.0),
            ("quipu_rpc_cache_entries", 1.0),
            ("quipu_http_refusals_total{code=\"404\"}", 1.0),
            ("quipu_http_connections_accepted_total", 11.0),
            ("quipu_ready", 1.0),
        ],
    );
    for (name, least) in [
        ("quipu_store_lookups_total", 2.0),
        ("quipu_store_pages_read_total", 3.0),
        ("quipu_rpc_response_bytes_total", 1000.0),
        ("quipu_chain_tip_timestamp_seconds", 1.0),
        ("quipu_store_gap_blocks", 1.0),
        ("quipu_store_size_bytes{part=\"transactions\"}", 1000.0),
        ("quipu_store_disk_free_bytes", 1.0),
        ("process_start_time_seconds", 1.7e9),
    ] {
        assert!(samples.get(name).is_some_and(|found| *found >= least), "{name}: {samples:#?}");
    }
    let tip = u64::from_str_radix(tip["number"].as_str().unwrap().trim_start_matches("0x"), 16);
    let shown = samples["quipu_chain_tip_block"];
    assert_eq!(shown.to_string(), tip.unwrap().to_string());
    // The server hears of a connection's end a little later than we do.
    wait_for_sample(&served, "quipu_http_connections{protocol=\"http1\"}", 1.0);
}

/// Waits until a sample has a value: a page is up to a second old.
fn wait_for_sample(served: &Served, name: &str, value: f64) {
    let found = || samples(served).get(name).copied();
    let is_so = || (found()? - value).abs().lt(&0.5).then_some(());
    wait_for(is_so, || format!("{name} is {:?}, not {value}", found()));
}

/// Both were absent with all else that is told of the folder, which cannot be looked at then.
#[test]
fn room_and_faulty_files_are_shown_also_where_a_file_is_missing() {
    let long = Long::new();
    fs::remove_file(long.path().join(&long.segments()[0])).unwrap();
    let served = Served::start(&long.path(), &[]);
    let samples = samples(&served);
    check(&samples, &[("quipu_ready", 0.0), ("quipu_store_faulty_files", 1.0)]);
    assert!(samples["quipu_store_disk_free_bytes"] > 0.0, "{samples:#?}");
}

/// Seen: a POST to `/readyz` was refused and counted nowhere.
#[test]
fn guesses_of_keys_are_counted_wherever_they_are_made() {
    let (key, table) = new_key("a", "");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quipu.toml");
    fs::write(&path, table).unwrap();
    let served = Served::start(&data_folder("sample"), &["--config", text(&path)]);
    for path in ["/", "/readyz", "/v1/qk_guessed/readyz"] {
        assert_eq!(Kept::to(&served.address).post(path, "", ASKED).0, 401, "{path}");
    }
    let page = String::from_utf8(served.get(&format!("/v1/{key}/metrics")).body).unwrap();
    assert!(page.contains("quipu_http_refusals_total{code=\"401\"} 3\n"), "{page}");
}

/// What a search of the log index reads was counted nowhere.
#[test]
fn lookups_in_the_log_index_are_counted() {
    let served = Served::start(&data_folder("gap"), &[]);
    let address = "0x1111111111111111111111111111111111111111";
    let filter = json!([{ "fromBlock": "0x50", "toBlock": "0x60", "address": address }]);
    assert_eq!(served.result("eth_getLogs", &filter), json!([]));
    let samples = samples(&served);
    let lookups = samples["quipu_store_lookups_total"];
    assert!(lookups >= 1.0, "{samples:#?}");
}

/// A request that goes by the fast path, or by hyper because of a field that is left to it.
fn request(more: &str, body: &str) -> String {
    let length = body.len();
    let head = "POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {length}\r\n{more}\r\n{body}")
}

/// A request that takes so long is logged.
const SLOW: Duration = Duration::from_millis(5);

const BY_HYPER: &str = "origin: http://a\r\n";

/// The head of an answer, in small letters.
fn head_of(served: &Served, request: &str) -> String {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0; 1];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    String::from_utf8(answer).unwrap().to_ascii_lowercase()
}

/// Seen: whoever asked for much and gave up left neither a count nor a line.
#[test]
fn a_request_that_its_client_gives_up_is_counted_and_logged() {
    let call = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    // A node that takes a connection and never answers.
    let node = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("--pass-through-to=http://{}", node.local_addr().unwrap());
    let slow = format!("--slow-request={}ms", SLOW.as_millis());
    let args = [&*slow, "--log-format=json", "--pass-through=eth_call", &to];
    let (served, lines) = Served::start_logged(&data_folder("gap"), &args);
    let mut stream = TcpStream::connect(served.address()).unwrap();
    let both = ["eth_chainId", "eth_call"].map(|method| request("", &call(method)));
    stream.write_all(both.concat().as_bytes()).unwrap();
    // The first is answered. What is not read when a socket is closed makes its end a reset.
    assert!(stream.peek(&mut [0; 1]).unwrap() > 0);
    let _asked = node.accept().unwrap();
    // It is slow from here on.
    thread::sleep(SLOW);
    drop(stream);
    let line = wait_for_line(&lines, "a slow request was cancelled", &mut Vec::new());
    let line: Value = serde_json::from_str(&line).unwrap();
    let fields = &line["fields"];
    assert_eq!((&fields["asked"], &fields["answer_bytes"]), (&json!("eth_call"), &json!(0)));
    let name = "quipu_rpc_calls_total{method=\"forwarded\",outcome=\"cancelled\"}";
    wait_for_sample(&served, name, 1.0);
}

#[test]
fn a_port_of_their_own_answers_three_pages_and_no_calls() {
    let args = ["--metrics-listen", "127.0.0.1:0"];
    let (mut served, lines) = Served::start_logged(&data_folder("gap"), &args);
    let find = |line: String| {
        let address = line.strip_prefix("metrics on http://")?.strip_suffix("/metrics")?;
        Some(address.to_owned())
    };
    let address = lines.iter().find_map(find).expect("the address of the metrics");
    served.result("eth_blockNumber", &json!([]));
    assert_eq!(served.get("/metrics").status, 404);
    served.address = address;
    let watched = served;
    let calls = "quipu_rpc_calls_total{method=\"eth_blockNumber\",outcome=\"result\"}";
    check(&samples(&watched), &[(calls, 1.0), ("quipu_http_refusals_total{code=\"404\"}", 1.0)]);
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/", 404),
        ("/stat.json", 404),
        ("/openrpc.json", 404),
    ] {
        assert_eq!(watched.get(path).status, status, "{path}");
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let refused = watched.post(call);
    assert_eq!(refused.status, 405, "{refused:?}");
    assert!(refused.head.contains("allow: get, head"), "{}", refused.head);
    let head = b"HEAD /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    let head = watched.send(head);
    assert_eq!((head.status, head.body.len()), (200, 0), "{head:?}");
}

/// Seen: nothing told which requests kept a server busy, or which had failed.
#[test]
fn slow_and_failed_requests_are_logged_with_an_id_and_do_not_fill_the_log() {
    // Everything is slow, and nobody listens where calls are passed to.
    let args = [
        "--slow-request=0.001ms",
        "--log-format=json",
        "--pass-through=eth_call",
        "--pass-through-to=http://127.0.0.1:1",
    ];
    let (served, lines) = Served::start_logged(&data_folder("gap"), &args);
    let next = |text: &str| {
        let line = wait_for_line(&lines, text, &mut Vec::new());
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["level"], "WARN", "{line}");
        line["fields"].clone()
    };
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    for (id, more) in [("fast-1", ""), ("hyper-1", BY_HYPER)] {
        let head = head_of(&served, &request(&format!("X-Request-Id: {id}\r\n{more}"), body));
        assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
        let fields = next("a request was slow");
        assert_eq!(fields["request_id"], id, "{fields}");
        assert_eq!(fields["asked"], "eth_blockNumber", "{fields}");
        assert_eq!(fields["body_bytes"], body.len(), "{fields}");
        // An id that is made for a line is told to the client.
        let failing = body.replace("eth_blockNumber", "eth_call");
        let head = head_of(&served, &request(&format!("x-request-id: a b\r\n{more}"), &failing));
        let fields = next("a request failed");
        assert_eq!(fields["asked"], "eth_call", "{fields}");
        let made = fields["request_id"].as_str().unwrap();
        assert_eq!(made.len(), 8, "{fields}");
        assert!(head.contains(&format!("x-request-id: {made}")), "{head}");
    }
    assert_eq!(served.call("eth_call", &json!([]))["error"]["code"], -32603);
    for _ in 0..60 {
        served.post(body);
    }
    assert_eq!(served.stop(), Some(0));
    let slow = lines.iter().filter(|line| line.contains("a request was slow")).count();
    assert!((7..30).contains(&slow), "{slow} lines about 60 requests");
}
