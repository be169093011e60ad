//! Files over HTTP and HTTPS, from any byte on.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderName, RANGE,
    RETRY_AFTER,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use tokio::time::timeout;

use super::FetchLimits;
use super::error::{FaultKind, MirrorFault};

const REDIRECTS_MAX: usize = 5;
/// A list with every era of the next hundred years is shorter.
const LIST_BYTES_MAX: usize = 16 << 20;
/// The longest pause that a mirror can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

/// Sends requests to mirrors.
#[derive(Debug)]
pub(super) struct MirrorClient {
    client: Client,
    timeout: Duration,
}

/// The response to a request for a file.
#[derive(Debug)]
pub(super) enum FileAnswer {
    Bytes(FileBody),
    /// The file has no bytes from there on; its length, if the mirror reports it.
    Beyond(Option<u64>),
}

/// Bytes of a file that are on their way.
#[derive(Debug)]
pub(super) struct FileBody {
    /// The first of them.
    pub(super) first: u64,
    /// The length of the whole file, if the mirror reports it.
    pub(super) file_bytes: Option<u64>,
    response: Response,
}

impl MirrorClient {
    pub(super) fn new(is_secure: bool, limits: FetchLimits) -> reqwest::Result<Self> {
        // A second call finds the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .user_agent(concat!("quipu/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::custom(follow))
                .referer(false)
                .connect_timeout(limits.timeout)
        };
        let client = match builder().build() {
            // A machine may have no roots, and a mirror without TLS needs none.
            Err(_) if !is_secure => builder().tls_certs_only([]).build()?,
            built => built?,
        };
        Ok(Self { client, timeout: limits.timeout })
    }

    /// Requests a file from this byte on. A server that ignores ranges answers from the first byte.
    pub(super) async fn open(&self, target: &Url, first: u64) -> Result<FileAnswer, MirrorFault> {
        let mut request = self.client.get(target.clone());
        if first > 0 {
            request = request.header(RANGE, format!("bytes={first}-"));
        }
        read_head(self.send(request).await?, first)
    }

    /// The length of a file, if a mirror reports it.
    pub(super) async fn file_bytes(&self, target: &Url) -> Option<u64> {
        let response = self.send(self.client.head(target.clone())).await.ok()?;
        let length = number(response.headers(), &CONTENT_LENGTH)?;
        response.status().is_success().then_some(length)
    }

    /// A whole list.
    pub(super) async fn read(&self, target: &Url) -> Result<Vec<u8>, MirrorFault> {
        let FileAnswer::Bytes(mut body) = self.open(target, 0).await? else {
            return Err(MirrorFault::new(FaultKind::Passing, "sends no bytes"));
        };
        let mut list = Vec::new();
        while let Some(bytes) = body.next().await? {
            list.extend_from_slice(&bytes);
            if list.len() > LIST_BYTES_MAX {
                let text = format!("is larger than {LIST_BYTES_MAX} bytes");
                return Err(MirrorFault::new(FaultKind::Lasting, text));
            }
        }
        Ok(list)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, MirrorFault> {
        // Ranges and checksums are those of the file, not of a compressed form.
        let sent = request.header(ACCEPT_ENCODING, "identity").send();
        let late = |_| {
            let text = format!("no answer within {} s", self.timeout.as_secs());
            MirrorFault::new(FaultKind::Passing, text)
        };
        let response = timeout(self.timeout, sent).await.map_err(late)?;
        response.map_err(|error| {
            let is_lasting = error.is_redirect() || error.is_builder();
            let kind = if is_lasting { FaultKind::Lasting } else { FaultKind::Passing };
            MirrorFault::new(kind, innermost(&error.without_url()))
        })
    }
}

impl FileBody {
    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<bytes::Bytes>, MirrorFault> {
        let next = self.response.chunk().await;
        let text = |error: reqwest::Error| innermost(&error.without_url());
        next.map_err(|error| MirrorFault::new(FaultKind::Passing, text(error)))
    }
}

/// Follows a few redirects, none of which leaves TLS. Credentials are not sent to other hosts.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_secure = attempt.previous().last().is_some_and(|from| from.scheme() == "https");
    if attempt.previous().len() > REDIRECTS_MAX {
        attempt.error(format!("redirected more than {REDIRECTS_MAX} times"))
    } else if is_secure && attempt.url().scheme() != "https" {
        attempt.error("redirected from https to another protocol")
    } else {
        attempt.follow()
    }
}

/// Checks that a response has the bytes of a file from `asked` on, or all of them.
fn read_head(response: Response, asked: u64) -> Result<FileAnswer, MirrorFault> {
    let headers = response.headers();
    let coding = headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity");
    if let Some(coding) = coding.filter(|_| response.status().is_success()) {
        let text = format!("sends the file encoded as {}", coding.to_str().unwrap_or("?"));
        return Err(MirrorFault::new(FaultKind::Lasting, text));
    }
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let range = range.unwrap_or_default();
    match response.status() {
        StatusCode::OK => {
            let file_bytes = number(headers, &CONTENT_LENGTH);
            Ok(FileAnswer::Bytes(FileBody { first: 0, file_bytes, response }))
        }
        StatusCode::PARTIAL_CONTENT if asked > 0 => match parse_range(range) {
            Some((first, file_bytes)) if first == asked => {
                Ok(FileAnswer::Bytes(FileBody { first, file_bytes, response }))
            }
            // The next request is for the whole file.
            _ => Ok(FileAnswer::Beyond(None)),
        },
        StatusCode::RANGE_NOT_SATISFIABLE if asked > 0 => {
            let length = range.strip_prefix("bytes */");
            Ok(FileAnswer::Beyond(length.and_then(|length| length.parse().ok())))
        }
        status => {
            let retry_after = number(headers, &RETRY_AFTER).map(Duration::from_secs);
            let retry_after = retry_after.map(|pause| pause.min(RETRY_AFTER_MAX));
            Err(MirrorFault::status(status.as_u16(), retry_after))
        }
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The first byte and the length of `bytes FIRST-LAST/LENGTH` (RFC 9110, section 14.4), if it is the rest
/// of the file.
fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, length) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    if first > last {
        return None;
    }
    if length == "*" {
        return Some((first, None));
    }
    let length: u64 = length.parse().ok()?;
    (last.checked_add(1) == Some(length)).then_some((first, Some(length)))
}

/// The text of an error's first cause.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_rest_of_the_file() {
        assert_eq!(parse_range("bytes 7-9/10"), Some((7, Some(10))));
        assert_eq!(parse_range("bytes 7-9/*"), Some((7, None)));
        for text in ["", "bytes */10", "bytes 9-7/10", "bytes 7-8/10", "7-9/10", "bytes a-9/10"] {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }
}
