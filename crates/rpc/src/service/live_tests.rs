//! What subscribers and filters are told while a store grows.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use alloy_consensus::proofs::ordered_trie_root_encoded;
use alloy_consensus::{
    Eip658Value, EthereumTxEnvelope, Header, Receipt as Fields, SignableTransaction as _,
    TxEip4844, TxLegacy, TxType,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Log, TxKind};
use chain::trust::Anchors;
use chain::{
    Block, BlockNumber, Body, Candidate, ChainSpec, Receipt, Start, Verified, Verifier, logs_bloom,
};
use serde_json::{Value, json};
use store::disk::{DataFile, Disk as _};
use store::head::HeadLimits;
use store::read::{Blocking, Inline, Reading, block_on};
use store::{CommitFacts, Limits, Reader, Store, Writer};
use testing::disk::faulty::{DiskFailure, FaultyDisk};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::budget::{ByteLease, LeasedFor};
use crate::heads::{ChainCursor, PORTION_BLOCKS_MAX};
use crate::http::{FirstReader, HttpSettings, Server};
use crate::kept_filter::ChainFeed;
use crate::pass_through::{AnswerRoom, Passing};
use crate::work_slice::WorkSlice;

pub(super) const UPGRADE: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A store whose head grows, and its service.
pub(super) struct Growing {
    disk: FaultyDisk,
    pub(super) store: Arc<Store>,
    pub(super) service: Service,
    pub(super) writer: Writer,
    pub(super) tip: (u64, B256),
}

impl Growing {
    /// With a head of one block.
    pub(super) fn new() -> Self {
        Self::with_settings(ServiceSettings::default())
    }

    fn with_settings(settings: ServiceSettings) -> Self {
        let mut growing = Self::without_blocks(settings);
        growing.extend();
        growing
    }

    fn without_blocks(settings: ServiceSettings) -> Self {
        Self::on(FaultyDisk::new(1), Arc::new(Inline), settings)
    }

    fn on(disk: FaultyDisk, blocking: Arc<dyn Blocking>, settings: ServiceSettings) -> Self {
        let spec = ChainSpec::bare("live", Some(7), None);
        let files = Arc::new(disk.clone());
        let store = Arc::new(Store::open(files, blocking, Limits::default()).unwrap());
        let mut writer = Writer::open(Arc::clone(&store), spec.clone()).unwrap();
        writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        let service = Service::new(Arc::clone(&store), spec, settings);
        let tip = (999, B256::repeat_byte(0xba));
        Self { disk, store, service, writer, tip }
    }

    fn extend(&mut self) {
        self.extend_with(Some(vec![]));
    }

    fn extend_with(&mut self, receipts: Option<Vec<Receipt>>) {
        let block = block(self.tip.0 + 1, self.tip.1, receipts);
        self.tip = (self.tip.0 + 1, block.hash);
        self.writer.extend(vec![block]).unwrap();
    }

    /// A block with one transaction that logs this.
    pub(super) fn extend_with_log(&mut self, log: Log) {
        let tx =
            TxLegacy { gas_limit: 21_000, to: TxKind::Call(log.address), ..TxLegacy::default() };
        let signature = chain::sign(B256::repeat_byte(7), tx.signature_hash()).unwrap();
        let tx: EthereumTxEnvelope<TxEip4844> = tx.into_signed(signature).into();
        let transactions = vec![alloy_primitives::Bytes::from(tx.encoded_2718())];
        let logs = vec![log];
        let logs_bloom = logs_bloom(&logs);
        let status = Eip658Value::Eip658(true);
        let fields = Fields { status, cumulative_gas_used: 21_000, logs };
        let receipt = Receipt { tx_type: TxType::Legacy, fields };
        let mut encoded = Vec::new();
        receipt.encode_2718(&logs_bloom, &mut encoded);
        let header = Header {
            number: self.tip.0 + 1,
            parent_hash: self.tip.1,
            transactions_root: ordered_trie_root_encoded(&transactions),
            receipts_root: ordered_trie_root_encoded(&[encoded]),
            logs_bloom,
            gas_used: 21_000,
            ..Header::default()
        };
        let block = verified(&header, transactions, Some(vec![receipt]));
        self.tip = (self.tip.0 + 1, block.hash);
        self.writer.extend(vec![block]).unwrap();
    }

