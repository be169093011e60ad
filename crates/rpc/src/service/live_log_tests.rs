//! Logs of new blocks that many ask for, and calls that bring much.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256, Log};
use chain::BlockNumber;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use store::{LogQuery, Reader};
use tokio::io::{AsyncWriteExt as _, duplex};

use super::live_tests::{Growing, UPGRADE, call, read_until, send_text, verified};
use super::*;
use crate::admission::ClientId;
use crate::heads::ChainCursor;
use crate::http::{FirstReader, HttpSettings, Server};
use crate::kept_filter::KeptFilter;
use crate::log_filter::LogFilter;
use crate::shared_logs::SharedLogs;

/// execution-apis #851: a list that is not stored is not one that never was.
#[tokio::test]
async fn an_access_list_that_is_not_stored_is_refused_by_the_fork_of_its_block() {
    let mut growing = Growing::new();
    let header = Header {
        number: growing.tip.0 + 1,
        parent_hash: growing.tip.1,
        base_fee_per_gas: Some(7),
        withdrawals_root: Some(EMPTY_ROOT_HASH),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(B256::ZERO),
        requests_hash: Some(B256::ZERO),
        block_access_list_hash: Some(B256::repeat_byte(4)),
        slot_number: Some(5),
        ..Header::default()
    };
    growing.writer.extend(vec![verified(&header, vec![], Some(vec![]))]).unwrap();
    let budget = Budget::unbounded();
    for (method, of_unknown) in
        [("eth_getBlockAccessList", Value::Null), ("debug_getRawBlockAccessList", json!(-32001))]
    {
        for (block, code) in [
            (json!("0x3e8"), &json!(-32001)),
            (json!("0x3e9"), &json!(4444)),
            (json!("latest"), &json!(4444)),
            (json!("0x3ea"), &of_unknown),
            (json!("pending"), &of_unknown),
        ] {
            let answer = growing.reply(&call(method, &json!([block])), &budget).await;
            assert_eq!(answer["error"]["code"], *code, "{method} {block}: {answer}");
            assert!(code.is_number() || answer["result"].is_null(), "{method}: {answer}");
        }
    }
}

/// Each of them was decoded, matched and written anew for each subscriber.
#[tokio::test]
async fn a_log_is_written_once_for_all_subscribers_also_when_it_is_removed() {
    let mut growing = Growing::new();
    let (mut reader, budget) = (Reader::new().unwrap(), Budget::unbounded());
    let fork = growing.tip;
    let cursor = ChainCursor::at_tip(&mut reader, &growing.store.view()).await.unwrap();
    // One asks for every log, the others for an address and for a topic.
    let (address, topic) = (Address::repeat_byte(3), B256::repeat_byte(5));
    let filters = [
        json!({}),
        json!({ "address": [address, Address::repeat_byte(9)] }),
        json!({ "topics": [[topic, B256::repeat_byte(8)]] }),
    ];
    let mut subscribers: Vec<_> = filters.iter().map(|it| (kept(&growing, it), cursor)).collect();
    subscribers.push((kept(&growing, &json!({ "address": Address::repeat_byte(9) })), cursor));
    growing.extend_with_log(Log::new_unchecked(address, vec![topic], vec![7; 9].into()));
    let first = growing.tip;
    for is_removed in [false, true] {
        let mut told = Vec::new();
        for (kept, seen) in &mut subscribers {
            let mut slice = WorkSlice::default();
            let service = &growing.service;
            let read = service.read_new_logs(&mut reader, kept, seen, &budget, &mut slice);
            let portion = read.await.unwrap();
            assert!(!portion.has_more, "{portion:?}");
            told.push(portion.items);
        }
        assert!(told.pop().unwrap().is_empty(), "nobody logged with that address");
        let log: Value = serde_json::from_slice(&told[0][0]).unwrap();
        assert_eq!(log["removed"], is_removed, "{log}");
        assert_eq!(
            (&log["blockHash"], &log["data"]),
            (&json!(first.1), &json!("0x070707070707070707"))
        );
        for items in &told {
            // The same memory, not only the same letters.
            assert!(items.len() == 1 && items[0].as_ptr() == told[0][0].as_ptr(), "{told:?}");
        }
        growing.tip = fork;
        let other =
            Header { number: fork.0 + 1, parent_hash: fork.1, timestamp: 1, ..Header::default() };
        if !is_removed {
            let branch = vec![verified(&other, vec![], Some(vec![]))];
            growing.writer.reorg(fork.1, branch).unwrap();
        }
    }
}

/// They were kept whatever their size, beside the budget.
#[test]
fn logs_are_shared_up_to_a_number_of_bytes_and_the_newest_are_preferred() {
    let mut growing = Growing::new();
    let (shared, query) = (SharedLogs::default(), LogQuery::default());
    // In JSON they have twice as many bytes.
    for (mebibytes, is_shared) in [(6, true), (1, true), (3, true), (9, false), (1, true)] {
        let data = vec![7; mebibytes << 20];
        growing.extend_with_log(Log::new_unchecked(Address::ZERO, vec![], data.into()));
        let view = growing.store.view();
        let block = view.unsealed_block(BlockNumber(growing.tip.0)).unwrap();
        let [first, second] = [(); 2].map(|()| shared.find(block, &query, false).remove(0));
        assert_eq!(first, second);
        assert_eq!(first.as_ptr() == second.as_ptr(), is_shared, "{mebibytes} MiB");
        assert!(shared.bytes() <= 16 << 20, "{} bytes", shared.bytes());
    }
}

