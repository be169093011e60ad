//! Buckets: what is published there, those who serve it, and what happens to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::data::{files, names, write_part};
use crate::harness::long::refused_code;
use crate::harness::run::{Ran, archive, command, quipu, ran, text};
use crate::harness::served::Served;
use crate::harness::stores::own_folder;
use crate::harness::wait::{wait_for, wait_until};
use crate::harness::web_server::WebServer;
use crate::unsealed::Node;

/// No block and no transaction has this hash.
const ABSENT: &str = "0xabababababababababababababababababababababababababababababababab";
/// What a server that looks at its source often is told.
const OFTEN: [&str; 2] = ["--source-every", "50ms"];
/// Code of what is not held.
const NOT_HELD: i64 = 4444;

/// Blocks 0 to 599 as archives, and data folders of them that nobody changes. Made once for all tests of a
/// run; the next run makes it again.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = own_folder("bucket");
    let size = ["--block-count", "600", "--txs-per-block", "1"];
    let sample = ["sample", "--to", text(&folder.join("archives"))].map(str::to_owned);
    let sample: Vec<&str> = sample.iter().map(String::as_str).chain(size).collect();
    quipu(&sample).ends_with(0);
    folder
});

/// Folders are made one at a time.
static MADE: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// A data folder of these blocks, in as many segments as there are begun 256.
fn folder_of(blocks: &'static str) -> PathBuf {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = FOLDER.join(blocks);
    if made.insert(blocks) {
        import(&data, &FOLDER.join("archives"), blocks);
    }
    data
}

/// All blocks, in three segments.
fn whole() -> PathBuf {
    folder_of("0..599")
}

/// The first segment.
fn low() -> PathBuf {
    folder_of("0..255")
}

/// The others.
fn high() -> PathBuf {
    folder_of("256..599")
}

fn import(data: &Path, archives: &Path, blocks: &str) {
    let genesis = archives.join("genesis.json");
    let to = ["import", "--data-dir", text(data), "--genesis", text(&genesis), "--blocks", blocks];
    quipu(&[&to[..], &["--unanchored", text(archives)]].concat()).ends_with(0);
}

/// A copy of a data folder, for tests that change it.
fn copied(data: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir(&to).unwrap();
    for (name, bytes) in files(data) {
        fs::write(to.join(name), bytes).unwrap();
    }
    to
}

/// A bucket in a folder, and room beside it.
struct TestBucket {
    folder: TempDir,
}

impl TestBucket {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A bucket in which these folders are published, one after the other.
    fn of(folders: &[PathBuf]) -> Self {
        let bucket = Self::new();
        for data in folders {
            bucket.publish(data).ends_with(0);
        }
        bucket
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bucket")
    }

    fn url(&self) -> String {
        format!("file://{}", text(&self.path()))
    }

    /// Something beside it.
    fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn publish(&self, data: &Path) -> Ran {
        quipu(&["publish", "--data-dir", text(data), "--to", &self.url()])
    }

    /// Runs a command that works at a bucket.
    fn at(&self, command: &str, args: &[&str]) -> Ran {
        quipu(&[&[command, "--at", &self.url()], args].concat())
    }

    /// A server that has nothing but the bucket and an empty cache.
    fn reader(&self, args: &[&str]) -> Served {
        self.reader_with(&self.beside("cache"), args)
    }

    fn reader_with(&self, cache: &Path, args: &[&str]) -> Served {
        Served::start_reader(&self.url(), cache, &[&OFTEN[..], args].concat())
    }

    /// The objects of a folder below it with an ending, by name.
    fn names(&self, folder: &str, ending: &str) -> Vec<String> {
        names(&self.path().join(folder), ending)
    }

    /// Where a segment or run lies that has this in its name.
    fn file(&self, part: &str) -> PathBuf {
        let names = self.names("files", "");
        let name = names.iter().find(|name| name.contains(part)).unwrap();
        self.path().join("files").join(name)
    }

    /// Flips a bit in the middle of a file.
    fn damage(&self, part: &str) -> PathBuf {
        let damaged = self.file(part);
        let mut bytes = fs::read(&damaged).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&damaged, bytes).unwrap();
        damaged
    }

    /// Every object by its path.
    fn objects(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut objects, mut folders) = (BTreeMap::new(), vec![self.path()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).unwrap();
                    objects.insert(path.strip_prefix(self.path()).unwrap().to_owned(), bytes);
                }
            }
        }
        objects
    }

    /// Removes what nothing lists, without mercy: noted by the first run, removed by the second.
    fn prune(&self) {
        for _ in 0..2 {
            self.at("prune", &["--older-than", "0s"]).ends_with(0);
        }
    }
}

/// A question as it is sent, and what a local server with all blocks answered.
struct Asked {
    body: String,
    answer: Vec<u8>,
    /// The blocks that it is about; none if it is about all of them.
    block: Option<u64>,
}

/// Calls that are sent together, all of some block or of none.
static QUESTIONS: LazyLock<Vec<Asked>> = LazyLock::new(|| {
    let local = Served::start(&whole(), &[]);
    let mut asked = Vec::new();
    let mut ask = |block, calls: Vec<(&str, Value)>| {
        let calls: Vec<Value> = (0..)
            .zip(calls)
            .map(|(id, (method, params)): (u64, _)| {
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
            })
            .collect();
        let body = Value::Array(calls).to_string();
        let answer = local.post(&body).body;
        asked.push(Asked { body, answer, block });
    };
    let mut values: BTreeSet<(usize, String)> = BTreeSet::new();
    for number in 0..600_u64 {
        let number_hex = format!("{number:#x}");
        let block = local.result("eth_getBlockByNumber", &json!([number_hex, false]));
        let receipts = local.result("eth_getBlockReceipts", &json!([number_hex]));
        let mut calls = vec![
            ("eth_getBlockByNumber", json!([number_hex, true])),
            ("eth_getBlockByHash", json!([block["hash"], false])),
            ("eth_getBlockReceipts", json!([block["hash"]])),
            ("eth_getBlockTransactionCountByHash", json!([block["hash"]])),
            ("eth_getTransactionByBlockHashAndIndex", json!([block["hash"], "0x0"])),
            ("eth_getLogs", json!([{ "blockHash": block["hash"] }])),
        ];
        for hash in block["transactions"].as_array().unwrap() {
            calls.push(("eth_getTransactionByHash", json!([hash])));
            calls.push(("eth_getTransactionReceipt", json!([hash])));
        }
        ask(Some(number), calls);
        let logs =
            receipts.as_array().unwrap().iter().flat_map(|it| it["logs"].as_array().unwrap());
        for log in logs {
            let topics = log["topics"].as_array().unwrap().iter();
            for (position, value) in [&log["address"]].into_iter().chain(topics).enumerate() {
                values.insert((position, value.as_str().unwrap().to_owned()));
            }
        }
    }
    ask(None, questions_about_all(&values));
    asked
});

