//! A node on a fork that nobody knows yet: `serve --upstream` stops below it, serves on and says so.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use alloy_primitives::{B256, hex, keccak256};
use archive::Archive;
use chain::decode_header;
use serde_json::{Value, json};

use crate::harness::data::Data;
use crate::harness::run::{command, quipu, text};
use crate::harness::served::Served;
use crate::harness::upstream::read_request;
use crate::harness::wait::wait_for;

const SAID: &str = "this node is on a fork that this build does not know: upgrade";

/// A Quipu whose tip, block 99, gains a header field on the way. What it calls final is block 80.
struct FutureNode {
    _source: Served,
    url: String,
    tip: B256,
    offers_raw: Arc<AtomicBool>,
    polls: Arc<AtomicU64>,
}

impl FutureNode {
    fn start(source: Served, data: &Data) -> Self {
        let rlp = Archive::open(&data.archive()).unwrap().read_block(99).unwrap().header;
        let own = keccak256(&rlp);
        let mut header = decode_header(&rlp).unwrap();
        header.block_access_list_hash.get_or_insert(B256::repeat_byte(0x24));
        header.slot_number.get_or_insert(99);
        let plain = alloy_rlp::encode(&header);
        let mut rest = plain.as_slice();
        let payload = alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
        let fields = [payload, &alloy_rlp::encode(B256::repeat_byte(0x25))].concat();
        let mut raw = Vec::new();
        alloy_rlp::Header { list: true, payload_length: fields.len() }.encode(&mut raw);
        raw.extend_from_slice(&fields);
        let tip = keccak256(&raw);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (offers_raw, polls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let player = Arc::new(Player {
            source: source.address().to_owned(),
            own: own.to_string(),
            tip: tip.to_string(),
            raw: hex::encode_prefixed(&raw),
            offers_raw: Arc::clone(&offers_raw),
            polls: Arc::clone(&polls),
        });
        thread::spawn(move || {
            for stream in listener.incoming() {
                let player = Arc::clone(&player);
                thread::spawn(move || player.serve(stream.unwrap()));
            }
        });
        Self { _source: source, url, tip, offers_raw, polls }
    }
}

struct Player {
    /// Where the Quipu listens.
    source: String,
    own: String,
    tip: String,
    raw: String,
    offers_raw: Arc<AtomicBool>,
    polls: Arc<AtomicU64>,
}

impl Player {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            let body = match request.as_array() {
                Some(calls) => {
                    calls.iter().map(|call| self.answer(call)).collect::<Value>().to_string()
                }
                None => self.answer(&request).to_string(),
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            if reader.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, call: &Value) -> Value {
        if call["params"][0] == "latest" {
            self.polls.fetch_add(1, Ordering::SeqCst);
        }
        if call["method"] == "debug_getRawHeader" {
            let is_tip = call["params"][0] == "0x63" || call["params"][0] == self.tip;
            return if is_tip && self.offers_raw.load(Ordering::SeqCst) {
                json!({ "jsonrpc": "2.0", "id": call["id"], "result": self.raw })
            } else {
                let error = json!({ "code": -32601, "message": "no such method" });
                json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })
            };
        }
        let asked = call.to_string().replace(&self.tip, &self.own);
        let asked = asked.replace("\"finalized\"", "\"0x50\"").replace("\"safe\"", "\"0x50\"");
        let answer = post(&self.source, &asked);
        let more = format!("\"number\":\"0x63\",\"futureRoot\":\"{}\"", self.tip);
        let answer = answer.replace("\"number\":\"0x63\"", &more).replace(&self.own, &self.tip);
        serde_json::from_str(&answer).unwrap()
    }
}

