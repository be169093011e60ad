//! The HTTP server: JSON-RPC by POST and over WebSocket, and a few pages for machines and people by GET.
//!
//! Knows: methods, paths, content types and encodings, limits of bodies and time.
//! Never knows: JSON-RPC beyond "a body in, a body out".
//!
//! Every JSON-RPC outcome is HTTP 200: clients hide the bodies of anything else. Other codes are for
//! the transport alone, and carry a JSON-RPC error too, for clients that look.

mod clock;
mod connection_limiter;
mod direct;
mod encoding;
mod headers;
mod idle_timer;
mod listen;
mod socket;
mod splice;
mod upgrade;
mod workers;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, RETRY_AFTER, VARY,
};
use hyper::{Method, Request, Response, StatusCode};

use crate::json::{Object, put_list, put_quantity, put_text};
use crate::refusal::Refusal;
use crate::reply::{put_range, refusal_body};
use crate::service::Service;

pub use listen::{Listener, ServeError};
use upgrade::Handover;

/// An answer. Its body is in memory: it was written there.
pub(crate) type HttpAnswer = Response<Full<Bytes>>;

/// When a client that was turned away should come again.
const RETRY_AFTER_SECONDS: u16 = 1;

/// Limits and manners of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Bytes of a request's body, decompressed.
    pub body_bytes_max: usize,
    /// Threads that serve; none for as many as the machine has cores.
    pub threads: Option<NonZeroUsize>,
    /// Connections at a time; one more is told to come again.
    pub connections_max: usize,
    /// Connections of one client at a time; none turns the check off, as is right behind a proxy,
    /// where all clients have one address.
    pub connections_per_client_max: Option<usize>,
    /// For a request's head to arrive, from its first byte.
    pub header_timeout: Duration,
    /// For the first request, and for the next one on a connection that is kept: one that is silent
    /// for longer is closed before twice this time.
    pub idle_timeout: Duration,
    /// For a request's body to arrive.
    pub body_timeout: Duration,
    /// For an answer to be found. Below the ten seconds that clients wait.
    pub answer_timeout: Duration,
    /// For a client to take a message over WebSocket, or a part of a long one.
    pub write_timeout: Duration,
    /// Between two signs of life that a silent WebSocket is asked for; without any it is closed after
    /// `idle_timeout`.
    pub ping_interval: Duration,
    /// Messages of one WebSocket that are answered at the same time; more are not read meanwhile.
    pub socket_requests_max: usize,
    /// Subscriptions of one WebSocket.
    pub subscriptions_max: usize,
    /// For requests under way when the server is told to stop: it is to be gone within two seconds,
    /// whatever its clients do.
    pub stop_timeout: Duration,
    /// Origins that browsers may ask from: `*` for all; none turns it off.
    pub cors_origins: Vec<String>,
    /// Hosts that requests may name; none turns the check off.
    pub hosts: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            body_bytes_max: 5 << 20,
            threads: None,
            connections_max: 10_000,
            connections_per_client_max: None,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(2),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(8),
            write_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            socket_requests_max: 32,
            subscriptions_max: 32,
            stop_timeout: Duration::from_millis(1500),
            cors_origins: vec!["*".to_owned()],
            hosts: Vec::new(),
        }
    }
}

/// Answers requests, on any number of connections.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    settings: HttpSettings,
}

impl Server {
    /// A server for a service.
    #[must_use]
    pub fn new(service: Arc<Service>, settings: HttpSettings) -> Self {
        Self { service, settings }
    }