/// A filter of `eth_subscribe` that the service keeps.
fn kept(growing: &Growing, filter: &Value) -> Arc<KeptFilter> {
    let body = call("eth_subscribe", &json!([filter])).to_string();
    let Ok(RequestBody::Single(Item::Call(call))) = parse(body.as_bytes()) else {
        panic!("{body}")
    };
    let filter = LogFilter::parse(call.params.unwrap().items().next().unwrap()).unwrap();
    let for_blooms = filter.query().for_blooms();
    growing.service.filters.keep(ClientId::default(), filter, for_blooms).unwrap()
}

/// 32 streams of a connection bring such filters at the same time: each was read and hashed at once,
/// and those who asked for little waited for all of them.
#[tokio::test]
async fn calls_with_many_addresses_begin_one_after_the_other() {
    let Growing { service, .. } = Growing::new();
    let addresses: Vec<_> = (0..1000).map(|it| format!("{it:#042x}")).collect();
    let filter = json!({ "fromBlock": "0x3e8", "toBlock": "0x3e8", "address": addresses });
    let prover = json!([filter.clone(), Value::Null]);
    for (method, params) in [
        ("eth_getLogs", json!([filter])),
        ("eth_newFilter", json!([filter])),
        ("quipu_proveLogs", prover),
    ] {
        let body: Arc<str> = call(method, &params).to_string().into();
        let budget = Budget::unbounded();
        let (service, answered) = (&service, Cell::new(0));
        let calls = (0..32).map(|_| {
            let (body, budget, answered) = (Arc::clone(&body), Arc::clone(&budget), &answered);
            async move {
                let limits = RequestLimits::anybodys(&budget);
                let reply = service.reply(None, body.as_bytes(), limits).await.unwrap();
                let reply = String::from_utf8(reply.into_bytes().0).unwrap();
                assert!(reply.contains("\"result\""), "{reply}");
                answered.set(answered.get() + 1);
            }
        });
        let mut calls = pin!(join_all(calls));
        let mut most = 0;
        while answered.get() < 32 {
            let before = answered.get();
            let _ = calls.as_mut().now_or_never();
            most = most.max(answered.get() - before);
            tokio::task::yield_now().await;
        }
        // One that waits for the first time, and one that has waited before.
        assert!(most <= 2, "{method}: {most} were answered in a turn");
        assert!(budget.pauses() >= 32, "{method}: {} pauses", budget.pauses());
    }
}

/// They were hashed in one piece, and with all other filters locked.
#[tokio::test]
async fn thousands_of_values_of_a_filter_are_hashed_in_slices() {
    let Growing { service, .. } = Growing::new();
    let values =
        |digits: usize| (0..1000).map(|it| format!("0x{it:0digits$x}")).collect::<Vec<_>>();
    let topics = vec![values(64); 4];
    let filter = json!({
        "fromBlock": "0x3e8", "toBlock": "0x3e8", "address": values(40), "topics": topics,
    });
    for (method, params) in
        [("eth_newFilter", json!([filter])), ("quipu_proveLogs", json!([filter, Value::Null]))]
    {
        let budget = Budget::unbounded();
        let limits = RequestLimits::anybodys(&budget);
        let body = call(method, &params).to_string();
        let reply = service.reply(None, body.as_bytes(), limits).await.unwrap();
        let reply = String::from_utf8(reply.into_bytes().0).unwrap();
        assert!(reply.contains("\"result\""), "{reply}");
        assert!(budget.pauses() >= 4, "{method}: {} pauses", budget.pauses());
    }
}

/// Thousands of sockets hear of a block at the same time, and each began at once.
#[tokio::test]
async fn a_socket_waits_for_its_turn_before_it_sends_new_blocks() {
    let Growing { service, mut writer, tip, .. } = Growing::new();
    let server = Arc::new(Server::new(Arc::new(service), HttpSettings::default()));
    let (mut client, stream) = duplex(1 << 20);
    let serving = server.serve_in_memory(stream, FirstReader::Hyper);
    let asking = async {
        client.write_all(UPGRADE.as_bytes()).await.unwrap();
        let subscribe = [json!(["newHeads"]), json!(["logs", {}])];
        send_text(&mut client, &json!(subscribe.map(|it| call("eth_subscribe", &it)))).await;
        read_until(&mut client, "]").await;
        let before = server.budget().pauses();
        let header = Header { number: tip.0 + 1, parent_hash: tip.1, ..Header::default() };
        writer.extend(vec![verified(&header, vec![], Some(vec![]))]).unwrap();
        read_until(&mut client, r#""number":"0x3e9""#).await;
        assert!(server.budget().pauses() > before, "nobody else had a turn");
        drop(client);
    };
    tokio::join!(asking, serving);
}
