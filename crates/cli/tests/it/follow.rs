//! `quipu backfill`, `quipu serve --upstream` and `quipu rewind`, with another Quipu as the node.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::data::{Data, files};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;

/// Longer than anything takes that ends at all.
const DEADLINE: Duration = Duration::from_mins(1);

#[test]
fn a_backfill_from_a_server_gives_the_folder_that_it_serves() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &[]);
    let url = format!("http://{}", served.address());
    let copy = tempfile::tempdir().unwrap();
    let copy = copy.path().join("copy");
    let backfill = |more: &[&str]| {
        let args = ["backfill", "--data-dir", text(&copy), "--upstream", &url];
        quipu(&[&args[..], more].concat())
    };
    // A chain that is not built in must be named.
    backfill(&["--blocks", "0..99"]).ends_with(2);
    let genesis = data.genesis();
    let genesis = ["--genesis", text(&genesis)];
    backfill(&[&genesis[..], &["--blocks", "30..39"]].concat()).ends_with(1);
    backfill(&[&genesis[..], &["--blocks", "0..29"]].concat()).ends_with(0);
    backfill(&["--blocks", "50..99", "--unanchored"]).ends_with(0);
    // What is not final is left, and said; nothing is refused.
    let ran = backfill(&["--blocks", "95..99999"]).ends_with(0);
    assert!(ran.out.contains("blocks 95..99 are held already"), "{}", ran.out);
    assert!(ran.out.contains("left: blocks 100..99999, which are not final"), "{}", ran.out);
    let ran = backfill(&["--blocks", "200..300"]).ends_with(0);
    assert!(ran.out.starts_with("left: blocks 200..300, "), "{}", ran.out);
    let ran = backfill(&["--finality-depth", "60"]).ends_with(0);
    assert!(ran.out.contains("10 blocks of 0..39 taken"), "{}", ran.out);
    assert!(ran.out.contains("left: blocks 40..99, "), "{}", ran.out);
    let ran = backfill(&["--blocks", "0..99999"]).ends_with(0);
    assert!(ran.out.contains("10 blocks of 0..99 taken"), "{}", ran.out);
    // The manifests differ: only the archives' names tell what the chain is called.
    let blocks_of = |mut files: std::collections::BTreeMap<String, Vec<u8>>| {
        files.remove("manifest");
        files
    };
    assert!(blocks_of(files(&copy)) == blocks_of(data.files()));
    quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
    backfill(&[]).ends_with(0);
    // No gap, though the highest block that is held is above what is final.
    let ran = backfill(&["--finality-depth", "60"]).ends_with(0);
    assert!(ran.out.contains("blocks 0..39 are held already"), "{}", ran.out);
}

#[test]
fn a_server_that_follows_another_serves_its_blocks_and_a_rewind_drops_them() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &[]);
    let url = format!("http://{}", served.address());
    let copy = tempfile::tempdir().unwrap();
    let copy = copy.path().join("copy");
    let genesis = data.genesis();
    let args = ["--upstream", &url, "--genesis", text(&genesis), "--backfill-to", "0"];
    let args = [&args[..], &["--poll-every", "50"]].concat();
    let follower = Served::start(&copy, &args);
    let begun = Instant::now();
    let is_whole = || {
        let first = follower.call("eth_getBlockByNumber", &json!(["0x0", true]));
        let last = follower.call("eth_getBlockByNumber", &json!(["latest", true]));
        !first["result"].is_null() && last["result"]["number"] == "0x63"
    };
    while !is_whole() {
        assert!(begun.elapsed() < DEADLINE, "not whole");
        std::thread::yield_now();
    }
    for params in [json!(["0x0", true]), json!(["0x30", true]), json!(["finalized", true])] {
        let method = "eth_getBlockByNumber";
        assert_eq!(follower.result(method, &params), served.result(method, &params));
    }
    let hash = served.result("eth_getBlockByNumber", &json!(["0x28", false]))["hash"].clone();
    let to = format!("40:{}", hash.as_str().unwrap());
    // One writer at a time.
    quipu(&["rewind", "--data-dir", text(&copy), "--to", &to]).ends_with(1);
    assert_eq!(follower.stop(), Some(0));
    quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
    let ran = quipu(&["rewind", "--data-dir", text(&copy), "--to", &to]).ends_with(0);
    assert!(ran.out.starts_with("59 blocks above 40 dropped"), "{}", ran.out);
    assert!(ran.out.ends_with(&format!("; the tip is {to}\n")), "{}", ran.out);
    quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
    let stale = format!("39:{}", hash.as_str().unwrap());
    quipu(&["rewind", "--data-dir", text(&copy), "--to", &stale]).ends_with(1);
}

#[test]
fn keys_of_an_address_are_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["http://me:secret@127.0.0.1:1/secret?k=secret", "htp://me:secret@127.0.0.1/secret"]
    {
        let ran = quipu(&[
            "backfill",
            "--data-dir",
            text(folder.path()),
            "--upstream",
            url,
            "--blocks",
            "0..9",
        ]);
        assert_ne!(ran.code, Some(0));
        assert!(!ran.err.contains("secret"), "{}", ran.err);
    }
}

/// Seen: a follower said nothing for hours, and one that hangs says as much.
#[test]
fn a_follower_tells_now_and_then_how_it_goes() {
    let data = Data::imported();
    let node = Served::start(&data.path(), &[]);
    let url = format!("http://{}", node.address());
    let copy = tempfile::tempdir().unwrap();
    let (copy, genesis) = (copy.path().join("copy"), data.genesis());
    let args = ["--upstream", &url, "--genesis", text(&genesis), "--heartbeat-every", "50ms"];
    let (_served, lines) = Served::start_logged(&copy, &args);
    let mut said = Vec::new();
    let is_told = |line: &String| {
        line.contains("following") && line.contains("tip=99") && line.contains("lag=0")
    };
    while !said.last().is_some_and(is_told) {
        match lines.recv_timeout(DEADLINE) {
            Ok(line) => said.push(line),
            Err(error) => panic!("{error}: {said:#?}"),
        }
    }
}