/// What concerns no block alone: absent hashes, tags and filters over all of history.
fn questions_about_all(values: &BTreeSet<(usize, String)>) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("eth_chainId", json!([])),
        ("eth_blockNumber", json!([])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getBlockByNumber", json!(["earliest", true])),
        ("eth_getBlockByNumber", json!(["0x258", true])),
        ("eth_getBlockByHash", json!([ABSENT, true])),
        ("eth_getTransactionByHash", json!([ABSENT])),
        ("eth_getTransactionReceipt", json!([ABSENT])),
        ("eth_getBlockReceipts", json!([ABSENT])),
    ];
    let of_value = |position: usize, value: &str, first: u64, last: u64| {
        let (from, to) = (format!("{first:#x}"), format!("{last:#x}"));
        let mut filter = json!({ "fromBlock": from, "toBlock": to });
        if position == 0 {
            filter["address"] = value.into();
        } else {
            let mut topics = vec![Value::Null; position];
            topics[position - 1] = value.into();
            filter["topics"] = topics.into();
        }
        ("eth_getLogs", json!([filter]))
    };
    // Values of every position; the number of questions is bounded, not their kind.
    for position in 0..=4 {
        let of_position = values.iter().filter(|(at, _)| *at == position).map(|(_, value)| value);
        for value in of_position.take(12) {
            calls.push(of_value(position, value, 0, 599));
            calls.push(of_value(position, value, 200, 300));
        }
    }
    calls.push(of_value(0, &ABSENT[..42], 0, 599));
    calls.push(of_value(1, ABSENT, 0, 599));
    calls
}

/// Every answer is that of a local server, to the byte; of every `step`th question.
#[track_caller]
fn check_answers(served: &Served, step: usize) {
    for asked in QUESTIONS.iter().rev().step_by(step) {
        check_answer(served, asked);
    }
}

/// The same of what is about these blocks alone.
#[track_caller]
fn check_answers_of(served: &Served, blocks: std::ops::Range<u64>) {
    let is_asked = |it: &&Asked| it.block.is_some_and(|block| blocks.contains(&block));
    for asked in QUESTIONS.iter().filter(is_asked) {
        check_answer(served, asked);
    }
}

#[track_caller]
fn check_answer(served: &Served, asked: &Asked) {
    let found = served.post(&asked.body).body;
    if found != asked.answer {
        let calls: Vec<Value> = serde_json::from_str(&asked.body).unwrap();
        let text = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let (found, expected) = (text(&found), text(&asked.answer));
        for (index, call) in calls.iter().enumerate() {
            assert_eq!(found[index], expected[index], "{call}");
        }
        panic!("{}: the same, in other bytes", asked.body);
    }
}

/// Every answer is the local server's or an error with one of these codes. How many are errors.
#[track_caller]
fn count_refused(served: &Served, codes: &[i64], blocks: std::ops::Range<u64>) -> usize {
    let mut count = 0;
    let is_asked = |it: &&Asked| it.block.is_none_or(|block| blocks.contains(&block));
    for asked in QUESTIONS.iter().filter(is_asked) {
        let calls: Vec<Value> = serde_json::from_str(&asked.body).unwrap();
        let expected: Vec<Value> = serde_json::from_slice(&asked.answer).unwrap();
        let found = served.post(&asked.body).json();
        for (index, call) in calls.iter().enumerate() {
            let code = |answer: &Value| answer["error"]["code"].as_i64();
            let refused = code(&found[index]).filter(|_| code(&expected[index]).is_none());
            if let Some(refused) = refused {
                assert!(codes.contains(&refused), "{call}: {}", found[index]);
                count += 1;
            } else {
                assert_eq!(found[index], expected[index], "{call}");
            }
        }
    }
    count
}

fn tip(served: &Served) -> Value {
    served.result("eth_blockNumber", &json!([]))
}

/// Its page for machines about what it reads.
fn source_page(served: &Served) -> Value {
    served.get("/stat.json").json()["source"].clone()
}

#[test]
fn a_reader_with_nothing_but_a_bucket_answers_as_a_local_server_to_the_byte() {
    let bucket = TestBucket::of(&[whole()]);
    let reader = bucket.reader(&[]);
    check_answers(&reader, 1);
    let page = source_page(&reader);
    assert!(page["requests"].as_u64().unwrap() > 0, "{page}");
    assert_eq!((&page["manifests"], &page["trouble"]), (&json!(1), &Value::Null), "{page}");
    // Also without anything on disk, with what an earlier one left there, and when that is removed.
    check_answers(&bucket.reader_with(&bucket.beside("none"), &["--cache-disk-bytes", "0"]), 7);
    assert_eq!(reader.stop(), Some(0));
    let reader = bucket.reader(&[]);
    check_answers(&reader, 7);
    fs::remove_dir_all(bucket.beside("cache")).unwrap();
    check_answers(&reader, 3);
}

#[test]
fn publishers_of_different_ranges_do_not_hide_each_other() {
    for order in [[low(), high()], [high(), low()]] {
        let bucket = TestBucket::of(&order);
        assert_eq!(bucket.names("manifests", "").len(), 3, "two, and the index");
        check_answers(&bucket.reader(&[]), 2);
        bucket.at("check", &[]).ends_with(0);
        let stat = bucket.at("stat", &["--json"]).ends_with(0).json();
        assert_eq!((&stat["segments"], &stat["coverage"][1]["last"]), (&json!(3), &json!(599)));
    }
}

/// A range that nobody has published is refused, not null, and what lies beside it is served.
#[test]
fn what_nobody_has_published_is_not_held() {
    let bucket = TestBucket::of(&[high()]);
    let reader = bucket.reader(&[]);
    check_answers_of(&reader, 256..600);
    assert_eq!(refused_code(&reader, 5), Some(NOT_HELD));
    // The hash may be of a block that is not held.
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let answer = reader.call(method, &json!([ABSENT]));
        assert_eq!(answer["error"]["code"], NOT_HELD, "{method}: {answer}");
    }
    // Until somebody does.
    bucket.publish(&low()).ends_with(0);
    wait_until(|| refused_code(&reader, 5).is_none());
    check_answers(&reader, 7);
}

#[test]
fn equal_folders_give_equal_buckets_and_nothing_is_sent_twice() {
    let (one, other) = (TestBucket::of(&[whole()]), TestBucket::new());
    let data = other.beside("data");
    // Filled otherwise: a part first, and then the rest.
    for blocks in ["0..300", "0..599"] {
        import(&data, &FOLDER.join("archives"), blocks);
    }
    other.publish(&data).ends_with(0);
    assert!(one.objects() == other.objects(), "{:?}", one.objects().keys());
    for data in [data, whole()] {
        let ran = one.publish(&data).ends_with(0);
        assert!(
            ran.out.contains(": 0 files sent, 0 bytes, 6 files there already; "),
            "{}",
            ran.out
        );
    }
    assert!(one.objects() == other.objects(), "{:?}", one.objects().keys());
    // What a publisher that was stopped has left is not sent again.
    let begun = TestBucket::of(&[low()]);
    let ran = begun.publish(&whole()).ends_with(0);
    assert!(ran.out.contains(": 5 files sent, "), "{}", ran.out);
    assert!(ran.out.contains(", 1 file there already; "), "{}", ran.out);
}

/// How an object is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flipped,
    Cut,
    Zeroed,
}

impl Damage {
    fn of(self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self {
            // All but the directory at its end.
            Self::Flipped => damaged[..bytes.len() / 2].iter_mut().for_each(|byte| *byte ^= 0x55),
            Self::Cut => damaged.truncate(bytes.len() - 1),
            Self::Zeroed => damaged.fill(0),
        }
        damaged
    }
}

