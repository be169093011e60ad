//! The port of its own for those who watch the server: metrics, and whether it lives and is ready.
//!
//! Any valid Host is taken, whatever `--allowed-host` says: it keeps pages of browsers from what only this machine
//! may ask, and whoever probes a pod names it by its address.

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

use super::hyper_path::{READY, head_of, malformed_host};
use super::response::{HttpAnswer, no_such_page, refused, text};
use super::{ServeError, Server};
use crate::metrics_page::MetricsPage;
use crate::request_log::LineLimit;

/// Connections at a time; others wait. Whoever watches has one or two, and their descriptors are not
/// among those that clients share.
const CONNECTIONS_MAX: usize = 64;
/// For a request to come and its answer to be taken. A connection has one: who keeps silent or does not
/// read soon leaves its place to others.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// For the head of a request, so that many who keep silent hold nobody up for long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two tries to take a connection when the system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address on which metrics are asked for.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
    connection_timeout: Duration,
    /// For lines about connections that the system did not give.
    lines: LineLimit,
}

impl MetricsListener {
    /// Listens on an address; port 0 takes a free one.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let refused = |cause| ServeError { address, cause };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (connection_timeout, lines) = (CONNECTION_TIMEOUT, LineLimit::default());
        Ok(Self { listener, address, connection_timeout, lines })
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
                    if let Some(left_out) = self.lines.allow() {
                        warn!(%cause, left_out, "cannot take a connection for metrics");
                    }
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (server, page) = (Arc::clone(&server), Arc::clone(&page));
            let time = self.connection_timeout;
            tokio::spawn(async move {
                if timeout(time, answer_on(stream, &server, &page)).await.is_err() {
                    debug!("a connection for metrics was closed after its time");
                }
                drop(place);
            });
        }
    }
}

/// Answers the request of one connection.
async fn answer_on(stream: TcpStream, server: &Server, page: &Arc<dyn MetricsPage>) {
    let service = service_fn(async |request: Request<hyper::body::Incoming>| {
        let answer = match malformed_host(&request) {
            Some(refusal) => refusal,
            None => answer(server, &**page, request.method(), request.uri().path()).await,
        };
        Ok::<_, Infallible>(answer.map(|body| Full::<Bytes>::new(body.bytes)))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
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

#[cfg(test)]
mod tests {
    use chain::ChainSpec;
    use store::read::Inline;
    use store::{Limits, Store};
    use testing::disk::faulty::FaultyDisk;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::http::HttpSettings;
    use crate::metrics_page::CountServer;
    use crate::service::{Service, ServiceSettings};
    use crate::stat_page::{MakingPage, PageError};

    /// A page that cannot be made.
    #[derive(Debug)]
    struct NoPage;

    impl MetricsPage for NoPage {
        fn make<'a>(&'a self, _: CountServer<'a>) -> MakingPage<'a> {
            Box::pin(async { Err(PageError("a test".to_owned())) })
        }
    }

    fn server() -> Arc<Server> {
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
        let spec = ChainSpec::bare("live", Some(7), None);
        let service = Service::new(store, spec, ServiceSettings::default());
        Arc::new(Server::new(Arc::new(service), HttpSettings::default()))
    }

    async fn listen(connection_timeout: Duration) -> SocketAddr {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = MetricsListener::bind(any).await.unwrap();
        let listener = MetricsListener { connection_timeout, ..listener };
        let address = listener.address();
        tokio::spawn(listener.serve(server(), Arc::new(NoPage)));
        address
    }

    /// All that is answered to some requests.
    async fn answers(address: SocketAddr, requests: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(requests.as_bytes()).await.unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).await.unwrap();
        answers
    }

    /// Seen: sixteen connections that stood still kept metrics from everybody for an hour.
    #[tokio::test]
    async fn connections_that_stand_still_leave_their_places() {
        let address = listen(Duration::from_millis(100)).await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let asked = answers(address, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
        let answered = timeout(Duration::from_secs(20), asked).await.expect("a place");
        assert!(answered.starts_with("HTTP/1.1 200 OK"), "{answered}");
        // One request for each connection.
        assert!(answered.contains("connection: close"), "{answered}");
    }

    /// Here they were answered, and on the other port refused.
    #[tokio::test]
    async fn a_request_whose_host_is_missing_or_malformed_is_refused() {
        let address = listen(CONNECTION_TIMEOUT).await;
        for (head, status) in [
            ("1.1\r\n", 400),
            ("1.1\r\nhost: a b\r\n", 400),
            ("1.1\r\nhost: a\r\nhost: a\r\n", 400),
            ("1.1\r\nhost: [::1]:9\r\n", 200),
            ("1.0\r\n", 200),
        ] {
            let answered = answers(address, &format!("GET /healthz HTTP/{head}\r\n")).await;
            let told = answered.split(' ').nth(1).and_then(|it| it.parse::<u16>().ok());
            assert_eq!(told, Some(status), "{head}: {answered}");
        }
    }

    /// Seen: an empty page with 200.
    #[tokio::test]
    async fn a_page_that_cannot_be_made_is_answered_with_500() {
        let address = listen(CONNECTION_TIMEOUT).await;
        let answered = answers(address, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(answered.starts_with("HTTP/1.1 500 "), "{answered}");
    }
}
