//! Connections: taken, counted, served, and let finish when the server stops.

mod answer_body;
mod connection_limiter;
mod idle_timer;
mod in_memory;
mod timed_stream;
mod workers;

use std::convert::Infallible;
use std::future::Future;
use std::io;
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
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use super::byte_stream::ByteStream;
use super::fast_path::{self, FastPathOutcome, HEAD_BYTES_MAX, put_header};
use super::hyper_path::HyperConnection;
use super::response::{HttpAnswer, come_again, refused};
use super::settings::STOP_GRACE;
use super::tls::{self, Tls};
use super::websocket;
use super::{Server, log_limited};
use crate::http_counts::{ConnectionProtocol, OpenConnection};
use crate::in_time::in_time;
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

/// What a client is told that does not encrypt where it must.
pub const NOT_ENCRYPTED: &str = "this port speaks TLS: ask by https or wss";

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
    pub cause: io::Error,
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

    /// Takes a socket that somebody else listens on for us; asked inside a runtime.
    pub fn inherit(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { address: listener.local_addr()?, listener })
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
        let mut intake = ConnectionIntake {
            server,
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
        intake.renew();
        intake.stopping.send_replace(true);
        let until = Instant::now().checked_add(intake.server.settings.stop_timeout);
        // Whoever has connected by now is answered.
        let mut grace = std::pin::pin!(tokio::time::sleep(STOP_GRACE));
        // Those who wait come first, though the time is over when they are seen; not for ever.
        for _ in 0..intake.server.settings.connections_max {
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
struct ConnectionIntake {
    /// With the settings that a connection gets which begins now.
    server: Arc<Server>,
    limiter: Arc<ConnectionLimiter>,
    workers: Workers,
    stopping: watch::Sender<bool>,
    /// Places for those who are told that there is none.
    turning_away: Arc<Semaphore>,
}

impl ConnectionIntake {
    /// Goes by the newest settings.
    fn renew(&mut self) {
        let Some(server) = self.server.renewed() else { return };
        let settings = &server.settings;
        self.limiter.set_places(settings.connections_max, settings.connections_per_client_max);
        self.server = Arc::new(server);
    }

    /// Gives a connection to the thread that serves it, or turns it away.
    async fn take(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        self.renew();
        // A stream belongs to the thread that serves it: here it is only taken.
        let taken = accepted.and_then(|(stream, client)| Ok((stream.into_std()?, client.ip())));
        let (stream, client) = match taken {
            Ok(taken) => taken,
            Err(cause) => {
                self.server.counters.count_failed();
                if let Some(left_out) = self.server.lines.accepts.allow() {
                    warn!(%cause, left_out, "cannot take a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return;
            }
        };
        // Answers are written whole: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        match self.limiter.enter(client) {
            Ok(place) => {
                let server = Arc::clone(&self.server);
                let open = server.counters.open();
                let taken = AcceptedConnection { server, client, open, _place: place };
                let seat = self.workers.seat();
                seat.thread().spawn(taken.serve(stream, seat, self.stopping.subscribe()));
            }
            Err(full) => {
                match full {
                    ConnectionLimit::Server => {
                        self.server.counters.count_full();
                        let lines = &self.server.lines.connections;
                        log_limited(lines, "too many connections: a client is turned away");
                    }
                    ConnectionLimit::Client => self.server.counters.count_client_full(),
                }
                // A handshake is work: whoever has had all that it may gets no more of it.
                if self.server.tls.is_some() && full == ConnectionLimit::Client {
                    return;
                }
                let place = Arc::clone(&self.turning_away).try_acquire_owned();
                let Ok(place) = place else { return };
                let server = Arc::clone(&self.server);
                self.workers.seat().thread().spawn(async move {
                    turn_away(&server, stream, client, full).await;
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
    open: OpenConnection,
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
        match &self.server.tls {
            None => self.serve_on(stream, &mut stopping).await,
            // Boxed: connections that are not encrypted have no room for it.
            Some(tls) => Box::pin(self.serve_encrypted(tls, stream, &mut stopping)).await,
        }
    }

    async fn serve_encrypted(
        &self,
        tls: &Tls,
        mut stream: TcpStream,
        stopping: &mut watch::Receiver<bool>,
    ) {
        let stopped = async {
            // Whoever sees it gone takes the server for one that stops.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        let shaking_hands = async {
            let is_begun = tokio::select! {
                is_begun = tls::is_begun(&stream) => is_begun?,
                () = stopped => return Err(io::Error::other("the server stops")),
            };
            // What has begun is finished.
            if is_begun {
                return Box::pin(tls.accept(stream)).await;
            }
            let refusal = refused(StatusCode::BAD_REQUEST, NOT_ENCRYPTED);
            self.server.counters.count_answer(refusal.status());
            let _ = timeout(TURN_AWAY_TIMEOUT, tell_and_close(&mut stream, refusal)).await;
            Err(io::Error::other(NOT_ENCRYPTED))
        };
        match timeout(self.server.settings.header_timeout, shaking_hands).await {
            Ok(Ok(stream)) => Box::pin(self.serve_on(stream, stopping)).await,
            Ok(Err(cause)) => debug!(client = %self.client, %cause, "a TLS handshake failed"),
            Err(_) => debug!(client = %self.client, "a TLS handshake took too long"),
        }
    }

    async fn serve_on<S: ByteStream>(&self, stream: S, stopping: &mut watch::Receiver<bool>) {
        match fast_path::serve(&self.server, stream, self.client, stopping).await {
            FastPathOutcome::Ended => {}
            FastPathOutcome::Other(stream, unread) => {
                // All that hyper and WebSockets keep: no connection that never needs it has room for it.
                Box::pin(self.serve_other(stream, unread, stopping)).await;
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
            let is_http1 = request.version() <= Version::HTTP_11;
            let is_last = is_http1 && is_ending.load(Ordering::Relaxed);
            if !is_http1 {
                self.open.speaks(ConnectionProtocol::Http2);
            }
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
        self.serve_socket(&connection, stopping).await;
    }

    /// Serves what was upgraded, if it was.
    async fn serve_socket(
        &self,
        connection: &HyperConnection,
        stopping: &mut watch::Receiver<bool>,
    ) {
        let Some((upgrading, caller)) = connection.take_upgrade() else { return };
        match upgrading.await {
            Ok(upgraded) => {
                self.open.speaks(ConnectionProtocol::WebSocket);
                websocket::serve(&self.server, upgraded, caller, stopping).await;
            }
            Err(cause) => debug!(%cause, "a connection ended before it was a WebSocket"),
        }
    }
}

/// Tells a client that there is no room, and closes.
async fn turn_away(
    server: &Server,
    stream: std::net::TcpStream,
    client: IpAddr,
    full: ConnectionLimit,
) {
    let Ok(mut stream) = TcpStream::from_std(stream) else { return };
    let (status, reason) = match full {
        ConnectionLimit::Server => (StatusCode::SERVICE_UNAVAILABLE, "too many connections"),
        ConnectionLimit::Client => {
            (StatusCode::TOO_MANY_REQUESTS, "too many connections from this address")
        }
    };
    debug!(%client, reason, "turned a client away");
    server.counters.count_answer(status);
    let refusal = come_again(refused(status, reason));
    let told = async {
        match &server.tls {
            None => tell_and_close(&mut stream, refusal).await,
            Some(tls) => tell_and_close(&mut tls.accept_http1(stream).await?, refusal).await,
        }
    };
    let _ = timeout(TURN_AWAY_TIMEOUT, told).await;
}

/// Writes a refusal in HTTP/1.1 before anything was read, and closes.
async fn tell_and_close<S: ByteStream>(stream: &mut S, refusal: HttpAnswer) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {}\r\n", refusal.status()).into_bytes();
    for (name, value) in refusal.headers() {
        put_header(&mut head, name.as_str(), value.to_str().unwrap_or_default());
    }
    let body = refusal.into_body().bytes;
    put_header(&mut head, "content-length", &body.len().to_string());
    put_header(&mut head, "connection", "close");
    head.extend_from_slice(b"\r\n");
    stream.write_all(&head).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await?;
    // What the client has sent is read, or closing would take the answer back.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use chain::ChainSpec;
    use store::read::Inline;
    use store::{Limits, Store};
    use testing::disk::faulty::FaultyDisk;

    use super::*;
    use crate::http::HttpSettings;
    use crate::service::{Service, ServiceSettings};

    #[tokio::test]
    async fn whoever_is_turned_away_is_counted_by_the_status_that_it_is_told() {
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
        let spec = ChainSpec::bare("live", Some(7), None);
        let service = Service::new(store, spec, ServiceSettings::default());
        let server = Server::new(Arc::new(service), HttpSettings::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (full, code) in [(ConnectionLimit::Server, "503"), (ConnectionLimit::Client, "429")] {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, address) = listener.accept().await.unwrap();
            let mut told = String::new();
            let turning = turn_away(&server, stream.into_std().unwrap(), address.ip(), full);
            let reading = async {
                client.read_to_string(&mut told).await.unwrap();
                drop(client);
            };
            tokio::join!(turning, reading);
            assert!(told.starts_with(&format!("HTTP/1.1 {code}")), "{told}");
            let refusals = server.counts().http.refusals;
            assert!(refusals.contains(&(code.to_owned(), 1)), "{refusals:?}");
        }
    }
}