    /// The answer to a body within a budget.
    pub(super) async fn reply(&self, body: &Value, budget: &Arc<Budget>) -> Value {
        self.reply_until(body, budget, None).await
    }

    async fn reply_until(
        &self,
        body: &Value,
        budget: &Arc<Budget>,
        until: Option<Instant>,
    ) -> Value {
        let limits = RequestLimits { until, ..RequestLimits::anybodys(budget) };
        let reply = self.service.reply(None, body.to_string().as_bytes(), limits).await;
        serde_json::from_slice(&reply.unwrap().into_bytes().0).unwrap()
    }
}

pub(super) fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Sends a text frame with a length of two bytes, masked with zeros.
pub(super) async fn send_text(client: &mut DuplexStream, body: &Value) {
    let body = body.to_string();
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    let frame = [&[0x81, 0xfe], &length[..], &[0; 4], body.as_bytes()].concat();
    client.write_all(&frame).await.unwrap();
}

/// What comes up to this text.
pub(super) async fn read_until(client: &mut DuplexStream, text: &str) -> String {
    let mut taken = Vec::new();
    loop {
        let told = String::from_utf8_lossy(&taken);
        if told.contains(text) {
            return told.into_owned();
        }
        assert!(client.read_buf(&mut taken).await.unwrap() > 0, "{taken:?}");
    }
}

fn block(number: u64, parent_hash: B256, receipts: Option<Vec<Receipt>>) -> Verified<Block> {
    verified(&Header { number, parent_hash, ..Header::default() }, vec![], receipts)
}

pub(super) fn verified(
    header: &Header,
    transactions: Vec<alloy_primitives::Bytes>,
    receipts: Option<Vec<Receipt>>,
) -> Verified<Block> {
    let empty_list = alloy_primitives::Bytes::from_static(&[0xc0]);
    let withdrawals = header.withdrawals_root.map(|_| empty_list.clone());
    let ommers = empty_list;
    let candidate = Candidate {
        header: alloy_rlp::encode(header).into(),
        body: Body { transactions, ommers, withdrawals },
        receipts,
        total_difficulty: None,
    };
    let spec = ChainSpec::bare("live", Some(7), None);
    Verifier::new(&spec, &Anchors::none(), Start::At(header.number)).verify(candidate).unwrap()
}

