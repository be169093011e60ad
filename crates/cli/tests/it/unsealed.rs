//! Blocks that a follower has not sealed yet belong to every command and to every reading process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use chain::BlockNumber;
use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Value, json};
use store::BlockId;
use store::Finality;
use tempfile::TempDir;
use testing::disk::faulty::FaultyDisk;

use crate::harness::data::files;
use crate::harness::hosted::Hosted;
use crate::harness::live::{Live, block, branch, spec};
use crate::harness::run::{Ran, quipu, text};
use crate::harness::served::Served;

/// Longer than anything takes that ends at all.
const DEADLINE: Duration = Duration::from_mins(1);

/// A node that has blocks from genesis on, in a store of its own.
pub(crate) struct Node {
    live: Live,
    hosted: Hosted,
}

impl Node {
    /// One with blocks up to `last`; those above `fork_point` are others for every mark.
    pub(crate) fn start(last: u64, fork_point: u64, mark: u64) -> Self {
        let mut live = Live::on(Arc::new(FaultyDisk::new(1)), spec());
        let genesis = block(0, B256::ZERO, 0);
        let trunk = branch((0, genesis.hash), fork_point.min(last), 0);
        let fork = trunk.last().map_or((0, genesis.hash), |it| (it.header.number, it.hash));
        let rest = branch(fork, last - fork.0, mark);
        live.writer.extend([vec![genesis], trunk, rest].concat()).unwrap();
        let hosted =
            Hosted::start(live.service(ServiceSettings::default()), HttpSettings::default());
        Self { live, hosted }
    }

    pub(crate) fn finalize(&mut self, number: u64) {
        let (number, hash) = self.live.chain()[usize::try_from(number).unwrap()];
        let finalized = Some(BlockId { number: BlockNumber(number), hash });
        self.live.writer.set_finality(Finality { safe: finalized, finalized }).unwrap();
    }

    fn grow(&mut self, count: u64) {
        let tip = self.live.tip();
        self.live.writer.extend(branch(tip, count, 0)).unwrap();
    }

    /// The hash of its block of this number.
    pub(crate) fn hash(&self, number: usize) -> String {
        self.live.chain()[number].1.to_string()
    }

    /// Goes over to the chain of another node.
    pub(crate) fn turn_to(&mut self, other: &Self) {
        let (own, theirs) = (self.live.chain(), other.live.store.view());
        let shared = theirs.head().blocks().iter().zip(&own);
        let shared = shared.take_while(|(block, own)| block.hash() == own.1).count();
        let rest = theirs.head().blocks()[shared..].iter().map(|block| block.block().clone());
        self.live.writer.reorg(own[shared - 1].1, rest.collect()).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.hosted.address)
    }
}

/// A data folder that is not there yet.
struct Folder {
    directory: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, command: &str, args: &[&str]) -> Ran {
        quipu(&[&[command, "--data-dir", text(&self.path())], args].concat())
    }

    fn follow(&self, node: &Node) -> Served {
        let url = node.url();
        let args = ["--upstream", &url, "--chain-id", "7", "--poll-every", "20"];
        Served::start(&self.path(), &args)
    }

    /// The name of the head's log.
    fn log(&self) -> PathBuf {
        let names = files(&self.path()).into_keys();
        let logs: Vec<String> = names.filter(|name| name.strip_suffix(".log").is_some()).collect();
        let [log] = logs.as_slice() else { panic!("{logs:?}") };
        self.path().join(log)
    }
}

fn number(served: &Served, tag: &str) -> Value {
    served.call("eth_getBlockByNumber", &json!([tag, false]))["result"]["number"].clone()
}

/// Waits until a server says this of a tag.
#[track_caller]
fn wait(served: &Served, tag: &str, expected: u64) {
    let expected = json!(format!("{expected:#x}"));
    let begun = Instant::now();
    loop {
        let found = number(served, tag);
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{tag} is {found}, expected {expected}");
        std::thread::yield_now();
    }
}

