//! JSON-RPC over one WebSocket, and the notifications that a node sends on it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use hyper::header::AUTHORIZATION;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

use super::address::UpstreamUrl;
use super::answers::{Answer, Message, NodeCall, decode_message, encode_calls, in_order};
use super::ask_limits::AskLimits;
use super::error::AskError;
use super::tls;

/// A silent connection is pinged after this long.
pub(super) const PING_AFTER: Duration = Duration::from_secs(10);
/// A pinged connection that stays silent this long has lost its other end.
pub(super) const PONG_MAX: Duration = Duration::from_secs(10);
/// Calls that wait to be written.
const QUEUE_MAX: usize = 64;
/// For a frame to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A WebSocket that notices when its other end is gone.
#[derive(Debug)]
pub(super) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    is_pinged: bool,
}

impl Socket {
    pub(super) async fn connect(url: &UpstreamUrl, limits: &AskLimits) -> Result<Self, AskError> {
        let connecting = timeout(limits.connect_timeout, Self::connect_untimed(url, limits));
        connecting.await.unwrap_or(Err(AskError::Late(limits.connect_timeout)))
    }

    async fn connect_untimed(url: &UpstreamUrl, limits: &AskLimits) -> Result<Self, AskError> {
        let UpstreamUrl { host, port, uri, is_secure, authorization, .. } = url;
        let refused = |error: &dyn std::fmt::Display| AskError::Connect(error.to_string());
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| refused(&error))?;
        // Calls are written whole: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let mut request = uri.into_client_request().map_err(|error| refused(&error))?;
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let bytes_max = Some(limits.answer_bytes_max);
        let config =
            WebSocketConfig::default().max_message_size(bytes_max).max_frame_size(bytes_max);
        let connector = if *is_secure {
            Connector::Rustls(std::sync::Arc::new(tls::client_config()?))
        } else {
            Connector::Plain
        };
        let connecting =
            client_async_tls_with_config(request, stream, Some(config), Some(connector));
        let (stream, _) = connecting.await.map_err(|error| refused(&error))?;
        Ok(Self { stream, is_pinged: false })
    }

    /// The next message; `None` when the connection has ended or its other end is gone. While an answer
    /// is awaited, which may arrive slowly, its own timeout decides. Cancel safe.
    pub(super) async fn next(&mut self, is_answer_awaited: bool) -> Option<Bytes> {
        loop {
            let silence_max = if self.is_pinged { PONG_MAX } else { PING_AFTER };
            let Ok(frame) = timeout(silence_max, self.stream.next()).await else {
                if self.is_pinged && !is_answer_awaited {
                    return None;
                }
                if !self.is_pinged {
                    self.is_pinged = true;
                    self.send(Frame::Ping(Bytes::new())).await?;
                }
                continue;
            };
            self.is_pinged = false;
            match frame?.ok()? {
                Frame::Text(text) => return Some(Bytes::from(text)),
                Frame::Binary(bytes) => return Some(bytes),
                Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_) => {}
                Frame::Close(_) => return None,
            }
        }
    }

    /// Writes a frame; `None` if that fails or takes too long.
    pub(super) async fn send(&mut self, frame: Frame) -> Option<()> {
        timeout(WRITE_TIMEOUT, self.stream.send(frame)).await.ok()?.ok()
    }
}

/// Calls in one message, and where their answers go.
#[derive(Debug)]
struct PendingCalls {
    first_id: u64,
    call_count: usize,
    text: String,
    bytes_max: usize,
    sender: oneshot::Sender<Result<Vec<(u64, Answer)>, AskError>>,
}

/// One node over a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocket {
    url: UpstreamUrl,
    limits: AskLimits,
    next_id: AtomicU64,
    /// Connections that were made.
    connections: AtomicU64,
    /// The way to the task that owns the connection.
    link: Mutex<Option<mpsc::Sender<PendingCalls>>>,
    news: watch::Sender<Option<Bytes>>,
}

impl WebSocket {
    pub(super) fn new(url: UpstreamUrl, limits: AskLimits) -> Self {
        let (next_id, connections) = (AtomicU64::new(1), AtomicU64::new(0));
        let (link, news) = (Mutex::new(None), watch::Sender::new(None));
        Self { url, limits, next_id, connections, link, news }
    }

