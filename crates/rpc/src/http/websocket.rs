//! A WebSocket: calls in, answers and news of the chain out, until one side has enough.
//!
//! Nothing is queued for a client: while one message is being taken, the next is not made. A client
//! that does not take what it is sent is disconnected.

mod message_reader;
pub(super) mod upgrade;

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hyper::body::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};
use tracing::debug;

use super::bulk_thread::RequestOrigin;
use super::settings::STOP_GRACE;
use super::write_progress::WriteProgress;
use super::{HttpSettings, Server};
use crate::admission::{Caller, SocketCaller};
use crate::budget::ByteLease;
use crate::in_time::in_time;
use crate::reply::{Reply, ReplyStatus};
use crate::service::{FeedEnd, feed_notification};
use crate::subscription::{ChainSubscriber, Channel, NodeNews, Subscriptions};
use crate::work_slice::WorkSlice;

use message_reader::{ClientMessage, MessageLimits, MessageReader, ReadFailure};

/// Longer messages are sent in parts, each of which is a copy.
const PART_BYTES_MAX: usize = 64 * 1024;
/// Before a subscriber for whose news there was no room is told of them again.
const NEWS_PAUSE: Duration = Duration::from_millis(200);
/// For a client to take its leave.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a socket is not used any more.
#[derive(Debug, Error)]
enum SocketEnd {
    /// The client is gone, or takes nothing.
    #[error("{0}")]
    Lost(&'static str),
    /// The client has closed, with a code or without.
    #[error("the client closed")]
    Closed(Option<CloseCode>),
    /// We close, and say why.
    #[error("closed with {0}: {1}")]
    Close(CloseCode, &'static str),
}

/// The answer to one message, if there is one, and which message it was.
struct SocketAnswer {
    request: u64,
    reply: Option<Reply>,
}

struct Session<'a> {
    server: &'a Arc<Server>,
    settings: &'a HttpSettings,
    stream: TokioIo<Upgraded>,
    reader: MessageReader,
    subscriptions: Arc<Subscriptions>,
    /// What nodes send for some of them.
    node_news: mpsc::Receiver<NodeNews>,
    /// Messages that are being answered.
    answering: FuturesUnordered<BoxFuture<'static, SocketAnswer>>,
    /// How many messages came.
    requests: u64,
    /// Who asks.
    caller: SocketCaller,
    /// When the client last gave a sign of life.
    heard: Instant,
    ping: Interval,
    /// Changes when there may be new blocks.
    views: watch::Receiver<()>,
    /// Whether a subscriber may have to be told of something.
    has_news: bool,
    /// Whether there was no room for what a subscriber should be told, and when that is tried again.
    is_news_late: bool,
    news_due: Instant,
    /// Work for subscribers since there last was nothing to tell.
    news_slice: WorkSlice,
}

/// Serves a socket until it ends, or until `stopping` changes.
pub(super) async fn serve(
    server: &Arc<Server>,
    upgraded: Upgraded,
    caller: SocketCaller,
    stopping: &mut watch::Receiver<bool>,
) {
    let settings = &server.settings;
    let limits =
        MessageLimits { bytes_max: settings.body_bytes_max, timeout: settings.body_timeout };
    let mut ping = interval(settings.ping_interval);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (subscriptions, node_news) = Subscriptions::new(settings.subscriptions_max);
    let mut session = Session {
        server,
        settings,
        stream: TokioIo::new(upgraded),
        reader: MessageReader::new(Arc::clone(&server.budget), limits),
        subscriptions,
        node_news,
        answering: FuturesUnordered::new(),
        requests: 0,
        caller,
        heard: Instant::now(),
        ping,
        views: server.service.changes(),
        has_news: false,
        is_news_late: false,
        news_due: Instant::now(),
        news_slice: WorkSlice::default(),
    };
    let Err(end) = session.run(stopping).await;
    debug!(%end, "a socket ended");
    let _ = timeout(CLOSE_TIMEOUT, session.leave(end)).await;
}

impl Session<'_> {
    /// Until the socket ends.
    async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<Infallible, SocketEnd> {
        loop {
            let has_room = self.answering.len() < self.settings.socket_requests_max;
            tokio::select! {
                () = told_to_stop(stopping) => return self.finish().await,
                message = self.reader.next(&mut self.stream), if has_room => {
                    self.take(message).await?;
                }
                Some(answered) = self.answering.next() => self.answer(answered).await?,
                // The sender lives as long as the service, which we hold.
                Ok(()) = self.views.changed(), if self.subscriptions.is_any_confirmed() => {
                    self.has_news = true;
                }
                () = std::future::ready(()), if self.has_news => self.announce().await?,
                () = sleep_until(self.news_due), if self.is_news_late => self.has_news = true,
                Some(news) = self.node_news.recv() => self.pass_on(news).await?,
                _ = self.ping.tick() => self.ping().await?,
            }
        }
    }