#[test]
fn a_damaged_object_is_told_by_name_and_never_served() {
    let bucket = TestBucket::of(&[whole()]);
    let segment = bucket.file("blocks-0000000256");
    let (transactions, logs) = (bucket.file("lookup-transactions"), bucket.file("lookup-logs"));
    let cases = [
        (&segment, Damage::Flipped),
        (&segment, Damage::Cut),
        (&segment, Damage::Zeroed),
        (&transactions, Damage::Flipped),
        (&transactions, Damage::Zeroed),
        (&logs, Damage::Zeroed),
    ];
    for (count, (object, damage)) in cases.into_iter().enumerate() {
        let name = object.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(object).unwrap();
        fs::write(object, damage.of(&bytes)).unwrap();
        let ran = bucket.at("check", &[]).ends_with(1);
        assert!(ran.err.contains(name), "{damage:?}: {}", ran.err);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
        let reader = bucket.reader_with(&bucket.beside(&format!("cache-{count}")), &[]);
        let refused = count_refused(&reader, &[-32603, NOT_HELD], 240..280);
        // Without an index logs are looked for in the segments.
        assert!(refused > 0 || object == &logs, "{name} {damage:?}");
        if object == &segment {
            check_answers_of(&reader, 0..256);
            check_answers_of(&reader, 512..600);
        }
        // Of what was damaged in part nothing is said after a while, until it is read again.
        let readiness = || {
            count_refused(&reader, &[-32603, NOT_HELD], 240..280);
            let answer = reader.get("/readyz");
            (answer.status, String::from_utf8(answer.body).unwrap())
        };
        wait_for(
            || Some(readiness()).filter(|(status, body)| *status == 503 && body.contains(name)),
            || format!("{name} {damage:?}: {:?}", readiness()),
        );
        // Whoever sends it anew, as is said there, has all of it served again.
        fs::remove_file(object).unwrap();
        let ran = bucket.publish(&whole()).ends_with(0);
        assert!(ran.out.contains(": 1 file sent, "), "{}", ran.out);
        bucket.at("check", &[]).ends_with(0);
        check_answers_of(
            &bucket.reader_with(&bucket.beside(&format!("new-{count}")), &[]),
            256..270,
        );
    }
}

/// A damaged manifest is told, and what only it lists is neither served nor called absent.
#[test]
fn a_damaged_manifest_is_told_by_name_and_the_others_are_served() {
    let bucket = TestBucket::of(&[low()]);
    let before = bucket.names("manifests", "");
    bucket.publish(&high()).ends_with(0);
    let after = bucket.names("manifests", "");
    let name = after.iter().find(|name| !before.contains(name)).unwrap();
    let object = bucket.path().join("manifests").join(name);
    let bytes = fs::read(&object).unwrap();
    fs::write(&object, Damage::Flipped.of(&bytes)).unwrap();
    let ran = bucket.at("check", &[]).ends_with(1);
    assert!(ran.err.contains(name), "{}", ran.err);
    let ran = bucket.at("prune", &["--older-than", "0s"]).ends_with(1);
    assert!(ran.err.contains(name), "{}", ran.err);
    let reader = bucket.reader(&["--unknown-hash", "null"]);
    check_answers_of(&reader, 0..40);
    for number in [256, 599] {
        let params = json!([format!("{number:#x}"), false]);
        let answer = reader.call("eth_getBlockByNumber", &params);
        assert!(answer["error"]["code"] == NOT_HELD || answer["result"].is_null(), "{answer}");
    }
    let asked = QUESTIONS.iter().find(|it| it.block == Some(300)).unwrap();
    let calls: Vec<Value> = serde_json::from_str(&asked.body).unwrap();
    let by_hash = |method: &str| {
        let call = calls.iter().find(|it| it["method"] == method).unwrap();
        reader.call(method, &call["params"])
    };
    for method in ["eth_getBlockByHash", "eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let answer = by_hash(method);
        assert_eq!(answer["error"]["code"], NOT_HELD, "{method}: {answer}");
    }
    let page = source_page(&reader);
    assert!(page["set_aside"].to_string().contains(name), "{page}");
    // A good one in its place is taken up.
    fs::write(&object, &bytes).unwrap();
    wait_until(|| tip(&reader) == "0x257");
    check_answers(&reader, 7);
}

/// At the start and while it is read, a file that is not there is a range that is not held.
#[test]
fn a_listed_file_that_is_not_there_is_not_held() {
    for is_at_start in [true, false] {
        let bucket = TestBucket::of(&[whole()]);
        let segment = bucket.file("blocks-0000000256");
        let bytes = fs::read(&segment).unwrap();
        if is_at_start {
            fs::remove_file(&segment).unwrap();
        }
        let reader = bucket.reader(&["--unknown-hash", "null"]);
        check_answers_of(&reader, 250..256);
        if !is_at_start {
            fs::remove_file(&segment).unwrap();
        }
        for number in [256, 300, 511] {
            assert_eq!(refused_code(&reader, number), Some(NOT_HELD), "{number}");
        }
        let refused = count_refused(&reader, &[NOT_HELD], 250..262);
        assert!(refused > 6 * 6, "{refused}");
        check_answers_of(&reader, 512..520);
        let ran = bucket.at("check", &[]).ends_with(1);
        assert!(ran.err.contains(segment.file_name().unwrap().to_str().unwrap()), "{}", ran.err);
        // Whoever looks for it anew has all of it.
        fs::write(&segment, &bytes).unwrap();
        check_answers(&bucket.reader_with(&bucket.beside("new"), &[]), 7);
    }
}

