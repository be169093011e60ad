//! Data folders whose manifest is lost, or that vanish while they are served; and `quipu repair`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::data::{Data, files, names};
use crate::harness::run::{command, quipu, text};
use crate::harness::served::Served;

/// Longer than anything takes that ends at all.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server whose log is read.
struct Logged {
    served: Served,
    lines: mpsc::Receiver<String>,
}

impl Logged {
    fn start(data: &Path, args: &[&str]) -> Self {
        let serve = ["serve", "--data-dir", text(data), "--listen", "127.0.0.1:0"];
        let mut command = command(&[&serve[..], args].concat());
        command.env("RUST_LOG", "info").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, received) = mpsc::sync_channel(1 << 16);
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.parse().unwrap();
            }
            sender.send(line).unwrap();
        };
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Self { served: Served::over(child, address), lines: received }
    }

    /// Waits until `/readyz` has this status; its body.
    fn await_ready(&self, status: u16) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.served.get("/readyz");
            let body = String::from_utf8(answer.body).unwrap();
            if answer.status == status {
                return body;
            }
            assert!(begun.elapsed() < DEADLINE, "{}: {body}", answer.status);
            std::thread::yield_now();
        }
    }

    /// Waits for a line of the log.
    fn await_line(&self, said: &str) {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            if line.contains(said) {
                return;
            }
            seen.push(line);
        }
        panic!("{said:?} was not said: {seen:#?}");
    }

    /// Stops it; how many times it said that the folder is lost, and all that it said.
    fn stop(self) -> (usize, Vec<String>) {
        assert_eq!(self.served.stop(), Some(0));
        let lines: Vec<String> = self.lines.iter().collect();
        let is_of_folder = |line: &&String| {
            line.contains("ERROR") && line.contains("cannot look at the data folder")
        };
        (lines.iter().filter(is_of_folder).count(), lines)
    }
}

/// A few reads of each kind, of blocks 0 to 99.
fn questions(served: &Served) -> Vec<(&'static str, Value)> {
    let mut questions = Vec::new();
    for number in [0, 1, 50, 99] {
        questions.push(("eth_getBlockByNumber", json!([format!("{number:#x}"), true])));
        questions.push(("eth_getBlockReceipts", json!([format!("{number:#x}")])));
        let block = served.result("eth_getBlockByNumber", &json!([format!("{number:#x}"), false]));
        questions.push(("eth_getBlockByHash", json!([block["hash"], true])));
        for hash in block["transactions"].as_array().unwrap().iter().take(2) {
            questions.push(("eth_getTransactionByHash", json!([hash])));
            questions.push(("eth_getTransactionReceipt", json!([hash])));
        }
    }
    questions
}