/// A head was read and written anew for each of them.
#[tokio::test]
async fn a_head_is_written_once_for_all_subscribers() {
    let mut growing = Growing::new();
    let mut reader = Reader::new().unwrap();
    let seen = ChainCursor::at_tip(&mut reader, &growing.store.view()).await.unwrap();
    let mut subscribers = vec![seen; 3];
    // More events than heads are kept for.
    for number in 1001..1001 + 2 * PORTION_BLOCKS_MAX {
        growing.extend();
        let mut told = Vec::new();
        for seen in &mut subscribers {
            let portion = growing.service.read_heads(&mut reader, seen).await.unwrap();
            assert!(portion.items.len() == 1 && !portion.has_more, "{number}: {portion:?}");
            told.extend(portion.items);
        }
        let text = String::from_utf8(told[0].to_vec()).unwrap();
        assert!(text.contains(&format!(r#""number":"{number:#x}""#)), "{text}");
        // The same memory, not only the same letters.
        assert!(told.iter().all(|head| head.as_ptr() == told[0].as_ptr()), "{told:?}");
    }
    let kept = growing.service.encoded_heads.list().len();
    assert_eq!(u64::try_from(kept).unwrap(), PORTION_BLOCKS_MAX);
}

/// The poll had advanced the filter, and the client would never have heard of these blocks.
#[tokio::test]
async fn changes_whose_answer_has_no_room_are_told_by_the_next_poll() {
    let mut growing = Growing::new();
    let enough = Budget::unbounded();
    let made = growing.reply(&call("eth_newBlockFilter", &json!([])), &enough).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    for body in [poll.clone(), json!([poll])] {
        // More than the bytes that are not counted.
        (0..100).for_each(|_| growing.extend());
        let full = Budget::new(1);
        let _taken = ByteLease::of(&full, 10_000, LeasedFor::Answer).unwrap();
        let refused = growing.reply(&body, &full).await;
        let refused = refused.get(0).unwrap_or(&refused);
        assert_eq!(refused["error"]["code"], -32000, "{refused}");
        let told = growing.reply(&poll, &enough).await;
        assert_eq!(told["result"].as_array().map(Vec::len), Some(100), "{told}");
    }
}

/// A poll that took too long began at the same place again, for ever.
#[tokio::test]
async fn a_poll_that_is_late_tells_what_it_has_and_the_next_one_goes_on() {
    let mut growing = Growing::new();
    let budget = Budget::unbounded();
    let made = growing.reply(&call("eth_newBlockFilter", &json!([])), &budget).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    let mut hashes = Vec::new();
    for _ in 0..3 {
        growing.extend();
        hashes.push(growing.tip.1);
    }
    for hash in hashes {
        let told = growing.reply_until(&poll, &budget, Some(Instant::now())).await;
        assert_eq!(told["result"], json!([hash]), "{told}");
    }
}

/// Logs below a block without receipts were never told, however often the filter was polled.
#[tokio::test]
async fn blocks_below_one_without_receipts_are_told_before_that_is_refused() {
    let mut growing = Growing::new();
    let budget = Budget::unbounded();
    let made = growing.reply(&call("eth_newFilter", &json!([{}])), &budget).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    growing.extend();
    growing.extend_with(None);
    let told = growing.reply(&poll, &budget).await;
    assert_eq!(told["result"], json!([]), "{told}");
    let refused = growing.reply(&poll, &budget).await;
    assert_eq!(refused["error"]["code"], 4444, "{refused}");
    assert!(refused.to_string().contains("1002"), "{refused}");
}

/// Heads that were read before the failure counted as told.
#[tokio::test]
async fn heads_that_were_read_before_a_failure_are_told_later() {
    let mut failures = 0_u64;
    loop {
        let mut growing = Growing::new();
        let mut reader = Reader::new().unwrap();
        let before = ChainCursor::at_tip(&mut reader, &growing.store.view()).await.unwrap();
        (0..5).for_each(|_| growing.extend());
        let tip = BlockNumber(growing.tip.0);
        growing.writer.seal_all(tip, CommitFacts::default()).unwrap();
        growing.disk.fail_after(failures, DiskFailure::Io);
        let mut seen = before;
        match growing.service.read_heads(&mut reader, &mut seen).await {
            Ok(portion) => break assert_eq!(portion.items.len(), 5, "{portion:?}"),
            Err(_) => assert_eq!(seen, before, "after {failures} reads"),
        }
        failures += 1;
    }
    // One of them came behind the first head.
    assert!(failures > 3, "{failures}");
}

/// The range grew with every poll, and so every further one was refused.
#[tokio::test]
async fn a_poll_answers_what_fits_and_the_next_goes_on_there() {
    let log_limits = LogLimits { count_max: 40, ..LogLimits::default() };
    let settings = ServiceSettings { log_limits, ..ServiceSettings::default() };
    let mut growing = Growing::with_settings(settings);
    let enough = Budget::unbounded();
    let made = growing.reply(&call("eth_newBlockFilter", &json!([])), &enough).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    let mut expected = Vec::new();
    for _ in 0..100 {
        growing.extend();
        expected.push(json!(growing.tip.1));
    }
    let mut told = Vec::new();
    for count in [40, 40, 20, 0] {
        let changes = growing.reply(&poll, &enough).await;
        let changes = changes["result"].as_array().unwrap_or_else(|| panic!("{changes}")).clone();
        assert_eq!(changes.len(), count, "{changes:?}");
        told.extend(changes);
    }
    assert_eq!(told, expected);
}

/// A node that never answers.
#[derive(Debug)]
struct SilentNode;

impl PassThrough for SilentNode {
    fn ask<'a>(&'a self, _: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
        Box::pin(std::future::pending())
    }
}

/// A batch that ends before its answer is whole had led its filters on for nobody.
#[tokio::test(start_paused = true)]
async fn changes_whose_answer_nobody_waits_for_are_told_by_the_next_poll() {
    let mut growing = Growing::new();
    let enough = Budget::unbounded();
    let methods = vec!["eth_call".parse().unwrap()];
    growing.service = growing.service.with_pass_through(methods, Arc::new(SilentNode));
    let made = growing.reply(&call("eth_newBlockFilter", &json!([])), &enough).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    growing.extend();
    let batch = json!([poll, call("eth_call", &json!([]))]);
    let waited = tokio::time::timeout(Duration::from_secs(1), growing.reply(&batch, &enough));
    assert!(waited.await.is_err());
    let told = growing.reply(&poll, &enough).await;
    assert_eq!(told["result"], json!([growing.tip.1]));
}

/// Filters that nobody polls took memory until the next poll or the next filter that had room.
#[tokio::test(start_paused = true)]
async fn filters_of_clients_that_left_make_room_for_others() {
    let topics = |mark: u64| (0..1000).map(|it| format!("{:#066x}", it + mark)).collect::<Vec<_>>();
    let filter = json!([{ "topics": [topics(0), topics(1000), topics(2000), topics(3000)] }]);
    let (asked, enough) = (call("eth_newFilter", &filter), Budget::unbounded());
    // Those that are too old go, and those that are not polled give way before.
    for (idle_timeout, seconds) in [(Duration::from_secs(10), 10), (Duration::from_mins(5), 30)] {
        let filter_limits = FilterLimits { count_max: usize::MAX, idle_timeout };
        let settings = ServiceSettings { filter_limits, ..ServiceSettings::default() };
        let growing = Growing::with_settings(settings);
        let refused = loop {
            let made = growing.reply(&asked, &enough).await;
            if made["result"].is_null() {
                break made;
            }
        };
        assert_eq!(refused["error"]["code"], -32005, "{refused}");
        tokio::time::advance(Duration::from_secs(seconds - 1)).await;
        assert_eq!(growing.reply(&asked, &enough).await["error"], refused["error"]);
        tokio::time::advance(Duration::from_secs(1)).await;
        let made = growing.reply(&asked, &enough).await;
        assert!(made["result"].is_string(), "{made}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_kept_for_as_long_as_it_is_polled() {
    let growing = Growing::new();
    let enough = Budget::unbounded();
    let made = growing.reply(&call("eth_newFilter", &json!([{}])), &enough).await;
    let poll = call("eth_getFilterChanges", &json!([made["result"]]));
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(299)).await;
        assert_eq!(growing.reply(&poll, &enough).await["result"], json!([]));
    }
    tokio::time::advance(Duration::from_secs(301)).await;
    assert_eq!(growing.reply(&poll, &enough).await["error"]["message"], "filter not found");
}

/// Each head had the whole time for itself, and so a subscriber held a portion of 64 for half an hour.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_takes_a_head_now_and_then_is_disconnected() {
    let Growing { service, mut writer, mut tip, .. } = Growing::new();
    let settings = HttpSettings::default();
    let write_timeout = settings.write_timeout;
    let service = Arc::new(service);
    let server = Arc::new(Server::new(Arc::clone(&service), settings));
    let (mut client, stream) = duplex(1024);
    let serving = server.serve_in_memory(stream, FirstReader::Hyper);
    let taking = async {
        client.write_all(UPGRADE.as_bytes()).await.unwrap();
        send_text(&mut client, &call("eth_subscribe", &json!(["newHeads"]))).await;
        read_until(&mut client, r#""result":"0x"#).await;
        let blocks = std::iter::repeat_with(|| {
            let block = block(tip.0 + 1, tip.1, Some(vec![]));
            tip = (tip.0 + 1, block.hash);
            block
        });
        writer.extend(blocks.take(64).collect()).unwrap();
        let begun = Instant::now();
        let mut part = [0; 1024];
        while matches!(client.read(&mut part).await, Ok(1..)) {
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        begun.elapsed()
    };
    let (taken_for, ()) = tokio::join!(taking, serving);
    assert!(taken_for <= write_timeout * 2, "{taken_for:?}");
    // What subscribers are sent is counted with the answers.
    let sent = service.traffic().answer_bytes;
    assert!(sent > 1000, "{sent}");
}

/// Whoever subscribed or made a filter over an empty store heard of the tip alone.
#[tokio::test]
async fn a_filter_of_an_empty_store_tells_of_every_block() {
    let mut growing = Growing::without_blocks(ServiceSettings::default());
    let enough = Budget::unbounded();
    let made = growing.reply(&call("eth_newBlockFilter", &json!([])), &enough).await;
    (0..70).for_each(|_| growing.extend());
    let told =
        growing.reply(&call("eth_getFilterChanges", &json!([made["result"]])), &enough).await;
    assert_eq!(told["result"].as_array().map(Vec::len), Some(70), "{told}");
}

/// Answers with logs were counted when they were whole: a few hundred of them took a gigabyte.
#[tokio::test]
async fn an_answer_with_logs_is_counted_while_it_is_made() {
    let mut growing = Growing::new();
    for _ in 0..200 {
        growing.extend_with_log(Log::new_unchecked(Address::ZERO, vec![], vec![7; 3000].into()));
    }
    let filter = json!([{ "fromBlock": "0x3e8" }]);
    let asked = call("eth_getLogs", &filter).to_string();
    let budget = Budget::new(usize::MAX);
    let limits = RequestLimits::anybodys(&budget);
    let mut answering = std::pin::pin!(growing.service.reply(None, asked.as_bytes(), limits));
    let mut counted = 0;
    let reply = loop {
        tokio::select! {
            biased;
            reply = &mut answering => break reply.unwrap(),
            () = tokio::task::yield_now() => counted = counted.max(budget.bytes()),
        }
    };
    let bytes = reply.len();
    assert!(bytes > 1_000_000 && counted > bytes / 2, "{counted} of {bytes} were counted");
    // Where there is no room for it, it is refused before it is whole.
    let small = Budget::new(64 * 1024);
    let others = ByteLease::of(&small, 65 * 1024, LeasedFor::Answer).unwrap();
    let refused = growing.reply(&call("eth_getLogs", &filter), &small).await;
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(small.bytes_peak() < 128 * 1024, "{}", small.bytes_peak());
    drop(others);
    let found = growing.reply(&call("eth_getLogs", &filter), &small).await;
    assert_eq!(found["result"].as_array().unwrap().len(), 200);
}

/// The subscription stayed: it took one of the places, and was told under an id that nobody knew.
#[tokio::test]
async fn a_subscription_whose_answer_has_no_room_does_not_begin() {
    let Growing { service, .. } = Growing::new();
    let settings = HttpSettings {
        bytes_under_way_max: 64 * 1024,
        subscriptions_max: 1,
        ..HttpSettings::default()
    };
    let server = Arc::new(Server::new(Arc::new(service), settings));
    let others = ByteLease::of(server.budget(), 65 * 1024, LeasedFor::Answer).unwrap();
    let (mut client, stream) = duplex(1024 * 1024);
    let serving = server.serve_in_memory(stream, FirstReader::Hyper);
    let subscribe = call("eth_subscribe", &json!(["newHeads"]));
    let asking = async {
        client.write_all(UPGRADE.as_bytes()).await.unwrap();
        let latest = call("eth_getBlockByNumber", &json!(["latest", false]));
        let batch = [vec![subscribe.clone()], vec![latest; 20]].concat();
        send_text(&mut client, &json!(batch)).await;
        let told = read_until(&mut client, "]").await;
        assert!(told.contains("-32000") && !told.contains("result"), "{told}");
        drop(others);
        send_text(&mut client, &subscribe).await;
        let told = read_until(&mut client, r#""id":1"#).await;
        assert!(told.contains(r#""result":"0x"#), "{told}");
        drop(client);
    };
    tokio::join!(asking, serving);
}

/// Lets somebody else read while the first slow read is waited for.
#[derive(Default)]
struct Overtaken {
    other: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Overtaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Overtaken")
    }
}

impl Blocking for Overtaken {
    fn read(&self, file: Arc<dyn DataFile>, range: Range<u64>) -> Reading<'_> {
        const INLINE: &Inline = &Inline;
        let other = self.other.lock().unwrap().take();
        if let Some(other) = other {
            other();
        }
        INLINE.read(file, range)
    }
}

/// Whoever was overtaken by another reader of the damaged file was disconnected, and could not know that
/// the file was opened anew.
#[tokio::test]
async fn a_subscriber_goes_on_where_another_reader_saw_a_damaged_file_first() {
    // Chance says which reads are slow.
    for seed in 0..50 {
        if is_told_after_another_reader(seed).await {
            return;
        }
    }
    panic!("nobody was overtaken");
}

/// Tells whether another reader came first.
async fn is_told_after_another_reader(chance: u64) -> bool {
    let overtaken = Arc::new(Overtaken::default());
    let (blocking, settings) = (Arc::clone(&overtaken), ServiceSettings::default());
    let mut growing = Growing::on(FaultyDisk::new(chance), blocking, settings);
    growing.extend();
    let mut reader = Reader::new().unwrap();
    let mut seen = ChainCursor::at_tip(&mut reader, &growing.store.view()).await.unwrap();
    (0..5).for_each(|_| growing.extend());
    let tip = BlockNumber(growing.tip.0);
    growing.writer.seal_all(tip, CommitFacts::default()).unwrap();
    growing.store.pass_over_missing().unwrap();
    // It is open when it is damaged.
    let view = growing.store.view();
    view.read_header(&mut reader, tip).await.unwrap().unwrap();
    let name = view.file_of(tip);
    let bytes = growing.disk.read(&name, 1 << 20).unwrap();
    let damaged: Vec<u8> = (0..).zip(&bytes).map(|(at, byte)| byte ^ u8::from(at < 99)).collect();
    growing.disk.write(&name, &damaged).unwrap();
    let store = Arc::clone(&growing.store);
    *overtaken.other.lock().unwrap() = Some(Box::new(move || {
        let mut reader = Reader::new().unwrap();
        block_on(store.view().read_header(&mut reader, tip)).unwrap_err();
        assert!(store.pass_over_faulty(), "the file is opened anew");
    }));
    growing.disk.set_may_block(true);
    let (feed, budget) = (ChainFeed::Blocks, Budget::unbounded());
    let mut slice = WorkSlice::default();
    let portion = growing.service.next_portion(None, &feed, &mut seen, &budget, &mut slice).await;
    let portion = portion.unwrap();
    assert!(portion.has_more && portion.items.is_empty(), "{portion:?}");
    growing.disk.write(&name, &bytes).unwrap();
    let is_overtaken = overtaken.other.lock().unwrap().take().is_none();
    let portion = growing.service.next_portion(None, &feed, &mut seen, &budget, &mut slice).await;
    assert_eq!(portion.unwrap().items.len(), 5);
    is_overtaken
}
