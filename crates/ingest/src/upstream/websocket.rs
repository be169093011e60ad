//! Questions over one WebSocket, and the news that a node sends on it.
//!
//! Knows: one connection, made when it is first needed and again when it has ended; who waits for
//! which answer; one subscription.
//! Never knows: what is asked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use hyper::header::AUTHORIZATION;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

use super::address::UpstreamUrl;
use super::answers::{Answer, Call, Message, decode_message, encode_calls, in_order};
use super::ask_limits::AskLimits;
use super::error::AskError;
use super::tls;

/// Questions that wait to be written.
const QUEUE_MAX: usize = 64;
/// For a frame to be written.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a silent node is asked for a sign of life.
pub(super) const PING_EVERY: Duration = Duration::from_secs(30);
/// Pings without any frame after which a node counts as gone.
pub(super) const PINGS_MAX: u32 = 3;

pub(super) type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;
type Waiting = oneshot::Sender<Result<Vec<(u64, Answer)>, AskError>>;

/// One node over a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocket {
    url: UpstreamUrl,
    limits: AskLimits,
    next_id: AtomicU64,
    /// Connections that were made.
    connections: AtomicU64,
    link: Mutex<Option<Link>>,
    news: watch::Sender<Option<Bytes>>,
}

/// The way to the task that has the connection.
#[derive(Clone, Debug)]
struct Link {
    questions: mpsc::Sender<Question>,
}

#[derive(Debug)]
struct Question {
    first_id: u64,
    text: String,
    waiting: Waiting,
}

impl WebSocket {
    pub(super) fn new(url: UpstreamUrl, limits: AskLimits) -> Self {
        let (next_id, connections) = (AtomicU64::new(1), AtomicU64::new(0));
        let (link, news) = (Mutex::new(None), watch::Sender::new(None));
        Self { url, limits, next_id, connections, link, news }
    }

    /// Asks all calls in one message.
    pub(super) async fn ask(&self, calls: &[Call]) -> Result<Vec<Answer>, AskError> {
        let time = self.limits.answer_timeout;
        if let Ok(answered) = timeout(time, self.ask_untimed(calls)).await {
            return answered;
        }
        // Whatever holds it up may hold up the next question too.
        *self.link.lock().await = None;
        Err(AskError::Late(time))
    }

    /// The newest news, whoever subscribed to it.
    pub(super) fn news(&self) -> watch::Receiver<Option<Bytes>> {
        self.news.subscribe()
    }

    /// Whether there is a connection; not while one is being made.
    pub(super) fn is_connected(&self) -> bool {
        let link = self.link.try_lock();
        link.is_ok_and(|link| link.as_ref().is_some_and(|link| !link.questions.is_closed()))
    }