/// Everything is answered as before, or as a failure of ours; nothing is denied.
fn check_same(served: &Served, expected: &[(&'static str, Value, Value)]) {
    for (method, params, result) in expected {
        let answer = served.call(method, params);
        let is_failure = answer["error"]["code"] == -32603;
        assert!(is_failure || answer["result"] == *result, "{method} {params}: {answer}");
    }
}

fn expected(served: &Served) -> Vec<(&'static str, Value, Value)> {
    let ask = |(method, params): (&'static str, Value)| {
        let result = served.result(method, &params);
        assert!(!result.is_null(), "{method} {params}");
        (method, params, result)
    };
    questions(served).into_iter().map(ask).collect()
}

/// Serves a folder, takes something away, and brings it back.
fn check_loss(lose: impl Fn(&Path), bring_back: impl Fn(&Path), said: &str) {
    let data = Data::imported();
    let asked = expected(&Served::start(&data.path(), &[]));
    // Of this server some files are open when the loss comes, and some are not.
    let logged = Logged::start(&data.path(), &[]);
    logged.await_ready(200);
    check_same(&logged.served, &asked[..2]);
    lose(&data.path());
    let body = logged.await_ready(503);
    assert!(body.contains(said), "{body}");
    check_same(&logged.served, &asked);
    bring_back(&data.path());
    logged.await_ready(200);
    check_same(&logged.served, &asked);
    let (said_count, lines) = logged.stop();
    assert_eq!(said_count, 1, "{lines:#?}");
}

#[test]
fn a_server_whose_manifest_goes_away_serves_on_and_says_so_once() {
    let (manifest, away) = ("manifest", "manifest.away");
    check_loss(
        |path| fs::rename(path.join(manifest), path.join(away)).unwrap(),
        |path| fs::rename(path.join(away), path.join(manifest)).unwrap(),
        "the manifest is missing",
    );
}

#[test]
fn a_server_whose_folder_vanishes_never_denies_what_it_held() {
    let away = |path: &Path| path.with_extension("away");
    check_loss(
        |path| fs::rename(path, away(path)).unwrap(),
        |path| fs::rename(away(path), path).unwrap(),
        "the data folder is not there any more",
    );
    // As a disk that is unmounted: an empty folder is in its place.
    check_loss(
        |path| {
            fs::rename(path, away(path)).unwrap();
            fs::create_dir(path).unwrap();
        },
        |path| {
            fs::remove_dir(path).unwrap();
            fs::rename(away(path), path).unwrap();
        },
        "the data folder is not there any more",
    );
}

#[test]
fn a_follower_whose_manifest_goes_away_serves_on_and_says_so() {
    let data = Data::imported();
    let node = Served::start(&data.path(), &[]);
    let (url, genesis) = (format!("http://{}", node.address()), data.genesis());
    let copy = data.folder.path().join("copy");
    let args = ["--upstream", &url, "--genesis", text(&genesis), "--poll-every", "50"];
    let logged = Logged::start(&copy, &args);
    logged.await_ready(200);
    // Before any block is sealed, and after the manifest records what is final: nothing writes it then.
    let begun = Instant::now();
    let finalized = || logged.served.result("eth_getBlockByNumber", &json!(["finalized", false]));
    while finalized()["number"] != "0x63" {
        assert!(begun.elapsed() < DEADLINE, "{}", finalized());
    }
    assert!(names(&copy, ".segment").is_empty());
    fs::rename(copy.join("manifest"), copy.join("away")).unwrap();
    let body = logged.await_ready(503);
    assert!(body.contains("the manifest is missing"), "{body}");
    let latest = logged.served.result("eth_getBlockByNumber", &json!(["latest", false]));
    assert_eq!(latest["number"], "0x63");
    logged.await_line("cannot look at the data folder");
    let (said_count, lines) = logged.stop();
    assert_eq!(said_count, 0, "once is enough: {lines:#?}");
    let refused = quipu(&["check", "--data-dir", text(&copy)]).ends_with(1);
    assert!(refused.err.contains("head-"), "{}", refused.err);
    // What a head says of its chain is kept beside it.
    quipu(&["repair", "--data-dir", text(&copy)]).ends_with(0);
    quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
    let manifest = String::from_utf8(fs::read(copy.join("manifest")).unwrap()).unwrap();
    assert!(manifest.contains("\nhead 99 0x"), "the log is recorded again: {manifest}");
    // A segment that nobody lists, and no log any more: one repair is enough.
    let log = names(&copy, ".log").pop().unwrap();
    fs::remove_file(copy.join(log)).unwrap();
    let segment = names(&data.path(), ".segment").pop().unwrap();
    fs::copy(data.path().join(&segment), copy.join(&segment)).unwrap();
    let ran = quipu(&["repair", "--data-dir", text(&copy)]).ends_with(0);
    assert!(ran.out.contains("the loss is accepted"), "{}", ran.out);
    quipu(&["check", "--data-dir", text(&copy)]).ends_with(0);
}

#[test]
fn a_folder_without_its_manifest_is_refused_and_no_file_is_removed() {
    let data = Data::imported();
    fs::remove_file(data.path().join("manifest")).unwrap();
    let before = data.files();
    let commands: [&[&str]; 4] = [
        &["stat"],
        &["check"],
        &["export", "--format", "ere", "--to", "out"],
        &["serve", "--listen", "127.0.0.1:0"],
    ];
    let path = data.path();
    let refused = commands.map(|given| quipu(&[given, &["--data-dir", text(&path)]].concat()));
    for ran in refused.into_iter().chain([data.import(&[])]) {
        let ran = ran.ends_with(1);
        for said in ["the manifest is missing", "genesis.json", "quipu repair"] {
            assert!(ran.err.contains(said), "{}", ran.err);
        }
    }
    assert!(data.files() == before);
}

#[test]
fn a_repair_gives_the_manifest_that_was_lost_and_an_intact_one_is_left_alone() {
    let data = Data::imported();
    let before = data.files();
    let ran = data.run("repair", &[]).ends_with(0);
    assert!(ran.out.contains("the manifest is intact"), "{}", ran.out);
    fs::remove_file(data.path().join("manifest")).unwrap();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(0);
    assert!(ran.out.contains("sample, chain id 20260101, blocks 0..99, 1 segment"), "{}", ran.out);
    assert!(data.files() == before);
    data.run("check", &[]).ends_with(0);
    // One that cannot be read is kept for whoever wants to look.
    fs::write(data.path().join("manifest"), "nonsense").unwrap();
    let refused = data.import(&[]).ends_with(1);
    assert!(refused.err.contains("/manifest: "), "{}", refused.err);
    data.run("repair", &["--name", "sample"]).ends_with(0);
    let mut after = data.files();
    assert_eq!(after.remove("manifest.damaged").as_deref(), Some(&b"nonsense"[..]));
    assert!(after == before);
    // Another build's is no damage.
    let other = b"quipu manifest 999\nchecksum 00000000\n";
    fs::write(data.path().join("manifest"), other).unwrap();
    let refused = data.run("repair", &[]).ends_with(1);
    assert!(refused.err.contains("manifest version 999"), "{}", refused.err);
    assert_eq!(data.files()["manifest"], other);
}

#[test]
fn a_repair_leaves_out_what_is_superseded_or_false_and_says_why() {
    let data = Data::new();
    data.import(&["--blocks", "0..49"]).ends_with(0);
    let part = data.files();
    data.import(&[]).ends_with(0);
    let whole = data.files();
    // What a crash may leave: the segment that was superseded.
    for (name, bytes) in &part {
        if !whole.contains_key(name) {
            fs::write(data.path().join(name), bytes).unwrap();
        }
    }
    let lose = || fs::remove_file(data.path().join("manifest")).unwrap();
    lose();
    let old = part.keys().find(|name| name.ends_with(".segment")).unwrap();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(0);
    assert!(ran.out.contains(&format!("left out {old}: superseded: blocks-")), "{}", ran.out);
    assert!(data.files().contains_key(old), "nothing is removed");
    assert_eq!(data.files()["manifest"], whole["manifest"]);
    data.run("check", &[]).ends_with(0);
    // A byte of the segment is false: the older one is right.
    let new = whole.keys().find(|name| name.ends_with(".segment")).unwrap();
    let mut damaged = whole[new].clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(data.path().join(new), damaged).unwrap();
    lose();
    let ran = data.run("repair", &["--name", "sample"]).ends_with(1);
    assert!(ran.out.contains(&format!("left out {new}: ")), "{}", ran.out);
    assert!(ran.out.contains("blocks 0..49"), "{}", ran.out);
    // What it held is not denied.
    assert!(ran.out.contains("blocks 50..99 are lost: this folder knew them"), "{}", ran.out);
    data.run("check", &[]).ends_with(0);
    // The next import makes it whole again.
    data.import(&[]).ends_with(0);
    assert!(data.files() == whole);
}

#[test]
fn anchors_are_given_again_and_false_ones_refused() {
    let data = Data::new();
    data.import(&[]).ends_with(0);
    let stat = data.run("stat", &["--json"]).ends_with(0).json();
    let anchor = format!("99:{}", stat["tip"]["hash"].as_str().unwrap());
    data.import(&["--anchor", &anchor]).ends_with(0);
    let before = data.files();
    fs::remove_file(data.path().join("manifest")).unwrap();
    let other = format!("98:{}", stat["tip"]["hash"].as_str().unwrap());
    data.run("repair", &["--name", "sample", "--anchor", &other]).ends_with(1);
    assert!(!data.path().join("manifest").exists());
    let ran = data.run("repair", &["--name", "sample", "--anchor", &anchor]).ends_with(0);
    assert!(ran.out.contains("anchored by 99:"), "{}", ran.out);
    assert!(data.files() == before);
}

#[test]
fn a_folder_that_is_none_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("film.part"), "half").unwrap();
    let ran = quipu(&["repair", "--data-dir", text(folder.path())]).ends_with(1);
    assert!(ran.err.contains("no file of a data folder"), "{}", ran.err);
    assert_eq!(files(folder.path()).len(), 1);
    assert!(!folder.path().join("lock").exists());
}

