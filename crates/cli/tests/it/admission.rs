//! Who may ask: keys, methods and rates, over every protocol and both paths of HTTP/1.1.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rpc::http::HttpSettings;
use rpc::{
    Admission, AdmissionError, AdmissionSettings, ApiKey, KeyHash, KeyRequirement, Rates,
    ServiceSettings,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::harness::encrypted::Authority;
use crate::harness::hosted::{Hosted, service};
use crate::harness::http2::{DATA, Http2};
use crate::harness::run::{command, quipu, ran, text};
use crate::harness::served::Served;
use crate::harness::socket::Socket;
use crate::harness::stores::data_folder;

pub(crate) const ASKED: &str = r#"{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}"#;
pub(crate) const CHAIN_ID: &str = "0x1352505";

/// A key and the table that lets it in, as `quipu key new` makes them.
pub(crate) fn new_key(name: &str, more: &str) -> (String, String) {
    let made = quipu(&["key", "new", "--name", name]).ends_with(0);
    let (key, table) = made.out.split_once("\n\n").unwrap();
    (key.to_owned(), format!("{table}{more}\n"))
}

/// A server whose file has these tables.
struct Guarded {
    served: Served,
    log: Receiver<String>,
    _folder: TempDir,
}

impl Guarded {
    fn start(tables: &[&str], args: &[&str], level: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quipu.toml");
        std::fs::write(&path, tables.concat()).unwrap();
        let args = [&["--config", text(&path)], args].concat();
        let (served, log) = Served::start_logged_at(&data_folder("sample"), &args, level);
        Self { served, log, _folder: folder }
    }

    fn connect(&self) -> Kept {
        Kept::to(&self.served.address)
    }

    /// A body by POST over each path of HTTP/1.1, with these fields; what comes back must be alike.
    fn post(&self, path: &str, fields: &str, body: &str) -> (u16, String, Value) {
        let kept = self.connect().post(path, fields, body);
        let closed = self.connect().post(path, &format!("{fields}connection: close\r\n"), body);
        assert_eq!((kept.0, &kept.2), (closed.0, &closed.2), "{path} {fields}");
        kept
    }

    /// The same where it must be answered.
    fn chain_id(&self, path: &str, fields: &str) -> Value {
        let (status, head, answer) = self.post(path, fields, ASKED);
        assert_eq!(status, 200, "{head} {answer}");
        answer["result"].clone()
    }
}

/// A connection that is kept, over which one request is sent after the other.
pub(crate) struct Kept(BufReader<TcpStream>);

impl Kept {
    pub(crate) fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    /// Status, head and body of the answer.
    pub(crate) fn post(&mut self, path: &str, fields: &str, body: &str) -> (u16, String, Value) {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{fields}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn get(&mut self, path: &str, fields: &str) -> (u16, String, Value) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n"))
    }

    fn send(&mut self, request: &str) -> (u16, String, Value) {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "closed after {head:?}");
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1).and_then(|it| it.split("\r\n").next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).unwrap();
        (status, head, serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// A WebSocket with these fields in its handshake; or the status with which it is refused.
fn socket(address: &str, path: &str, fields: &[(&'static str, &str)]) -> Result<Socket, u16> {
    let mut request = format!("ws://test{path}").into_client_request().unwrap();
    for (name, value) in fields {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    Socket::handshake(request, TcpStream::connect(address).unwrap()).map_err(|(status, _)| status)
}

pub(crate) fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

#[test]
fn a_key_is_taken_in_three_places_over_every_protocol_and_nobody_is_let_in_without() {
    let ((key, table), (_, second)) = (new_key("a", ""), new_key("b", ""));
    let guarded = Guarded::start(&[&second, &table], &[], "off");
    let api_key = format!("X-Api-Key: {key}\r\n");
    let in_path = format!("/v1/{key}");
    for (path, fields) in [("/", &*bearer(&key)), ("/any", &*api_key), (&*in_path, "")] {
        assert_eq!(guarded.chain_id(path, fields), CHAIN_ID, "{path} {fields}");
    }
    let wrong = key.replace(|it: char| it.is_ascii_digit(), "e");
    for (path, fields, challenge) in [
        ("/", String::new(), "bearer\r\n"),
        ("/v1/", String::new(), "bearer\r\n"),
        ("/", bearer(&wrong), "bearer error=\"invalid_token\"\r\n"),
        ("/", bearer(&key[..key.len() - 1]), "bearer error=\"invalid_token\"\r\n"),
        // What it is stored as opens nothing.
        ("/", bearer(&KeyHash::of(&key).to_string()), "bearer error=\"invalid_token\"\r\n"),
        ("/", format!("Authorization: Basic {key}\r\n"), "bearer\r\n"),
    ] {
        let (status, head, answer) = guarded.post(path, &fields, ASKED);
        assert_eq!((status, &answer["error"]["code"]), (401, &json!(-32000)), "{fields} {answer}");
        assert!(head.contains(&format!("www-authenticate: {challenge}")), "{head}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.starts_with("unauthorized: ") && !said.contains("qk_"), "{said}");
    }
    // Pages, and those that a supervisor reads.
    for (path, fields, expected) in [
        ("/stat.json", "", 401),
        ("/", "", 401),
        ("/stat.json", &*bearer(&key), 200),
        (&*format!("{in_path}/stat.json"), "", 200),
        (&in_path, "", 200),
        (&*format!("{in_path}/no-such-page"), "", 404),
        ("/healthz", "", 200),
        ("/readyz", "", 200),
    ] {
        assert_eq!(guarded.connect().get(path, fields).0, expected, "{path} {fields}");
    }
    // A browser asks first, and its question has no key.
    let preflight = "OPTIONS / HTTP/1.1\r\nhost: a\r\norigin: http://p\r\n\r\n";
    let (status, head, _) = guarded.connect().send(preflight);
    assert_eq!(status, 204, "{head}");
    assert!(head.contains("access-control-allow-headers: *, authorization\r\n"), "{head}");
    let (status, head, _) = guarded.post("/", "origin: http://p\r\n", ASKED);
    assert_eq!(status, 401);
    assert!(head.contains("access-control-allow-origin: *\r\n"), "{head}");
    let exposed = "access-control-expose-headers: quipu-answered, retry-after, x-request-id\r\n";
    assert!(head.contains(exposed), "{head}");
    // WebSockets.
    let address = &guarded.served.address;
    let bearer = format!("Bearer {key}");
    for (path, fields) in
        [("/", &[("authorization", &*bearer)][..]), ("/", &[("x-api-key", &*key)]), (&in_path, &[])]
    {
        let mut socket = socket(address, path, fields).unwrap();
        assert_eq!(socket.call("eth_chainId", &json!([]))["result"], CHAIN_ID);
    }
    // Also where a page would be open.
    for path in ["/", "/healthz", "/v1/wrong", "/v1/wrong/healthz"] {
        assert_eq!(socket(address, path, &[]).err(), Some(401), "{path}");
    }
    // HTTP/2.
    let mut http2 = Http2::at(address);
    let asked = [("x-api-key", &*key), ("x-api-key", &*wrong), ("x-other", &*key)];
    let answers = (1..).step_by(2).zip(asked).map(|(stream, field)| {
        http2.post_with(stream, "/", &[field], ASKED.as_bytes());
        let answer: Value = serde_json::from_slice(&http2.next_of(DATA, stream).payload).unwrap();
        answer["result"].as_str().or(answer["error"]["message"].as_str()).unwrap().to_owned()
    });
    let answers: Vec<String> = answers.collect();
    assert_eq!(answers[0], CHAIN_ID);
    assert_eq!(answers[1], "unauthorized: the API key is not known");
    assert!(answers[2].starts_with("unauthorized: an API key is needed"), "{answers:?}");
    http2.post_with(7, &in_path, &[], ASKED.as_bytes());
    assert!(String::from_utf8_lossy(&http2.next_of(DATA, 7).payload).contains(CHAIN_ID));
}

#[test]
fn a_kept_connection_is_let_in_by_the_head_of_each_request() {
    let (key, table) = new_key("a", "");
    let guarded = Guarded::start(&[&table], &[], "off");
    let mut kept = guarded.connect();
    for _ in 0..3 {
        assert_eq!(kept.post("/", &bearer(&key), ASKED).2["result"], CHAIN_ID);
    }
    // Whoever comes after, perhaps through the same proxy, is not let in by what came before.
    assert_eq!(kept.post("/", "", ASKED).0, 401);
}

#[test]
fn methods_that_a_key_does_not_name_are_refused_one_by_one() {
    let (key, table) = new_key("a", "methods = [\"eth_getBlock*\", \"eth_chainId\"]\n");
    let guarded = Guarded::start(&[&table], &[], "off");
    let call = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": ["0x1", false] });
    let said = |method: &str| json!({ "code": -32604, "message": format!("the method {method} is not allowed for this key") });
    for (method, expected) in
        [("eth_Call", 403), ("eth_getLogs", 403), ("no_such", 403), ("eth_getBlockByNumber", 200)]
    {
        let (status, _, answer) = guarded.post("/", &bearer(&key), &call(3, method).to_string());
        assert_eq!((status, &answer["id"]), (expected, &json!(3)), "{method} {answer}");
        if expected == 403 {
            assert_eq!(answer["error"], said(method));
        }
    }
    // A batch is answered, and each of its calls for itself; so is a message.
    let batch = json!([call(1, "eth_getLogs"), call(2, "eth_getBlockByNumber")]);
    let (status, _, answers) = guarded.post("/", &bearer(&key), &batch.to_string());
    assert_eq!((status, &answers[0]["error"]), (200, &said("eth_getLogs")), "{answers}");
    assert_eq!(answers[1]["result"]["number"], "0x1");
    let mut socket = socket(&guarded.served.address, &format!("/v1/{key}"), &[]).unwrap();
    assert_eq!(socket.call("eth_subscribe", &json!(["newHeads"]))["error"], said("eth_subscribe"));
    assert_eq!(socket.call("eth_chainId", &json!([]))["result"], CHAIN_ID);
}

/// A batch of calls.
fn many(calls: u64) -> String {
    let call = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "net_version" });
    (0..calls).map(call).collect::<Value>().to_string()
}

/// A block that weighs more than a unit a second pays in a minute.
const HEAVY: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x14",true]}"#;

/// What whoever has asked too much is told.
#[track_caller]
fn assert_limited((status, head, answer): (u16, String, Value), whose: &str) -> u64 {
    assert_eq!((status, &answer["error"]["code"]), (429, &json!(-32005)), "{head} {answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("rate limit exceeded: 1 ") && said.contains(whose), "{said}");
    let seconds = head.split("retry-after: ").nth(1).unwrap().split("\r\n").next().unwrap();
    assert!(said.ends_with(&format!("retry in {seconds} s")), "{said} {seconds}");
    seconds.parse().unwrap()
}

#[test]
fn calls_beyond_a_rate_are_told_when_to_come_again_and_other_keys_are_not_held_up() {
    let ((key, table), (other, second)) = (new_key("a", "weight = 1\n"), new_key("b", ""));
    let guarded = Guarded::start(&[&table, &second], &[], "off");
    let mut kept = guarded.connect();
    assert_eq!(kept.post("/", &bearer(&key), HEAVY).0, 200);
    let seconds = assert_limited(kept.post("/", &bearer(&key), ASKED), "for this key");
    assert!(seconds > 30, "{seconds}");
    // Over both paths, and the same key wherever it is sent.
    assert_limited(guarded.post_once(&format!("/v1/{key}"), "", ASKED), "for this key");
    assert_limited(
        guarded.post_once("/", &format!("{}connection: close\r\n", bearer(&key)), ASKED),
        "for this key",
    );
    assert_limited(guarded.connect().get(&format!("/v1/{key}/stat.json"), ""), "for this key");
    // Each call of a batch by its id.
    let (status, _, answers) = guarded.post_once("/", &bearer(&key), &many(3));
    assert_eq!(status, 429);
    for (id, answer) in answers.as_array().unwrap().iter().enumerate() {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32005)));
    }
    assert_eq!(socket(&guarded.served.address, &format!("/v1/{key}"), &[]).err(), Some(429));
    assert_eq!(kept.get("/healthz", "").0, 200);
    assert_eq!(guarded.chain_id("/", &bearer(&other)), CHAIN_ID);
}

impl Guarded {
    /// A body by POST on a connection of its own.
    fn post_once(&self, path: &str, fields: &str, body: &str) -> (u16, String, Value) {
        self.connect().post(path, fields, body)
    }
}

#[test]
fn a_message_beyond_a_rate_is_answered_with_the_refusal_of_each_call() {
    let (key, table) = new_key("a", "weight = 2\n");
    let guarded = Guarded::start(&[&table], &[], "off");
    let mut socket = socket(&guarded.served.address, &format!("/v1/{key}"), &[]).unwrap();
    let heavy = socket.call("eth_getBlockByNumber", &json!(["0x14", true]));
    assert_eq!(heavy["result"]["number"], "0x14");
    let refused = socket.call("eth_chainId", &json!([]));
    assert_eq!(refused["error"]["code"], -32005, "{refused}");
    socket.send_text(&many(2));
    assert_eq!(socket.next()[1]["error"]["code"], -32005);
}

#[test]
fn weight_is_a_debt_of_what_was_answered_and_read() {
    let (key, table) = new_key("a", "weight = 1\n");
    let guarded = Guarded::start(&[&table], &[], "off");
    let mut kept = guarded.connect();
    let (status, head, answer) = kept.post("/", &bearer(&key), HEAVY);
    assert_eq!((status, &answer["result"]["number"]), (200, &json!("0x14")));
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let kib = length.parse::<u64>().unwrap().div_ceil(1024);
    assert!(kib > 60, "a block too small for this test: {kib}");
    // More than its bytes, for pages were read; some seconds may have gone.
    let seconds = assert_limited(kept.post("/", &bearer(&key), ASKED), "units of weight");
    assert!(seconds + 30 > kib + 1 && seconds < kib + 200, "{seconds} after {kib} KiB");
}

/// What is not in an index is looked up there, and no page is read for it: that was free.
#[test]
fn lookups_in_an_index_weigh_as_pages_do() {
    let (key, table) = new_key("a", "weight = 1\n");
    let guarded = Guarded::start(&[&table], &[], "off");
    let addresses: Vec<String> = (0..500).map(|it| format!("0xabcd{it:036x}")).collect();
    let filter = json!([{ "fromBlock": "0x0", "toBlock": "latest", "address": addresses }]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": filter });
    let mut kept = guarded.connect();
    let (status, _, answer) = kept.post("/", &bearer(&key), &call.to_string());
    assert_eq!((status, &answer["result"]), (200, &json!([])));
    // Two units are for the call and its bytes; some seconds may have gone.
    let seconds = assert_limited(kept.post("/", &bearer(&key), ASKED), "units of weight");
    assert!(seconds > 400, "{seconds}");
}

/// Readers are used by one call after the other: what one had read for others was charged to the next.
#[test]
fn what_was_read_for_others_is_not_charged() {
    let service = service(&data_folder("sample"), ServiceSettings::default());
    // One thread, so that there is one reader.
    let settings = HttpSettings { threads: NonZeroUsize::new(1), ..HttpSettings::default() };
    let hosted = Hosted::start(service, settings);
    let mut kept = Kept::to(&hosted.address.to_string());
    for number in 1..40 {
        let block = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": [number, true] });
        assert_eq!(kept.post("/", "", &block.to_string()).0, 200);
    }
    let rates = Rates { calls: None, weight: NonZeroU32::new(1) };
    hosted.server.set_admission(rules(&["one"], rates)).unwrap();
    // A unit for the call, and one for its KiB.
    assert_eq!(kept.post("/", &bearer("one"), ASKED).0, 200);
    let next = kept.post("/", &bearer("one"), ASKED);
    // On a machine that is slow enough, time has paid it.
    if next.0 != 200 {
        let seconds = assert_limited(next, "units of weight");
        assert!(seconds <= 2, "{seconds}");
    }
}

#[test]
fn addresses_are_limited_and_only_a_trusted_proxy_names_another() {
    let limit = ["--weight-per-address", "1"];
    let trusted = [&limit[..], &["--trusted-proxy", "10.0.0.0/8,127.0.0.1"]].concat();
    let guarded = Guarded::start(&[], &trusted, "off");
    let from = |address: &str| format!("X-Forwarded-For: 198.51.100.1, {address}\r\n");
    let ask = |address: &str| guarded.post_once("/", &from(address), ASKED);
    assert_eq!(guarded.post_once("/", &from("192.0.2.1"), HEAVY).0, 200);
    assert_limited(ask("192.0.2.1"), "for this address");
    assert_limited(ask("192.0.2.1, 10.1.2.3"), "for this address");
    assert_eq!(ask("192.0.2.2").0, 200);
    assert_eq!(guarded.post_once("/", &from("2001:db8::1"), HEAVY).0, 200);
    assert_limited(ask("2001:db8:0:ff::2"), "for this address");
    assert_eq!(ask("2001:db8:0:100::1").0, 200);
    // On one connection, as a proxy has it.
    let mut kept = guarded.connect();
    assert_limited(kept.post("/", &from("192.0.2.1"), ASKED), "for this address");
    assert_eq!(kept.post("/", &from("192.0.2.3"), ASKED).0, 200);
    // Anybody else is who it is, whatever it says.
    let guarded = Guarded::start(&[], &limit, "off");
    assert_eq!(guarded.post_once("/", &from("192.0.2.1"), HEAVY).0, 200);
    assert_limited(guarded.post_once("/", &from("192.0.2.2"), ASKED), "for this address");
}

#[test]
fn failed_attempts_count_for_their_address() {
    let (_, table) = new_key("a", "");
    let guarded = Guarded::start(&[&table], &["--rate-per-address", "1"], "off");
    let attempt = || guarded.post_once("/", &bearer("qk_wrong"), ASKED);
    // One is allowed in a second: however slow this machine is, of many some come together.
    let statuses: Vec<u16> = (0..200).map(|_| attempt().0).collect();
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429) && statuses.iter().all(|it| [401, 429].contains(it)));
}

#[test]
fn no_log_and_no_page_shows_a_key() {
    let (key, table) = new_key("a", "rate = 1\nmethods = [\"eth_chainId\", \"net_*\"]\n");
    let guarded = Guarded::start(&[&table], &["--rate-per-address", "100000"], "trace");
    let (in_path, wrong) = (format!("/v1/{key}"), key.replace("qk_", "qkx"));
    let digits = key.trim_start_matches("qk_").to_owned();
    let mut http2 = Http2::at(&guarded.served.address);
    http2.post_with(1, &in_path, &[("x-api-key", &key)], ASKED.as_bytes());
    http2.next_of(DATA, 1);
    let mut shown = String::new();
    for key in [&key, &wrong] {
        for (path, fields) in [
            ("/", bearer(key)),
            ("/", format!("X-Api-Key: {key}\r\n")),
            (&*format!("/v1/{key}"), String::new()),
        ] {
            let call = r#"{"jsonrpc":"2.0","id":7,"method":"eth_getLogs"}"#;
            for body in [ASKED, call, &many(3), "{", ""] {
                shown += &guarded.post_once(path, &fields, body).2.to_string();
                let fields = format!("{fields}connection: close\r\n");
                shown += &guarded.post_once(path, &fields, body).2.to_string();
            }
            for page in ["", "/stat.json", "/no-such-page", "/readyz"] {
                let answer = guarded.connect().get(&format!("{path}{page}"), &fields);
                shown += &answer.1;
                shown += &answer.2.to_string();
            }
        }
        drop(socket(&guarded.served.address, &format!("/v1/{key}"), &[]));
        drop(socket(&guarded.served.address, "/", &[("x-api-key", key)]));
        // What nobody understands, too.
        let raw = format!("BREW /v1/{key} HTTP/1.1\r\nx-api-key: {key}\r\n\u{1}\r\n\r\n");
        guarded.served.send(raw.as_bytes());
    }
    let Guarded { served, log, _folder } = guarded;
    assert_eq!(served.stop(), Some(0));
    let log: Vec<String> = log.iter().collect();
    assert!(log.iter().any(|line| line.contains("TRACE")), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("answered")), "{log:#?}");
    for secret in [&*digits, "qk"] {
        assert_eq!(log.iter().find(|line| line.contains(secret)), None);
        assert!(!shown.contains(secret), "{shown}");
    }
}

