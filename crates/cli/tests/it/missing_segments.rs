//! Segments that the manifest lists and that are gone or cut: the others are served.

use std::fs;

use serde_json::{Value, json};

use crate::harness::data::names;
use crate::harness::long::{Long, refused_code};
use crate::harness::run::text;
use crate::harness::served::Served;
use crate::harness::wait::wait_for;

fn ready(served: &Served) -> (u16, String) {
    let answer = served.get("/readyz");
    (answer.status, String::from_utf8(answer.body).unwrap())
}

fn first_transaction(served: &Served, number: u64) -> Value {
    let params = json!([format!("{number:#x}"), false]);
    served.result("eth_getBlockByNumber", &params)["transactions"][0].clone()
}

/// Seen: without the segment of block 0 the server did not start; without another it said that it is
/// ready, and that its blocks are an internal error.
#[test]
fn a_missing_or_cut_segment_is_told_and_the_others_are_served() {
    let long = Long::new();
    let whole = Served::start(&long.path(), &[]);
    let with_transactions = [200, 300, 560];
    let hashes = with_transactions.map(|number| first_transaction(&whole, number));
    whole.stop();
    for (place, name) in long.segments().iter().enumerate() {
        let path = long.path().join(name);
        let bytes = fs::read(&path).unwrap();
        if place == 1 {
            fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let served = Served::start(&long.path(), &[]);
        let (status, body) = ready(&served);
        assert_eq!(status, 503, "{body}");
        assert!(body.contains(name), "{body}");
        for (other, (number, hash)) in with_transactions.iter().zip(&hashes).enumerate() {
            let expected = (other == place).then_some(4444);
            assert_eq!(refused_code(&served, *number), expected, "{name}: block {number}");
            for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
                let answer = served.call(method, &json!([hash]));
                assert_eq!(answer["error"]["code"].as_i64(), expected, "{name}: {answer}");
                assert_eq!(answer["result"].is_object(), expected.is_none(), "{name}: {answer}");
            }
        }
        // Whoever brings it back has all of it again, without a restart.
        fs::write(&path, &bytes).unwrap();
        wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
        assert_eq!(refused_code(&served, with_transactions[place]), None);
        served.stop();
    }
}

/// Seen: without one segment `/stat.json` and `quipu stat` were an error alone, and the explorer said that
/// no block is held.
#[test]
fn what_is_held_is_told_beside_a_segment_that_cannot_be_read() {
    for (place, held, lost, tip) in [
        (1, json!([[0, 255], [512, 599]]), (256, 511), 599),
        (2, json!([[0, 511]]), (512, 599), 511),
    ] {
        let long = Long::new();
        let whole = long.run(&["stat", "--json"]).ends_with(0).json();
        let name = long.segments()[place].clone();
        long.lose(&name);
        let served = Served::start(&long.path(), &[]);
        let page = served.get("/stat.json?files=1").json();
        let stat = long.run(&["stat", "--json"]).ends_with(1);
        assert!(stat.err.contains(&name) && stat.err.contains("no such file"), "{}", stat.err);
        let hint = format!("hint: quipu doctor --data-dir {}", long.path().display());
        assert!(stat.err.contains(&hint), "{}", stat.err);
        for told in [page, stat.json()] {
            let ranges: Vec<Value> = told["coverage_receipts"].as_array().unwrap().clone();
            let ranges: Vec<Value> =
                ranges.iter().map(|it| json!([it["first"], it["last"]])).collect();
            assert_eq!(json!(ranges), held, "{told}");
            let first = |it: &Value| it["first"].as_u64().unwrap();
            let last = |it: &Value| it["last"].as_u64().unwrap();
            let coverage = told["coverage"].as_array().unwrap();
            assert!(coverage.iter().all(|it| last(it) < lost.0 || first(it) > lost.1), "{told}");
            assert_eq!(coverage.last().map(last), Some(tip), "{told}");
            assert_eq!(told["tip"]["number"], tip, "{told}");
            let count = lost.1 - lost.0 + 1;
            assert_eq!(told["blocks"], 600 - count, "{told}");
            assert!(told["transactions"].as_u64() < whole["transactions"].as_u64(), "{told}");
            assert_eq!(told["lost"], json!([{ "first": lost.0, "last": lost.1 }]), "{told}");
            let [unreadable] = told["unreadable"].as_array().unwrap().as_slice() else {
                panic!("{told}")
            };
            assert_eq!((&unreadable["file"], &told["unreadable_count"]), (&json!(name), &json!(1)));
            assert_eq!(
                (&unreadable["first"], &unreadable["last"]),
                (&json!(lost.0), &json!(lost.1))
            );
            assert!(unreadable["error"].as_str().unwrap().contains("no such file"), "{told}");
            assert_eq!((&told["segment_count"], &told["error"]), (&json!(3), &Value::Null));
        }
        served.stop();
        let ran = long.run(&["stat"]).ends_with(1);
        let said = format!("{name} (blocks {}..{}) cannot be read: ", lost.0, lost.1);
        assert!(ran.out.contains(&said) && ran.err.contains(&hint), "{} {}", ran.out, ran.err);
    }
}

#[test]
fn a_folder_of_which_no_block_can_be_read_is_not_said_to_hold_none() {
    let long = Long::new();
    long.segments().iter().for_each(|name| long.lose(name));
    let ran = long.run(&["stat"]).ends_with(1);
    assert!(ran.out.contains("no block can be read"), "{}", ran.out);
    assert!(!ran.out.contains("holds no block yet"), "{}", ran.out);
}

/// The lines of a server that has ended which name a file, of a level.
fn told(lines: &std::sync::mpsc::Receiver<String>, level: &str, name: &str) -> usize {
    lines.iter().filter(|line| line.contains(level) && line.contains(name)).count()
}