    /// Answers one request; a connection that becomes a WebSocket is left in `handover`.
    async fn handle<B>(&self, mut request: Request<B>, handover: &Handover) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let origin = request.headers().get(ORIGIN).cloned();
        let accepted = request.headers().get(ACCEPT_ENCODING).cloned();
        let mut answer = if self.is_host_allowed(request.headers()) {
            match *request.method() {
                Method::POST => self.post(request).await,
                Method::GET if upgrade::is_asked(&request) => {
                    upgrade::accept(&mut request, &self.settings.cors_origins, handover)
                }
                Method::GET => self.get(&request),
                Method::OPTIONS => empty(StatusCode::NO_CONTENT),
                _ => {
                    let mut answer = refused(StatusCode::METHOD_NOT_ALLOWED, "use POST");
                    let allowed = HeaderValue::from_static("POST, GET, OPTIONS");
                    answer.headers_mut().insert(ALLOW, allowed);
                    answer
                }
            }
        } else {
            refused(StatusCode::FORBIDDEN, "invalid host specified")
        };
        headers::allow_origin(answer.headers_mut(), origin.as_ref(), &self.settings.cors_origins);
        encoding::compress(answer, accepted.as_ref()).await
    }

    async fn post<B>(&self, request: Request<B>) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_open = self.settings.cors_origins.iter().any(|origin| origin == "*");
        if !headers::is_json_type(request.headers(), is_open) {
            return refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content type must be application/json",
            );
        }
        let coding = request.headers().get(CONTENT_ENCODING).cloned();
        let bytes_max = self.settings.body_bytes_max;
        let collected = Limited::new(request.into_body(), bytes_max).collect();
        let body = match tokio::time::timeout(self.settings.body_timeout, collected).await {
            Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "request body took too long"),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return too_large(bytes_max),
            Ok(Err(_)) => return refused(StatusCode::BAD_REQUEST, "request body was cut off"),
            Ok(Ok(body)) => body.to_bytes(),
        };
        let body = match encoding::decompress(body, coding.as_ref(), bytes_max) {
            Ok(body) => body,
            Err(encoding::DecodeRefusal::TooLarge) => return too_large(bytes_max),
            Err(encoding::DecodeRefusal::Unknown) => {
                return refused(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "content encoding not supported",
                );
            }
            Err(encoding::DecodeRefusal::Broken) => {
                return refused(StatusCode::BAD_REQUEST, "request body does not decompress");
            }
        };
        match self.service.respond(&body, self.settings.answer_timeout).await {
            Some(bytes) => json(StatusCode::OK, bytes),
            None => empty(StatusCode::OK),
        }
    }

    fn get<B>(&self, request: &Request<B>) -> HttpAnswer {
        match request.uri().path() {
            "/healthz" => text("ok\n"),
            "/readyz" => self.ready(),
            "/openrpc.json" => json(StatusCode::OK, self.service.document().to_vec()),
            "/" => json(StatusCode::OK, self.status()),
            _ => refused(StatusCode::NOT_FOUND, "no such page; JSON-RPC is asked by POST"),
        }
    }

    /// Ready when what is configured can be answered; if not, it is said why.
    fn ready(&self) -> HttpAnswer {
        let troubles = self.service.troubles();
        if troubles.is_empty() {
            return text("ready\n");
        }
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.raw("ready", "false");
        put_list(object.member("reasons"), &troubles, |out, trouble| put_text(out, trouble));
        put_list(object.member("held"), &self.service.store().view().coverage(), put_range);
        object.end();
        out.push(b'\n');
        come_again(json(StatusCode::SERVICE_UNAVAILABLE, out))
    }

    fn status(&self) -> Vec<u8> {
        let view = self.service.store().view();
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        put_text(object.member("server"), crate::answer::CLIENT_VERSION);
        if let Some(tip) = view.tip() {
            put_quantity(object.member("tip"), tip);
        }
        put_list(object.member("held"), &view.coverage(), put_range);
        object.end();
        out.push(b'\n');
        out
    }

    fn is_host_allowed(&self, headers: &HeaderMap) -> bool {
        let hosts = &self.settings.hosts;
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        hosts.is_empty() || host.is_some_and(|host| headers::is_host_named(host, hosts))
    }
}

/// A body in one piece.
async fn whole(body: Full<Bytes>) -> Bytes {
    // It is in memory: this never waits, and it cannot fail.
    match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    }
}

fn too_large(bytes_max: usize) -> HttpAnswer {
    let text = format!("request body is larger than {bytes_max} bytes");
    refused(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// A refusal of the transport.
fn refused(status: StatusCode, reason: &str) -> HttpAnswer {
    let refusal = Refusal::Transport { reason: reason.to_owned() };
    json(status, refusal_body(&refusal))
}

/// Tells when to try once more.
fn come_again(mut answer: HttpAnswer) -> HttpAnswer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
    answer
}

fn json(status: StatusCode, body: Vec<u8>) -> HttpAnswer {
    with_type(status, body, "application/json")
}

fn text(body: &'static str) -> HttpAnswer {
    with_type(StatusCode::OK, body.as_bytes().to_vec(), "text/plain; charset=utf-8")
}

fn with_type(status: StatusCode, body: Vec<u8>, content_type: &'static str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, content_type);
    set(&mut answer, VARY, "accept-encoding");
    answer
}

fn empty(status: StatusCode) -> HttpAnswer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn set(answer: &mut HttpAnswer, name: HeaderName, value: &'static str) {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
}