#[test]
fn a_segment_that_a_restored_manifest_does_not_list_is_never_removed_and_is_told() {
    let data = Data::new();
    data.import(&["--blocks", "0..49"]).ends_with(0);
    let older = data.files();
    data.import(&[]).ends_with(0);
    let newer = data.files();
    let name = newer.keys().find(|name| name.ends_with(".segment")).unwrap();
    // The folder of a backup is copied over this one.
    for (name, bytes) in &older {
        fs::write(data.path().join(name), bytes).unwrap();
    }
    for (command, args) in [("stat", &[][..]), ("stat", &["--json"]), ("check", &[])] {
        let ran = data.run(command, args).ends_with(0);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(name), "{command}: {said}");
        assert!(args.len() == 1 || said.contains("quipu repair"), "{command}: {said}");
    }
    let ran = data.import(&["--blocks", "0..49"]).ends_with(0);
    assert!(ran.err.contains(&format!("warning: {name} is not listed")), "{}", ran.err);
    assert_eq!(data.files().get(name), newer.get(name));
    // Equal blocks take its place.
    let ran = data.import(&[]).ends_with(0);
    assert!(ran.err.contains(name), "{}", ran.err);
    assert!(data.files() == newer, "{:?}", data.files().keys());
    assert!(!data.import(&[]).ends_with(0).err.contains("not listed"));
    // A repair lists it too, and keeps what the manifest knows of the chain.
    for (name, bytes) in &older {
        fs::write(data.path().join(name), bytes).unwrap();
    }
    data.run("repair", &[]).ends_with(0);
    assert_eq!(data.files()["manifest"], newer["manifest"]);
    data.run("check", &[]).ends_with(0);
}