    /// The number of the newest connection.
    pub(super) fn connection(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    async fn ask_untimed(&self, calls: &[Call]) -> Result<Vec<Answer>, AskError> {
        let count = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        let first_id = self.next_id.fetch_add(count, Ordering::Relaxed);
        let text = encode_calls(calls, first_id);
        let (waiting, answered) = oneshot::channel();
        let broken = || AskError::Broken("the connection has ended".to_owned());
        let link = self.connected().await?;
        let question = Question { first_id, text, waiting };
        link.questions.send(question).await.map_err(|_| broken())?;
        let answers = answered.await.map_err(|_| broken())??;
        in_order(answers, first_id, calls.len())
    }

    /// The connection, made anew if there is none.
    async fn connected(&self) -> Result<Link, AskError> {
        let mut kept = self.link.lock().await;
        if let Some(link) = kept.as_ref().filter(|link| !link.questions.is_closed()) {
            return Ok(link.clone());
        }
        let stream = connect(&self.url, &self.limits).await?;
        let (questions, asked) = mpsc::channel(QUEUE_MAX);
        self.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(carry(stream, asked, self.news.clone()));
        let link = Link { questions };
        *kept = Some(link.clone());
        Ok(link)
    }
}

/// A connection to a node, made in time.
pub(super) async fn connect(url: &UpstreamUrl, limits: &AskLimits) -> Result<Stream, AskError> {
    let connecting = timeout(limits.connect_timeout, connect_untimed(url, limits));
    connecting.await.unwrap_or(Err(AskError::Late(limits.connect_timeout)))
}

async fn connect_untimed(url: &UpstreamUrl, limits: &AskLimits) -> Result<Stream, AskError> {
    let UpstreamUrl { host, port, uri, is_secure, authorization, .. } = url;
    let refused = |error: &dyn std::fmt::Display| AskError::Connect(error.to_string());
    let stream = TcpStream::connect((host.as_str(), *port)).await;
    let stream = stream.map_err(|error| refused(&error))?;
    // Questions are written whole: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let mut request = uri.into_client_request().map_err(|error| refused(&error))?;
    if let Some(authorization) = authorization {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    let bytes_max = Some(limits.answer_bytes_max);
    let config = WebSocketConfig::default().max_message_size(bytes_max).max_frame_size(bytes_max);
    let connector = if *is_secure {
        Connector::Rustls(std::sync::Arc::new(tls::client_config()?))
    } else {
        Connector::Plain
    };
    let connecting = client_async_tls_with_config(request, stream, Some(config), Some(connector));
    let (stream, _) = connecting.await.map_err(|error| refused(&error))?;
    Ok(stream)
}

/// Writes questions and hands out answers until either side ends the connection. Whoever still waits
/// then hears of it, because its sender is gone.
async fn carry(
    stream: Stream,
    mut asked: mpsc::Receiver<Question>,
    news: watch::Sender<Option<Bytes>>,
) {
    let (mut write, mut read) = stream.split();
    let mut waiting: BTreeMap<u64, Waiting> = BTreeMap::new();
    let begin = Instant::now().checked_add(PING_EVERY).unwrap_or_else(Instant::now);
    let mut ping = interval_at(begin, PING_EVERY);
    let mut pings: u32 = 0;
    loop {
        tokio::select! {
            question = asked.recv() => {
                let Some(Question { first_id, text, waiting: sender }) = question else { break };
                // Those that gave up would fill the map of a node that never answers.
                waiting.retain(|_, sender| !sender.is_closed());
                waiting.insert(first_id, sender);
                let written = timeout(WRITE_TIMEOUT, write.send(Frame::text(text))).await;
                if !matches!(written, Ok(Ok(()))) {
                    break;
                }
            }
            // A connection whose other end has vanished says nothing by itself.
            _ = ping.tick() => {
                pings = pings.saturating_add(1);
                let sending = timeout(WRITE_TIMEOUT, write.send(Frame::Ping(Bytes::new())));
                if pings > PINGS_MAX || !matches!(sending.await, Ok(Ok(()))) {
                    break;
                }
            }
            frame = read.next() => {
                pings = 0;
                let bytes = match frame {
                    Some(Ok(Frame::Text(text))) => Bytes::from(text),
                    Some(Ok(Frame::Binary(bytes))) => bytes,
                    Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_))) => continue,
                    Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                };
                hand_out(&bytes, &mut waiting, &news);
            }
        }
    }
}

fn hand_out(
    bytes: &Bytes,
    waiting: &mut BTreeMap<u64, Waiting>,
    news: &watch::Sender<Option<Bytes>>,
) {
    match decode_message(bytes) {
        Ok(Message::News(text)) => drop(news.send_replace(Some(text))),
        Ok(Message::Answers(answers)) => {
            let first_id = answers.iter().map(|(id, _)| *id).min();
            if let Some(sender) = first_id.and_then(|id| waiting.remove(&id)) {
                let _ = sender.send(Ok(answers));
            }
        }
        // It has no id: if only one waits, it is meant.
        Ok(Message::Refusal(error)) | Err(error) => {
            while let Some((_, sender)) = waiting.pop_first() {
                let _ = sender.send(Err(error.clone()));
            }
        }
    }
}