/// Seen: a segment that was removed or cut while the server ran, before it was read, was an internal
/// error for every read, each with a line in the log, and `/readyz` said that all is well.
#[test]
fn a_segment_that_is_damaged_while_it_is_not_open_is_told_once_and_taken_up_again() {
    let long = Long::new();
    let name = long.segments()[1].clone();
    let path = long.path().join(&name);
    let bytes = fs::read(&path).unwrap();
    let (served, lines) = Served::start_logged(&long.path(), &[]);
    assert_eq!(refused_code(&served, 20), None);
    fs::remove_file(&path).unwrap();
    for _ in 0..20 {
        assert_eq!(refused_code(&served, 300), Some(4444));
    }
    assert_eq!(refused_code(&served, 20), None);
    let (status, body) = ready(&served);
    assert!(status == 503 && body.contains(&name), "{body}");
    // Another one in its place that is no good either.
    fs::write(&path, vec![7; bytes.len()]).unwrap();
    assert_eq!(refused_code(&served, 300), Some(4444));
    fs::write(&path, &bytes).unwrap();
    wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
    assert_eq!(refused_code(&served, 300), None);
    served.stop();
    assert_eq!(told(&lines, "ERROR", &name), 1, "once, however often it was asked for");
}

/// Seen: a page that was damaged while its segment was open was an error for as long as the server ran,
/// also when a good copy had taken the place of the file.
#[test]
fn a_file_that_is_replaced_by_a_good_one_is_taken_up_while_the_damaged_one_is_open() {
    let long = Long::new();
    let name = long.segments()[1].clone();
    let path = long.path().join(&name);
    let bytes = fs::read(&path).unwrap();
    let (served, lines) = Served::start_logged(&long.path(), &[]);
    assert_eq!(refused_code(&served, 256), None);
    // In place, so that whoever has it open sees it: all but the directory at its end.
    let mut damaged = bytes.clone();
    let end = damaged.len() / 2;
    damaged[..end].iter_mut().for_each(|byte| *byte ^= 0x55);
    fs::write(&path, &damaged).unwrap();
    let refused = |number| refused_code(&served, number);
    let numbers = || 256..512;
    let failed = numbers().filter(|number| refused(*number) == Some(-32603)).count();
    assert!(failed > 0, "some of it cannot be read");
    let (status, body) = ready(&served);
    assert!(status == 503 && body.contains(&name), "{body}");
    // A copy beside it, which takes its name.
    let copy = long.path().join("copy");
    fs::write(&copy, &bytes).unwrap();
    fs::rename(&copy, &path).unwrap();
    wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
    assert!(numbers().all(|number| refused(number).is_none()));
    assert_eq!(ready(&served).0, 200);
    served.stop();
    assert_eq!(told(&lines, "ERROR", &name), 1, "once, however often it was asked for");
}

/// Seen: without the lookups of transactions the server said that it is ready, and every hash was an
/// internal error.
#[test]
fn a_missing_or_cut_lookup_run_is_told_and_no_hash_is_denied_meanwhile() {
    let long = Long::new();
    let runs = names(&long.path(), ".run");
    let run = runs.iter().find(|name| name.contains("transactions")).unwrap();
    let path = long.path().join(run);
    let bytes = fs::read(&path).unwrap();
    let whole = Served::start(&long.path(), &[]);
    let hash = first_transaction(&whole, 300);
    whole.stop();
    // At the start and while it runs, gone or cut.
    for (is_at_start, is_cut) in [(true, false), (true, true), (false, false), (false, true)] {
        let damage = || {
            fs::remove_file(&path).unwrap();
            if is_cut {
                fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
            }
        };
        if is_at_start {
            damage();
        }
        let served = Served::start(&long.path(), &["--unknown-hash", "null"]);
        if !is_at_start {
            damage();
        }
        let ask = |hash: &Value| served.call("eth_getTransactionByHash", &json!([hash]));
        for hash in [&hash, &json!(format!("0x{}", "ab".repeat(32)))] {
            let answer = ask(hash);
            assert_eq!(answer["error"]["code"], 4444, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(run), "{answer}");
        }
        assert_eq!(refused_code(&served, 300), None);
        let (status, body) = ready(&served);
        assert!(status == 503 && body.contains(run), "{body}");
        fs::write(&path, &bytes).unwrap();
        wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
        assert!(ask(&hash)["result"].is_object());
        served.stop();
    }
}

/// Seen: where a node is followed, a segment that came back was taken up at the next start only, and
/// without the last one the server said that it is behind its node.
#[test]
fn a_follower_without_its_last_segment_is_at_the_tip_and_takes_it_up_again() {
    let long = Long::new();
    let node = Served::start(&long.path(), &[]);
    let copy = long.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(long.path()).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let name = long.segments()[2].clone();
    fs::remove_file(copy.join(&name)).unwrap();
    let (url, genesis) =
        (format!("http://{}", node.address()), long.archives().join("genesis.json"));
    let args = ["--upstream", &url, "--genesis", text(&genesis), "--poll-every", "50"];
    let served = Served::start(&copy, &args);
    let only_it = || {
        let told: Value = serde_json::from_str(&ready(&served).1).ok()?;
        let reasons = told["reasons"].as_array()?;
        (reasons.len() == 1 && reasons[0].as_str()?.contains(&name)).then_some(())
    };
    wait_for(only_it, || format!("{:?}", ready(&served)));
    assert_eq!(refused_code(&served, 599), Some(4444));
    fs::copy(long.path().join(&name), copy.join(&name)).unwrap();
    wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
    assert_eq!(refused_code(&served, 599), None);
    served.stop();
    node.stop();
}
