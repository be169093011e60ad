//! A subscription at a node, on a WebSocket of its own.
//!
//! Nothing is queued: messages that are not read stay with the node, which ends a subscription whose
//! client does not keep up. Dropping it closes the connection, and ends the subscription.

use std::time::Duration;

use hyper::body::Bytes;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::address::{Scheme, UpstreamUrl};
use super::answers::{Answer, Message, NodeCall, decode_message, encode_calls, hide_address};
use super::ask_limits::AskLimits;
use super::error::{AskError, FetchError};
use super::fetch::{identity_calls, identity_of};
use super::identity::Identity;
use super::websocket::Socket;

/// Bytes of a message; one log, or one transaction.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// A connection that can carry a subscription.
#[derive(Debug)]
pub struct SubscriptionLink {
    socket: Socket,
    time: Duration,
    url: UpstreamUrl,
}

/// An established subscription.
#[derive(Debug)]
pub struct Subscription {
    socket: Socket,
    /// The node's id of it, as JSON.
    id: String,
}

impl SubscriptionLink {
    /// Connects, and requests the node's identity on that connection.
    pub async fn connect(
        url: &UpstreamUrl,
        limits: AskLimits,
    ) -> Result<(Self, Identity), FetchError> {
        if url.scheme != Scheme::WebSocket {
            let name = url.name();
            return Err(AskError::Connect(format!("{name} must be reached over ws or wss")).into());
        }
        let limits = AskLimits { answer_bytes_max: MESSAGE_BYTES_MAX, ..limits };
        let socket = Socket::connect(url, &limits).await?;
        let mut link = Self { socket, time: limits.answer_timeout, url: url.clone() };
        let [chain_id, genesis] = identity_calls();
        let chain_id = link.ask(&chain_id, 1).await?;
        let genesis = link.ask(&genesis, 2).await?;
        let identity = identity_of(chain_id, genesis)?;
        Ok((link, identity))
    }

    /// Subscribes with these parameters, a JSON array.
    pub async fn subscribe(mut self, params: String) -> Result<Subscription, AskError> {
        let id = self.ask(&NodeCall::new("eth_subscribe", params), 3).await??;
        let none = || AskError::Malformed("a subscription without an id".to_owned());
        let id = id.and_then(|id| String::from_utf8(id.to_vec()).ok()).ok_or_else(none)?;
        Ok(Subscription { socket: self.socket, id })
    }

    /// Sends one call; the connection carries no other yet.
    async fn ask(&mut self, call: &NodeCall, id: u64) -> Result<Answer, AskError> {
        let asking = timeout(self.time, ask_on(&mut self.socket, call, id));
        let answered = asking.await.unwrap_or(Err(AskError::Late(self.time)));
        let answers = hide_address(answered.map(|answer| vec![answer]), &self.url)?;
        Ok(answers.into_iter().next().unwrap_or(Ok(None)))
    }
}

async fn ask_on(socket: &mut Socket, call: &NodeCall, id: u64) -> Result<Answer, AskError> {
    let ended = || AskError::Broken("the WebSocket was closed".to_owned());
    let text = encode_calls(std::slice::from_ref(call), id);
    socket.send(Frame::text(text)).await.ok_or_else(ended)?;
    loop {
        let body = socket.next(true).await.ok_or_else(ended)?;
        match decode_message(&body, 1)? {
            Message::Answers(answers) => {
                if let Some((_, answer)) = answers.into_iter().find(|it| it.0 == id) {
                    return Ok(answer);
                }
            }
            Message::Refusal(error) => return Err(error),
            // It may come before the answer that names its subscription.
            Message::News(_) => {}
        }
    }
}

impl Subscription {
    /// The node's next message, whole; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.socket.next(false).await
    }

    /// Unsubscribes at the node.
    pub async fn end(mut self) {
        let call = NodeCall::new("eth_unsubscribe", format!("[{}]", self.id));
        let text = encode_calls(std::slice::from_ref(&call), 4);
        if self.socket.send(Frame::text(text)).await.is_some() {
            self.socket.send(Frame::Close(None)).await;
        }
    }
}