    /// Sends all calls in one message.
    pub(super) async fn ask(
        &self,
        calls: &[NodeCall],
        bytes_max: usize,
    ) -> Result<Vec<Answer>, AskError> {
        let time = self.limits.answer_timeout;
        if let Ok(answered) = timeout(time, self.ask_untimed(calls, bytes_max)).await {
            return answered;
        }
        // What holds it up may hold up the next call too.
        *self.link.lock().await = None;
        Err(AskError::Late(time))
    }

    /// The newest notification, of any subscription.
    pub(super) fn news(&self) -> watch::Receiver<Option<Bytes>> {
        self.news.subscribe()
    }

    /// Whether there is a connection; not while one is being made.
    pub(super) fn is_connected(&self) -> bool {
        let link = self.link.try_lock();
        link.is_ok_and(|link| link.as_ref().is_some_and(|link| !link.is_closed()))
    }

    /// How many connections were made so far.
    pub(super) fn connection_count(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    async fn ask_untimed(
        &self,
        calls: &[NodeCall],
        bytes_max: usize,
    ) -> Result<Vec<Answer>, AskError> {
        let link = self.connected().await?;
        let call_count = calls.len();
        let first_id = self
            .next_id
            .fetch_add(u64::try_from(call_count).unwrap_or(u64::MAX), Ordering::Relaxed);
        let text = encode_calls(calls, first_id);
        let (sender, answered) = oneshot::channel();
        let broken = || AskError::Broken("the WebSocket was closed".to_owned());
        let pending = PendingCalls { first_id, call_count, text, bytes_max, sender };
        link.send(pending).await.map_err(|_| broken())?;
        let answers = answered.await.map_err(|_| broken())??;
        in_order(answers, first_id, call_count)
    }

    /// The connection, made anew if there is none.
    async fn connected(&self) -> Result<mpsc::Sender<PendingCalls>, AskError> {
        let mut kept = self.link.lock().await;
        if let Some(link) = kept.as_ref().filter(|link| !link.is_closed()) {
            return Ok(link.clone());
        }
        let socket = Socket::connect(&self.url, &self.limits).await?;
        let (link, pending) = mpsc::channel(QUEUE_MAX);
        self.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(carry(socket, pending, self.news.clone()));
        *kept = Some(link.clone());
        Ok(link)
    }
}

/// Writes calls and hands out answers until either side ends the connection. Those that still wait
/// then see that their sender is gone.
async fn carry(
    mut socket: Socket,
    mut pending: mpsc::Receiver<PendingCalls>,
    news: watch::Sender<Option<Bytes>>,
) {
    let mut waiting: BTreeMap<u64, PendingCalls> = BTreeMap::new();
    // The longest message of this connection: the answer to an abandoned one may still arrive.
    let mut calls_max = 0;
    loop {
        // Abandoned calls would fill the map of a node that never answers.
        waiting.retain(|_, calls| !calls.sender.is_closed());
        let is_awaited = !waiting.is_empty();
        tokio::select! {
            message = socket.next(is_awaited) => {
                let Some(message) = message else { break };
                hand_out(&message, calls_max, &mut waiting, &news);
            }
            calls = pending.recv() => {
                let Some(mut calls) = calls else { break };
                calls_max = calls_max.max(calls.call_count);
                let text = std::mem::take(&mut calls.text);
                waiting.insert(calls.first_id, calls);
                if socket.send(Frame::text(text)).await.is_none() {
                    break;
                }
            }
        }
    }
}

fn hand_out(
    bytes: &Bytes,
    calls_max: usize,
    waiting: &mut BTreeMap<u64, PendingCalls>,
    news: &watch::Sender<Option<Bytes>>,
) {
    match decode_message(bytes, calls_max) {
        Ok(Message::News(text)) => drop(news.send_replace(Some(text))),
        Ok(Message::Answers(answers)) => {
            let first_id = answers.iter().map(|(id, _)| *id).min();
            if let Some(PendingCalls { sender, bytes_max, .. }) =
                first_id.and_then(|id| waiting.remove(&id))
            {
                let is_small = bytes.len() <= bytes_max;
                let answers = is_small.then_some(answers).ok_or(AskError::TooLarge { bytes_max });
                let _ = sender.send(answers);
            }
        }
        // It has no id, so it may concern any of those that wait.
        Ok(Message::Refusal(error)) | Err(error) => {
            while let Some((_, calls)) = waiting.pop_first() {
                let _ = calls.sender.send(Err(error.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::time::{Instant, sleep};
    use tokio_tungstenite::accept_async;

    use super::*;

    /// A node that took a connection, and ours to it. From here on time passes by itself.
    async fn connected() -> (WebSocketStream<TcpStream>, WebSocket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap()).parse().unwrap();
        let limits = AskLimits { answer_timeout: Duration::from_hours(1), ..AskLimits::default() };
        let socket = WebSocket::new(url, limits);
        let accepting = async {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            accept_async(stream).await.unwrap()
        };
        let (node, link) = tokio::join!(accepting, socket.connected());
        link.unwrap();
        tokio::time::pause();
        (node, socket)
    }

    async fn ask(socket: &WebSocket, bytes_max: usize) -> Result<Vec<Answer>, AskError> {
        socket.ask(&[NodeCall::new("eth_blockNumber", "[]")], bytes_max).await
    }

    /// Seen: a node that had vanished was noticed after two minutes.
    #[tokio::test]
    async fn a_connection_whose_other_end_has_vanished_ends_after_twenty_seconds() {
        let (_node, socket) = connected().await;
        let begun = Instant::now();
        let link = socket.connected().await.unwrap();
        link.closed().await;
        let took = begun.elapsed();
        assert!((19..=21).contains(&took.as_secs()), "{took:?}");
        assert!(!socket.is_connected());
    }

    #[tokio::test]
    async fn an_answer_that_comes_slowly_does_not_end_the_connection() {
        let (mut node, socket) = connected().await;
        let slow = async {
            let question = node.next().await.unwrap().unwrap();
            let id = question.to_text().unwrap().split("\"id\":").nth(1).unwrap();
            let id = id.split(',').next().unwrap();
            let text = format!("{{\"id\":{id},\"result\":\"0x1\"}}");
            let mut frame = vec![0x81, u8::try_from(text.len()).unwrap()];
            frame.extend_from_slice(text.as_bytes());
            // Pings are not answered meanwhile: the answer is one frame.
            for byte in frame {
                sleep(Duration::from_secs(5)).await;
                node.get_mut().write_all(&[byte]).await.unwrap();
            }
        };
        let begun = Instant::now();
        let (answered, ()) = tokio::join!(ask(&socket, 1 << 20), slow);
        assert_eq!(answered.unwrap(), [Ok(Some(Bytes::from_static(b"\"0x1\"")))]);
        assert!(begun.elapsed() > Duration::from_mins(1), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn an_answer_that_is_larger_than_was_asked_for_is_not_kept() {
        let (mut node, socket) = connected().await;
        // Nothing here depends on time: the network is to have all that it needs.
        tokio::time::resume();
        let answer = async {
            node.next().await.unwrap().unwrap();
            let text = format!("{{\"id\":1,\"result\":\"{}\"}}", "0".repeat(5000));
            node.send(Frame::text(text)).await.unwrap();
        };
        let (answered, ()) = tokio::join!(ask(&socket, 4096), answer);
        assert_eq!(answered, Err(AskError::TooLarge { bytes_max: 4096 }));
    }

    #[tokio::test]
    async fn a_list_of_more_answers_than_were_ever_asked_for_is_refused() {
        let (mut node, socket) = connected().await;
        tokio::time::resume();
        let answer = async {
            node.next().await.unwrap().unwrap();
            node.send(Frame::text("[{},{}]")).await.unwrap();
            // A reader that ignored the list would take this.
            node.send(Frame::text("{\"id\":1,\"result\":null}")).await.unwrap();
        };
        let (answered, ()) = tokio::join!(ask(&socket, 4096), answer);
        assert!(matches!(answered, Err(AskError::Malformed(_))), "{answered:?}");
    }
}
