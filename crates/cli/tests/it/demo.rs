//! `quipu demo`: a chain to ask, with nothing installed or configured.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::run::{command, quipu, text};
use crate::harness::served::{Served, signal};
use crate::harness::wait::wait_until;

const SMALL: [&str; 4] = ["--block-count", "140", "--txs-per-block", "2"];

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn the_demo_serves_what_it_says_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let (served, said) = Served::demo(temporary.path(), &SMALL);
    let page = said.join("\n");
    assert!(page.starts_with("made 140 blocks, "), "{page}");
    assert!(page.contains("1 file imported: 140 blocks"), "{page}");
    assert!(page.contains("1..139 consistent, linked to genesis"), "{page}");
    assert!(page.contains("\nsample, chain id 20260101 in "), "{page}");
    let curls = said.iter().filter_map(|line| line.trim().strip_prefix("curl -s http://"));
    let answers: Vec<Value> = curls
        .map(|line| {
            let (address, body) = line.split_once(" -d ").unwrap();
            assert_eq!(address, served.address);
            // Without a content type of its own, as curl sends it.
            let headers = "content-type: application/x-www-form-urlencoded\r\n";
            let body = body.trim_matches('\'').as_bytes();
            served.post_with(headers, body).json()["result"].clone()
        })
        .collect();
    let [block, transaction, receipt, absent] = &answers[..] else { panic!("{page}") };
    assert_eq!(block["number"], "0x8b");
    assert_eq!(transaction["hash"], receipt["transactionHash"]);
    assert!(!receipt["logs"].as_array().unwrap().is_empty());
    assert!(absent.is_null());
    assert_eq!(entries(temporary.path()), 1);
    assert_eq!(served.stop(), Some(0));
    assert_eq!(entries(temporary.path()), 0);
}

#[test]
fn the_demo_has_every_type_of_transaction() {
    let temporary = tempfile::tempdir().unwrap();
    let (served, _) = Served::demo(temporary.path(), &[]);
    let kind = |transaction: &Value| transaction["type"].as_str().unwrap().to_owned();
    let of_block = |number: u64| {
        let block = served.result("eth_getBlockByNumber", &json!([number, true]));
        block["transactions"].as_array().unwrap().iter().map(kind).collect::<Vec<_>>()
    };
    let kinds: BTreeSet<String> = (0..1024).flat_map(of_block).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["0x0", "0x1", "0x2", "0x3", "0x4"]);
}

#[test]
fn the_demo_keeps_the_data_where_it_is_told_to_and_serves_it_again() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let data = kept.path().join("data");
    let args = [&SMALL[..], &["--data-dir", text(&data)]].concat();
    let (served, _) = Served::demo(temporary.path(), &args);
    assert_eq!(served.stop(), Some(0));
    assert_eq!(entries(temporary.path()), 0);
    let page = quipu(&["stat", "--data-dir", text(&data)]).ends_with(0).out;
    let (served, said) = Served::demo(temporary.path(), &args);
    let said = said.join("\n");
    assert!(said.contains("blocks 0..139  held already") && said.contains(&page), "{said}");
    assert_eq!(served.result("eth_blockNumber", &json!([])), "0x8b");
    drop(served);
    // It would serve without the keys of the file.
    fs::write(data.join("quipu.toml"), "[server]\nrequire_key = \"always\"\n").unwrap();
    let refused = quipu(&[&["demo"][..], &args].concat()).ends_with(2);
    assert!(refused.err.contains("quipu.toml: the demo reads no settings"), "{}", refused.err);
}

#[test]
fn the_demo_leaves_nothing_when_it_is_stopped_before_it_is_ready() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let temporary = tempfile::tempdir().unwrap();
        let args = ["demo", "--listen", "127.0.0.1:0", "--block-count", "1000000"];
        let mut command = command(&args);
        command.env("TMPDIR", temporary.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let is_begun = |entry: fs::DirEntry| entry.path().join("archives").exists();
        wait_until(|| fs::read_dir(temporary.path()).unwrap().flatten().any(is_begun));
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(entries(temporary.path()), 0);
    }
}

#[test]
fn the_demo_says_at_once_that_its_address_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = quipu(&["demo", "--listen", &address]).ends_with(1);
    assert!(ran.err.contains(&format!("{address}: cannot listen: ")), "{}", ran.err);
    assert!(ran.err.contains("--listen 127.0.0.1:0 takes a free port"), "{}", ran.err);
    assert_eq!(ran.out, "");
    quipu(&["demo", "--listen", "here"]).ends_with(2);
}

#[test]
fn the_demo_serves_though_nobody_reads_what_it_says() {
    let temporary = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = command(&["demo", "--listen", &free.to_string(), "--block-count", "20"]);
    command.env("TMPDIR", temporary.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    wait_until(|| TcpStream::connect(free).is_ok());
    let served = Served::over(child, free);
    assert_eq!(served.result("eth_blockNumber", &json!([])), "0x13");
    assert_eq!(served.stop(), Some(0));
}