#[test]
fn a_listed_file_that_comes_back_is_served_without_a_restart() {
    let bucket = TestBucket::of(&[whole()]);
    let segment = bucket.file("blocks-0000000256");
    let bytes = fs::read(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    let reader = bucket.reader(&[]);
    assert_eq!(refused_code(&reader, 300), Some(NOT_HELD));
    fs::write(&segment, &bytes).unwrap();
    wait_until(|| refused_code(&reader, 300).is_none());
    check_answers(&reader, 7);
    wait_until(|| reader.get("/readyz").status == 200);
}

#[test]
fn what_is_withdrawn_is_not_served_on_whoever_lists_it() {
    let bucket = TestBucket::of(&[whole()]);
    let data = copied(&whole(), bucket.beside("data"));
    let reader = bucket.reader(&[]);
    check_answers(&reader, 7);
    let local = Served::start(&data, &[]);
    let hash = local.result("eth_getBlockByNumber", &json!(["0x12c", false]))["hash"].clone();
    local.stop();
    let url = bucket.url();
    let rewind = |number: u64| {
        let to = format!("{number}:{}", hash.as_str().unwrap());
        let args = ["rewind", "--data-dir", text(&data), "--to", &to, "--retract-at", &url];
        quipu(&args)
    };
    // A block that is not there withdraws nothing.
    rewind(301).ends_with(1);
    assert_eq!(bucket.names("retractions", "").len(), 0);
    let ran = rewind(300).ends_with(0);
    assert!(ran.out.contains("2 segments withdrawn"), "{}", ran.out);
    assert_eq!(bucket.names("retractions", "").len(), 1);
    wait_until(|| tip(&reader) == "0xff");
    check_answers_of(&reader, 200..256);
    let hash_of_last = |calls: &str| {
        let calls: Vec<Value> = serde_json::from_str(calls).unwrap();
        calls.iter().find(|it| it["method"] == "eth_getBlockByHash").unwrap()["params"].clone()
    };
    for number in [301, 511, 599] {
        let asked = QUESTIONS.iter().find(|it| it.block == Some(number)).unwrap();
        let answer = reader.call("eth_getBlockByHash", &hash_of_last(&asked.body));
        assert!(answer.get("result").is_none_or(Value::is_null), "{number}: {answer}");
        let params = json!([format!("{number:#x}"), false]);
        let answer = reader.call("eth_getBlockByNumber", &params);
        assert!(answer.get("result").is_none_or(Value::is_null), "{number}: {answer}");
    }
    // Somebody who still has them publishes again: that fails by name, and they stay withdrawn.
    let ran = bucket.publish(&whole()).ends_with(1);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert_eq!(ran.err.matches("was withdrawn from the bucket").count(), 2, "{}", ran.err);
    assert_eq!(tip(&bucket.reader_with(&bucket.beside("other"), &[])), "0xff");
    assert_eq!(tip(&reader), "0xff");
    bucket.at("check", &[]).ends_with(0);
    // What the folder holds since is published and served, and the withdrawn files go.
    bucket.publish(&data).ends_with(0);
    bucket.prune();
    bucket.at("check", &[]).ends_with(0);
    check_answers_of(&reader, 200..256);
    let segments = bucket.names("files", ".segment");
    assert!(!segments.iter().any(|name| name.contains("-0000000599-")), "{segments:?}");
}

#[test]
fn prune_removes_what_nothing_lists_and_readers_go_on() {
    let bucket = TestBucket::of(&[low(), high()]);
    let reader = bucket.reader(&[]);
    check_answers(&reader, 11);
    bucket.publish(&whole()).ends_with(0);
    let all = bucket.names("files", "").len();
    // Within the grace period nothing goes.
    bucket.at("prune", &[]).ends_with(0);
    assert_eq!(bucket.names("files", "").len(), all);
    check_answers(&reader, 11);
    bucket.at("prune", &["--older-than", "0s"]).ends_with(0);
    check_answers(&reader, 11);
    bucket.at("prune", &["--older-than", "0s"]).ends_with(0);
    assert_eq!(bucket.names("files", "").len(), 6, "{:?}", bucket.names("files", ""));
    wait_until(|| source_page(&reader)["manifests"] == 1);
    check_answers(&reader, 1);
    check_answers(&bucket.reader_with(&bucket.beside("new"), &[]), 3);
    bucket.prune();
    let mut objects = bucket.objects();
    objects.retain(|path, _| !path.starts_with("orphans"));
    assert!(objects == TestBucket::of(&[whole()]).objects(), "{:?}", objects.keys());
    bucket.at("check", &[]).ends_with(0);
}

/// Two publishers, each of a slot of its own; the runs of both are what one folder would have.
#[test]
fn merge_builds_the_runs_that_one_folder_would_have() {
    let bucket = TestBucket::new();
    let archives = bucket.beside("archives");
    let size = ["--block-count", "16384", "--txs-per-block", "0"];
    quipu(&[&["sample", "--to", text(&archives)], &size[..]].concat()).ends_with(0);
    let parts = ["0..8191", "8192..16383"].map(|blocks| {
        let data = bucket.beside(blocks);
        import(&data, &archives, blocks);
        data
    });
    let data = bucket.beside("data");
    import(&data, &archives, "0..16383");
    for part in &parts {
        bucket.publish(part).ends_with(0);
    }
    let reader = bucket.reader(&[]);
    assert_eq!(tip(&reader), "0x3fff");
    let local = Served::start(&data, &[]);
    let check = || {
        for number in (0..16384).step_by(977) {
            let params = json!([format!("{number:#x}"), true]);
            let block = local.result("eth_getBlockByNumber", &params);
            assert_eq!(reader.result("eth_getBlockByNumber", &params), block);
            let hash = json!([block["hash"], true]);
            assert_eq!(reader.result("eth_getBlockByHash", &hash), block);
            if let Some(transaction) = block["transactions"].get(0) {
                let hash = json!([transaction["hash"]]);
                assert_eq!(&reader.result("eth_getTransactionByHash", &hash), transaction);
            }
        }
    };
    check();
    let ran = bucket.at("merge", &[]).ends_with(0);
    assert!(ran.out.contains("3 runs built"), "{}", ran.out);
    check();
    let ran = bucket.at("merge", &[]).ends_with(0);
    assert!(ran.out.contains("as large as its slots allow"), "{}", ran.out);
    bucket.prune();
    assert_eq!(bucket.names("files", ".run"), names(&data, ".run"));
    bucket.at("check", &[]).ends_with(0);
    wait_until(|| source_page(&reader)["manifests"] == 1);
    check();
}

/// Once they are there, lookups are answered from copies, also after a restart.
#[test]
fn pinned_lookups_are_read_from_their_copies() {
    let bucket = TestBucket::of(&[whole()]);
    let reader = bucket.reader(&["--pin", "lookups"]);
    let pinned = bucket.beside("cache/pinned");
    let expected: Vec<String> = names(&whole(), ".run");
    let expected: Vec<String> =
        expected.into_iter().filter(|name| !name.contains("-logs-")).collect();
    wait_for(
        || (names(&pinned, ".run") == expected).then_some(()),
        || format!("{:?}", names(&pinned, "")),
    );
    for name in &expected {
        assert!(fs::read(pinned.join(name)).unwrap() == fs::read(whole().join(name)).unwrap());
        // Whoever asks the bucket for it gets nothing.
        fs::remove_file(bucket.path().join("files").join(name)).unwrap();
    }
    check_answers(&reader, 5);
    assert_eq!(reader.stop(), Some(0));
    fs::remove_dir_all(bucket.beside("cache/ranges")).unwrap();
    let reader = bucket.reader(&["--pin", "lookups"]);
    check_answers(&reader, 5);
}

/// Seen: a server was not ready for an hour because of a copy that it did not read any more.
#[test]
fn a_damaged_pinned_copy_is_made_anew_and_is_no_fault_of_the_bucket() {
    let bucket = TestBucket::of(&[whole()]);
    let (published, pinned) = (bucket.path().join("files"), bucket.beside("cache/pinned"));
    let is_filled = || {
        let mut published = files(&published).into_iter();
        published.all(|(name, bytes)| fs::read(pinned.join(name)).is_ok_and(|it| it == bytes))
    };
    let reader = bucket.reader(&["--pin", "all"]);
    wait_until(is_filled);
    let damage = |from_end: usize| {
        for name in names(&pinned, ".segment") {
            let mut bytes = fs::read(pinned.join(&name)).unwrap();
            let end = bytes.len() - from_end;
            bytes[end - 1000..end].fill(0x55);
            fs::write(pinned.join(name), bytes).unwrap();
        }
    };
    // Its pages, while it runs.
    let lengths = names(&pinned, ".segment");
    let lengths = lengths.iter().map(|name| fs::read(pinned.join(name)).unwrap().len());
    damage(lengths.min().unwrap() / 2);
    check_answers(&reader, 1);
    assert_eq!(reader.get("/readyz").status, 200);
    wait_until(is_filled);
    assert_eq!(reader.stop(), Some(0));
    // And its end, while none does.
    damage(0);
    let reader = bucket.reader(&["--pin", "all"]);
    check_answers(&reader, 1);
    assert_eq!(reader.get("/readyz").status, 200);
    wait_until(is_filled);
}

/// Seen: it was not ready for good, for want of a folder that it had made for nothing.
#[test]
fn a_reader_does_without_the_cache_folder_that_somebody_removes() {
    let bucket = TestBucket::of(&[whole()]);
    let reader = bucket.reader(&[]);
    check_answers(&reader, 5);
    assert!(!bucket.beside("cache/data").exists());
    fs::remove_dir_all(bucket.beside("cache")).unwrap();
    check_answers(&reader, 1);
    let answer = reader.get("/readyz");
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

/// Seen: two servers wrote into one half of a copy, which then got the name of a whole one.
#[test]
fn one_server_at_a_time_copies_ahead_into_a_cache_folder() {
    let bucket = TestBucket::of(&[whole()]);
    let (cache, url) = (bucket.beside("cache"), bucket.url());
    let first = bucket.reader(&["--pin", "lookups"]);
    let serve = |args: &[&str]| {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--source", &url, "--cache-dir"];
        quipu(&[&serve[..], &[text(&cache)], args].concat())
    };
    // Neither the same, nor one that would follow there.
    for args in [["--pin", "all"], ["--upstream", "http://127.0.0.1:1"]] {
        let ran = serve(&args).ends_with(1);
        let lock = format!("holds {}", text(&cache.join("lock")));
        for said in [&lock, "pid ", "hint: give each server", "--cache-dir"] {
            assert!(ran.err.contains(said), "{said} in {}", ran.err);
        }
    }
    // Who only reads there is let in, and does without a cache on disk.
    check_answers(&bucket.reader(&[]), 5);
    check_answers(&first, 5);
    assert_eq!(first.stop(), Some(0));
    check_answers(&bucket.reader(&["--pin", "lookups"]), 5);
}

#[test]
fn a_local_folder_and_a_source_are_one_union() {
    for (local, published) in [(low(), high()), (high(), low()), (high(), whole())] {
        let bucket = TestBucket::of(&[published]);
        let data = copied(&local, bucket.beside("data"));
        let (url, cache) = (bucket.url(), bucket.beside("cache"));
        let args = ["--source", &url, "--cache-dir", text(&cache)];
        let reader = Served::start(&data, &[&args[..], &OFTEN[..]].concat());
        check_answers(&reader, 3);
        reader.stop();
        assert_eq!(names(&data, ".segment"), names(&local, ".segment"), "nothing is copied there");
    }
}

/// What is held is read locally: nothing is asked of the bucket for it.
#[test]
fn what_is_held_is_not_asked_of_the_source() {
    let bucket = TestBucket::of(&[whole()]);
    for name in bucket.names("files", "") {
        fs::remove_file(bucket.path().join("files").join(name)).unwrap();
    }
    let data = copied(&whole(), bucket.beside("data"));
    let (url, cache) = (bucket.url(), bucket.beside("cache"));
    let reader = Served::start(&data, &["--source", &url, "--cache-dir", text(&cache)]);
    check_answers(&reader, 3);
    assert_eq!(source_page(&reader)["bytes_fetched"], 0);
}

#[test]
fn what_a_server_publishes_appears_at_a_reader() {
    let bucket = TestBucket::new();
    let data = copied(&low(), bucket.beside("data"));
    let url = bucket.url();
    let _publisher = Served::start(&data, &["--publish", &url]);
    wait_until(|| bucket.names("manifests", "index").len() == 1);
    let reader = bucket.reader(&[]);
    check_answers_of(&reader, 0..20);
    import(&data, &FOLDER.join("archives"), "0..599");
    wait_for(
        || (tip(&reader) == "0x257").then_some(()),
        || format!("{:?}", bucket.objects().keys()),
    );
    check_answers(&reader, 3);
    // It ends as what a publication of the folder gives.
    let ran = bucket.publish(&data).ends_with(0);
    assert!(ran.out.contains(": 0 files sent, "), "{}", ran.out);
    bucket.at("check", &[]).ends_with(0);
}

/// Each of its objects is well, and no reader shows it.
#[test]
fn a_manifest_of_another_chain_is_named_by_a_check() {
    let bucket = TestBucket::of(&[whole()]);
    let (archives, data) = (bucket.beside("archives"), bucket.beside("data"));
    quipu(&["sample", "--to", text(&archives), "--block-count", "300", "--seed", "5"]).ends_with(0);
    import(&data, &archives, "0..299");
    let other = TestBucket::of(&[data]);
    for folder in ["files", "manifests", "genesis"] {
        for name in other.names(folder, "").into_iter().filter(|name| name != "index") {
            let to = bucket.path().join(folder).join(&name);
            fs::copy(other.path().join(folder).join(&name), to).unwrap();
        }
    }
    let ran = bucket.at("check", &[]).ends_with(1);
    let foreign = other.names("manifests", "").into_iter().find(|name| name != "index").unwrap();
    assert!(ran.err.contains(&foreign) && ran.err.contains("it is of chain"), "{}", ran.err);
    check_answers_of(&bucket.reader(&[]), 0..40);
}

/// What is published below, a node above: nobody has all of it, and what was followed outlives a restart
/// and the moment when others publish it.
#[test]
fn a_reader_follows_a_node_above_what_is_published() {
    let bucket = TestBucket::of(&[low()]);
    let node = Served::start(&whole(), &[]);
    let upstream = format!("http://{}", node.address);
    let follow = ["--upstream", upstream.as_str()];
    let reader = bucket.reader(&follow);
    wait_for(
        || (tip(&reader) == "0x257").then_some(()),
        || String::from_utf8(reader.get("/readyz").body).unwrap(),
    );
    check_answers(&reader, 3);
    reader.stop();
    let reader = bucket.reader(&follow);
    check_answers(&reader, 5);
    bucket.publish(&whole()).ends_with(0);
    wait_until(|| source_page(&reader)["segments_shown"].as_u64() >= Some(3));
    check_answers(&reader, 5);
    assert_eq!(reader.get("/readyz").status, 200);
}

/// Seen: a reader's node stayed on a losing branch, the bucket got the right one, and both were served
/// as one chain without a warning.
#[test]
fn a_reader_whose_node_is_on_another_branch_than_the_bucket_serves_the_bucket_and_says_so() {
    let bucket = TestBucket::new();
    let (mut right, mut losing) = (Node::start(600, 600, 0), Node::start(444, 442, 1));
    right.finalize(599);
    losing.finalize(400);
    let publish = |blocks: &str| {
        let (data, url) = (bucket.beside(blocks), right.url());
        let args = ["backfill", "--data-dir", text(&data), "--chain-id", "7", "--upstream", &url];
        quipu(&[&args[..], &["--unanchored", "--blocks", blocks]].concat()).ends_with(0);
        bucket.publish(&data).ends_with(0);
    };
    publish("0..442");
    let url = losing.url();
    let reader = bucket.reader(&["--upstream", &url, "--chain-id", "7", "--poll-every", "20"]);
    let ready = || reader.get("/readyz");
    let readiness = || String::from_utf8(ready().body).unwrap();
    wait_for(|| (tip(&reader) == "0x1bc" && ready().status == 200).then_some(()), readiness);
    publish("443..599");
    let theirs = losing.hash(444);
    wait_for(|| (ready().status == 503 && readiness().contains(&theirs)).then_some(()), readiness);
    assert!(readiness().contains(&right.hash(444)), "{}", readiness());
    let mut parent = json!(right.hash(0));
    for number in 1..=599 {
        let tag = json!([format!("{number:#x}"), false]);
        let block = reader.result("eth_getBlockByNumber", &tag);
        assert_eq!(block["parentHash"], parent, "{block}");
        assert_eq!(block["hash"], json!(right.hash(number)), "{block}");
        parent = block["hash"].clone();
    }
    assert_eq!(tip(&reader), "0x257");
    let by_hash = reader.call("eth_getBlockByHash", &json!([theirs, false]));
    assert_eq!(by_hash["result"], Value::Null, "{by_hash}");
    // The node goes over to the right branch.
    losing.turn_to(&right);
    wait_for(|| (tip(&reader) == "0x258" && ready().status == 200).then_some(()), readiness);
}

#[test]
fn a_web_server_with_a_copy_is_a_source() {
    let bucket = TestBucket::of(&[low(), high()]);
    let server = WebServer::of(bucket.folder.path());
    let url = format!("{}/bucket", server.url);
    let reader = Served::start_reader(&url, &bucket.beside("cache"), &OFTEN);
    check_answers(&reader, 2);
    assert!(server.requests() > 0);
    // It is read, and not written.
    let ran = quipu(&["publish", "--data-dir", text(&whole()), "--to", &url]).ends_with(1);
    assert!(ran.err.contains("can be read and not written"), "{}", ran.err);
    quipu(&["check", "--at", &url]).ends_with(0);
    bucket.publish(&whole()).ends_with(0);
    bucket.prune();
    wait_until(|| source_page(&reader)["manifests"] == 1);
    check_answers(&reader, 3);
}

#[test]
fn a_source_that_cannot_be_used_is_told_at_the_start() {
    let bucket = TestBucket::new();
    let cache = bucket.beside("cache");
    let serve = |url: &str| {
        let args = ["serve", "--listen", "127.0.0.1:0", "--source", url, "--cache-dir"];
        quipu(&[&args[..], &[text(&cache)]].concat())
    };
    let ran = serve("http://127.0.0.1:1/bucket").ends_with(1);
    assert!(ran.err.contains("127.0.0.1:1") && ran.err.contains("hint: "), "{}", ran.err);
    fs::create_dir(bucket.path()).unwrap();
    let ran = serve(&bucket.url()).ends_with(1);
    assert!(ran.err.contains("nothing is published here"), "{}", ran.err);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    for (url, expected) in [
        ("/srv/bucket", "write file:///srv/bucket for a folder of this machine"),
        ("bucket", "/bucket for a folder of this machine"),
        ("ftp://127.0.0.1/bucket", "scheme ftp is not supported; use https://, http://, file://"),
    ] {
        let ran = serve(url).ends_with(2);
        assert!(ran.err.contains("--source") && ran.err.contains(expected), "{}", ran.err);
        let ran = quipu(&["publish", "--to", url]).ends_with(2);
        assert!(ran.err.contains("--to") && ran.err.contains(expected), "{}", ran.err);
    }
}

/// Seen: the address of a metadata service that no machine outside of a cloud has.
#[test]
fn a_store_without_credentials_is_told_with_the_variables_that_have_them() {
    // Nothing listens where nothing was handed out.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut stat = command(&["stat", "--at", "s3://bucket/mainnet"]);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
            stat.env_remove(name);
        }
    }
    stat.env("AWS_METADATA_ENDPOINT", format!("http://{closed}"));
    let ran = ran(&mut stat).ends_with(1);
    assert!(ran.err.contains("error: s3://bucket/mainnet: "), "{}", ran.err);
    assert!(ran.err.contains(": no credentials: "), "{}", ran.err);
    assert!(ran.err.contains("AWS_ACCESS_KEY_ID"), "{}", ran.err);
    assert!(!ran.err.contains("/latest/"), "{}", ran.err);
}

