//! `quipu doctor` beside a node.

use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{self, Stdio};
use std::sync::{Arc, Weak};
use std::thread;

use serde_json::{Value, json};

use crate::harness::data::{Data, files, names};
use crate::harness::run::{command, quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::upstream::read_request;
use crate::harness::wait::wait_for;

#[test]
fn a_node_of_the_same_chain_is_well_and_what_it_gives_is_proven() {
    let node = Served::start(&data_folder("sample"), &[]);
    let url = format!("http://{}", node.address());
    let data = data_folder("late");
    let args = ["doctor", "--data-dir", text(&data), "--upstream", &url];
    let ran = quipu(&args).ends_with(0);
    for said in [
        "answers; chain id 20260101 and genesis hash 0x",
        "tip 1023",
        "block 1023 with ",
        " is proven",
        "has our newest block, 99",
        "next: quipu serve --data-dir ",
    ] {
        assert!(ran.out.contains(said), "{said}:\n{}", ran.out);
    }
}

#[test]
fn a_node_of_another_chain_must_be_mended() {
    let other = tempfile::tempdir().unwrap();
    let (archives, data) = (other.path().join("archives"), other.path().join("data"));
    let size = ["--block-count", "10", "--txs-per-block", "1", "--seed", "9"];
    quipu(&[&["sample", "--to", text(&archives)], &size[..]].concat()).ends_with(0);
    let genesis = archives.join("genesis.json");
    let import =
        ["import", "--data-dir", text(&data), "--genesis", text(&genesis), text(&archives)];
    quipu(&import).ends_with(0);
    let node = Served::start(&data, &[]);
    let url = format!("http://{}", node.address());
    let ours = data_folder("gap");
    let ran = quipu(&["doctor", "--data-dir", text(&ours), "--upstream", &url]).ends_with(1);
    let said = "follows another chain: it has chain id 2026010100000009, expected 20260101";
    assert!(ran.out.contains(said), "{}", ran.out);
    // The same is told by whoever compares, and of a chain that only shares the id.
    let ran = quipu(&["compare", "--data-dir", text(&ours), "--with", &url]).ends_with(1);
    assert!(ran.err.contains("serves chain id"), "{}", ran.err);
}

#[test]
fn a_writer_at_work_is_named() {
    let data = Data::imported();
    // A follower holds the lock for as long as it runs, whether its node answers or not.
    let path = data.path();
    let args = ["serve", "--data-dir", text(&path), "--listen", "127.0.0.1:0"];
    let upstream = ["--upstream", "http://127.0.0.1:1"];
    let (served, _lines) = Served::start_logged(&data.path(), &upstream);
    let ran = data.run("doctor", &[]).ends_with(0);
    let said = format!("pid {}, ", served.id());
    assert!(ran.out.contains(&format!("next: {said}")), "{}", ran.out);
    assert!(!ran.out.contains("next: quipu serve"), "{}", ran.out);
    assert!(ran.out.contains(&said) && ran.out.contains(" writes to it"), "{}", ran.out);
    // Whoever else would write is refused, and whoever looks keeps nobody out.
    let second =
        command(&[&args[..], &upstream[..]].concat()).stdout(Stdio::null()).output().unwrap();
    assert!(!second.status.success());
    drop(served);
    let ran = data.run("doctor", &[]).ends_with(0);
    assert!(ran.out.contains("was killed"), "{}", ran.out);
}

#[test]
fn a_folder_that_a_writer_has_just_begun_needs_no_import() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let upstream = ["--upstream", "http://127.0.0.1:1", "--chain-id", "7"];
    let (served, _lines) = Served::start_logged(&data, &upstream);
    let holder = format!("pid {}, ", served.id());
    let is_held = || fs::read_to_string(data.join("lock")).is_ok_and(|it| it.starts_with(&holder));
    wait_for(|| is_held().then_some(()), || "the lock".to_owned());
    let ran = quipu(&["doctor", "--data-dir", text(&data)]).ends_with(0);
    assert!(ran.out.contains(&format!("none are held yet: {holder}")), "{}", ran.out);
    assert!(!ran.out.contains("next: quipu import"), "{}", ran.out);
}

#[test]
fn the_lock_says_whether_somebody_writes_and_no_number_of_a_process_does() {
    let data = Data::imported();
    // As a writer of another container leaves it, where another process has its number: this one.
    fs::write(data.path().join("lock"), format!("pid {}, quipu serve", process::id())).unwrap();
    let ran = data.run("doctor", &[]).ends_with(0);
    assert!(ran.out.contains("none; the last one, pid "), "{}", ran.out);
    assert!(!ran.out.contains("writes to it"), "{}", ran.out);
}