#[test]
fn a_lost_log_of_the_head_is_damage_until_the_loss_is_accepted() {
    let data = Data::imported();
    let node = Served::start(&data.path(), &[]);
    let (url, genesis) = (format!("http://{}", node.address()), data.genesis());
    let copy = data.folder.path().join("copy");
    let args = ["--upstream", &url, "--genesis", text(&genesis), "--poll-every", "50"];
    let follower = Logged::start(&copy, &args);
    follower.await_ready(200);
    let begun = Instant::now();
    let finalized = || follower.served.result("eth_getBlockByNumber", &json!(["finalized", false]));
    while finalized()["number"] != "0x63" {
        assert!(begun.elapsed() < DEADLINE, "{}", finalized());
    }
    follower.stop();
    let log = names(&copy, ".log").pop().unwrap();
    let (log, away) = (copy.join(log), copy.join("away"));
    // A server that has read the log serves on, and says so.
    let logged = Logged::start(&copy, &[]);
    let (method, params) = ("eth_getBlockByNumber", json!(["0x63", true]));
    let block = logged.served.result(method, &params);
    assert!(block["hash"].is_string(), "{block}");
    let asked = [(method, params, block)];
    fs::rename(&log, &away).unwrap();
    let body = logged.await_ready(503);
    assert!(body.contains("quipu repair"), "{body}");
    check_same(&logged.served, &asked);
    fs::rename(&away, &log).unwrap();
    logged.await_ready(200);
    check_same(&logged.served, &asked);
    fs::rename(&log, &away).unwrap();
    logged.await_ready(503);
    let (said_count, lines) = logged.stop();
    assert_eq!(said_count, 2, "{lines:#?}");
    // No other starts, and nothing passes.
    let path = text(&copy);
    let before = files(&copy);
    for given in [&["check"][..], &["stat"], &["serve", "--listen", "127.0.0.1:0"]] {
        let ran = quipu(&[given, &["--data-dir", path]].concat()).ends_with(1);
        assert!(ran.err.contains("no log is there"), "{}", ran.err);
        assert!(ran.err.contains("quipu repair"), "{}", ran.err);
    }
    assert!(files(&copy) == before);
    let ran = quipu(&["repair", "--data-dir", path]).ends_with(1);
    assert!(ran.out.contains("the loss is accepted"), "{}", ran.out);
    assert!(ran.out.contains("blocks 99..99 are lost"), "{}", ran.out);
    assert!(!ran.out.contains("quipu repair"), "{}", ran.out);
    quipu(&["check", "--data-dir", path]).ends_with(0);
    let served = Served::start(&copy, &[]);
    let answer = served.call("eth_getBlockByNumber", &json!(["0x63", false]));
    assert_eq!(answer["error"]["code"], 4444, "final blocks are not denied: {answer}");
    served.stop();
    let follower = Logged::start(&copy, &args);
    follower.await_ready(200);
    check_same(&follower.served, &asked);
    follower.stop();
}
