//! What subscribers and filters are told while a store grows.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::B256;
use chain::trust::Anchors;
use chain::{Block, Body, Candidate, ChainSpec, Start, Verified, Verifier};
use serde_json::{Value, json};
use store::disk::faulty::FaultyDisk;
use store::head::HeadLimits;
use store::read::Inline;
use store::{Limits, Reader, Store, Writer};

use super::*;
use crate::budget::{ByteLease, LeasedFor};
use crate::heads::{HEADS_MAX, HeadCursor};

/// A store whose head grows, and its service.
struct Growing {
    store: Arc<Store>,
    service: Service,
    writer: Writer,
    tip: (u64, B256),
}

impl Growing {
    /// With a head of one block.
    fn new() -> Self {
        let spec = ChainSpec::bare("live", Some(7), None);
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
        let mut writer = Writer::open(Arc::clone(&store), spec.clone()).unwrap();
        writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
        let service = Service::new(Arc::clone(&store), spec, ServiceSettings::default());
        let mut growing = Self { store, service, writer, tip: (999, B256::repeat_byte(0xba)) };
        growing.extend();
        growing
    }

    fn extend(&mut self) {
        let block = block(self.tip.0 + 1, self.tip.1);
        self.tip = (self.tip.0 + 1, block.hash);
        self.writer.extend(vec![block]).unwrap();
    }

    /// The answer to a body within a budget.
    async fn reply(&self, body: &Value, budget: &Arc<Budget>) -> Value {
        let limits = RequestLimits { until: None, budget };
        let reply = self.service.reply(None, body.to_string().as_bytes(), limits).await;
        serde_json::from_slice(&reply.unwrap().into_bytes().0).unwrap()
    }
}

fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn block(number: u64, parent_hash: B256) -> Verified<Block> {
    let header = Header { number, parent_hash, ..Header::default() };
    let ommers = alloy_primitives::Bytes::from_static(&[0xc0]);
    let candidate = Candidate {
        header: alloy_rlp::encode(&header).into(),
        body: Body { transactions: vec![], ommers, withdrawals: None },
        receipts: Some(vec![]),
        total_difficulty: None,
    };
    let spec = ChainSpec::bare("live", Some(7), None);
    Verifier::new(&spec, &Anchors::none(), Start::At(number)).verify(candidate).unwrap()
}

/// A head was read and written anew for each of them.
#[tokio::test]
async fn a_head_is_written_once_for_all_subscribers() {
    let mut growing = Growing::new();
    let mut reader = Reader::new().unwrap();
    let seen = HeadCursor::at_tip(&mut reader, &growing.store.view()).await.unwrap();
    let mut subscribers = vec![seen; 3];
    // More events than heads are kept for.
    for number in 1001..1001 + 2 * HEADS_MAX {
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
    assert_eq!(u64::try_from(kept).unwrap(), HEADS_MAX);
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