fn rules(keys: &[&str], rates: Rates) -> Admission {
    let key = |key: &&str| ApiKey {
        name: (*key).to_owned(),
        hash: KeyHash::of(key),
        methods: None,
        rates,
    };
    let keys = keys.iter().map(key).collect();
    Admission::new(AdmissionSettings { keys, ..AdmissionSettings::default() })
}

#[test]
fn replaced_keys_count_from_the_next_request_of_open_connections_on() {
    let service = service(&data_folder("sample"), ServiceSettings::default());
    let hosted = Hosted::start(service, HttpSettings::default());
    let address = hosted.address.to_string();
    let ask = |kept: &mut Kept, key: &str| kept.post("/", &bearer(key), ASKED).0;
    let (mut fast, mut hyper) = (Kept::to(&address), Kept::to(&address));
    // hyper has this one from now on.
    assert_eq!(hyper.get("/healthz", "").0, 200);
    let mut quiet = socket(&address, "/v1/one", &[]).unwrap();
    let mut asking = socket(&address, "/v1/two", &[]).unwrap();
    let mut nameless = socket(&address, "/", &[]).unwrap();
    // Without rules everybody is let in.
    for key in ["one", "two"] {
        assert_eq!((ask(&mut fast, key), ask(&mut hyper, key)), (200, 200));
    }
    let rates = Rates { calls: NonZeroU32::new(1_000_000), weight: None };
    hosted.server.set_admission(rules(&["one", "two"], rates)).unwrap();
    for key in ["one", "two", "one"] {
        assert_eq!((ask(&mut fast, key), ask(&mut hyper, key)), (200, 200));
    }
    for socket in [&mut quiet, &mut asking] {
        assert_eq!(socket.call("eth_chainId", &json!([]))["result"], CHAIN_ID);
    }
    let gone = (1008, "the API key is not accepted any more".to_owned());
    nameless.send_text(ASKED);
    assert_eq!(nameless.closed(), gone);
    hosted.server.set_admission(rules(&["two"], rates)).unwrap();
    // The same head as before.
    assert_eq!((ask(&mut fast, "one"), ask(&mut hyper, "one")), (401, 401));
    let (mut fast, mut hyper) = (Kept::to(&address), Kept::to(&address));
    assert_eq!((ask(&mut fast, "two"), ask(&mut hyper, "two")), (200, 200));
    assert_eq!(asking.call("eth_chainId", &json!([]))["result"], CHAIN_ID);
    quiet.send_text(ASKED);
    assert_eq!(quiet.closed(), gone);
    // And back to none, if that is said.
    let none = |key_requirement| {
        Admission::new(AdmissionSettings { key_requirement, ..AdmissionSettings::default() })
    };
    let refused = hosted.server.set_admission(none(KeyRequirement::IfAnyKnown));
    assert_eq!(refused, Err(AdmissionError::WouldOpen));
    assert_eq!(ask(&mut Kept::to(&address), "one"), 401);
    hosted.server.set_admission(none(KeyRequirement::Never)).unwrap();
    assert_eq!((ask(&mut fast, "one"), ask(&mut hyper, "one")), (200, 200));
    assert_eq!(asking.call("eth_chainId", &json!([]))["result"], CHAIN_ID);
}

