//! A subscription at a node, on a WebSocket of its own.
//!
//! Knows: one connection, who is at its other end, and one subscription on it.
//! Never knows: what is subscribed to, or for whom.
//!
//! Nothing is queued: what nobody takes stays with the node, which ends a subscription that is not
//! read. Dropped, the connection goes, and the subscription with it.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::address::{Scheme, UpstreamUrl};
use super::answers::{Answer, Message, NodeCall, decode_message, encode_calls};
use super::ask_limits::AskLimits;
use super::connections::identity_calls;
use super::error::{AskError, FetchError};
use super::fetch::identity_of;
use super::identity::Identity;
use super::keep_alive::{KeepAlive, Silence};
use super::websocket::{SocketStream, WRITE_TIMEOUT, connect};

/// Bytes of a message; one log, or one transaction.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// A connection on which something can be subscribed to.
#[derive(Debug)]
pub struct SubscriptionLink {
    stream: SocketStream,
    keep_alive: KeepAlive,
    time: Duration,
    url: UpstreamUrl,
}

/// A subscription that has begun.
#[derive(Debug)]
pub struct Subscription {
    stream: SocketStream,
    keep_alive: KeepAlive,
    /// What the node calls it, as JSON.
    id: String,
}

impl SubscriptionLink {
    /// Connects, and asks which chain is followed there.
    pub async fn connect(
        url: &UpstreamUrl,
        limits: AskLimits,
    ) -> Result<(Self, Identity), FetchError> {
        if url.scheme != Scheme::WebSocket {
            let name = url.name();
            return Err(AskError::Connect(format!("{name} is to be asked over ws or wss")).into());
        }
        let limits = AskLimits { answer_bytes_max: MESSAGE_BYTES_MAX, ..limits };
        let (stream, keep_alive) = connect(url, &limits).await?;
        let time = limits.answer_timeout;
        let mut link = Self { stream, keep_alive, time, url: url.clone() };
        let [chain_id, genesis] = identity_calls();
        let chain_id = link.ask(&chain_id, 1).await?;
        let genesis = link.ask(&genesis, 2).await?;
        let identity = identity_of(chain_id, genesis)?;
        Ok((link, identity))
    }

    /// Subscribes with these parameters, a list as JSON.
    pub async fn subscribe(mut self, params: String) -> Result<Subscription, AskError> {
        let id = self.ask(&NodeCall::new("eth_subscribe", params), 3).await??;
        let none = || AskError::Malformed("a subscription without an id".to_owned());
        let id = id.and_then(|id| String::from_utf8(id.to_vec()).ok()).ok_or_else(none)?;
        Ok(Subscription { stream: self.stream, keep_alive: self.keep_alive, id })
    }

    /// Asks one question; nobody else uses the connection yet.
    async fn ask(&mut self, call: &NodeCall, id: u64) -> Result<Answer, AskError> {
        let text = encode_calls(std::slice::from_ref(call), id);
        let time = self.time;
        let asking = async {
            let sent = self.stream.send(Frame::text(text)).await;
            sent.map_err(|error| AskError::Broken(error.to_string()))?;
            loop {
                let body = next_message(&mut self.stream).await;
                let ended = || AskError::Broken("the connection has ended".to_owned());
                match decode_message(&body.ok_or_else(ended)?, 1)? {
                    Message::Answers(answers) => {
                        if let Some((_, answer)) = answers.into_iter().find(|it| it.0 == id) {
                            return Ok(answer);
                        }
                    }
                    Message::Refusal(error) => return Err(error),
                    // It may come before the answer that says what it is about.
                    Message::News(_) => {}
                }
            }
        };
        let answered = timeout(time, asking).await.unwrap_or(Err(AskError::Late(time)));
        let url = &self.url;
        answered
            .map(|answer| answer.map_err(|error| error.hidden_by(url)))
            .map_err(|error| error.hidden_by(url))
    }
}

impl Subscription {
    /// The next message of the node, whole; `None` when either side has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                frame = self.stream.next() => match frame?.ok()? {
                    Frame::Text(text) => return Some(Bytes::from(text)),
                    Frame::Binary(bytes) => return Some(bytes),
                    Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_) => {}
                    Frame::Close(_) => return None,
                },
                silence = self.keep_alive.next() => {
                    if silence == Silence::Gone {
                        return None;
                    }
                    let sending = self.stream.send(Frame::Ping(Bytes::new()));
                    timeout(WRITE_TIMEOUT, sending).await.ok()?.ok()?;
                }
            }
        }
    }

    /// Ends it at the node too.
    pub async fn end(mut self) {
        let call = NodeCall::new("eth_unsubscribe", format!("[{}]", self.id));
        let text = encode_calls(std::slice::from_ref(&call), 4);
        let ending = async {
            self.stream.send(Frame::text(text)).await?;
            self.stream.close(None).await
        };
        let _ = timeout(WRITE_TIMEOUT, ending).await;
    }
}

async fn next_message(stream: &mut SocketStream) -> Option<Bytes> {
    loop {
        match stream.next().await?.ok()? {
            Frame::Text(text) => return Some(Bytes::from(text)),
            Frame::Binary(bytes) => return Some(bytes),
            Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_) => {}
            Frame::Close(_) => return None,
        }
    }
}
