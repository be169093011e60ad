//! Filters that are polled over HTTP, while the chain grows and is reorganised.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chain::BlockNumber;
use rpc::http::HttpSettings;
use rpc::{FilterLimits, LogLimits, ServiceSettings};
use serde_json::{Value, json};
use store::CommitFacts;

use crate::harness::hosted::Hosted;
use crate::harness::live::{FIRST, LOGGING, Live, logged_branch, unlogged_branch};
use crate::harness::served::Served;
use crate::harness::stores;

fn served(live: &Live, settings: ServiceSettings) -> Served {
    Served::hosted(Hosted::start(live.service(settings), HttpSettings::default()))
}

fn not_found() -> Value {
    json!({ "code": -32000, "message": "filter not found" })
}

/// The hashes of the head's blocks from this position on.
fn hashes(live: &Live, from: usize) -> Value {
    live.chain()[from..].iter().map(|(_, hash)| json!(hash)).collect()
}

#[test]
fn a_filter_tells_each_change_once() {
    let mut live = Live::with_blocks(1);
    let served = served(&live, ServiceSettings::default());
    live.writer.extend(logged_branch(live.tip(), 5, 1)).unwrap();
    let from = format!("{:#x}", FIRST + 1);
    let logs = served.result("eth_newFilter", &json!([{ "fromBlock": from }]));
    let blocks = served.result("eth_newBlockFilter", &json!([]));
    assert!(logs.as_str().unwrap().starts_with("0x") && logs != blocks, "{logs} {blocks}");
    let changes = |id: &Value| served.result("eth_getFilterChanges", &json!([id]));
    assert_eq!((changes(&logs), changes(&blocks)), (json!([]), json!([])));
    live.writer.extend(logged_branch(live.tip(), 4, 2)).unwrap();
    let range = json!({ "fromBlock": "0x3ee", "toBlock": "0x3f1" });
    let expected = served.result("eth_getLogs", &json!([range]));
    assert_eq!(expected.as_array().unwrap().len(), 8);
    assert_eq!(changes(&logs), expected);
    assert_eq!(changes(&blocks), hashes(&live, 6));
    assert_eq!((changes(&logs), changes(&blocks)), (json!([]), json!([])));
    // After a reorg, the blocks that came, and the logs of those that left.
    let fork = live.chain()[8];
    live.writer.reorg(fork.1, logged_branch(fork, 2, 3)).unwrap();
    assert_eq!(changes(&blocks), hashes(&live, 9));
    let told = changes(&logs);
    let told: Vec<bool> = told.as_array().unwrap().iter().map(|it| it["removed"] == true).collect();
    assert_eq!(told, [true, true, false, false, false, false, false, false]);
    // All of its logs are those of its range, whatever was polled.
    let all = served.result("eth_getFilterLogs", &json!([logs]));
    assert_eq!(all, served.result("eth_getLogs", &json!([{ "fromBlock": from }])));
    for id in [&logs, &blocks] {
        assert_eq!(served.result("eth_uninstallFilter", &json!([id])), true);
        assert_eq!(served.result("eth_uninstallFilter", &json!([id])), false);
        assert_eq!(served.call("eth_getFilterChanges", &json!([id]))["error"], not_found());
    }
}

#[test]
fn what_is_no_filter_of_logs_has_none_and_wrong_ranges_are_refused() {
    let live = Live::with_blocks(1);
    let served = served(&live, ServiceSettings::default());
    let blocks = served.result("eth_newBlockFilter", &json!([]));
    for id in [blocks, json!("0x0"), json!("")] {
        assert_eq!(served.call("eth_getFilterLogs", &json!([id]))["error"], not_found(), "{id}");
    }
    for (filter, message) in [
        (json!({ "fromBlock": "pending" }), "pending logs are not supported"),
        (json!({ "fromBlock": "0x2", "toBlock": "0x1" }), "invalid block range params"),
        (json!({ "toBlock": "0x1" }), "invalid block range params"),
        (json!({ "fromBlock": "finalized" }), "invalid block range params"),
    ] {
        let error = served.call("eth_newFilter", &json!([filter]))["error"].clone();
        assert_eq!(error, json!({ "code": -32602, "message": message }), "{filter}");
    }
    for filter in
        [json!({ "fromBlock": "earliest" }), json!({ "fromBlock": "0x1", "toBlock": "0x2" })]
    {
        served.result("eth_newFilter", &json!([filter]));
    }
}

