//! Readiness, how far it is to the tip, and what is told of a history with gaps and a head.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use archive::Archive;
use chain::trust::Anchors;
use chain::{BlockNumber, ChainSpec, Start, Verifier};
use rpc::http::HttpSettings;
use rpc::{CatchingUp, Health, Service, ServiceSettings};
use serde_json::{Value, json};
use store::LocalFiles;
use store::disk::Disk as _;
use store::read::{Inline, block_on};
use store::stat::{PartBytesCache, Stat};
use testing::disk::faulty::FaultyDisk;

use crate::harness::data::files;
use crate::harness::hosted::{Hosted, respond};
use crate::harness::live::{FIRST, Live};
use crate::harness::run::archive;
use crate::harness::stores::data_folder;

/// What a part that brings blocks would say.
#[derive(Debug)]
struct Told {
    troubles: Vec<String>,
    catching_up: Option<CatchingUp>,
}

impl Health for Told {
    fn troubles(&self) -> Vec<String> {
        self.troubles.clone()
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        self.catching_up
    }
}

fn result(service: &Service, method: &str, params: &Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    respond(service, &call.to_string()).unwrap()
}

fn ready(service: Service) -> (String, Value) {
    let hosted = Hosted::start(service, HttpSettings::default());
    let mut stream = hosted.connect();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
}

#[test]
fn a_server_is_ready_when_what_is_configured_can_be_answered() {
    let live = Live::with_blocks(3);
    let with = |troubles: &[&str]| {
        let troubles = troubles.iter().map(ToString::to_string).collect();
        let health = Arc::new(Told { troubles, catching_up: None });
        live.service(ServiceSettings::default()).with_health(health)
    };
    assert_eq!(ready(with(&[])), ("HTTP/1.1 200 OK".to_owned(), json!("ready\n")));
    let (status, body) = ready(with(&["tip is 90 s old", "finalized \"conflict\""]));
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    let reasons = json!(["tip is 90 s old", "finalized \"conflict\""]);
    let held = json!([[FIRST, FIRST + 2]]);
    assert_eq!(body, json!({ "ready": false, "reasons": reasons, "held": held }));
    let (_, body) = ready(Live::with_blocks(0).service(ServiceSettings::default()));
    assert_eq!(body["reasons"], json!(["no block is held yet"]));
}

#[test]
fn syncing_is_false_but_on_the_way_to_a_tip() {
    let live = Live::with_blocks(3);
    let with = |catching_up| {
        let health = Arc::new(Told { troubles: Vec::new(), catching_up });
        let service = live.service(ServiceSettings::default()).with_health(health);
        result(&service, "eth_syncing", &json!([]))["result"].clone()
    };
    assert_eq!(with(None), false);
    let way = CatchingUp { starting: FIRST - 1, highest: FIRST + 90 };
    let told =
        json!({ "startingBlock": "0x3e7", "currentBlock": "0x3ea", "highestBlock": "0x442" });
    assert_eq!(with(Some(way)), told);
    // Arrived, whatever the other part still believes.
    assert_eq!(with(Some(CatchingUp { highest: FIRST + 2, ..way })), false);
}

/// Blocks 0..39 and 60..99 sealed, and 200..209 of the same chain in the head.
fn sparse() -> (Live, Service, FaultyDisk) {
    let folder = data_folder("gap");
    let disk = FaultyDisk::new(1);
    for (name, bytes) in files(&folder) {
        disk.write(&name, &bytes).unwrap();
    }
    let genesis = std::fs::read(folder.join("genesis.json")).unwrap();
    let genesis = serde_json::from_slice(&genesis).unwrap();
    let spec = || ChainSpec::from_genesis("sample", &genesis).unwrap();
    let mut live = Live::on(Arc::new(disk.clone()), spec());
    let whole = Archive::open(&archive(&folder.join("../archives"))).unwrap();
    let (spec_of_blocks, anchors) = (spec(), Anchors::none());
    let mut verifier = Verifier::new(&spec_of_blocks, &anchors, Start::At(200));
    let blocks = (200..=209).map(|number| verifier.verify(whole.read_block(number).unwrap()));
    live.writer.extend(blocks.collect::<Result<_, _>>().unwrap()).unwrap();
    let settings = ServiceSettings { is_following: true, ..ServiceSettings::default() };
    let service = Service::new(Arc::clone(&live.store), spec(), settings);
    (live, service, disk)
}

#[test]
fn of_a_history_with_gaps_and_a_head_all_tell_the_same() {
    let (live, service, disk) = sparse();
    let held = json!([[0, 39], [60, 99], [200, 209]]);
    for number in [40, 59, 100, 199] {
        for (method, params) in [
            ("eth_getBlockByNumber", json!([number, true])),
            ("eth_getBlockReceipts", json!([number])),
            ("eth_getTransactionByBlockNumberAndIndex", json!([number, 0])),
        ] {
            let error = result(&service, method, &params)["error"].clone();
            let message = format!(
                "pruned history unavailable: block {number} not found in held blocks 0..39, 60..99, 200..209"
            );
            let expected = json!({ "code": 4444, "message": message, "data": { "held": held } });
            assert_eq!(error, expected, "{method}");
        }
    }
    for number in [0, 39, 60, 99, 200, 209] {
        let block = result(&service, "eth_getBlockByNumber", &json!([number, true]));
        assert_eq!(block["result"]["number"], format!("{number:#x}"));
        let receipts = result(&service, "eth_getBlockReceipts", &json!([number]))["result"].clone();
        let transactions = block["result"]["transactions"].as_array().unwrap();
        assert_eq!(receipts.as_array().unwrap().len(), transactions.len());
        for (transaction, receipt) in transactions.iter().zip(receipts.as_array().unwrap()) {
            let hash = json!([transaction["hash"]]);
            let found = result(&service, "eth_getTransactionByHash", &hash)["result"].clone();
            assert_eq!(found, *transaction);
            let found = result(&service, "eth_getTransactionReceipt", &hash)["result"].clone();
            assert_eq!(found, *receipt);
        }
    }
    assert_eq!(result(&service, "eth_blockNumber", &json!([]))["result"], "0xd1");
    assert_eq!(
        result(&service, "eth_getBlockByNumber", &json!([210, true]))["result"],
        Value::Null
    );
    let capabilities = result(&service, "eth_capabilities", &json!([]))["result"].clone();
    assert_eq!(capabilities["head"]["number"], "0xd1");
    for part in ["blocks", "tx", "receipts", "logs"] {
        assert_eq!(capabilities[part], json!({ "disabled": false, "oldestBlock": "0xc8" }));
    }
    let view = live.store.view();
    let source = Arc::new(LocalFiles::new(Arc::new(disk), Arc::new(Inline)));
    let stat = block_on(Stat::gather(&view, source, &mut PartBytesCache::default(), 0, 0)).unwrap();
    let shown = |ranges: &[chain::BlockRange]| {
        ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&stat.gaps), "40..59 100..199");
    assert_eq!(shown(&stat.coverage_receipts), "0..39 60..99 200..209");
    assert_eq!((stat.tip.unwrap().number, stat.block_count), (BlockNumber(209), 90));
}