    async fn take(&mut self, message: Result<ClientMessage, ReadFailure>) -> Result<(), SocketEnd> {
        self.heard = Instant::now();
        if matches!(message, Err(ReadFailure::NoRoom)) {
            self.server.budget.count_refusal();
        }
        match message.map_err(end_of)? {
            ClientMessage::Text(text, lease) => self.ask(text, lease)?,
            // The reply is sent before more is read: it is never more than one that waits.
            ClientMessage::Ping(payload) => self.write(Control::Pong, &payload).await?,
            ClientMessage::Pong => {}
            ClientMessage::Close(code) => return Err(SocketEnd::Closed(code)),
        }
        Ok(())
    }

    /// Admits the client again, before it is answered or sent anything: its key may have been removed.
    /// Calls beyond its rate are refused one by one.
    fn admit(&mut self) -> Result<Option<Arc<Caller>>, SocketEnd> {
        let admitted = self.caller.admit(&self.server.admission);
        admitted.map(Option::<&_>::cloned).map_err(|_| {
            SocketEnd::Close(CloseCode::Policy, "the API key is not accepted any more")
        })
    }

    fn ask(&mut self, text: Bytes, lease: ByteLease) -> Result<(), SocketEnd> {
        let (caller, client) = (self.admit()?, self.caller.client());
        let request = self.requests;
        self.requests = self.requests.saturating_add(1);
        let channel = Channel { subscriptions: Arc::clone(&self.subscriptions), request };
        let server = Arc::clone(self.server);
        self.answering.push(Box::pin(async move {
            let origin = RequestOrigin { caller, client, request_id: None };
            let reply = server.reply(origin, Some(channel), text, lease).await;
            SocketAnswer { request, reply }
        }));
        Ok(())
    }

    async fn answer(&mut self, answered: SocketAnswer) -> Result<(), SocketEnd> {
        if let Some(reply) = answered.reply {
            if reply.status() == ReplyStatus::Overloaded {
                self.subscriptions.forget(answered.request);
            }
            let (body, _lease) = reply.into_bytes();
            self.send(body, &mut WriteProgress::new(self.settings.write_limit())).await?;
        }
        // What came between the call and now is news to whoever subscribed with it.
        self.has_news |= self.subscriptions.confirm(answered.request);
        Ok(())
    }

