//! Connections: taken, counted, served, and let finish when the server stops.
//!
//! Knows: sockets, how many there may be and of whom, which thread serves them, and how they end.
//! Never knows: what is asked on them.

mod answer_body;
mod connection_limiter;
mod idle_timer;
mod in_memory;
mod timed_stream;
mod workers;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::Server;
use super::byte_stream::ByteStream;
use super::fast_path::{self, FastPathOutcome, HEAD_BYTES_MAX};
use super::hyper_path::HyperConnection;
use super::response::RETRY_AFTER_SECONDS;
use super::settings::STOP_GRACE;
use super::websocket;
use crate::in_time::in_time;
use crate::refusal::Refusal;
use crate::reply::refusal_body;
use crate::work_slice::TimeSlice;

use answer_body::AnswerBody;
use connection_limiter::{ConnectionLimit, ConnectionLimiter, ConnectionPermit};
use idle_timer::{IdleLimits, IdleTimer};
use timed_stream::TimedStream;
use workers::{WorkerAssignment, Workers};

pub use in_memory::FirstReader;

/// Between two tries to take a connection when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// For a client that is told to come again.
const TURN_AWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Clients that are told so at a time: each has a descriptor beside those of `connections_max`. More
/// are closed without a word.
const TURNED_AWAY_MAX: usize = 16;

/// Bytes of a head of HTTP/2 at the most, where heads are compressed.
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;
/// What a client may send of one body over HTTP/2 before it is read.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same of all bodies of a connection: few bodies at a time are sent at full speed.
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// What hyper takes of an answer beyond what its client has asked for.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// Streams of a connection that were reset and not yet forgotten; more end the connection.
const RESETS_MAX: usize = 20;

/// Why the server cannot listen.
#[derive(Debug, Error)]
#[error("{address}: cannot listen: {cause}")]
pub struct ServeError {
    /// Where.
    pub address: SocketAddr,
    /// The system's word.
    pub cause: std::io::Error,
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 takes a free one.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let refused = |cause| ServeError { address, cause };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves connections until `stop` is done, then lets those finish what they were asked.
    pub async fn serve(
        self,
        server: Arc<Server>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let settings = &server.settings;
        let limiter =
            ConnectionLimiter::new(settings.connections_max, settings.connections_per_client_max);
        let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let workers = Workers::start(settings.threads.unwrap_or_else(cores))
            .map_err(|cause| ServeError { address: self.address, cause })?;
        // Set once: a server listens once.
        let _ = server.bulk_thread.set(workers.bulk_thread());
        let intake = ConnectionIntake {
            server: &server,
            limiter,
            workers,
            stopping: watch::Sender::new(false),
            turning_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
        };
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => intake.take(accepted).await,
            }
        }
        intake.stopping.send_replace(true);
        let until = Instant::now().checked_add(server.settings.stop_timeout);
        // Whoever has connected by now is answered.
        let mut grace = std::pin::pin!(tokio::time::sleep(STOP_GRACE));
        // Those who wait come first, though the time is over when they are seen; not for ever.
        for _ in 0..server.settings.connections_max {
            tokio::select! {
                biased;
                accepted = self.listener.accept() => intake.take(accepted).await,
                () = &mut grace => break,
            }
        }
        drop(self.listener);
        // Every connection holds a receiver until its end.
        if in_time(intake.stopping.closed(), || until).await.is_none() {
            warn!("some requests were not finished in time");
        }
        Ok(())
    }
}

/// Where connections go.
struct ConnectionIntake<'a> {
    server: &'a Arc<Server>,
    limiter: Arc<ConnectionLimiter>,
    workers: Workers,
    stopping: watch::Sender<bool>,
    /// Places for those who are told that there is none.
    turning_away: Arc<Semaphore>,
}

impl ConnectionIntake<'_> {
    /// Gives a connection to the thread that serves it, or turns it away.
    async fn take(&self, accepted: std::io::Result<(TcpStream, SocketAddr)>) {
        // A stream belongs to the thread that serves it: here it is only taken.
        let taken = accepted.and_then(|(stream, client)| Ok((stream.into_std()?, client.ip())));
        let (stream, client) = match taken {
            Ok(taken) => taken,
            Err(cause) => {
                warn!(%cause, "cannot take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return;
            }
        };
        // Answers are written whole: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        match self.limiter.enter(client) {
            Ok(place) => {
                let server = Arc::clone(self.server);
                let taken = AcceptedConnection { server, client, _place: place };
                let seat = self.workers.seat();
                seat.thread().spawn(taken.serve(stream, seat, self.stopping.subscribe()));
            }
            Err(full) => {
                let place = Arc::clone(&self.turning_away).try_acquire_owned();
                let Ok(place) = place else { return };
                self.workers.seat().thread().spawn(async move {
                    turn_away(stream, client, full).await;
                    drop(place);
                });
            }
        }
    }
}

/// A connection that has its place.
struct AcceptedConnection {
    server: Arc<Server>,
    client: IpAddr,
    _place: ConnectionPermit,
}