/// What a server answers to a body.
fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        "POST / HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A follower whose log is kept.
fn follow(data: &std::path::Path, genesis: &str, url: &str) -> (Served, Arc<Mutex<Vec<String>>>) {
    let serve = ["serve", "--data-dir", text(data), "--listen", "127.0.0.1:0"];
    let more = ["--upstream", url, "--genesis", genesis, "--poll-every", "20"];
    let mut command = command(&[&serve[..], &more[..]].concat());
    command.env("RUST_LOG", "info").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = Arc::new(Mutex::new(Vec::new()));
    let address = loop {
        let line = lines.next().unwrap_or_else(|| panic!("{:?}", said.lock().unwrap()));
        if let Some(address) = line.strip_prefix("listening on http://") {
            break address.parse().unwrap();
        }
        said.lock().unwrap().push(line);
    };
    let kept = Arc::clone(&said);
    thread::spawn(move || lines.for_each(|line| kept.lock().unwrap().push(line)));
    (Served::over(child, address), said)
}

/// The chain's genesis file as it was before the forks above block 99 were announced.
fn outdated(data: &Data) -> String {
    let rlp = Archive::open(&data.archive()).unwrap().read_block(99).unwrap().header;
    let timestamp = decode_header(&rlp).unwrap().timestamp;
    let mut genesis: Value = serde_json::from_slice(&fs::read(data.genesis()).unwrap()).unwrap();
    let config = genesis["config"].as_object_mut().unwrap();
    config.retain(|name, value| {
        !name.ends_with("Time") || value.as_u64().is_some_and(|first| first <= timestamp)
    });
    genesis.to_string()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(|| is_so().then_some(()), || what.to_owned());
}

#[test]
fn an_unknown_fork_is_told_by_readyz_stat_and_one_line_of_the_log_and_raw_headers_end_it() {
    let data = Data::imported();
    let node = FutureNode::start(Served::start(&data.path(), &[]), &data);
    let folder = tempfile::tempdir().unwrap();
    let (copy, genesis) = (folder.path().join("copy"), folder.path().join("genesis.json"));
    fs::write(&genesis, outdated(&data)).unwrap();
    let (served, said) = follow(&copy, text(&genesis), &node.url);
    let latest = |served: &Served| served.call("eth_blockNumber", &json!([]))["result"].clone();
    wait_until("following up to the fork", || latest(&served) == "0x62");
    let is_told = |served: &Served| {
        let ready = served.get("/readyz");
        let body = String::from_utf8(ready.body).unwrap();
        ready.status == 503 && body.contains(SAID) && body.contains("block 99")
    };
    wait_until("readyz tells the fork", || is_told(&served));
    // Many polls later it is said no more often.
    let count = || said.lock().unwrap().iter().filter(|line| line.contains(SAID)).count();
    wait_until("the log tells the fork", || count() == 2);
    let polls = node.polls.load(Ordering::SeqCst);
    wait_until("more polls", || node.polls.load(Ordering::SeqCst) > polls + 20);
    assert_eq!(count(), 2, "{:?}", said.lock().unwrap());
    assert!(!said.lock().unwrap().iter().any(|line| line.contains("not true")));
    assert!(is_told(&served) && latest(&served) == "0x62");
    let block = served.result("eth_getBlockByNumber", &json!(["0x55", true]));
    assert_eq!(block["number"], "0x55", "older blocks are served");
    let stat = |more: &[&str]| quipu(&[&["stat", "--data-dir", text(&copy)], more].concat());
    let page = stat(&[]).ends_with(0).out;
    assert!(page.contains("standstill ") && page.contains(SAID), "{page}");
    let object = stat(&["--json"]).ends_with(0).json();
    assert!(object["notice"].as_str().is_some_and(|it| it.contains(SAID)), "{object}");
    assert_eq!(served.stop(), Some(0));
    node.offers_raw.store(true, Ordering::SeqCst);
    let (served, _) = follow(&copy, text(&genesis), &node.url);
    wait_until("following past the fork", || latest(&served) == "0x63");
    wait_until("ready", || served.get("/readyz").status == 200);
    let block = served.result("eth_getBlockByNumber", &json!(["0x63", true]));
    assert_eq!(block["hash"], json!(node.tip));
    let raw = served.result("debug_getRawHeader", &json!(["0x63"]));
    assert_eq!(keccak256(hex::decode(raw.as_str().unwrap()).unwrap()), node.tip);
    // It goes with the step that brought the block, a moment after that can be seen.
    wait_until("no notice", || stat(&["--json"]).ends_with(0).json()["notice"].is_null());
    assert_eq!(served.stop(), Some(0));
}
