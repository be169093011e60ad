//! New heads under an open subscription: real reorgs of a real store, seen by real sockets.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use alloy_primitives::B256;
use chain::{BlockNumber, SplitMix64};
use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Value, json};

use crate::harness::hosted::Hosted;
use crate::harness::live::{FIRST, Live, branch};
use crate::harness::socket::Socket;

fn hosted(live: &Live) -> Hosted {
    Hosted::start(live.service(ServiceSettings::default()), HttpSettings::default())
}

fn number_of(head: &Value) -> u64 {
    u64::from_str_radix(head["number"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn hash_of(head: &Value) -> B256 {
    head["hash"].as_str().unwrap().parse().unwrap()
}

/// The numbers of heads up to the one with this hash.
fn numbers_until(socket: &mut Socket, id: &str, tip: B256) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let head = socket.head(id);
        numbers.push(number_of(&head));
        if hash_of(&head) == tip {
            return numbers;
        }
    }
}

#[test]
fn a_subscriber_is_sent_the_header_of_every_new_block() {
    let mut live = Live::with_blocks(3);
    let hosted = hosted(&live);
    let mut socket = Socket::open(&hosted);
    let id = socket.subscribe();
    live.writer.extend(branch(live.tip(), 2, 1)).unwrap();
    for number in [FIRST + 3, FIRST + 4] {
        let head = socket.head(&id);
        assert_eq!(number_of(&head), number);
        let asked = socket.call("eth_getHeaderByNumber", &json!([number]));
        assert_eq!(asked["result"], head);
    }
    // Ended, it is silent: the next message is the answer to the next call.
    assert_eq!(socket.call("eth_unsubscribe", &json!([id]))["result"], true);
    live.writer.extend(branch(live.tip(), 1, 1)).unwrap();
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x3ed");
    socket.assert_silent();
    let again = socket.call("eth_unsubscribe", &json!([id]));
    assert_eq!(again["error"], json!({ "code": -32000, "message": "subscription not found" }));
}

#[test]
fn after_a_reorg_the_headers_of_the_new_branch_follow_from_the_fork_point() {
    let mut live = Live::with_blocks(10);
    let hosted = hosted(&live);
    let mut socket = Socket::open(&hosted);
    let id = socket.subscribe();
    let fork = live.chain()[4];
    live.writer.reorg(fork.1, branch(fork, 7, 1)).unwrap();
    let numbers = numbers_until(&mut socket, &id, live.tip().1);
    assert_eq!(numbers, (FIRST + 5..FIRST + 12).collect::<Vec<_>>());
    // To a shorter branch, and back down the same one.
    let fork = live.chain()[8];
    live.writer.reorg(fork.1, branch(fork, 1, 2)).unwrap();
    assert_eq!(numbers_until(&mut socket, &id, live.tip().1), [FIRST + 9]);
    live.writer.rewind(live.chain()[2].1).unwrap();
    assert_eq!(numbers_until(&mut socket, &id, live.tip().1), [FIRST + 2]);
}

/// As a client keeps a chain: a header replaces its number and all above it.
#[derive(Default)]
struct Rebuilt(BTreeMap<u64, (B256, B256)>);

impl Rebuilt {
    fn push(&mut self, head: &Value) {
        let number = number_of(head);
        let parent: B256 = head["parentHash"].as_str().unwrap().parse().unwrap();
        self.0.retain(|known, _| *known < number);
        if let Some((last, (hash, _))) = self.0.last_key_value() {
            assert_eq!((*last + 1, *hash), (number, parent), "a header without its parent");
        }
        self.0.insert(number, (hash_of(head), parent));
    }

    /// Reads headers until this is the tip. None if it is already: a tip that went and came back
    /// between two looks of the server is no news, and is not sent.
    fn read_up_to(&mut self, tip: B256, socket: &mut Socket, id: &str) {
        while self.0.last_key_value().map(|(_, (hash, _))| *hash) != Some(tip) {
            self.push(&socket.head(id));
        }
    }
}

/// Random reorgs; a seed replays one run.
#[test]
fn whatever_happens_the_headers_lead_to_the_chain_that_is() {
    for seed in 1..=4_u64 {
        let mut live = Live::with_blocks(80);
        let hosted = hosted(&live);
        let mut sockets: Vec<_> = (0..3).map(|_| Socket::open(&hosted)).collect();
        let ids: Vec<String> = sockets.iter_mut().map(Socket::subscribe).collect();
        let mut rebuilt: Vec<_> = sockets.iter().map(|_| Rebuilt::default()).collect();
        let mut dice = SplitMix64::new(seed);
        for mark in 1..=120 {
            let chain = live.chain();
            let depth = dice.below(60) + 1;
            let fork = chain[chain.len() - 1 - usize::try_from(depth).unwrap()];
            match dice.below(8) {
                0 => live.writer.rewind(chain[chain.len() - 2].1).unwrap(),
                1..=4 => {
                    live.writer.reorg(fork.1, branch(fork, depth + dice.below(3), mark)).unwrap();
                }
                _ => live.writer.extend(branch(live.tip(), dice.below(4) + 1, mark)).unwrap(),
            }
            // One reads all the time, one now and then, one only at the end.
            for (position, socket) in sockets.iter_mut().enumerate().take(2) {
                if position == 0 || dice.below(10) == 0 {
                    rebuilt[position].read_up_to(live.tip().1, socket, &ids[position]);
                }
            }
        }
        live.writer.extend(branch(live.tip(), 1, 999)).unwrap();
        let expected: BTreeMap<u64, B256> = live.chain().into_iter().collect();
        for (position, socket) in sockets.iter_mut().enumerate() {
            rebuilt[position].read_up_to(live.tip().1, socket, &ids[position]);
            for (number, (hash, _)) in &rebuilt[position].0 {
                assert_eq!(Some(hash), expected.get(number), "seed {seed}, block {number}");
            }
        }
    }
}

#[test]
fn what_comes_while_a_subscription_is_being_answered_is_not_lost() {
    let mut live = Live::with_blocks(1);
    let hosted = hosted(&live);
    let mut socket = Socket::open(&hosted);
    for round in 0..50 {
        // Asked and not waited for: the block may come before the answer, with it or after it.
        socket.send_text(
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#,
        );
        live.writer.extend(branch(live.tip(), 1, round)).unwrap();
        live.writer.extend(branch(live.tip(), 1, round)).unwrap();
        let answer = socket.next();
        let id = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        live.writer.extend(branch(live.tip(), 1, round)).unwrap();
        let numbers = numbers_until(&mut socket, &id, live.tip().1);
        let last = live.tip().0;
        let expected: Vec<u64> = (numbers[0]..=last).collect();
        assert!(numbers == expected && numbers.len() <= 3, "{numbers:?}");
        assert_eq!(socket.call("eth_unsubscribe", &json!([id]))["result"], true);
    }
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected() {
    let mut live = Live::with_blocks(1);
    let settings = HttpSettings {
        write_timeout: Duration::from_millis(200),
        connections_max: 1,
        ..HttpSettings::default()
    };
    let hosted = Hosted::start(live.service(ServiceSettings::default()), settings);
    let mut socket = Socket::open(&hosted);
    let id = socket.subscribe();
    // More than the system holds for a connection.
    for _ in 0..20 {
        live.writer.extend(branch(live.tip(), 1000, 1)).unwrap();
    }
    // Its place is the only one: once another is served, it is gone.
    loop {
        let mut stream = hosted.connect();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }
    let mut count = 0;
    while let Ok(message) = socket.message() {
        assert!(message.to_text().unwrap().contains(&id));
        count += 1;
    }
    assert!(count < 20_000, "{count}");
}

#[test]
fn over_a_gap_the_tip_is_told_alone_and_of_nothing_nothing_is_told() {
    let mut live = Live::with_blocks(0);
    let hosted = hosted(&live);
    let mut socket = Socket::open(&hosted);
    let id = socket.subscribe();
    live.writer.extend(branch((FIRST - 1, B256::ZERO), 3, 0)).unwrap();
    assert_eq!(numbers_until(&mut socket, &id, live.tip().1), [FIRST + 2]);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x3ea");
}

/// The tip came alone, and nothing told the subscriber that blocks below it had left.
#[test]
fn a_subscription_ends_where_blocks_that_left_are_not_known_any_more() {
    let mut live = Live::with_blocks(5);
    let hosted = hosted(&live);
    let mut socket = Socket::open(&hosted);
    socket.subscribe();
    live.writer.rewind(B256::repeat_byte(0xba)).unwrap();
    let other = (FIRST + 500, B256::repeat_byte(0xbb));
    live.writer.begin_head(BlockNumber(other.0), other.1).unwrap();
    live.writer.extend(branch(other, 3, 2)).unwrap();
    let expected = "blocks that left the chain are not known any more";
    assert_eq!(socket.closed(), (1013, expected.to_owned()));
}
