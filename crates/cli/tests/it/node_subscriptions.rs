//! Subscriptions that a node serves in our place: whose they are, and how they end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use rpc::http::HttpSettings;
use rpc::{
    AnswerRoom, NextMessage, NodeSubscription, PassThrough, Passing, ServiceSettings, Subscribing,
};
use serde_json::{Value, json};

use crate::harness::hosted::{Hosted, service};
use crate::harness::node_socket::{NODE_ID, NodeSocket};
use crate::harness::served::Served;
use crate::harness::socket::Socket;
use crate::harness::stores::{self, data_folder};
use crate::harness::upstream::{SaidIdentity, Upstream};

/// A server with a node behind it, and that node's two addresses.
fn passing(methods: &str, identity: SaidIdentity) -> (Served, Upstream, NodeSocket) {
    let (calls, socket) = (Upstream::start(), NodeSocket::start(identity));
    let to = format!("{},{}", calls.url, socket.url);
    let served = stores::serve("gap", &["--pass-through-to", &to, "--pass-through", methods]);
    (served, calls, socket)
}

fn subscribe_to_pending(client: &mut Socket) -> String {
    let answer = client.call("eth_subscribe", &json!(["newPendingTransactions", true]));
    answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn what_a_node_sends_goes_to_the_client_who_subscribed_under_an_id_of_ours() {
    let (served, _calls, node) = passing("eth_subscribe", SaidIdentity::default());
    let (mut one, mut other) = (Socket::at(served.address()), Socket::at(served.address()));
    let one_id = subscribe_to_pending(&mut one);
    let (params, one_feed) = node.subscribed();
    assert_eq!(params, json!(["newPendingTransactions", true]));
    let other_id = subscribe_to_pending(&mut other);
    let (_, other_feed) = node.subscribed();
    assert_ne!(one_id, other_id);
    // The node calls both the same.
    for round in 0..10 {
        one_feed.push(json!({ "data": round }));
        other_feed.push(json!({ "topics": [round] }));
        assert_eq!(one.head(&one_id), json!({ "data": round }));
        assert_eq!(other.head(&other_id), json!({ "topics": [round] }));
    }
    // New heads are ours all the same, and the ids of others are not ours to end.
    assert_ne!(one.subscribe(), one_id);
    let error = other.call("eth_unsubscribe", &json!([one_id]))["error"].clone();
    assert_eq!(error["message"], "subscription not found");
    // What the node does not have, it says. It is asked for new logs too: without a follower none come
    // here.
    for params in [json!(["syncing"]), json!(["logs", { "address": [] }])] {
        let error = one.call("eth_subscribe", &params)["error"].clone();
        assert_eq!(error, json!({ "code": -32602, "message": "not on this node" }), "{params}");
    }
    // Ended by the client, it ends at the node; so it does when the client goes.
    assert_eq!(one.call("eth_unsubscribe", &json!([one_id]))["result"], true);
    // The connections of what was refused go too.
    assert_eq!(node.next_ends(4), (vec![json!([NODE_ID])], 3));
    other_feed.push(json!(7));
    assert_eq!(other.head(&other_id), json!(7));
    drop(other);
    assert_eq!(node.next_ends(2), (vec![json!([NODE_ID])], 1));
}

#[test]
fn a_client_of_a_subscription_that_its_node_ends_is_told_by_the_end_of_its_connection() {
    let (served, _calls, node) = passing("eth_*", SaidIdentity::default());
    let mut client = Socket::at(served.address());
    let id = subscribe_to_pending(&mut client);
    let (_, feed) = node.subscribed();
    feed.push(json!(1));
    assert_eq!(client.head(&id), json!(1));
    feed.break_off();
    assert_eq!(client.closed(), (1013, "the upstream node ended a subscription".to_owned()));
}

#[test]
fn subscriptions_go_only_to_a_node_of_our_chain_and_only_if_the_operator_says_so() {
    let foreign = SaidIdentity { chain_id: 5, genesis: Value::Null };
    let (served, _calls, _node) = passing("eth_subscribe", foreign);
    let mut client = Socket::at(served.address());
    let error =
        client.call("eth_subscribe", &json!(["newPendingTransactions", true]))["error"].clone();
    let message = "not passed to the upstream node: it has chain id 5, expected 20260101";
    assert_eq!(error, json!({ "code": -32000, "message": message }));
    let (served, _calls, _node) = passing("eth_call", SaidIdentity::default());
    let mut client = Socket::at(served.address());
    let error =
        client.call("eth_subscribe", &json!(["newPendingTransactions", true]))["error"].clone();
    let message = "no \"newPendingTransactions\" subscription in eth namespace";
    assert_eq!(error, json!({ "code": -32601, "message": message }));
}

/// A node that has a message of this size whenever it is asked.
#[derive(Debug)]
struct Flood {
    sent: Arc<AtomicUsize>,
    ended: SyncSender<()>,
}

const FLOOD_BYTES: usize = 100_000;

impl PassThrough for Flood {
    fn ask<'a>(&'a self, _: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
        Box::pin(std::future::pending())
    }

    fn subscribe(&self, _: String) -> Subscribing<'_> {
        let flood: Box<dyn NodeSubscription> =
            Box::new(Flood { sent: Arc::clone(&self.sent), ended: self.ended.clone() });
        Box::pin(std::future::ready(Ok(flood)))
    }
}

