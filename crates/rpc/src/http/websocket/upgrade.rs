//! From HTTP to WebSocket: who may change over, and how a connection is handed on.

use std::sync::{Mutex, PoisonError};

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::upgrade::{OnUpgrade, on};
use hyper::{Request, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::admission::SocketCaller;
use crate::http::headers;
use crate::http::response::{HttpAnswer, HttpBody, refused};

/// The version of RFC 6455.
const VERSION: &str = "13";

/// A connection's way out of HTTP, if it takes one.
#[derive(Debug, Default)]
pub(in crate::http) struct Handover(Mutex<Option<(OnUpgrade, SocketCaller)>>);

impl Handover {
    /// The connection that is to be a WebSocket once HTTP lets go of it, and who asked for that.
    pub(in crate::http) fn take(&self) -> Option<(OnUpgrade, SocketCaller)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether a GET asks for a WebSocket.
pub(in crate::http) fn is_asked<B>(request: &Request<B>) -> bool {
    let upgrade = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    request.version() == Version::HTTP_11
        && upgrade.is_some_and(|name| name.eq_ignore_ascii_case("websocket"))
}

/// Answers the handshake; HTTP hands the connection over once the answer is sent. Browsers let any
/// page open a socket anywhere: the origins that may read answers over HTTP are held to here.
pub(in crate::http) fn accept<B>(
    request: &mut Request<B>,
    origins: &[String],
    caller: SocketCaller,
    handover: &Handover,
) -> HttpAnswer {
    if !is_origin_allowed(request.headers(), origins) {
        return refused(StatusCode::FORBIDDEN, "origin not allowed");
    }
    match create_response_with_body(request, HttpBody::default) {
        Ok(answer) => {
            let upgrading = Some((on(request), caller));
            *handover.0.lock().unwrap_or_else(PoisonError::into_inner) = upgrading;
            answer
        }
        Err(cause) => {
            let mut answer = refused(StatusCode::BAD_REQUEST, &cause.to_string());
            answer.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
            answer
        }
    }
}

/// Whoever sends no origin is no browser. A page of this server, the explorer, may ask it over HTTP
/// whichever origins are named, and so it may here.
fn is_origin_allowed(request: &HeaderMap, origins: &[String]) -> bool {
    request.get(ORIGIN).is_none_or(|origin| {
        headers::is_origin_named(origin, origins)
            || headers::is_own_origin(origin, request.get(HOST))
    })
}