/// Seen: a disk that was full got a hint at credentials.
#[test]
fn a_folder_that_cannot_be_written_to_is_no_matter_of_credentials() {
    let bucket = TestBucket::new();
    fs::write(bucket.path(), "a file").unwrap();
    let ran = bucket.publish(&whole()).ends_with(1);
    assert!(ran.err.contains("bucket") && !ran.err.contains("AWS_"), "{}", ran.err);
}

/// What is cached goes on being served, the rest is an error and never absent; all of it is back when the
/// source is.
#[test]
fn a_source_that_goes_away_is_told_and_taken_up_again() {
    let bucket = TestBucket::of(&[whole()]);
    let server = WebServer::of(bucket.folder.path());
    let url = format!("{}/bucket", server.url);
    let reader = Served::start_reader(&url, &bucket.beside("cache"), &OFTEN);
    check_answers_of(&reader, 0..40);
    server.set_away(true);
    wait_for(
        || source_page(&reader)["trouble"].is_string().then_some(()),
        || source_page(&reader).to_string(),
    );
    check_answers_of(&reader, 0..40);
    // The last segment was not looked into yet.
    assert_eq!(refused_code(&reader, 590), Some(-32603));
    check_answers_of(&reader, 0..40);
    server.set_away(false);
    wait_until(|| source_page(&reader)["trouble"].is_null());
    wait_until(|| refused_code(&reader, 590).is_none());
    check_answers(&reader, 3);
}

