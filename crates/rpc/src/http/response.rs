//! Responses: their bodies, content types and codes.

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use crate::admission::Denial;
use crate::budget::ByteLease;
use crate::refusal::{ExceededRate, Refusal};
use crate::reply::{Reply, ReplyStatus, overload_refusal, refusal_body};

/// An answer. Its body is in memory: it was written there.
pub(super) type HttpAnswer = Response<HttpBody>;

/// A body in one piece, and what the budget counts it as.
#[derive(Debug, Default)]
pub(super) struct HttpBody {
    pub(super) bytes: Bytes,
    pub(super) lease: ByteLease,
}

impl From<Vec<u8>> for HttpBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), lease: ByteLease::default() }
    }
}

impl From<Reply> for HttpBody {
    fn from(reply: Reply) -> Self {
        let (bytes, lease) = reply.into_bytes();
        Self { bytes: bytes.into(), lease }
    }
}

/// When a client that was turned away should come again.
pub(super) const RETRY_AFTER_SECONDS: u64 = 1;

const NO_KEY: &str = "unauthorized: an API key is needed, as Authorization: Bearer KEY, X-Api-Key: KEY or \
    the path /v1/KEY";
const UNKNOWN_KEY: &str = "unauthorized: the API key is not known";

/// The refusal of a request that there is no room for.
pub(super) fn overloaded() -> HttpAnswer {
    let body = refusal_body(&overload_refusal());
    come_again(json(StatusCode::SERVICE_UNAVAILABLE, body))
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

pub(super) fn no_such_page() -> HttpAnswer {
    refused(StatusCode::NOT_FOUND, "no such page; JSON-RPC is asked by POST")
}

/// The refusal of a request that is not let in.
pub(super) fn denied(denial: &Denial) -> HttpAnswer {
    let (reason, challenge) = match denial {
        Denial::RateLimited(exceeded) => return rate_limited(*exceeded),
        Denial::NoKey => (NO_KEY, "Bearer"),
        // RFC 6750, 3.1.
        Denial::UnknownKey => (UNKNOWN_KEY, "Bearer error=\"invalid_token\""),
    };
    let mut answer = refused(StatusCode::UNAUTHORIZED, reason);
    set(&mut answer, WWW_AUTHENTICATE, challenge);
    answer
}

/// The refusal of a request of someone who has asked too much.
pub(super) fn rate_limited(exceeded: ExceededRate) -> HttpAnswer {
    let body = refusal_body(&Refusal::RateLimited(exceeded));
    come_again_in(json(StatusCode::TOO_MANY_REQUESTS, body), exceeded.seconds)
}

/// The code of a reply, and the seconds after which a client should come again.
pub(super) fn status_of(reply: &Reply) -> (StatusCode, Option<u64>) {
    match reply.status() {
        ReplyStatus::Answered => (StatusCode::OK, None),
        ReplyStatus::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, Some(RETRY_AFTER_SECONDS)),
        ReplyStatus::RateLimited { seconds } => (StatusCode::TOO_MANY_REQUESTS, Some(seconds)),
        ReplyStatus::Forbidden => (StatusCode::FORBIDDEN, None),
    }
}

/// Tells when to try once more.
pub(super) fn come_again(answer: HttpAnswer) -> HttpAnswer {
    come_again_in(answer, RETRY_AFTER_SECONDS)
}

/// The same, after a time.
pub(super) fn come_again_in(mut answer: HttpAnswer, seconds: u64) -> HttpAnswer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

pub(super) fn json(status: StatusCode, body: impl Into<HttpBody>) -> HttpAnswer {
    with_type(status, body.into(), "application/json")
}

pub(super) fn text(body: &'static str) -> HttpAnswer {
    text_with(StatusCode::OK, body)
}

pub(super) fn text_with(status: StatusCode, body: &'static str) -> HttpAnswer {
    with_type(status, body.as_bytes().to_vec().into(), "text/plain; charset=utf-8")
}

pub(super) fn with_type(
    status: StatusCode,
    body: HttpBody,
    content_type: &'static str,
) -> HttpAnswer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, content_type);
    set(&mut answer, VARY, "accept-encoding");
    answer
}

pub(super) fn empty(status: StatusCode) -> HttpAnswer {
    let mut answer = Response::new(HttpBody::default());
    *answer.status_mut() = status;
    answer
}

fn set(answer: &mut HttpAnswer, name: HeaderName, value: &'static str) {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
}