    /// Tells subscribers of new blocks; of so many at a time that calls are answered in between. Whoever
    /// cannot be led to the chain that is would miss something: it is told by the end of the connection.
    async fn announce(&mut self) -> Result<(), SocketEnd> {
        (self.has_news, self.is_news_late) = (false, false);
        let server = Arc::clone(self.server);
        let (service, budget) = (&server.service, &server.budget);
        let mut slice = std::mem::take(&mut self.news_slice);
        // All sockets hear of a block at the same time: one after the other begins.
        slice.wait(budget).await;
        let caller = self.admit()?;
        // Frames that are sent together.
        let mut frames = Vec::new();
        for ChainSubscriber { id, feed, mut seen } in self.subscriptions.confirmed() {
            slice.go_on(budget).await;
            let reading =
                service.next_portion(caller.as_deref(), &feed, &mut seen, budget, &mut slice);
            let portion = match reading.await {
                Ok(portion) => portion,
                Err(FeedEnd::Failed) => {
                    self.send_frames(&mut frames).await?;
                    let reason = "new blocks cannot be read";
                    return Err(SocketEnd::Close(CloseCode::Error, reason));
                }
                Err(FeedEnd::Ended(reason)) => {
                    self.send_frames(&mut frames).await?;
                    return Err(SocketEnd::Close(CloseCode::Again, reason));
                }
                // Those who do not take what they are sent are given up, and then there is room again.
                Err(FeedEnd::NoRoom) => {
                    (self.is_news_late, self.news_due) = (true, Instant::now() + NEWS_PAUSE);
                    continue;
                }
            };
            self.has_news |= portion.has_more;
            // One limit for all of them: a portion is held until the last is taken.
            let mut progress = WriteProgress::new(self.settings.write_limit());
            for item in &portion.items {
                let notification = feed_notification(&id, item);
                if let Some(caller) = &caller {
                    caller.charge_answer(notification.len());
                }
                service.count_notification(notification.len());
                slice.count_written(notification.len());
                if frames.len().saturating_add(notification.len()) > PART_BYTES_MAX {
                    self.put_frames(&mut frames, &mut progress).await?;
                }
                if notification.len() > PART_BYTES_MAX {
                    self.send(notification, &mut progress).await?;
                } else {
                    put_frame(&mut frames, OpCode::Data(Data::Text), &notification, true);
                }
            }
            slice.count_request(0);
            self.subscriptions.advance(&id, seen);
        }
        self.send_frames(&mut frames).await?;
        if self.has_news {
            self.news_slice = slice;
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
                if let Some(caller) = self.admit()? {
                    caller.charge_answer(text.len());
                }
                self.server.service.count_notification(text.len());
                self.send(text, &mut WriteProgress::new(self.settings.write_limit())).await
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
            self.write(Control::Ping, &[]).await?;
        }
        Ok(())
    }

    /// Answers what was asked before the server was told to stop; some of it may still be on its way, or
    /// wait for those before it. Reading ends when nothing has come or gone for a while, or when half of
    /// the time is over: whoever asks on and on is answered then what was read, and told to leave.
    async fn finish(&mut self) -> Result<Infallible, SocketEnd> {
        let read_until = Instant::now() + self.settings.read_at_stop();
        let mut grace = pin!(sleep(STOP_GRACE));
        let mut is_over = false;
        while !is_over || !self.answering.is_empty() {
            let has_room = self.answering.len() < self.settings.socket_requests_max;
            tokio::select! {
                // In this order: a time that is over says nothing of what has come.
                biased;
                message = self.reader.next(&mut self.stream), if has_room && !is_over => {
                    self.take(message).await?;
                }
                Some(answered) = self.answering.next() => self.answer(answered).await?,
                () = &mut grace, if has_room && !is_over => {
                    is_over = true;
                    continue;
                }
            }
            grace.as_mut().reset(Instant::now() + STOP_GRACE);
            is_over |= Instant::now() >= read_until;
        }
        Err(SocketEnd::Close(CloseCode::Away, "the server stops"))
    }

    /// Sends a message. Nothing is read meanwhile: that is not the time of what the client sends.
    async fn send(&mut self, body: Vec<u8>, progress: &mut WriteProgress) -> Result<(), SocketEnd> {
        let begun = Instant::now();
        self.send_in_parts(body, progress).await?;
        self.reader.extend_time(begun.elapsed());
        Ok(())
    }

    /// Sends messages that are framed already, the last of some portions.
    async fn send_frames(&mut self, frames: &mut Vec<u8>) -> Result<(), SocketEnd> {
        self.put_frames(frames, &mut WriteProgress::new(self.settings.write_limit())).await
    }

    /// Sends messages that are framed already, and takes them.
    async fn put_frames(
        &mut self,
        frames: &mut Vec<u8>,
        progress: &mut WriteProgress,
    ) -> Result<(), SocketEnd> {
        if frames.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let sent = in_time(put(&mut self.stream, frames), || progress.deadline()).await;
        taken(sent.as_ref())?;
        progress.advance(frames.len());
        frames.clear();
        self.reader.extend_time(begun.elapsed());
        Ok(())
    }

