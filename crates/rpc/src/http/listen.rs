//! Connections: taken, counted, served, and let finish when the server stops.
//!
//! Knows: sockets, how many there may be and of whom, and how they end.
//! Never knows: what is asked on them.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::patience::{Deadlines, Patience, Watched};
use super::room::{Full, Room};
use super::upgrade::Handover;
use super::{RETRY_AFTER_SECONDS, Server, socket};
use crate::refusal::Refusal;
use crate::reply::refusal_body;

/// Between two tries to take a connection when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// For a client that is told to come again.
const TURN_AWAY_TIMEOUT: Duration = Duration::from_secs(1);

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
    pub async fn serve(self, server: Arc<Server>, stop: impl Future<Output = ()>) {
        let settings = &server.settings;
        let room = Room::new(settings.connections_max, settings.connections_per_client_max);
        let graceful = GracefulShutdown::new();
        let stopping = watch::Sender::new(false);
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, client) = match accepted {
                Ok((stream, client)) => (stream, client.ip()),
                Err(cause) => {
                    warn!(%cause, "cannot take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Answers are written whole: waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            match room.enter(client) {
                Ok(place) => {
                    let taken = Taken::new(&server, client, stopping.subscribe());
                    let connection = taken.connection(stream);
                    let serving = taken.serve(graceful.watch(connection));
                    tokio::spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                Err(full) => drop(tokio::spawn(turn_away(stream, client, full))),
            }
        }
        drop(self.listener);
        stopping.send_replace(true);
        let stopped = async {
            graceful.shutdown().await;
            // Every connection holds a receiver until its end, as a WebSocket too.
            stopping.closed().await;
        };
        if tokio::time::timeout(server.settings.stop_timeout, stopped).await.is_err() {
            warn!("some requests were not finished in time");
        }
    }
}

/// A connection that has its place.
struct Taken {
    server: Arc<Server>,
    client: IpAddr,
    patience: Arc<Patience>,
    handover: Arc<Handover>,
    stopping: watch::Receiver<bool>,
}

impl Taken {
    fn new(server: &Arc<Server>, client: IpAddr, stopping: watch::Receiver<bool>) -> Self {
        let patience = Patience::new(Deadlines {
            head: server.settings.header_timeout,
            idle: server.settings.idle_timeout,
        });
        let handover = Arc::default();
        Self { server: Arc::clone(server), client, patience, handover, stopping }
    }

    /// HTTP/1.1 or HTTP/2, as the client begins.
    fn connection(
        &self,
        stream: TcpStream,
    ) -> impl GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send + use<>
    {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The head has a time of its own, told from the time between requests: see `patience`.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None).pipeline_flush(true);
        builder.http2().timer(TokioTimer::new());
        let patience = Arc::clone(&self.patience);
        let stream = Watched::new(stream, Arc::clone(&patience));
        let (server, handover) = (Arc::clone(&self.server), Arc::clone(&self.handover));
        let service = service_fn(move |request| {
            let (server, handover) = (Arc::clone(&server), Arc::clone(&handover));
            let asked = patience.begin();
            async move {
                let answer = server.handle(request, &handover).await;
                drop(asked);
                Ok::<_, Infallible>(answer)
            }
        });
        builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned()
    }

    /// Serves HTTP until the connection ends, or goes on as a WebSocket.
    async fn serve(
        mut self,
        http: impl Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>>,
    ) {
        let client = self.client;
        tokio::select! {
            biased;
            ended = http => if let Err(cause) = ended {
                debug!(%cause, "a connection ended early");
            },
            () = self.patience.wait_until_lost() => {
                debug!(%client, "a connection was silent for too long");
            }
        }
        if let Some(upgrading) = self.handover.take() {
            match upgrading.await {
                Ok(upgraded) => socket::serve(&self.server, upgraded, &mut self.stopping).await,
                Err(cause) => debug!(%cause, "a connection ended before it was a WebSocket"),
            }
        }
    }
}

/// Tells a client that there is no room, in plain HTTP/1.1, and closes.
async fn turn_away(mut stream: TcpStream, client: IpAddr, full: Full) {
    let (status, reason) = match full {
        Full::Server => (StatusCode::SERVICE_UNAVAILABLE, "too many connections"),
        Full::Client => (StatusCode::TOO_MANY_REQUESTS, "too many connections from this address"),
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