/// Seen: the log advised to check and to publish, and nothing was wrong there.
#[test]
fn a_source_that_answers_no_ranges_is_told_as_such() {
    let bucket = TestBucket::of(&[whole()]);
    let server = WebServer::of(bucket.folder.path());
    server.ignore_ranges();
    let (url, cache) = (format!("{}/bucket", server.url), bucket.beside("cache"));
    let args = ["--source", &url, "--cache-dir", text(&cache)];
    let (reader, log) = Served::start_logged(&low(), &args);
    assert_eq!(refused_code(&reader, 590), Some(-32603));
    let said = log.iter().find(|line| line.contains("a published object")).unwrap();
    assert!(said.contains("answers requests for ranges"), "{said}");
    assert!(!said.contains("quipu publish"), "{said}");
}

/// Seen: the line that says what is served waited for the newest block of a bucket that hung.
#[test]
fn what_is_served_is_logged_though_the_source_hangs() {
    let bucket = TestBucket::of(&[whole()]);
    let server = WebServer::of(bucket.folder.path());
    server.hang_on_ranges();
    let (url, cache) = (format!("{}/bucket", server.url), bucket.beside("cache"));
    let args = ["--source", &url, "--cache-dir", text(&cache)];
    let (_reader, log) = Served::start_logged(&low(), &args);
    let within = std::time::Duration::from_secs(15);
    let begun = std::time::Instant::now();
    let line = || log.recv_timeout(within.saturating_sub(begun.elapsed())).unwrap();
    let said = std::iter::repeat_with(line).find(|line| line.contains("serving ")).unwrap();
    assert!(said.contains("tip=") && !said.contains("tip_age"), "{said}");
}

#[test]
fn a_reader_is_ready_again_when_its_source_is_back() {
    let bucket = TestBucket::of(&[whole()]);
    let server = WebServer::of(bucket.folder.path());
    let url = format!("{}/bucket", server.url);
    let reader = Served::start_reader(&url, &bucket.beside("cache"), &OFTEN);
    server.set_away(true);
    assert_eq!(refused_code(&reader, 590), Some(-32603));
    server.set_away(false);
    wait_until(|| refused_code(&reader, 590).is_none());
    wait_for(
        || (reader.get("/readyz").status == 200).then_some(()),
        || String::from_utf8(reader.get("/readyz").body).unwrap(),
    );
}