#[test]
fn whoever_listens_for_other_machines_without_a_key_is_warned_once() {
    let (_, table) = new_key("a", "");
    let said = |listen: &str, table: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quipu.toml");
        std::fs::write(&path, table).unwrap();
        let data = data_folder("sample");
        warnings(&data, &path, listen)
    };
    let open = said("0.0.0.0:0", "");
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(open[0].contains("without a key: `quipu key new` makes one"), "{open:?}");
    assert_eq!(said("0.0.0.0:0", &table), [""; 0]);
    assert_eq!(said("127.0.0.1:0", ""), [""; 0]);
    let required = |when: &str| format!("[server]\nrequire_key = \"{when}\"\n");
    let optional = said("0.0.0.0:0", &(required("never") + &table));
    assert!(optional.len() == 1 && optional[0].contains("without a key"), "{optional:?}");
    let closed = said("0.0.0.0:0", &required("always"));
    assert!(closed.len() == 1 && closed[0].contains("nobody is let in"), "{closed:?}");
    // Whoever has a certificate is known.
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    authority.identity("localhost").write(folder.path());
    std::fs::write(folder.path().join("clients.pem"), authority.pem()).unwrap();
    let tls = |keys: &[&str]| {
        let line = |key: &&str| {
            let (key, file) = key.split_once(' ').unwrap();
            format!("{key} = \"{}\"\n", folder.path().join(file).display())
        };
        format!("[tls]\n{}", keys.iter().map(line).collect::<String>())
    };
    let server = ["tls_cert cert.pem", "tls_key key.pem"];
    assert_eq!(said("0.0.0.0:0", &tls(&server)).len(), 1);
    let clients = ["tls_client_ca clients.pem"];
    assert_eq!(said("0.0.0.0:0", &tls(&[&server[..], &clients].concat())), [""; 0]);
}

