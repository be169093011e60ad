//! `quipu doctor` beside a node.

use std::fs;
use std::process::{self, Stdio};

use crate::harness::data::Data;
use crate::harness::run::{command, quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
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
