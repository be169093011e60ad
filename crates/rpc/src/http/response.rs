//! Responses: their bodies, content types and codes.
//!
//! Knows: how a refusal of the transport looks. Every JSON-RPC outcome is HTTP 200: clients hide the
//! bodies of anything else. Other codes are for the transport alone, and carry a JSON-RPC error too,
//! for clients that look.
//! Never knows: what is asked.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, VARY};
use hyper::{Response, StatusCode};

use crate::refusal::Refusal;
use crate::reply::refusal_body;

/// An answer. Its body is in memory: it was written there.
pub(super) type HttpAnswer = Response<Full<Bytes>>;

/// When a client that was turned away should come again.
pub(super) const RETRY_AFTER_SECONDS: u16 = 1;

/// A body in one piece.
pub(super) async fn whole(body: Full<Bytes>) -> Bytes {
    // It is in memory: this never waits, and it cannot fail.
    match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    }
}

pub(super) fn too_large(bytes_max: usize) -> HttpAnswer {
    let text = format!("request body is larger than {bytes_max} bytes");
    refused(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// A refusal of the transport.
pub(super) fn refused(status: StatusCode, reason: &str) -> HttpAnswer {
    let refusal = Refusal::Transport { reason: reason.to_owned() };
    json(status, refusal_body(&refusal))
}

/// Tells when to try once more.
pub(super) fn come_again(mut answer: HttpAnswer) -> HttpAnswer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
    answer
}

pub(super) fn json(status: StatusCode, body: Vec<u8>) -> HttpAnswer {
    with_type(status, body, "application/json")
}

pub(super) fn text(body: &'static str) -> HttpAnswer {
    with_type(StatusCode::OK, body.as_bytes().to_vec(), "text/plain; charset=utf-8")
}

fn with_type(status: StatusCode, body: Vec<u8>, content_type: &'static str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, content_type);
    set(&mut answer, VARY, "accept-encoding");
    answer
}

pub(super) fn empty(status: StatusCode) -> HttpAnswer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn set(answer: &mut HttpAnswer, name: HeaderName, value: &'static str) {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
}