/// The warnings of a server that listens there, until it is told to stop.
fn warnings(data: &Path, config: &Path, listen: &str) -> Vec<String> {
    let args = ["serve", "--data-dir", text(data), "--config", text(config), "--listen", listen];
    let mut command = command(&args);
    command.env("RUST_LOG", "warn").stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if line.starts_with("listening on ") {
            crate::harness::served::signal(&child, "TERM");
        } else {
            lines.push(line);
        }
    }
    child.wait().unwrap();
    lines
}

#[test]
fn keys_are_checked_and_shown_with_the_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quipu.toml");
    let (key, table) = new_key("a \"b\"", "methods = [\"eth_*\"]\nrate = 5\n");
    std::fs::write(&path, format!("[log]\nquiet = true\n{table}")).unwrap();
    let config = |action: &str| ran(&mut command(&["config", action, "--config", text(&path)]));
    let checked = config("check").ends_with(0);
    assert!(checked.out.contains("1 setting, 1 API key, no mistake"), "{}", checked.out);
    let dumped = config("dump").ends_with(0).out;
    let hash = KeyHash::of(&key);
    let expected = format!(
        "[[keys]]\nname = \"a \\\"b\\\"\"\nhash = \"{hash}\"\nmethods = [\"eth_*\"]\nrate = 5\n"
    );
    assert!(dumped.ends_with(&expected), "{dumped}");
    // It can be read again.
    std::fs::write(&path, &dumped).unwrap();
    assert!(config("check").ends_with(0).out.contains("1 API key, no mistake"));
    // The key in place of its hash is told without it.
    std::fs::write(&path, format!("[[keys]]\nname = \"a\"\nhash = \"{key}\"\n")).unwrap();
    let refused = config("check").ends_with(2);
    assert!(refused.err.contains("line 3: keys.hash: write sha256: and 64"), "{}", refused.err);
    assert!(!refused.err.contains("qk_"), "{}", refused.err);
}