#[test]
fn a_filter_tells_only_of_the_blocks_that_it_names() {
    let mut live = Live::with_blocks(1);
    let served = served(&live, ServiceSettings::default());
    let range = json!({ "fromBlock": "0x3ea", "toBlock": "0x3eb", "address": LOGGING });
    let ranged = served.result("eth_newFilter", &json!([range]));
    let blocks = logged_branch(live.tip(), 5, 1);
    let hash = json!(blocks[3].hash);
    let hashed = served.result("eth_newFilter", &json!([{ "blockHash": hash }]));
    live.writer.extend(blocks).unwrap();
    let changes = |id: &Value| served.result("eth_getFilterChanges", &json!([id]));
    assert_eq!(changes(&ranged), served.result("eth_getLogs", &json!([range])));
    let of_block = served.result("eth_getLogs", &json!([{ "blockHash": hash }]));
    assert_eq!(of_block.as_array().unwrap().len(), 4);
    assert_eq!(changes(&hashed), of_block);
    assert_eq!(served.result("eth_getFilterLogs", &json!([hashed])), of_block);
}

#[test]
fn filters_are_bounded_in_number_and_age() {
    let live = Live::with_blocks(1);
    let limits = FilterLimits { count_max: 2, ..FilterLimits::default() };
    let kept =
        served(&live, ServiceSettings { filter_limits: limits, ..ServiceSettings::default() });
    let first = kept.result("eth_newBlockFilter", &json!([]));
    kept.result("eth_newFilter", &json!([{}]));
    let error = kept.call("eth_newFilter", &json!([{}]))["error"].clone();
    assert_eq!(
        error,
        json!({ "code": -32005, "message": "too many filters: 2, all polled lately; try again later" })
    );
    assert_eq!(kept.result("eth_uninstallFilter", &json!([first])), true);
    kept.result("eth_newFilter", &json!([{}]));
    let limits = FilterLimits { count_max: 1, idle_timeout: Duration::ZERO };
    let aged =
        served(&live, ServiceSettings { filter_limits: limits, ..ServiceSettings::default() });
    for _ in 0..3 {
        let id = aged.result("eth_newBlockFilter", &json!([]));
        assert_eq!(aged.call("eth_getFilterChanges", &json!([id]))["error"], not_found());
    }
}

/// The chain as the changes that polls tell make it, each answer with so many of them at the most.
#[test]
fn changes_beyond_a_limit_are_told_by_the_next_polls() {
    let limits = LogLimits::default();
    // A block has up to four logs, of 400 to 450 bytes each.
    for (log_limits, most) in [
        (LogLimits { count_max: 6, ..limits }, 6),
        (LogLimits { count_max: 1, ..limits }, 4),
        (LogLimits { bytes_max: 2700, ..limits }, 6),
        (LogLimits { read_bytes_max: 0, ..limits }, 4 * 32),
        (LogLimits { unindexed_blocks_max: 1, ..limits }, 4 * 20),
    ] {
        let mut live = Live::with_blocks(1);
        if log_limits.unindexed_blocks_max == 1 {
            live.writer.want_log_index(false).unwrap();
        }
        let served = served(&live, ServiceSettings { log_limits, ..ServiceSettings::default() });
        let filter = json!({ "fromBlock": format!("{FIRST:#x}"), "address": LOGGING });
        let logs = served.result("eth_newFilter", &json!([filter]));
        let blocks = served.result("eth_newBlockFilter", &json!([]));
        let all = |id: &Value, most: usize| {
            let mut told = Vec::new();
            // An answer may be empty because of what was read for it, and there is more all the same.
            for _ in 0..120 {
                let changes = served.result("eth_getFilterChanges", &json!([id]));
                let changes = changes.as_array().unwrap();
                assert!(changes.len() <= most, "{log_limits:?}: {}", changes.len());
                told.extend(changes.clone());
            }
            told
        };
        let added = logged_branch(live.tip(), 70, 1);
        let new: Vec<Value> = added.iter().map(|block| json!(block.hash)).collect();
        live.writer.extend(added).unwrap();
        live.writer.seal_all(BlockNumber(FIRST + 50), CommitFacts::default()).unwrap();
        let roomy = self::served(&live, ServiceSettings::default());
        let before = roomy.result("eth_getLogs", &json!([filter]));
        assert_eq!(json!(all(&logs, most)), before, "{log_limits:?}");
        assert_eq!(all(&blocks, log_limits.count_max), new, "{log_limits:?}");
        // Removed logs too come in portions of whole blocks.
        let fork = live.chain()[2];
        live.writer.reorg(fork.1, logged_branch(fork, 10, 2)).unwrap();
        let told = all(&logs, most);
        let mut chain = before.as_array().unwrap().clone();
        for mut log in told {
            if log["removed"] == true {
                log["removed"] = json!(false);
                assert_eq!(chain.pop(), Some(log), "{log_limits:?}");
            } else {
                chain.push(log);
            }
        }
        assert_eq!(json!(chain), roomy.result("eth_getLogs", &json!([filter])), "{log_limits:?}");
    }
}