/// Waits until the follower has recorded that a block is safe too, which it asks for by itself: from
/// then on it has nothing to write.
#[track_caller]
fn wait_settled(folder: &Folder, follower: &Served, number: u64) {
    wait(follower, "safe", number);
    // What is safe may have been told before what is final, or after it.
    let recorded = |log: &[u8]| {
        let tip = &log[log.len() - 114..];
        let at = |at: usize| u64::from_le_bytes(tip[at..at + 8].try_into().unwrap());
        (at(33), at(74))
    };
    let begun = Instant::now();
    loop {
        let found = recorded(&std::fs::read(folder.log()).unwrap());
        if found == (number, number) {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "recorded are {found:?}, expected {number}");
        std::thread::yield_now();
    }
}

/// Every block up to `last` is answered as the node answers it.
fn check_same(served: &Served, node: &Node, last: u64) {
    for (number, hash) in node.live.chain().into_iter().take_while(|it| it.0 <= last) {
        let found = served.result("eth_getBlockByNumber", &json!([format!("{number:#x}"), true]));
        assert_eq!(found["hash"], json!(hash), "block {number}: {found}");
    }
}

/// Seen: while a server told blocks 0..60, `stat` said "holds no block yet", `check` "0 blocks",
/// `export` found nothing, and a plain `serve` of the folder held nothing.
#[test]
fn every_command_and_every_reader_sees_the_blocks_of_the_head() {
    let mut node = Node::start(60, 60, 0);
    node.finalize(0);
    let folder = Folder::new();
    let follower = folder.follow(&node);
    wait(&follower, "latest", 60);
    node.finalize(30);
    wait(&follower, "finalized", 30);
    wait_settled(&folder, &follower, 30);
    check_commands(&folder, 60);
    // A reader beside the follower, which goes on.
    let beside = Served::start(&folder.path(), &[]);
    check_same(&beside, &node, 60);
    assert_eq!(
        (number(&beside, "latest"), number(&beside, "finalized")),
        (json!("0x3c"), json!("0x1e"))
    );
    node.grow(1);
    node.finalize(31);
    wait(&beside, "latest", 61);
    wait(&beside, "finalized", 31);
    wait_settled(&folder, &follower, 31);
    assert_eq!(follower.stop(), Some(0));
    check_commands(&folder, 61);
    drop(beside);
    // Nobody follows: what was answered is answered.
    let alone = Served::start(&folder.path(), &[]);
    check_same(&alone, &node, 61);
    for (tag, expected) in [("latest", "0x3d"), ("safe", "0x1f"), ("finalized", "0x1f")] {
        assert_eq!(number(&alone, tag), json!(expected), "{tag}");
    }
    let node_url = node.url();
    folder.run("compare", &["--with", &node_url, "--blocks", "0..61"]).ends_with(0);
}

fn check_commands(folder: &Folder, tip: u64) {
    let stat = folder.run("stat", &["--json"]).ends_with(0).json();
    assert_eq!((&stat["blocks"], &stat["tip"]["number"]), (&json!(tip + 1), &json!(tip)), "{stat}");
    assert_eq!(stat["head"], json!({ "first": 0, "last": tip }));
    let coverage = stat["coverage"].as_array().unwrap();
    assert_eq!(coverage.last().unwrap()["last"], json!(tip), "{stat}");
    assert_eq!(stat["finalized"]["number"], json!(tip - 30));
    let on_disk: u64 = files(&folder.path()).values().map(|file| file.len() as u64).sum();
    assert_eq!(stat["bytes"]["total"], json!(on_disk), "{stat}");
    assert!(stat["bytes"]["head"].as_u64().unwrap() > 1000, "{stat}");
    let page = folder.run("stat", &[]).ends_with(0).out;
    assert!(page.contains(&format!("{} blocks, ", tip + 1)), "{page}");
    assert!(page.contains(&format!("head       0..{tip}, not sealed yet")), "{page}");
    let checked = folder.run("check", &[]).ends_with(0).out;
    assert!(checked.contains(&format!("{} blocks (0..{tip} in the head)", tip + 1)), "{checked}");
    // Without names only what is final goes into an archive.
    let to = tempfile::tempdir().unwrap();
    let exported = |name: &str, args: &[&str]| {
        let to = to.path().join(name);
        let args = [&["--format", "ndjson", "--to", text(&to)], args].concat();
        let ran = folder.run("export", &args).ends_with(0);
        (lines(&to), ran.err)
    };
    let (numbers, said) = exported("final", &[]);
    assert_eq!(numbers, (0..=tip - 30).collect::<Vec<_>>());
    assert!(said.contains(&format!("blocks {}..{tip} are not final", tip - 29)), "{said}");
    let (numbers, _) = exported("all", &["--blocks", &format!("0..{tip}")]);
    assert_eq!(numbers, (0..=tip).collect::<Vec<_>>());
}

