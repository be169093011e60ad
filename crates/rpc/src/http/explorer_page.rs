//! The explorer over HTTP: who gets its page and its files, and with which fields.

use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, StatusCode};

use super::compression::{self, Coding};
use super::response::{HttpAnswer, HttpBody, empty, with_type};
use crate::admission::strip_key;
use crate::budget::ByteLease;
use crate::explorer::{self, ExplorerFile};

/// Fields of the page and of all its files.
const FIELDS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, explorer::CONTENT_SECURITY_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // A browser keeps what it has and asks whether it is still good: another executable has other files.
    (CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Whether a request is one that the explorer answers.
pub(super) fn is_asked<B>(request: &Request<B>) -> bool {
    // First, since nearly all requests are calls.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return false;
    }
    let path = strip_key(request.uri().path());
    explorer::is_file_path(path) || path == "/" && is_browser(request.headers())
}

fn is_browser(fields: &HeaderMap) -> bool {
    let mut accepted = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(explorer::wants_page)
}

/// The answer to such a request; `None` if there is no such file.
pub(super) fn answer<B>(request: &Request<B>) -> Option<HttpAnswer> {
    let path = request.uri().path();
    let mut answer = if explorer::is_file_path(strip_key(path)) {
        show(explorer::find(strip_key(path))?, request.headers())
    } else {
        // The page names its files relative to itself, so that they are found behind any prefix.
        match path.rsplit_once('/') {
            Some((_, key)) if !key.is_empty() => redirect(&format!("./{key}/")),
            _ => show(explorer::page()?, request.headers()),
        }
    };
    if strip_key(path) != path {
        // The address has the key, which no cache of a browser is to keep.
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Some(answer)
}

fn show(file: &'static ExplorerFile, fields: &HeaderMap) -> HttpAnswer {
    let mut named = fields.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = named.any(|field| explorer::is_tag_named(field, &file.tag));
    let mut answer = if is_known {
        let mut answer = empty(StatusCode::NOT_MODIFIED);
        answer.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        answer
    } else {
        let accepted = fields.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let is_gzip = accepted.and_then(compression::choose) == Some(Coding::Gzip);
        let bytes = if is_gzip { &file.gzip } else { file.text.as_bytes() };
        let body = HttpBody { bytes: Bytes::from_static(bytes), lease: ByteLease::default() };
        let mut answer = with_type(StatusCode::OK, body, file.content_type);
        if is_gzip {
            let name = HeaderValue::from_static(Coding::Gzip.name());
            answer.headers_mut().insert(CONTENT_ENCODING, name);
        }
        answer
    };
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    with_fields(answer)
}

fn redirect(place: &str) -> HttpAnswer {
    let mut answer = empty(StatusCode::PERMANENT_REDIRECT);
    if let Ok(place) = HeaderValue::from_str(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    with_fields(answer)
}

fn with_fields(mut answer: HttpAnswer) -> HttpAnswer {
    for (name, value) in FIELDS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    // The same address has a line of JSON for programs.
    answer.headers_mut().append(VARY, HeaderValue::from_static("accept"));
    answer
}
