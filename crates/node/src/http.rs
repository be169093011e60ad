//! Requests over HTTP and HTTPS.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT,
};
use hyper::{HeaderMap, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{HttpConnector, HttpInfo};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::address::UpstreamUrl;
use super::answer_body::{HasRoom, inflate, read_body};
use super::ask_limits::AskLimits;
use super::error::{AskError, innermost};
use super::tls;
use super::websocket::{PING_AFTER, PONG_MAX};

/// Unused connections are closed after this.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// Connections that are remembered; far fewer are open at a time.
const CONNECTIONS_MAX: usize = 1024;
/// The longest wait that a node may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// A client over HTTP and HTTPS that keeps its connections.
pub(crate) type HttpClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// One node over HTTP.
#[derive(Debug)]
pub(super) struct Http {
    connections: Mutex<Connections>,
    client: HttpClient<Full<Bytes>>,
    pub(super) url: UpstreamUrl,
    limits: AskLimits,
}

/// The connections that carried a response. The pool opens them as it needs them, and behind one
/// address there may be several nodes.
#[derive(Debug, Default)]
struct Connections {
    local_addresses: BTreeSet<SocketAddr>,
    count: u64,
}

impl Connections {
    fn note(&mut self, local_address: SocketAddr) {
        if self.local_addresses.len() >= CONNECTIONS_MAX {
            self.local_addresses.clear();
        }
        self.count =
            self.count.saturating_add(u64::from(self.local_addresses.insert(local_address)));
    }
}

impl Http {
    pub(super) fn new(url: UpstreamUrl, limits: AskLimits) -> Result<Self, AskError> {
        let config =
            if url.is_secure { tls::client_config() } else { tls::client_config_unused() }?;
        let client = build_client(config, limits.connect_timeout);
        Ok(Self { connections: Mutex::default(), client, url, limits })
    }

    /// How many connections carried a response so far.
    pub(super) fn connection_count(&self) -> u64 {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Posts a body and returns the body of the response.
    pub(super) async fn ask(&self, body: Bytes, bytes_max: usize) -> Result<Bytes, AskError> {
        self.ask_with_room(body, bytes_max, &mut |_| true).await.map(Bytes::from)
    }

    /// The same for an answer whose bytes are counted while they come.
    pub(super) async fn ask_with_room(
        &self,
        body: Bytes,
        bytes_max: usize,
        has_room: HasRoom<'_>,
    ) -> Result<Vec<u8>, AskError> {
        let time = self.limits.answer_timeout;
        let asking = self.ask_untimed(body, bytes_max, has_room);
        timeout(time, asking).await.unwrap_or(Err(AskError::Late(time)))
    }

    async fn ask_untimed(
        &self,
        body: Bytes,
        bytes_max: usize,
        has_room: HasRoom<'_>,
    ) -> Result<Vec<u8>, AskError> {
        let mut request = Request::post(self.url.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("quipu/", env!("CARGO_PKG_VERSION")));
        if !self.url.is_loopback() {
            request = request.header(ACCEPT_ENCODING, "gzip");
        }
        if let Some(authorization) = &self.url.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| AskError::Broken(error.to_string()))?;
        let response = self.client.request(request).await.map_err(|error| {
            let said = innermost(&error);
            if error.is_connect() { AskError::Connect(said) } else { AskError::Broken(said) }
        })?;
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        if let Some(connection) = response.extensions().get::<HttpInfo>() {
            let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            connections.note(connection.local_addr());
        }
        let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|it| it == "gzip");
        let body = read_body(response.into_body(), bytes_max, &mut *has_room).await?;
        let body = if is_gzip { inflate(body, bytes_max, has_room)? } else { body };
        if status.is_success() {
            return Ok(body);
        }
        let begin = AskError::begin_of(&body);
        let error = AskError::Status { status: status.as_u16(), retry_after, begin };
        Err(error.hidden_by(&self.url))
    }
}

/// A client that trusts what `config` says, and gives a connection up after `connect_timeout`.
#[must_use]
pub(crate) fn build_client<B>(config: ClientConfig, connect_timeout: Duration) -> HttpClient<B>
where
    B: Body + Send,
    B::Data: Send,
{
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    client_builder().build(connector)
}

/// How connections are kept, and noticed to be dead.
fn client_builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        // One connection of HTTP/2 carries all questions, and a question that is given up does not end
        // it: without a sign of life it would be used for ever.
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PONG_MAX)
        .http2_keep_alive_while_idle(true);
    builder
}

/// How long a node asks us to wait. Dates are passed over: they need a clock that both share.
#[must_use]
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::Response;
    use hyper::server::conn::http2;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;

    /// Seen: a dead connection of HTTP/2 was never noticed, and every question on it waited in vain.
    #[tokio::test]
    async fn a_connection_of_http_2_whose_other_end_has_vanished_ends_after_twenty_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let limits = AskLimits { answer_timeout: Duration::from_hours(1), ..AskLimits::default() };
        let mut http = Http::new(url, limits).unwrap();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client_config_unused().unwrap())
            .https_or_http()
            .enable_http2()
            .build();
        http.client = client_builder().http2_only(true).build(connector);
        let (vanish, vanished) = oneshot::channel::<()>();
        let node = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())));
            let mut connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::select! {
                ended = &mut connection => ended.unwrap(),
                _ = vanished => {}
            }
            // Neither closed nor read any more.
            std::future::pending::<()>().await;
            drop(connection);
        });
        http.ask(Bytes::new(), 1024).await.unwrap();
        vanish.send(()).unwrap();
        tokio::time::pause();
        let begun = Instant::now();
        let refused = http.ask(Bytes::new(), 1024).await.unwrap_err();
        assert!(matches!(refused, AskError::Broken(_)), "{refused}");
        let took = begun.elapsed();
        assert!(took <= Duration::from_secs(21), "{took:?}");
        node.abort();
    }
}