impl AcceptedConnection {
    /// Serves a connection to its end: what most clients ask directly, all else by hyper, and
    /// perhaps as a WebSocket at last.
    async fn serve(
        self,
        stream: std::net::TcpStream,
        _seat: WorkerAssignment,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Ok(stream) = TcpStream::from_std(stream) else { return };
        match fast_path::serve(&self.server, stream, self.client, &mut stopping).await {
            FastPathOutcome::Ended => {}
            FastPathOutcome::Other(stream, unread) => {
                // All that hyper and WebSockets keep: no connection that never needs it has room for it.
                Box::pin(self.serve_other(stream, unread, &mut stopping)).await;
            }
        }
    }

    /// Serves what the fast path does not, with what it has read of it.
    async fn serve_other<S: ByteStream>(
        &self,
        stream: S,
        unread: Bytes,
        stopping: &mut watch::Receiver<bool>,
    ) {
        let idle_timer = IdleTimer::new(IdleLimits {
            head: self.server.settings.header_timeout,
            idle: self.server.settings.idle_timeout,
            write: self.server.settings.write_limit(),
        });
        let slice = TimeSlice::new(Arc::clone(&self.server.budget));
        let stream = TimedStream::new(stream, unread, Arc::clone(&idle_timer), slice);
        self.serve_any(stream, idle_timer, stopping).await;
    }

    /// HTTP/1.1 or HTTP/2, as the client begins.
    async fn serve_any<S: ByteStream>(
        &self,
        stream: TimedStream<S>,
        idle_timer: Arc<IdleTimer>,
        stopping: &mut watch::Receiver<bool>,
    ) {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The head has a time of its own, told from the time between requests: see `idle_timer`.
        // Nothing is held back for the next request: half of it may be all that ever comes.
        let mut http1 = builder.http1();
        http1.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.server.settings.streams_max)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BYTES_MAX)
            .max_header_list_size(HEADER_LIST_BYTES_MAX)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(RESETS_MAX);
        let connection = Arc::new(HyperConnection::new(self.client));
        let is_ending = Arc::new(AtomicBool::new(false));
        let service = service_fn(|request: Request<Incoming>| {
            // Of HTTP/2 the whole connection is told.
            let is_last =
                request.version() <= Version::HTTP_11 && is_ending.load(Ordering::Relaxed);
            let (server, connection) = (Arc::clone(&self.server), Arc::clone(&connection));
            let (asked, idle_timer) = (idle_timer.begin(), Arc::clone(&idle_timer));
            // Boxed: over HTTP/2 it is moved from hand to hand until it is a task, and is large.
            Box::pin(async move {
                let mut answer = server.handle(request, &connection).await;
                if is_last {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                let answer = answer.map(|body| AnswerBody::new(body, &idle_timer));
                drop(asked);
                Ok::<_, Infallible>(answer)
            })
        });
        let http = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut http = Box::pin(http);
        let mut is_told = false;
        let mut grace = std::pin::pin!(tokio::time::sleep(STOP_GRACE));
        let mut is_closing = false;
        loop {
            tokio::select! {
                biased;
                ended = http.as_mut() => {
                    if let Err(cause) = ended {
                        debug!(%cause, "a connection ended early");
                    }
                    break;
                }
                () = idle_timer.wait_until_lost() => {
                    debug!(client = %self.client, "a connection was silent for too long");
                    return;
                }
                _ = stopping.wait_for(|is_stopping| *is_stopping), if !is_told => {
                    is_told = true;
                    grace.as_mut().reset(Instant::now() + STOP_GRACE);
                }
                // What was sent before may still be on its way. It is answered as ever, or a request
                // would take the place of those behind it; then clients hear that it ends; and idle
                // connections end.
                () = &mut grace, if is_told && !is_closing => {
                    if is_ending.swap(true, Ordering::Relaxed) {
                        http.as_mut().graceful_shutdown();
                        is_closing = true;
                    }
                    grace.as_mut().reset(Instant::now() + STOP_GRACE);
                }
            }
        }
        // It holds what would tell the end of an upgrade, which would be waited for without end.
        drop(http);
        if let Some((upgrading, caller)) = connection.take_upgrade() {
            match upgrading.await {
                Ok(upgraded) => websocket::serve(&self.server, upgraded, caller, stopping).await,
                Err(cause) => debug!(%cause, "a connection ended before it was a WebSocket"),
            }
        }
    }
}

/// Tells a client that there is no room, in plain HTTP/1.1, and closes.
async fn turn_away(stream: std::net::TcpStream, client: IpAddr, full: ConnectionLimit) {
    let Ok(mut stream) = TcpStream::from_std(stream) else { return };
    let (status, reason) = match full {
        ConnectionLimit::Server => (StatusCode::SERVICE_UNAVAILABLE, "too many connections"),
        ConnectionLimit::Client => {
            (StatusCode::TOO_MANY_REQUESTS, "too many connections from this address")
        }
    };
    debug!(%client, reason, "turned a client away");
    let body = refusal_body(&Refusal::Transport { reason: reason.to_owned() });
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: {RETRY_AFTER_SECONDS}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let told = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await?;
        // What the client has sent is read, or closing would take the answer back.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TURN_AWAY_TIMEOUT, told).await;
}