/// Fetches into `data` from addresses, with the genesis of the sample.
fn fetch(data: &Path, from: &[&str], args: &[&str]) -> Ran {
    let genesis = FOLDER.join("archives").join("genesis.json");
    let from = from.join(",");
    let to = ["fetch", "--data-dir", text(data), "--genesis", text(&genesis), "--from", &from];
    quipu(&[&to[..], args].concat())
}

/// The files of a data folder that hold history, by name.
fn history_of(data: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(data);
    files.retain(|name, _| !["lock", "journal"].contains(&name.as_str()));
    files
}

#[test]
fn a_fetch_from_a_bucket_gives_the_folder_of_an_import() {
    let bucket = TestBucket::of(&[low(), high()]);
    let data = bucket.beside("data");
    let ran = fetch(&data, &[&bucket.url()], &[]).ends_with(0);
    assert!(ran.out.contains("600 blocks taken, 2570 transactions"), "{}", ran.out);
    // An import commits all segments of its one file together, which takes the same form.
    assert_eq!(history_of(&data), history_of(&whole()));
    assert!(!data.join("fetch").exists());
    quipu(&["check", "--data-dir", text(&data)]).ends_with(0);
    let again = fetch(&data, &[&bucket.url()], &[]).ends_with(0);
    assert!(again.out.contains("nothing is published that is not held"), "{}", again.out);
    // A folder knows its chain.
    let to = ["fetch", "--data-dir", text(&data), "--from", &bucket.url()];
    quipu(&to).ends_with(0);
}

#[test]
fn a_fetch_takes_the_wanted_blocks_and_what_is_missing_between_held_ones() {
    let bucket = TestBucket::of(&[whole()]);
    let data = copied(&low(), bucket.beside("data"));
    let ran = fetch(&data, &[&bucket.url()], &["--blocks", "200..299"]).ends_with(0);
    assert!(ran.out.contains("44 blocks taken"), "{}", ran.out);
    fetch(&data, &[&bucket.url()], &[]).ends_with(0);
    assert_eq!(history_of(&data), history_of(&whole()));
    let ran = fetch(&data, &[&bucket.url()], &["--blocks", "500..700"]).ends_with(0);
    assert!(ran.out.contains("left: blocks 600..700, which are not held"), "{}", ran.out);
}

#[test]
fn a_damaged_object_is_named_and_another_bucket_makes_it_good() {
    let bucket = TestBucket::of(&[whole()]);
    let damaged = bucket.damage("0256-0000000511");
    let data = bucket.beside("data");
    let ran = fetch(&data, &[&bucket.url()], &["--unanchored"]).ends_with(1);
    let name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(ran.err.contains(name) && ran.err.contains("SHA-256"), "{}", ran.err);
    let stat = quipu(&["stat", "--json", "--data-dir", text(&data)]).ends_with(0);
    let stat: Value = serde_json::from_str(&stat.out).unwrap();
    let held: Vec<_> = stat["coverage"].as_array().unwrap().iter().map(|it| &it["last"]).collect();
    assert_eq!(held, [0, 255, 599], "{stat}");
    let other = TestBucket::of(&[high()]);
    fetch(&data, &[&bucket.url(), &other.url()], &[]).ends_with(0);
    quipu(&["check", "--data-dir", text(&data)]).ends_with(0);
    let served = Served::start(&data, &[]);
    check_answers(&served, 4);
}

#[test]
fn published_blocks_that_break_the_rules_are_refused() {
    let bucket = TestBucket::of(&[whole()]);
    // The hash of a genesis does not cover the forks: its publisher proved by others than we do. By ours
    // withdrawals are due before the first block that has some.
    let genesis = fs::read_to_string(FOLDER.join("archives").join("genesis.json")).unwrap();
    let mut genesis: Value = serde_json::from_str(&genesis).unwrap();
    let shanghai = &mut genesis["config"]["shanghaiTime"];
    *shanghai = (shanghai.as_u64().unwrap() - 24).into();
    let other = bucket.beside("genesis.json");
    fs::write(&other, genesis.to_string()).unwrap();
    let data = bucket.beside("data");
    let ran = quipu(&[
        "fetch",
        "--data-dir",
        text(&data),
        "--genesis",
        text(&other),
        "--from",
        &bucket.url(),
    ]);
    let ran = ran.ends_with(1);
    assert!(
        ran.err.contains("error: blocks 0..599: ") && ran.err.contains("block "),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("what is published is false or damaged"), "{}", ran.err);
    assert!(
        !history_of(&data).keys().any(|name| name.contains("seg")),
        "{:?}",
        files(&data).keys()
    );
}

#[test]
fn a_fetch_finds_a_bucket_on_a_web_server() {
    let bucket = TestBucket::of(&[whole()]);
    let server = WebServer::of(bucket.folder.path());
    let data = bucket.beside("data");
    let url = format!("{}/bucket", server.url);
    fetch(&data, &[&url], &[]).ends_with(0);
    assert_eq!(history_of(&data), history_of(&whole()));
    let ran = fetch(&data, &[&url], &["--keep", text(&bucket.beside("kept"))]).ends_with(2);
    assert!(ran.err.contains("--keep: archives are kept there"), "{}", ran.err);
}

#[test]
fn a_bucket_of_another_chain_or_of_none_is_refused() {
    let bucket = TestBucket::of(&[low()]);
    let data = bucket.beside("data");
    let to = ["fetch", "--data-dir", text(&data), "--from", &bucket.url()];
    let ran = quipu(&to).ends_with(2);
    assert!(ran.err.contains("name yours: --genesis FILE"), "{}", ran.err);
    let ran = quipu(&[&to[..], &["--network", "mainnet"]].concat()).ends_with(2);
    assert!(ran.err.contains("is published, 1 wanted"), "{}", ran.err);
    let empty = TestBucket::new();
    fs::create_dir(empty.path()).unwrap();
    let ran = fetch(&data, &[&empty.url()], &[]).ends_with(1);
    assert!(ran.err.contains("nothing is published here"), "{}", ran.err);
}

/// The statuses of a data folder, lowest first.
fn statuses(data: &Path) -> Vec<(u64, u64, String)> {
    let stat = quipu(&["stat", "--json", "--data-dir", text(data)]).ends_with(0);
    let stat: Value = serde_json::from_str(&stat.out).unwrap();
    let number = |it: &Value| it.as_u64().unwrap();
    let statuses = stat["coverage"].as_array().unwrap().iter();
    statuses
        .map(|it| {
            (number(&it["first"]), number(&it["last"]), it["status"].as_str().unwrap().into())
        })
        .collect()
}