#[test]
fn a_depth_that_is_given_is_not_asked_for() {
    // Nothing is final where the highest range links to nothing.
    let data = data_folder("gap");
    let node = Served::start(&data, &[]);
    let url = format!("http://{}", node.address());
    let args = ["doctor", "--data-dir", text(&data), "--upstream", &url];
    let asked = "next: give --finality-depth";
    let ran = quipu(&args).ends_with(0);
    assert!(ran.out.contains(asked), "{}", ran.out);
    let ran = quipu(&[&args[..], &["--finality-depth", "7"]].concat()).ends_with(0);
    assert!(!ran.out.contains(asked), "{}", ran.out);
    assert!(ran.out.contains("blocks 7 below the tip are by --finality-depth"), "{}", ran.out);
}

/// The address of a node that answers as a server does, but for the methods that it does not offer.
fn lacking(server: &Arc<Served>, methods: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = Arc::downgrade(server);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            while let Some(request) = read_request(&mut reader) {
                let Some(server) = Weak::upgrade(&server) else { return };
                let answer = |call: &Value| {
                    let is_lacking = methods.iter().any(|method| call["method"] == *method);
                    let error = json!({"code": -32601, "message": "no such method"});
                    if is_lacking {
                        json!({"jsonrpc": "2.0", "id": call["id"], "error": error})
                    } else {
                        server.post(&call.to_string()).json()
                    }
                };
                let body = match request.as_array() {
                    Some(calls) => calls.iter().map(answer).collect::<Value>().to_string(),
                    None => answer(&request).to_string(),
                };
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                let head = format!("{head}\r\ncontent-length: {}\r\n\r\n", body.len());
                reader.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
            }
        }
    });
    url
}

#[test]
fn methods_that_a_node_lacks_are_named_and_what_comes_of_it() {
    let server = Arc::new(Served::start(&data_folder("sample"), &[]));
    let data = data_folder("late");
    let check = |methods: &'static [&'static str], code: i32, expected: &[&str]| {
        let url = lacking(&server, methods);
        let ran = quipu(&["doctor", "--data-dir", text(&data), "--upstream", &url]).ends_with(code);
        for said in expected {
            assert!(ran.out.contains(said), "{said}:\n{}", ran.out);
        }
    };
    check(&[], 0, &["offers every method that blocks are asked with"]);
    check(
        &["eth_getBlockReceipts", "eth_getUncleByBlockHashAndIndex", "eth_config"],
        0,
        &[
            "does not offer eth_getBlockReceipts: receipts are asked one by one",
            "does not offer eth_getUncleByBlockHashAndIndex: blocks with ommers",
            "does not offer eth_config: blob prices",
            " is proven",
        ],
    );
    check(
        &["eth_getBlockReceipts", "eth_getTransactionReceipt"],
        1,
        &[
            "FIX   node",
            "does not offer eth_getBlockReceipts: receipts cannot be had",
            "turn one on",
        ],
    );
    check(
        &["eth_chainId", "eth_getBlockByHash"],
        1,
        &["does not offer eth_chainId: nothing", "does not offer eth_getBlockByHash: nothing"],
    );
}

#[test]
fn a_file_of_another_length_is_told_with_both_lengths_and_the_command_to_run() {
    for change in [-7_i64, 9] {
        let data = Data::new();
        data.import(&["--blocks", "0..9"]).ends_with(0);
        data.import(&["--blocks", "20..29", "--unanchored"]).ends_with(0);
        let segments = names(&data.path(), ".segment");
        let doctor_after_resizing = |segment: &str| {
            let path = data.path().join(segment);
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            let listed = file.metadata().unwrap().len();
            let found = listed.checked_add_signed(change).unwrap();
            file.set_len(found).unwrap();
            let ran = data.run("doctor", &[]).ends_with(1);
            let said = format!("length is {found} bytes, the manifest says {listed} bytes");
            assert!(ran.out.contains(&said), "{said}:\n{}", ran.out);
            ran.out
        };
        let out = doctor_after_resizing(&segments[1]);
        let repair = format!("quipu repair --data-dir {}", text(&data.path()));
        assert!(out.contains(&repair) && out.contains("quipu check"), "{out}");
        // What is advised goes through.
        let copy = data.folder.path().join("copy");
        copy_folder(&data.path(), &copy);
        quipu(&["repair", "--data-dir", text(&copy)]).ends_with(1);
        quipu(&["import", "--data-dir", text(&copy), text(&data.archive())]).ends_with(0);
        quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
        // Where nothing is left, neither would.
        let out = doctor_after_resizing(&segments[0]);
        assert!(out.contains("next: bring the files back from a copy; without one, take"), "{out}");
        assert!(!out.contains("quipu repair") && !out.contains(&repair), "{out}");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in files(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}
