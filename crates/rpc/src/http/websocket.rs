//! A WebSocket: calls in, answers and new heads out, until one side has enough.
//!
//! Knows: frames, close codes, how many calls may be under way and how long a client may take.
//! Never knows: how a connection became a socket, or what is asked on it.
//!
//! Nothing is queued for a client: while one message is being taken, the next is not made. A client
//! that does not take what it is sent is disconnected.

mod message_end;
mod metered;
pub(super) mod upgrade;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};
use tracing::debug;

use super::settings::STOP_GRACE;
use super::write_progress::WriteProgress;
use super::{HttpSettings, Server};
use crate::in_time::in_time;
use crate::reply::Reply;
use crate::service::head_notification;
use crate::subscription::{Channel, NodeNews, Subscriptions};

use metered::{MessageLimits, MeteredStream};

/// What a connection reads at a time. Every one has such a buffer: most requests are small. One that
/// grew with a longer message is given back.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// Longer messages are sent in parts: a connection keeps the memory of the longest part.
const PART_BYTES_MAX: usize = 64 * 1024;
/// For a client to take its leave.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a socket is not used any more.
#[derive(Debug, Error)]
enum SocketEnd {
    /// The client is gone, or takes nothing.
    #[error("{0}")]
    Lost(&'static str),
    /// The client has closed.
    #[error("the client closed")]
    Closed,
    /// We close, and say why.
    #[error("closed with {0}: {1}")]
    Close(CloseCode, &'static str),
}

/// The answer to one message, if there is one, and which message it was.
struct SocketAnswer {
    request: u64,
    reply: Option<Reply>,
}

type ClientStream = WebSocketStream<MeteredStream<TokioIo<Upgraded>>>;

struct Session<'a> {
    server: &'a Arc<Server>,
    settings: &'a HttpSettings,
    stream: ClientStream,
    /// It has grown with a long message.
    is_stream_grown: bool,
    subscriptions: Arc<Subscriptions>,
    /// What nodes send for some of them.
    node_news: mpsc::Receiver<NodeNews>,
    /// Messages that are being answered.
    answering: FuturesUnordered<BoxFuture<'static, SocketAnswer>>,
    /// How many messages came.
    requests: u64,
    /// When the client last gave a sign of life.
    heard: Instant,
    ping: Interval,
    /// Changes when there may be new heads.
    views: watch::Receiver<()>,
    /// Whether a subscriber may have to be told of something.
    has_news: bool,
}

/// Serves a socket until it ends, or until `stopping` changes.
pub(super) async fn serve(
    server: &Arc<Server>,
    upgraded: Upgraded,
    stopping: &mut watch::Receiver<bool>,
) {
    let settings = &server.settings;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(settings.body_bytes_max))
        .max_frame_size(Some(settings.body_bytes_max));
    let budget = Arc::clone(&server.budget);
    let limits =
        MessageLimits { bytes_max: settings.body_bytes_max, timeout: settings.body_timeout };
    let io = MeteredStream::new(TokioIo::new(upgraded), budget, limits);
    let mut ping = interval(settings.ping_interval);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (subscriptions, node_news) = Subscriptions::new(settings.subscriptions_max);
    let mut session = Session {
        server,
        settings,
        stream: WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await,
        is_stream_grown: false,
        subscriptions,
        node_news,
        answering: FuturesUnordered::new(),
        requests: 0,
        heard: Instant::now(),
        ping,
        views: server.service.changes(),
        has_news: false,
    };
    let end = loop {
        match session.run(stopping).await {
            Ok(()) => session.stream = renewed(session.stream).await,
            Err(end) => break end,
        }
        session.is_stream_grown = false;
    };
    debug!(%end, "a socket ended");
    let _ = timeout(CLOSE_TIMEOUT, session.leave(end)).await;
}

/// The same stream without the memory that it read into: tungstenite keeps that of the longest frame.
///
/// To be called when a message has just been taken. Then nothing is lost: what came behind the message
/// is still with the [`MeteredStream`], no message has begun, and all that was sent has been flushed,
/// since everything that sends waits for that.
async fn renewed(stream: ClientStream) -> ClientStream {
    let config = *stream.get_config();
    WebSocketStream::from_raw_socket(stream.into_inner(), Role::Server, Some(config)).await
}