/// The numbers of the blocks of an export.
fn lines(folder: &Path) -> Vec<u64> {
    let texts = files(folder).into_values().map(|file| String::from_utf8(file).unwrap());
    let of = |text: String| -> Vec<u64> {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap()["number"].clone();
        text.lines().map(|line| parse(line).as_u64().unwrap()).collect()
    };
    texts.flat_map(of).collect()
}

/// Seen: a block that had been answered as `finalized` was reorganised away after a restart.
#[test]
fn a_final_block_is_final_after_a_restart_whatever_the_next_node_says() {
    let mut node = Node::start(60, 60, 0);
    node.finalize(0);
    let folder = Folder::new();
    let follower = folder.follow(&node);
    wait(&follower, "latest", 60);
    node.finalize(40);
    wait(&follower, "finalized", 40);
    assert_eq!(follower.stop(), Some(0));
    let mut other = Node::start(70, 35, 1);
    other.finalize(20);
    let follower = folder.follow(&other);
    assert_eq!(number(&follower, "finalized"), json!("0x28"), "before a node said anything");
    let begun = Instant::now();
    loop {
        let ready = follower.get("/readyz");
        let said = String::from_utf8(ready.body).unwrap();
        if said.contains("rewind") {
            break;
        }
        assert_eq!(number(&follower, "latest"), json!("0x3c"), "reorganised away");
        assert!(begun.elapsed() < DEADLINE, "{said}");
        std::thread::yield_now();
    }
    check_same(&follower, &node, 60);
    assert_eq!(number(&follower, "finalized"), json!("0x28"));
    assert_eq!(follower.stop(), Some(0));
    // A human says otherwise.
    let to = format!("35:{}", node.live.chain()[35].1);
    folder.run("rewind", &["--to", &to]).ends_with(0);
    let follower = folder.follow(&other);
    wait(&follower, "latest", 70);
    check_same(&follower, &other, 70);
}

/// Where the last change of a log begins.
fn last_change(bytes: &[u8]) -> usize {
    let (mut at, mut begin, mut batch) = (72, 72, 0);
    while at < bytes.len() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let found = u64::from_le_bytes(bytes[at + 12..at + 20].try_into().unwrap());
        if found != batch {
            (begin, batch) = (at, found);
        }
        at += 20 + word(at + 4) as usize;
    }
    begin
}

/// Seen: `check` passed with a damaged head log, 40 of 40.
#[test]
fn check_fails_on_a_damaged_head_and_names_file_and_byte() {
    let mut node = Node::start(8, 8, 0);
    node.finalize(0);
    let folder = Folder::new();
    let follower = folder.follow(&node);
    wait(&follower, "latest", 8);
    for tip in 9..12 {
        node.grow(1);
        wait(&follower, "latest", tip);
    }
    assert_eq!(follower.stop(), Some(0));
    let log = folder.log();
    let name = log.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let last = last_change(&bytes);
    let mut missed = Vec::new();
    for position in (0..40).map(|part| part * bytes.len() / 40).chain([last - 1]) {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        std::fs::write(&log, &flipped).unwrap();
        let ran = folder.run("check", &[]);
        let is_told = ran.err.contains(&format!("{name}: byte "));
        // The last change alone may be one that a crash interrupted: it is told, and no error.
        let is_right = if position < last { ran.code == Some(1) } else { ran.code == Some(0) };
        if !is_told || !is_right {
            missed.push((position, ran.code, ran.err));
        }
        // What is proven is served all the same: here all but the last two changes.
        if position == last - 1 {
            let served = Served::start(&folder.path(), &[]);
            check_same(&served, &node, 9);
            assert_eq!(number(&served, "latest"), json!("0x9"));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
    std::fs::write(&log, &bytes).unwrap();
    folder.run("check", &[]).ends_with(0);
}
