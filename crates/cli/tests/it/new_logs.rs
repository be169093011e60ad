//! New logs under an open subscription: real reorgs of a real store, seen by real sockets.

use alloy_primitives::B256;
use chain::{BlockNumber, SplitMix64};
use rpc::http::HttpSettings;
use rpc::{LogLimits, ServiceSettings};
use serde_json::{Value, json};
use store::CommitFacts;

use crate::harness::hosted::Hosted;
use crate::harness::live::{FIRST, LOGGING, Live, logged_branch, unlogged_branch};
use crate::harness::served::Served;
use crate::harness::socket::Socket;
use crate::harness::wait::wait_for;
use crate::limits::request;

fn served(live: &Live) -> Served {
    served_with(live, ServiceSettings::default())
}

fn served_with(live: &Live, settings: ServiceSettings) -> Served {
    Served::hosted(Hosted::start(live.service(settings), HttpSettings::default()))
}

/// A filter for a range of blocks, with what else it asks for.
fn ranged(filter: &Value, first: u64, last: u64) -> Value {
    let mut ranged = filter.clone();
    ranged["fromBlock"] = json!(format!("{first:#x}"));
    ranged["toBlock"] = json!(format!("{last:#x}"));
    ranged
}

fn logs_of(served: &Served, filter: &Value, first: u64, last: u64) -> Vec<Value> {
    let logs = served.result("eth_getLogs", &json!([ranged(filter, first, last)]));
    logs.as_array().unwrap().clone()
}

/// Logs as they are told when their blocks have left: newest first.
fn removed(mut logs: Vec<Value>) -> Vec<Value> {
    logs.reverse();
    for log in &mut logs {
        log["removed"] = json!(true);
    }
    logs
}

#[test]
fn a_subscriber_is_sent_the_logs_that_its_filter_asks_for_in_order() {
    let mut live = Live::with_blocks(3);
    let served = served(&live);
    let filters = [
        json!({}),
        json!({ "address": LOGGING[0] }),
        json!({ "topics": [[B256::ZERO, B256::with_last_byte(2)]] }),
        json!({ "address": [LOGGING[1]], "topics": [B256::with_last_byte(3)] }),
    ];
    let mut sockets: Vec<Socket> = filters.iter().map(|_| Socket::at(served.address())).collect();
    let ids: Vec<String> =
        sockets.iter_mut().zip(&filters).map(|(it, filter)| it.subscribe_to_logs(filter)).collect();
    live.writer.extend(logged_branch(live.tip(), 5, 1)).unwrap();
    live.writer.extend(logged_branch(live.tip(), 100, 2)).unwrap();
    for ((socket, id), filter) in sockets.iter_mut().zip(&ids).zip(&filters) {
        let expected = logs_of(&served, filter, FIRST + 3, FIRST + 107);
        assert!(expected.len() > 20, "{filter}: {}", expected.len());
        for log in expected {
            assert_eq!(socket.head(id), log, "{filter}");
        }
        // Ended, it is silent: the next message is the answer to the next call.
        assert_eq!(socket.call("eth_unsubscribe", &json!([id]))["result"], true);
    }
    live.writer.extend(logged_branch(live.tip(), 3, 1)).unwrap();
    for socket in &mut sockets {
        assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x456");
        socket.assert_silent();
    }
}

#[test]
fn after_a_reorg_removed_logs_come_first_and_newest_first() {
    let mut live = Live::with_blocks(1);
    let served = served(&live);
    let filter = json!({ "address": LOGGING[0] });
    live.writer.extend(logged_branch(live.tip(), 10, 1)).unwrap();
    let mut socket = Socket::at(served.address());
    let id = socket.subscribe_to_logs(&filter);
    let fork = live.chain()[4];
    let before = removed(logs_of(&served, &filter, FIRST + 5, FIRST + 10));
    live.writer.reorg(fork.1, logged_branch(fork, 4, 2)).unwrap();
    let after = logs_of(&served, &filter, FIRST + 5, FIRST + 8);
    for log in before.into_iter().chain(after.clone()) {
        assert_eq!(socket.head(&id), log);
    }
    // Down the same branch: logs leave, and none come.
    live.writer.rewind(live.chain()[6].1).unwrap();
    let mut left = removed(after);
    left.retain(|log| log["blockNumber"] == "0x3ef" || log["blockNumber"] == "0x3f0");
    for log in left {
        assert_eq!(socket.head(&id), log);
    }
}

