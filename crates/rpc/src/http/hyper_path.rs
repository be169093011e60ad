//! Requests that hyper reads: every method, path and encoding of HTTP/1.1 and HTTP/2.
//!
//! Knows: methods, paths, content types, and how long and large a body may be.
//! Never knows: JSON-RPC beyond "a body in, a body out".

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, HOST, HeaderMap, HeaderValue, ORIGIN,
};
use hyper::{Method, Request, StatusCode};

use super::Server;
use super::compression;
use super::headers;
use super::response::{HttpAnswer, come_again, empty, json, refused, text, too_large};
use super::websocket::upgrade::{self, Handover};
use crate::answer::CLIENT_VERSION;
use crate::json::{Object, put_list, put_quantity, put_text};
use crate::reply::put_range;

impl Server {
    /// Answers one request; a connection that becomes a WebSocket is left in `handover`.
    pub(super) async fn handle<B>(&self, mut request: Request<B>, handover: &Handover) -> HttpAnswer
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
        compression::compress(answer, accepted.as_ref()).await
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
        let body = match compression::decompress(body, coding.as_ref(), bytes_max) {
            Ok(body) => body,
            Err(compression::DecodeRefusal::TooLarge) => return too_large(bytes_max),
            Err(compression::DecodeRefusal::Unknown) => {
                return refused(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "content encoding not supported",
                );
            }
            Err(compression::DecodeRefusal::Broken) => {
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
        put_list(object.member("held"), self.service.store().view().coverage(), put_range);
        object.end();
        out.push(b'\n');
        come_again(json(StatusCode::SERVICE_UNAVAILABLE, out))
    }

    fn status(&self) -> Vec<u8> {
        let view = self.service.store().view();
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        put_text(object.member("server"), CLIENT_VERSION);
        if let Some(tip) = view.tip() {
            put_quantity(object.member("tip"), tip.get());
        }
        put_list(object.member("held"), view.coverage(), put_range);
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