/// Seen: 0 or 1, by which of two addresses was named first.
#[test]
fn the_order_of_addresses_does_not_decide_how_a_fetch_ends() {
    let (bucket, part) = (TestBucket::of(&[whole()]), TestBucket::of(&[low()]));
    let absent = |name: &str| format!("file://{}", text(&bucket.beside(name)));
    let cases = [
        ([bucket.url(), absent("gone")], "0..599", 0, "this --from is left out"),
        // Nobody knows what the other one has.
        ([part.url(), absent("gone")], "0..255", 0, "this --from is left out"),
        ([part.url(), absent("gone")], "0..599", 1, "blocks 256..599 are not held"),
        ([absent("gone"), absent("lost")], "0..599", 1, "no --from could be used"),
    ];
    for (case, (mut from, blocks, code, said)) in cases.into_iter().enumerate() {
        for order in ["one", "other"] {
            let data = bucket.beside(&format!("{case}-{order}"));
            let ran = fetch(&data, &[&from[0], &from[1]], &["--blocks", blocks]).ends_with(code);
            assert!(ran.err.contains(said), "{from:?}: {}", ran.err);
            from.reverse();
        }
    }
    // One alone is told as what it is.
    let ran = fetch(&bucket.beside("data"), &[&absent("gone")], &[]).ends_with(1);
    assert!(ran.err.contains("error: ") && !ran.err.contains("left out"), "{}", ran.err);
}

/// Seen: an address that was mistyped ended with 0, as if all was well there.
#[test]
fn a_bucket_that_is_not_there_is_refused_by_every_command() {
    let bucket = TestBucket::new();
    for command in ["stat", "check", "merge", "prune"] {
        let ran = bucket.at(command, &[]).ends_with(1);
        for said in ["nothing is published here", "hint: see whether --at is right"] {
            assert!(ran.err.contains(said), "{command}: {}", ran.err);
        }
    }
    assert!(!bucket.path().exists());
    // Seen: with a variable that was not set, all went into the root of the machine.
    let ran = quipu(&["publish", "--data-dir", text(&whole()), "--to", "file:"]).ends_with(2);
    assert!(ran.err.contains("no folder is named"), "{}", ran.err);
}

#[test]
fn an_index_that_is_damaged_is_named_by_a_fetch() {
    let bucket = TestBucket::of(&[whole()]);
    fs::write(bucket.path().join("manifests/index"), "quipu index 1\n").unwrap();
    let server = WebServer::of(bucket.folder.path());
    let url = format!("{}/bucket", server.url);
    let ran = fetch(&bucket.beside("data"), &[&url], &[]).ends_with(1);
    assert!(ran.err.contains("manifests/index: "), "{}", ran.err);
}

#[test]
fn a_fetch_adds_the_receipts_of_blocks_held_without_them() {
    let bucket = TestBucket::of(&[whole()]);
    let data = bucket.beside("data");
    let archives = FOLDER.join("archives");
    let bare = write_part(&archive(&archives), 0..=99, false, &bucket.beside("bare"));
    let genesis = archives.join("genesis.json");
    let to = ["import", "--data-dir", text(&data), "--genesis", text(&genesis)];
    quipu(&[&to[..], &["--without-receipts", text(&bare)]].concat()).ends_with(0);
    let low = ["--blocks", "0..99"];
    let ran = fetch(&data, &[&bucket.url()], &low).ends_with(0);
    assert!(!ran.out.contains("nothing is published"), "{}", ran.out);
    let ran = fetch(&data, &[&bucket.url()], &low).ends_with(0);
    assert!(ran.out.contains("nothing is published that is not held"), "{}", ran.out);
}

#[test]
fn a_check_compares_anchors_and_records_those_whose_segments_pass() {
    let bucket = TestBucket::new();
    let data = copied(&whole(), bucket.beside("data"));
    let check =
        |data: &Path, anchor: &str| quipu(&["check", "--data-dir", text(data), "--anchor", anchor]);
    let before = statuses(&data);
    let wrong = format!("300:0x{}", "07".repeat(32));
    let ran = check(&data, &wrong).ends_with(1);
    let (_, held) = ran.err.split_once("block 300 is ").unwrap_or_else(|| panic!("{}", ran.err));
    let held = held.split(' ').next().unwrap();
    assert!(ran.out.contains("1 anchor is contradicted"), "{}", ran.out);
    assert_eq!(statuses(&data), before);
    // Of an anchor that is right the way out is printed.
    let (_, to) = ran.out.split_once(" --to ").unwrap_or_else(|| panic!("{}", ran.out));
    let rewound = copied(&data, bucket.beside("rewound"));
    let to = to.split(' ').next().unwrap();
    quipu(&["rewind", "--data-dir", text(&rewound), "--to", to]).ends_with(0);
    assert_eq!(statuses(&rewound).last().map(|it| it.1), Some(255));
    quipu(&["check", "--data-dir", text(&rewound)]).ends_with(0);
    // A segment that fails its check records nothing.
    let damaged = copied(&data, bucket.beside("damaged"));
    let name = files(&damaged).into_keys().find(|name| name.contains("0256-0000000511")).unwrap();
    let mut bytes = fs::read(damaged.join(&name)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(damaged.join(&name), bytes).unwrap();
    check(&damaged, &format!("300:{held}")).ends_with(1);
    assert_eq!(statuses(&damaged), before);
    let given = format!("300:{held},9999:{ABSENT}");
    let ran = check(&data, &given).ends_with(0);
    let said = format!("anchor 300:{held}: true, and is recorded");
    assert!(ran.out.contains(&said), "{}", ran.out);
    assert!(ran.out.contains("block 9999 is not here"), "{}", ran.out);
    let expected = [(0, 300, "anchored".to_owned()), (301, 599, "linked".to_owned())];
    assert_eq!(statuses(&data), expected);
    quipu(&["check", "--data-dir", text(&data)]).ends_with(0);
    assert_eq!(statuses(&data), expected, "it is recorded");
}

/// The hash of a block at an end of a folder's segment, as its manifest has it.
fn hash_at_end(data: &Path, number: u64) -> String {
    let manifest = fs::read_to_string(data.join("manifest")).unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut segments = manifest.lines().filter(|it| it.starts_with("segment ")).map(words);
    let found = segments.find_map(|it| match (it[1].parse::<u64>(), it[2].parse::<u64>()) {
        (_, Ok(last)) if last == number => Some(it[8].clone()),
        (Ok(first), _) if first == number + 1 => Some(it[7].clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{manifest}"))
}

/// Seen: only the bucket was named.
#[test]
fn a_contradiction_names_both_sides() {
    let bucket = TestBucket::new();
    let other = bucket.beside("other");
    let size = ["--block-count", "400", "--txs-per-block", "3"];
    quipu(&[&["sample", "--to", text(&other)], &size[..]].concat()).ends_with(0);
    for (held, published, number, named) in [
        ("0..255", "256..399", 255, "0256-0000000399"),
        ("0..199", "200..299", 199, "0200-0000000255"),
        ("256..599", "200..255", 255, "0200-0000000255"),
    ] {
        let bucket = TestBucket::new();
        let from = bucket.beside("published");
        let to = ["import", "--data-dir", text(&from), "--unanchored"];
        let chain = ["--chain-id", "20260101", "--blocks", published, text(&other)];
        quipu(&[&to[..], &chain].concat()).ends_with(0);
        bucket.publish(&from).ends_with(0);
        let data = bucket.beside("data");
        import(&data, &FOLDER.join("archives"), held);
        let ran = fetch(&data, &[&bucket.url()], &["--unanchored"]).ends_with(1);
        let file = bucket.file(named);
        let file = file.file_name().unwrap().to_str().unwrap();
        let theirs = hash_at_end(&from, number);
        let ours = hash_at_end(&data, number);
        let said =
            format!("hash of block {number} is {theirs} by {file}, {ours} by the data folder");
        assert!(ran.err.contains(&said), "{held}, {published}, {said}: {}", ran.err);
    }
}