/// The node is a server of ours over a store that is reorganised.
#[test]
fn a_server_that_follows_a_node_tells_of_its_reorgs() {
    let mut live = Live::with_blocks(1);
    live.writer.extend(logged_branch(live.tip(), 20, 1)).unwrap();
    let node = served(&live);
    let url = format!("http://{}", node.address());
    let folder = tempfile::tempdir().unwrap();
    let anchor = format!("{FIRST}:{}", live.chain()[0].1);
    let chain = ["--chain-id", "7", "--anchor", &anchor];
    let args = [&["--upstream", &url, "--poll-every", "20"], &chain[..]].concat();
    let follower = Served::start(folder.path(), &args);
    let hash_of = |served: &Served| {
        served.call("eth_getBlockByNumber", &json!(["latest", false]))["result"]["hash"].clone()
    };
    let wait_for_tip = |live: &Live| {
        let tip = json!(live.tip().1);
        wait_for(|| (hash_of(&follower) == tip).then_some(()), || hash_of(&follower).to_string());
    };
    // It begins with the tip, and follows from there.
    wait_for_tip(&live);
    live.writer.extend(logged_branch(live.tip(), 10, 1)).unwrap();
    wait_for_tip(&live);
    let mut socket = Socket::at(follower.address());
    let id = socket.subscribe_to_logs(&json!({}));
    let polled = follower.result("eth_newFilter", &json!([{}]));
    let fork = live.chain()[27];
    let mut expected = removed(logs_of(&node, &json!({}), fork.0 + 1, live.tip().0));
    live.writer.reorg(fork.1, logged_branch(fork, 5, 2)).unwrap();
    expected.extend(logs_of(&node, &json!({}), fork.0 + 1, live.tip().0));
    for log in &expected {
        assert_eq!(socket.head(&id), *log);
    }
    wait_for_tip(&live);
    assert_eq!(follower.result("eth_getFilterChanges", &json!([polled])), json!(expected));
}

/// What a client that undoes logs one by one has: only the newest can be undone.
#[derive(Default)]
struct Undoable(Vec<Value>);

impl Undoable {
    fn push(&mut self, log: &Value) {
        let mut added = log.clone();
        added["removed"] = json!(false);
        if log["removed"] == true {
            assert_eq!(self.0.pop(), Some(added), "a log that is not the newest is undone");
        } else {
            self.0.push(added);
        }
    }
}

/// Random reorgs, seen by subscribers and by filters; a seed replays one run. Portions of a block or
/// two end among those that left too.
#[test]
fn whatever_happens_the_logs_lead_to_those_of_the_chain_that_is() {
    for (seed, feed_bytes_max, count_max) in
        [(1, 256 * 1024, 20_000), (2, 1, 20_000), (3, 1500, 3), (4_u64, 1, 1)]
    {
        let mut live = Live::with_blocks(1);
        live.writer.extend(logged_branch(live.tip(), 70, 0)).unwrap();
        let log_limits = LogLimits { count_max, ..LogLimits::default() };
        let settings = ServiceSettings { feed_bytes_max, log_limits, ..ServiceSettings::default() };
        let served = served_with(&live, settings);
        let roomy = self::served(&live);
        let filter = json!({ "address": LOGGING[1] });
        let mut socket = Socket::at(served.address());
        let id = socket.subscribe_to_logs(&filter);
        let polled = served.result("eth_newFilter", &json!([filter]));
        let begun = logs_of(&roomy, &filter, FIRST, FIRST + 70);
        let mut by_filter = Undoable(begun.clone());
        let mut by_socket = Undoable(begun);
        let mut dice = SplitMix64::new(seed);
        let poll = |seen: &mut Undoable| {
            loop {
                let changes = served.result("eth_getFilterChanges", &json!([polled]));
                changes.as_array().unwrap().iter().for_each(|log| seen.push(log));
                if changes == json!([]) {
                    break;
                }
            }
        };
        for mark in 1..=80 {
            let chain = live.chain();
            let depth = dice.below(50) + 1;
            let fork = chain[chain.len() - 1 - usize::try_from(depth).unwrap()];
            match dice.below(8) {
                0 => live.writer.rewind(chain[chain.len() - 2].1).unwrap(),
                1..=4 => {
                    let blocks = logged_branch(fork, depth + dice.below(3), mark);
                    live.writer.reorg(fork.1, blocks).unwrap();
                }
                _ => {
                    live.writer.extend(logged_branch(live.tip(), dice.below(4) + 1, mark)).unwrap();
                }
            }
            if dice.below(4) == 0 {
                poll(&mut by_filter);
                let tip = live.tip().0;
                assert_eq!(by_filter.0, logs_of(&roomy, &filter, FIRST, tip), "seed {seed}");
            }
        }
        // The last log of all says where to stop.
        live.writer.extend(logged_branch(live.tip(), 3, 999)).unwrap();
        let expected = logs_of(&roomy, &filter, FIRST, live.tip().0);
        while by_socket.0.last() != expected.last() {
            by_socket.push(&socket.head(&id));
        }
        poll(&mut by_filter);
        assert_eq!(by_socket.0, expected, "seed {seed}");
        assert_eq!(by_filter.0, expected, "seed {seed}");
    }
}