impl Session<'_> {
    /// Until the socket ends, or until its stream is to be renewed.
    async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), SocketEnd> {
        while !self.is_stream_grown {
            let has_room = self.answering.len() < self.settings.socket_requests_max;
            tokio::select! {
                () = told_to_stop(stopping) => {
                    let Err(end) = self.finish().await;
                    return Err(end);
                }
                message = self.stream.next(), if has_room => self.take(message).await?,
                Some(answered) = self.answering.next() => self.answer(answered).await?,
                // The sender lives as long as the service, which we hold.
                Ok(()) = self.views.changed(), if self.subscriptions.is_any_told() => {
                    self.has_news = true;
                }
                () = std::future::ready(()), if self.has_news => self.announce().await?,
                Some(news) = self.node_news.recv() => self.pass_on(news).await?,
                _ = self.ping.tick() => self.ping().await?,
            }
        }
        Ok(())
    }

    async fn take(
        &mut self,
        message: Option<Result<Message, SocketError>>,
    ) -> Result<(), SocketEnd> {
        self.heard = Instant::now();
        match message {
            Some(Ok(Message::Text(text))) => self.ask(text),
            Some(Ok(Message::Binary(_))) => {
                return Err(SocketEnd::Close(CloseCode::Unsupported, "send text frames"));
            }
            // The reply is sent before more is read: it is never more than one that waits.
            Some(Ok(Message::Ping(payload))) => {
                self.stream.get_mut().forget_control(payload.len());
                self.flush().await?;
            }
            Some(Ok(Message::Pong(payload))) => {
                self.stream.get_mut().forget_control(payload.len());
            }
            Some(Ok(Message::Frame(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Err(SocketEnd::Closed),
            Some(Err(SocketError::Capacity(_))) => {
                return Err(SocketEnd::Close(CloseCode::Size, "message too large"));
            }
            Some(Err(SocketError::Utf8(_))) => {
                return Err(SocketEnd::Close(CloseCode::Invalid, "text that is no UTF-8"));
            }
            Some(Err(SocketError::Protocol(_))) => {
                return Err(SocketEnd::Close(CloseCode::Protocol, "not as RFC 6455 has it"));
            }
            Some(Err(SocketError::Io(cause))) if cause.kind() == ErrorKind::OutOfMemory => {
                return Err(SocketEnd::Close(CloseCode::Again, "too many bytes under way"));
            }
            Some(Err(SocketError::Io(cause))) if cause.kind() == ErrorKind::TimedOut => {
                return Err(SocketEnd::Close(CloseCode::Policy, "a message took too long"));
            }
            Some(Err(_)) => return Err(SocketEnd::Lost("the connection broke")),
        }
        Ok(())
    }

    fn ask(&mut self, text: Utf8Bytes) {
        // No frame of it was longer.
        self.is_stream_grown = text.len() > READ_BUFFER_BYTES;
        let request = self.requests;
        self.requests = self.requests.saturating_add(1);
        let channel = Channel { subscriptions: Arc::clone(&self.subscriptions), request };
        let server = Arc::clone(self.server);
        let lease = self.stream.get_mut().take_lease();
        self.answering.push(Box::pin(async move {
            let reply = server.reply(Some(channel), text.into(), lease).await;
            SocketAnswer { request, reply }
        }));
    }

    async fn answer(&mut self, answered: SocketAnswer) -> Result<(), SocketEnd> {
        if let Some(reply) = answered.reply {
            let (body, _lease) = reply.into_bytes();
            self.send(body).await?;
        }
        // What came between the call and now is news to whoever subscribed with it.
        self.has_news |= self.subscriptions.tell(answered.request);
        Ok(())
    }

    /// Tells subscribers of new heads; of so many at a time that calls are answered in between.
    async fn announce(&mut self) -> Result<(), SocketEnd> {
        self.has_news = false;
        for (id, mut seen) in self.subscriptions.told() {
            let told = self.server.service.new_heads(&mut seen).await;
            let failed = |_| SocketEnd::Close(CloseCode::Error, "new heads cannot be read");
            let (heads, has_more) = told.map_err(failed)?;
            self.has_news |= has_more;
            for head in heads {
                self.send(head_notification(&id, &head)).await?;
            }
            self.subscriptions.advance(&id, seen);
        }
        Ok(())
    }

    /// Sends what a node sent. Whoever subscribed to what a node ended would wait for ever: it is told
    /// by the end of the connection.
    async fn pass_on(&mut self, news: NodeNews) -> Result<(), SocketEnd> {
        match news {
            NodeNews::Message { id, text } if self.subscriptions.contains(&id) => {
                if self.server.service.conflict().is_some() {
                    return Err(SocketEnd::Close(
                        CloseCode::Again,
                        "the upstream node contradicts us",
                    ));
                }
                self.send(text).await
            }
            NodeNews::Ended { id } if self.subscriptions.contains(&id) => {
                Err(SocketEnd::Close(CloseCode::Again, "the upstream node ended a subscription"))
            }
            NodeNews::Message { .. } | NodeNews::Ended { .. } => Ok(()),
        }
    }

    /// Asks a client that is silent for a sign of life, and gives up one that gives none.
    async fn ping(&mut self) -> Result<(), SocketEnd> {
        let silent = self.heard.elapsed();
        if silent >= self.settings.idle_timeout {
            return Err(SocketEnd::Close(CloseCode::Policy, "silent for too long"));
        }
        if silent >= self.settings.ping_interval / 2 {
            self.write(Message::Ping(Bytes::new())).await?;
        }
        Ok(())
    }

    /// Answers what was asked before the server was told to stop; some of it may still be on its way.
    async fn finish(&mut self) -> Result<Infallible, SocketEnd> {
        let mut grace = pin!(sleep(STOP_GRACE));
        let mut is_over = false;
        while !is_over || !self.answering.is_empty() {
            let has_room = self.answering.len() < self.settings.socket_requests_max;
            tokio::select! {
                () = &mut grace, if !is_over => is_over = true,
                message = self.stream.next(), if has_room && !is_over => self.take(message).await?,
                Some(answered) = self.answering.next() => self.answer(answered).await?,
            }
        }
        Err(SocketEnd::Close(CloseCode::Away, "the server stops"))
    }

    /// Sends a message, in parts if it is long.
    async fn send(&mut self, body: Vec<u8>) -> Result<(), SocketEnd> {
        let mut rest = Bytes::from(body);
        let mut code = Data::Text;
        let mut progress = WriteProgress::new(self.settings.write_limit());
        loop {
            let part = rest.split_to(rest.len().min(PART_BYTES_MAX));
            let (count, is_last) = (part.len(), rest.is_empty());
            let frame = Frame::message(part, OpCode::Data(code), is_last);
            let sending = self.stream.send(Message::Frame(frame));
            let sent = in_time(sending, || progress.deadline()).await;
            taken(sent.as_ref())?;
            progress.advance(count);
            if is_last {
                return Ok(());
            }
            code = Data::Continue;
            // A long answer that is being taken is no silence.
            self.heard = Instant::now();
        }
    }

    async fn write(&mut self, message: Message) -> Result<(), SocketEnd> {
        taken(timeout(self.settings.write_timeout, self.stream.send(message)).await.ok().as_ref())
    }

    async fn flush(&mut self) -> Result<(), SocketEnd> {
        taken(timeout(self.settings.write_timeout, self.stream.flush()).await.ok().as_ref())
    }

    /// Closes. What the client still sends is read, or closing would take our last words back.
    async fn leave(mut self, end: SocketEnd) -> Result<(), SocketError> {
        match end {
            SocketEnd::Lost(_) => return Ok(()),
            SocketEnd::Closed => self.stream.flush().await?,
            SocketEnd::Close(code, reason) => {
                self.stream.close(Some(CloseFrame { code, reason: reason.into() })).await?;
            }
        }
        let mut io = self.stream.into_inner();
        // What had come of a message is gone with what read it.
        drop(io.take_lease());
        io.shutdown().await?;
        let mut rest = [0; 1024];
        while io.read(&mut rest).await? > 0 {}
        Ok(())
    }
}

async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // If nobody is left to tell, the server is gone.
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}

/// What became of something that was sent, if that is known in time.
fn taken(sent: Option<&Result<(), SocketError>>) -> Result<(), SocketEnd> {
    match sent {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(SocketEnd::Lost("the connection broke")),
        None => Err(SocketEnd::Lost("the client does not take what it is sent")),
    }
}
