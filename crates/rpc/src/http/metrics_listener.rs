//! The port of its own for those who watch the server: metrics, and whether it lives and is ready.
//!
//! Knows: these three pages, how many may ask at a time and for how long.
//! Never knows: JSON-RPC. Nothing that clients ask is answered here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::hyper_path::{READY, head_of};
use super::response::{HttpAnswer, no_such_page, refused, text};
use super::{ServeError, Server};
use crate::metrics_page::MetricsPage;

/// Connections at a time; others wait. Whoever watches has one or two, and their descriptors are not
/// among those that clients share.
const CONNECTIONS_MAX: usize = 16;
/// For a request's head to arrive, and for the next one on a connection that is kept.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);
/// A connection is closed after this time: what scrapes makes a new one.
const CONNECTION_TIMEOUT: Duration = Duration::from_hours(1);
/// Between two tries to take a connection when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address on which metrics are asked for.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsListener {
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

    /// Answers until it is dropped, on the runtime that polls it: no thread that serves clients is asked.
    pub async fn serve(self, server: Arc<Server>, page: Arc<dyn MetricsPage>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(cause) => {
                    warn!(%cause, "cannot take a connection for metrics");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (server, page) = (Arc::clone(&server), Arc::clone(&page));
            tokio::spawn(async move {
                if timeout(CONNECTION_TIMEOUT, answer_on(stream, &server, &page)).await.is_err() {
                    debug!("a connection for metrics was closed after its time");
                }
                drop(place);
            });
        }
    }
}

/// Answers the requests of one connection.
async fn answer_on(stream: TcpStream, server: &Server, page: &Arc<dyn MetricsPage>) {
    let service = service_fn(async |request: Request<hyper::body::Incoming>| {
        let answer = answer(server, &**page, request.method(), request.uri().path()).await;
        Ok::<_, Infallible>(answer.map(|body| Full::<Bytes>::new(body.bytes)))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(cause) = builder.serve_connection(TokioIo::new(stream), service).await {
        debug!(%cause, "a connection for metrics ended early");
    }
}

async fn answer(
    server: &Server,
    page: &dyn MetricsPage,
    method: &Method,
    path: &str,
) -> HttpAnswer {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut answer = refused(StatusCode::METHOD_NOT_ALLOWED, "use GET");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    let answer = match path {
        "/metrics" => server.metrics(Some(page)).await,
        "/healthz" => text("ok\n"),
        READY => server.ready(),
        _ => no_such_page(),
    };
    if *method == Method::HEAD { head_of(answer) } else { answer }
}