    /// Sends a message, in parts if it is long.
    async fn send_in_parts(
        &mut self,
        body: Vec<u8>,
        progress: &mut WriteProgress,
    ) -> Result<(), SocketEnd> {
        let mut rest = body.as_slice();
        let mut code = Data::Text;
        loop {
            let (part, behind) = rest.split_at(rest.len().min(PART_BYTES_MAX));
            let frame = frame(OpCode::Data(code), part, behind.is_empty());
            let sent = in_time(put(&mut self.stream, &frame), || progress.deadline()).await;
            taken(sent.as_ref())?;
            progress.advance(part.len());
            if behind.is_empty() {
                return Ok(());
            }
            (rest, code) = (behind, Data::Continue);
            // A long answer that is being taken is no silence.
            self.heard = Instant::now();
        }
    }

    /// Sends a control frame.
    async fn write(&mut self, code: Control, payload: &[u8]) -> Result<(), SocketEnd> {
        let frame = frame(OpCode::Control(code), payload, true);
        let sent = timeout(self.settings.write_timeout, put(&mut self.stream, &frame)).await;
        taken(sent.ok().as_ref())
    }

    /// Closes. What the client still sends is read, or closing would take our last words back.
    async fn leave(self, end: SocketEnd) -> io::Result<()> {
        let (code, reason) = match end {
            SocketEnd::Lost(_) => return Ok(()),
            SocketEnd::Closed(code) => (code, ""),
            SocketEnd::Close(code, reason) => (Some(code), reason),
        };
        let Self { mut stream, reader, answering, .. } = self;
        // What had come of a message is not needed any more, nor is what was asked.
        drop((reader, answering));
        let code = code.map(|code| u16::from(code).to_be_bytes());
        let payload = [code.as_ref().map_or(&[][..], |code| code), reason.as_bytes()].concat();
        put(&mut stream, &frame(OpCode::Control(Control::Close), &payload, true)).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    }
}

/// How a socket ends that cannot be read any more.
fn end_of(failure: ReadFailure) -> SocketEnd {
    let (code, reason) = match failure {
        ReadFailure::TooLarge => (CloseCode::Size, "message too large"),
        ReadFailure::NotUtf8 => (CloseCode::Invalid, "text that is no UTF-8"),
        ReadFailure::Binary => (CloseCode::Unsupported, "send text frames"),
        ReadFailure::Malformed => (CloseCode::Protocol, "not as RFC 6455 has it"),
        ReadFailure::NoRoom => (CloseCode::Again, "too many bytes under way"),
        ReadFailure::Late => (CloseCode::Policy, "a message took too long"),
        ReadFailure::Ended => return SocketEnd::Lost("the connection broke"),
    };
    SocketEnd::Close(code, reason)
}

fn frame(opcode: OpCode, payload: &[u8], is_final: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, opcode, payload, is_final);
    out
}

/// Appends a frame of ours, which has no mask.
fn put_frame(out: &mut Vec<u8>, opcode: OpCode, payload: &[u8], is_final: bool) {
    let head = FrameHeader { is_final, opcode, ..FrameHeader::default() };
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    out.reserve(head.len(length).saturating_add(payload.len()));
    // Memory takes whatever is written to it.
    let _ = head.format(length, out);
    out.extend_from_slice(payload);
}

async fn put(stream: &mut TokioIo<Upgraded>, frame: &[u8]) -> io::Result<()> {
    stream.write_all(frame).await?;
    stream.flush().await
}

async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // If nobody is left to tell, the server is gone.
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}

/// What became of something that was sent, if that is known in time.
fn taken(sent: Option<&io::Result<()>>) -> Result<(), SocketEnd> {
    match sent {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(SocketEnd::Lost("the connection broke")),
        None => Err(SocketEnd::Lost("the client does not take what it is sent")),
    }
}
