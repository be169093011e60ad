//! A node that is subscribed to over a WebSocket: it sends what a test tells it to send.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, accept};

use crate::harness::upstream::{SaidIdentity, said_by};

/// What the node calls every subscription.
pub(crate) const NODE_ID: &str = "0xabc";
/// More than any test waits for.
const EVENTS_MAX: usize = 64;
/// How often a connection looks for what it is told to send.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A node; its threads end with the test.
pub(crate) struct NodeSocket {
    pub(crate) url: String,
    events: Receiver<NodeEvent>,
}

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum NodeEvent {
    Subscribed { params: Value, feed: Feed },
    Unsubscribed(Value),
    Left,
}

/// Tells a connection what to send.
#[derive(Debug)]
pub(crate) struct Feed(SyncSender<Command>);

#[derive(Debug)]
enum Command {
    Push(Value),
    Break,
}

impl Feed {
    /// Sends a notification of the subscription.
    pub(crate) fn push(&self, result: Value) {
        self.0.send(Command::Push(result)).unwrap();
    }

    /// The node goes away.
    pub(crate) fn break_off(&self) {
        self.0.send(Command::Break).unwrap();
    }
}

impl NodeSocket {
    pub(crate) fn start(identity: SaidIdentity) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/key", listener.local_addr().unwrap());
        let (told, events) = sync_channel(EVENTS_MAX);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (identity, told) = (identity.clone(), told.clone());
                thread::spawn(move || serve(stream.unwrap(), &identity, &told));
            }
        });
        Self { url, events }
    }

    /// Waits for what happens next.
    fn event(&self) -> NodeEvent {
        self.events.recv_timeout(Duration::from_secs(20)).expect("nothing happened")
    }

    /// Waits for a subscription.
    pub(crate) fn subscribed(&self) -> (Value, Feed) {
        match self.event() {
            NodeEvent::Subscribed { params, feed } => (params, feed),
            other @ (NodeEvent::Unsubscribed(_) | NodeEvent::Left) => panic!("{other:?}"),
        }
    }

    /// Waits for so many ends: what was ended by name, and how many connections are gone.
    pub(crate) fn next_ends(&self, count: usize) -> (Vec<Value>, usize) {
        let (mut named, mut gone) = (Vec::new(), 0);
        for _ in 0..count {
            match self.event() {
                NodeEvent::Unsubscribed(params) => named.push(params),
                NodeEvent::Left => gone += 1,
                other @ NodeEvent::Subscribed { .. } => panic!("{other:?}"),
            }
        }
        (named, gone)
    }
}

fn serve(stream: TcpStream, identity: &SaidIdentity, told: &SyncSender<NodeEvent>) {
    let mut socket = accept(stream).unwrap();
    socket.get_ref().set_read_timeout(Some(LOOK_EVERY)).unwrap();
    let (feed, commands) = sync_channel(EVENTS_MAX);
    loop {
        match commands.try_recv() {
            Ok(Command::Push(result)) => {
                let params = json!({ "subscription": NODE_ID, "result": result });
                let news =
                    json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params });
                let _ = socket.send(Message::text(news.to_string()));
            }
            Ok(Command::Break) => return,
            Err(_) => {}
        }
        match socket.read() {
            Ok(Message::Text(text)) => {
                let request: Value = serde_json::from_str(&text).unwrap();
                answer(&mut socket, identity, told, &feed, &request);
            }
            Err(Error::Io(cause))
                if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(Message::Close(_)) | Err(_) => {
                let _ = told.send(NodeEvent::Left);
                return;
            }
            Ok(_) => {}
        }
    }
}

fn answer(
    socket: &mut WebSocket<TcpStream>,
    identity: &SaidIdentity,
    told: &SyncSender<NodeEvent>,
    feed: &SyncSender<Command>,
    request: &Value,
) {
    let params = request["params"].clone();
    let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
    if let Some(result) = said_by(identity, request) {
        answer["result"] = result;
    } else if request["method"] == "eth_unsubscribe" {
        answer["result"] = true.into();
        let _ = told.send(NodeEvent::Unsubscribed(params));
    } else if params[0] == "newPendingTransactions" {
        answer["result"] = NODE_ID.into();
        let _ = told.send(NodeEvent::Subscribed { params, feed: Feed(feed.clone()) });
    } else {
        answer["error"] = json!({ "code": -32602, "message": "not on this node" });
    }
    let _ = socket.send(Message::text(answer.to_string()));
}