#[test]
fn a_filter_whose_changes_cannot_be_known_is_refused_or_dropped() {
    let mut live = Live::with_blocks(1);
    live.writer.extend(logged_branch(live.tip(), 5, 1)).unwrap();
    let served = served(&live, ServiceSettings::default());
    let filters = [
        served.result("eth_newFilter", &json!([{}])),
        served.result("eth_newBlockFilter", &json!([])),
    ];
    // A branch that left is dropped when blocks of its numbers are sealed.
    let fork = live.chain()[2];
    live.writer.reorg(fork.1, logged_branch(fork, 6, 2)).unwrap();
    let tip = live.tip();
    live.writer.seal_all(BlockNumber(tip.0), CommitFacts::default()).unwrap();
    for id in &filters {
        let error = served.call("eth_getFilterChanges", &json!([id]))["error"].clone();
        let message = "filter not found: dropped, blocks that left the chain are not known \
                       any more";
        assert_eq!(error, json!({ "code": -32000, "message": message }));
        assert_eq!(served.call("eth_getFilterChanges", &json!([id]))["error"], not_found());
    }
    let logs = served.result("eth_newFilter", &json!([{}]));
    live.writer.extend(unlogged_branch(tip, 2, 3)).unwrap();
    for _ in 0..2 {
        let error = served.call("eth_getFilterChanges", &json!([logs]))["error"].clone();
        assert_eq!(error["code"], 4444, "{error}");
    }
}

#[test]
fn sealed_blocks_are_told_as_those_of_the_head() {
    let mut live = Live::with_blocks(1);
    let served = served(&live, ServiceSettings::default());
    let logs = served.result("eth_newFilter", &json!([{ "address": LOGGING[1] }]));
    live.writer.extend(logged_branch(live.tip(), 40, 1)).unwrap();
    let range = json!({ "fromBlock": "0x3e9", "address": LOGGING[1] });
    let expected = served.result("eth_getLogs", &json!([range]));
    live.writer.seal_all(BlockNumber(FIRST + 30), CommitFacts::default()).unwrap();
    assert_eq!(served.result("eth_getFilterChanges", &json!([logs])), expected);
}

/// Each of many polls at a time gets what no other gets.
#[test]
fn polls_at_the_same_time_share_the_changes() {
    let mut live = Live::with_blocks(1);
    let served = served(&live, ServiceSettings::default());
    let id = served.result("eth_newBlockFilter", &json!([]));
    let is_over = AtomicBool::new(false);
    let told: Vec<Value> = std::thread::scope(|scope| {
        let poll = || {
            let mut told = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let changes = served.result("eth_getFilterChanges", &json!([id]));
                told.extend(changes.as_array().unwrap().clone());
            }
            told
        };
        let polls: Vec<_> = (0..3).map(|_| scope.spawn(poll)).collect();
        let extended: Vec<_> = (0..50)
            .map(|mark| live.writer.extend(logged_branch(live.tip(), 1, mark)).is_ok())
            .collect();
        // Before anything can fail: the scope waits for the polls.
        is_over.store(true, Ordering::Relaxed);
        assert!(extended.iter().all(|is_ok| *is_ok), "{extended:?}");
        polls.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let last = served.result("eth_getFilterChanges", &json!([id]));
    let mut told = [told, last.as_array().unwrap().clone()].concat();
    let mut expected = hashes(&live, 1).as_array().unwrap().clone();
    told.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(told, expected);
}

#[test]
fn a_store_without_blocks_has_filters_too() {
    let served = stores::serve("empty", &[]);
    for (method, params) in [("eth_newBlockFilter", json!([])), ("eth_newFilter", json!([{}]))] {
        let id = served.result(method, &params);
        assert_eq!(served.result("eth_getFilterChanges", &json!([id])), json!([]));
    }
}