impl NodeSubscription for Flood {
    fn next(&mut self) -> NextMessage<'_> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let text = format!(r#"{{"params":{{"result":"{}"}}}}"#, "0".repeat(FLOOD_BYTES));
        Box::pin(std::future::ready(Some(text.into_bytes())))
    }

    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.ended.send(()).unwrap() })
    }
}

#[test]
fn a_client_that_does_not_take_what_a_node_sends_is_disconnected_and_nothing_is_queued_for_it() {
    let (ended, end) = sync_channel(1);
    let sent = Arc::new(AtomicUsize::new(0));
    let node = Flood { sent: Arc::clone(&sent), ended };
    let methods = vec!["eth_subscribe".parse().unwrap()];
    let service = service(&data_folder("gap"), ServiceSettings::default());
    let service = service.with_pass_through(methods, Arc::new(node));
    let settings = HttpSettings {
        write_timeout: Duration::from_millis(200),
        subscriptions_max: 1,
        ..HttpSettings::default()
    };
    let hosted = Hosted::start(service, settings);
    let mut client = Socket::open(&hosted);
    subscribe_to_pending(&mut client);
    end.recv_timeout(Duration::from_secs(20)).expect("the subscription was not ended");
    // What the system holds for a connection, a message on its way and one that waits for it.
    let bytes = sent.load(Ordering::Relaxed) * FLOOD_BYTES;
    assert!(bytes < 32 << 20, "{bytes} bytes were taken from the node");
}

#[test]
fn subscriptions_at_a_node_count_like_others() {
    let (ended, _end) = sync_channel(8);
    let node = Flood { sent: Arc::default(), ended };
    let service = service(&data_folder("gap"), ServiceSettings::default());
    let methods = vec!["eth_subscribe".parse().unwrap()];
    let service = service.with_pass_through(methods, Arc::new(node));
    let settings = HttpSettings { subscriptions_max: 2, ..HttpSettings::default() };
    let hosted = Hosted::start(service, settings);
    let mut client = Socket::open(&hosted);
    let (_, id) = (client.subscribe(), subscribe_to_pending(&mut client));
    let error =
        client.call("eth_subscribe", &json!(["newPendingTransactions", true]))["error"].clone();
    assert_eq!(error["message"], "too many subscriptions: 2 on this connection");
    assert_eq!(client.call("eth_unsubscribe", &json!([id]))["result"], true);
}