#[test]
fn a_subscription_ends_where_logs_cannot_be_known() {
    let ended = |change: &dyn Fn(&mut Live)| {
        let mut live = Live::with_blocks(1);
        live.writer.extend(logged_branch(live.tip(), 5, 1)).unwrap();
        let served = served(&live);
        let mut socket = Socket::at(served.address());
        socket.subscribe_to_logs(&json!({}));
        change(&mut live);
        socket.closed()
    };
    let (code, reason) = ended(&|live| {
        live.writer.extend(unlogged_branch(live.tip(), 3, 2)).unwrap();
    });
    assert_eq!((code, &*reason), (1013, "receipts of new blocks are not held"));
    // The head begins anew elsewhere: what was seen is nowhere any more.
    let (code, reason) = ended(&|live| {
        live.writer.rewind(B256::repeat_byte(0xba)).unwrap();
        let other = (FIRST + 500, B256::repeat_byte(0xbb));
        live.writer.begin_head(BlockNumber(other.0), other.1).unwrap();
        live.writer.extend(logged_branch(other, 3, 2)).unwrap();
    });
    let expected = "blocks that left the chain are not known any more";
    assert_eq!((code, &*reason), (1013, expected));
    // It begins anew above what was seen, and what lies between is not held.
    let (code, reason) = ended(&|live| {
        let tip = live.tip();
        live.writer.seal_all(BlockNumber(tip.0), CommitFacts::default()).unwrap();
        let other = (FIRST + 500, B256::repeat_byte(0xbb));
        live.writer.begin_head(BlockNumber(other.0), other.1).unwrap();
        live.writer.extend(logged_branch(other, 3, 2)).unwrap();
    });
    assert_eq!((code, &*reason), (1013, "new blocks below the tip are not held"));
}

/// They were told of the tip's logs alone.
#[test]
fn over_an_empty_store_all_logs_of_the_blocks_that_come_are_told() {
    let mut live = Live::with_blocks(0);
    let served = served(&live);
    let mut socket = Socket::at(served.address());
    let id = socket.subscribe_to_logs(&json!({}));
    let polled = served.result("eth_newFilter", &json!([{}]));
    live.writer.extend(logged_branch((FIRST - 1, B256::ZERO), 70, 1)).unwrap();
    let expected = logs_of(&served, &json!({}), FIRST, FIRST + 69);
    for log in &expected {
        assert_eq!(socket.head(&id), *log);
    }
    assert_eq!(served.result("eth_getFilterChanges", &json!([polled])), json!(expected));
}

/// Whoever asked for a long answer and takes none of it.
fn stuck_client(hosted: &Hosted, live: &Live) -> std::net::TcpStream {
    use std::io::Write as _;
    let filter = ranged(&json!({}), FIRST, live.tip().0);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [filter] });
    let mut stream = hosted.connect();
    stream.write_all(request(&json!(vec![call; 300]).to_string()).as_bytes()).unwrap();
    let bytes = || hosted.budget.bytes();
    let is_full = || bytes() > hosted.budget.bytes_max() + 4096;
    wait_for(|| is_full().then_some(()), || format!("{} bytes are under way", bytes()));
    stream
}

/// It was closed with 1013 because others took nothing.
#[test]
fn a_subscriber_for_whose_logs_there_is_no_room_gets_them_when_there_is() {
    let mut live = Live::with_blocks(3);
    live.writer.extend(logged_branch(live.tip(), 100, 1)).unwrap();
    let tip = live.tip().0;
    let settings = HttpSettings { bytes_under_way_max: 256 * 1024, ..HttpSettings::default() };
    let hosted = Hosted::start(live.service(ServiceSettings::default()), settings);
    let mut socket = Socket::open(&hosted);
    let id = socket.subscribe_to_logs(&json!({}));
    let stuck = stuck_client(&hosted, &live);
    live.writer.extend(logged_branch(live.tip(), 100, 2)).unwrap();
    // It is answered meanwhile, and is told of nothing.
    for _ in 0..3 {
        let answer = socket.call("eth_blockNumber", &json!([]));
        assert_eq!(answer["result"], json!(format!("{:#x}", live.tip().0)), "{answer}");
    }
    socket.assert_silent();
    assert!(hosted.budget.bytes() > hosted.budget.bytes_max(), "the other client was answered");
    drop(stuck);
    let expected = logs_of(&served(&live), &json!({}), tip + 1, live.tip().0);
    for log in expected {
        assert_eq!(socket.kept_or_next()["params"], json!({ "subscription": id, "result": log }));
    }
}
