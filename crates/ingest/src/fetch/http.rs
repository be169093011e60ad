//! Files over HTTP and HTTPS, from any byte on.
//!
//! Knows: ranges, redirects, and which answers are a file's bytes.
//! Never knows: what the bytes are, or which mirror is asked next.

use std::time::Duration;

use http_body_util::{BodyExt as _, Collected, Empty, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, LOCATION,
    RANGE, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use node::{
    AskError, HttpClient, build_client, client_config, client_config_unused, innermost, retry_after,
};
use tokio::time::timeout;

use super::error::MirrorFault;
use super::limits::FetchLimits;
use super::mirror_url::HttpTarget;
use super::relative_url::resolve;

/// How often an answer may lead elsewhere.
const REDIRECTS_MAX: usize = 5;
/// Bytes of a refusal that are read to be shown.
const REFUSAL_BYTES_MAX: usize = 4096;
/// How long they are waited for.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks mirrors.
#[derive(Debug)]
pub(super) struct MirrorClient {
    client: HttpClient<Empty<Bytes>>,
    limits: FetchLimits,
}

/// What a mirror answers when it is asked for a file.
#[derive(Debug)]
pub(super) enum FileAnswer {
    /// Its bytes, from one on.
    Bytes(FileBody),
    /// There are none from there on; how long the file is, if that is told.
    Beyond(Option<u64>),
}

/// Bytes of a file that are on their way.
#[derive(Debug)]
pub(super) struct FileBody {
    /// The first of them.
    pub(super) first: u64,
    /// How long the whole file is, if that is told.
    pub(super) file_bytes: Option<u64>,
    body: Incoming,
}

impl MirrorClient {
    /// For mirrors with TLS, which need to know whom this machine trusts, or without.
    pub(super) fn new(is_secure: bool, limits: FetchLimits) -> Result<Self, AskError> {
        let config = match client_config() {
            // A machine may have no roots, and a mirror without TLS needs none.
            Err(_) if !is_secure => client_config_unused()?,
            found => found?,
        };
        Ok(Self { client: build_client(config, limits.connect_timeout), limits })
    }

    /// Asks for a file from this byte on. The answer may begin elsewhere: not every server knows ranges.
    pub(super) async fn open(
        &self,
        target: &HttpTarget,
        first: u64,
    ) -> Result<FileAnswer, MirrorFault> {
        read_head(self.ask(&Method::GET, target, first).await?, first).await
    }

    /// The length of a file, if a mirror reports it.
    pub(super) async fn file_bytes(&self, target: &HttpTarget) -> Option<u64> {
        let response = self.ask(&Method::HEAD, target, 0).await.ok()?;
        let length = response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()?;
        response.status().is_success().then_some(length)
    }

    /// The answer to a request, wherever it leads.
    async fn ask(
        &self,
        method: &Method,
        target: &HttpTarget,
        first: u64,
    ) -> Result<Response<Incoming>, MirrorFault> {
        let mut target = target.clone();
        for _ in 0..=REDIRECTS_MAX {
            let asking = self.client.request(request(method, &target, first)?);
            let time = self.limits.head_timeout;
            let asked = timeout(time, asking).await.map_err(|_| AskError::Late(time))?;
            let response = asked.map_err(|error| {
                let said = innermost(&error);
                if error.is_connect() { AskError::Connect(said) } else { AskError::Broken(said) }
            })?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            target = follow(&target, response.headers())?;
        }
        Err(MirrorFault::Redirect(format!("more than {REDIRECTS_MAX} times")))
    }

    /// A whole short file.
    pub(super) async fn read(&self, target: &HttpTarget) -> Result<Bytes, MirrorFault> {
        let (time, bytes_max) = (self.limits.list_timeout, self.limits.list_bytes_max);
        let reading = async {
            let FileAnswer::Bytes(FileBody { body, .. }) = self.open(target, 0).await? else {
                return Err(MirrorFault::OtherPart("none".to_owned()));
            };
            let read = Limited::new(body, bytes_max).collect().await;
            let read = read.map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => MirrorFault::from(AskError::Broken(innermost(&*error))),
                Err(_) => AskError::TooLarge { bytes_max }.into(),
            })?;
            Ok(read.to_bytes())
        };
        timeout(time, reading).await.map_err(|_| AskError::Late(time))?
    }
}

impl FileBody {
    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, MirrorFault> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| AskError::Broken(innermost(&error)))?;
            // Trailers say nothing of the file.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

fn request(
    method: &Method,
    target: &HttpTarget,
    first: u64,
) -> Result<Request<Empty<Bytes>>, MirrorFault> {
    let mut request = Request::builder()
        .method(method)
        .uri(target.uri.clone())
        .header(USER_AGENT, concat!("quipu/", env!("CARGO_PKG_VERSION")))
        // Ranges and checksums are those of the file, not of a compressed form.
        .header(ACCEPT_ENCODING, "identity");
    if first > 0 {
        request = request.header(RANGE, format!("bytes={first}-"));
    }
    if let Some(authorization) = &target.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::new());
    request.map_err(|error| AskError::Broken(error.to_string()).into())
}

/// Where an answer leads. Credentials go to no other host, and TLS is not left.
fn follow(from: &HttpTarget, headers: &HeaderMap) -> Result<HttpTarget, MirrorFault> {
    let refused = |said: &str| MirrorFault::Redirect(said.to_owned());
    let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
    let location = location.ok_or_else(|| refused("it does not say where"))?;
    let uri: Uri = resolve(&from.uri, location).parse().map_err(|_| refused("to no URL"))?;
    match (from.uri.scheme_str(), uri.scheme_str()) {
        (Some("https"), Some("http")) => return Err(refused("away from TLS")),
        (_, Some("http" | "https")) if uri.authority().is_some() => {}
        (_, Some("http" | "https") | None) => return Err(refused("to no URL")),
        (_, Some(other)) => return Err(refused(&format!("to another protocol: {other}"))),
    }
    let is_same = uri.authority() == from.uri.authority();
    let authorization = from.authorization.clone().filter(|_| is_same);
    Ok(HttpTarget { uri, authorization })
}

async fn read_head(response: Response<Incoming>, asked: u64) -> Result<FileAnswer, MirrorFault> {
    let status = response.status();
    let headers = response.headers();
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|it| *it != "identity")
        && status.is_success()
    {
        let encoding = AskError::begin_of(encoding.as_bytes());
        return Err(MirrorFault::Encoded(encoding));
    }
    let range = headers.get(CONTENT_RANGE).and_then(|it| it.to_str().ok());
    match status {
        StatusCode::OK => {
            let body = response.into_body();
            let file_bytes = body.size_hint().exact();
            Ok(FileAnswer::Bytes(FileBody { first: 0, file_bytes, body }))
        }
        StatusCode::PARTIAL_CONTENT => {
            let other =
                || MirrorFault::OtherPart(AskError::begin_of(range.unwrap_or("?").as_bytes()));
            let part = range.and_then(parse_range).ok_or_else(other)?;
            // It must end where the file does: a shorter part would have to be asked for again.
            let is_rest =
                part.file_bytes.is_none_or(|bytes| part.last.checked_add(1) == Some(bytes));
            if part.first != asked || !is_rest {
                return Err(other());
            }
            let (first, file_bytes) = (part.first, part.file_bytes);
            Ok(FileAnswer::Bytes(FileBody { first, file_bytes, body: response.into_body() }))
        }
        StatusCode::RANGE_NOT_SATISFIABLE if asked > 0 => {
            let told = range.and_then(|range| range.strip_prefix("bytes */")?.parse().ok());
            Ok(FileAnswer::Beyond(told))
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            Err(MirrorFault::Missing { status: status.as_u16() })
        }
        _ => {
            let retry_after = retry_after(headers);
            let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX).collect();
            let body = timeout(REFUSAL_TIMEOUT, body).await.ok().and_then(Result::ok);
            let body = body.map(Collected::to_bytes).unwrap_or_default();
            let begin = match AskError::begin_of(&body) {
                begin if begin.is_empty() => {
                    status.canonical_reason().unwrap_or("it gives no reason").to_owned()
                }
                begin => begin,
            };
            Err(AskError::Status { status: status.as_u16(), retry_after, begin }.into())
        }
    }
}

/// What a `Content-Range` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilePart {
    first: u64,
    last: u64,
    file_bytes: Option<u64>,
}

/// Reads `bytes FIRST-LAST/LENGTH`, as RFC 9110 has it.
fn parse_range(text: &str) -> Option<FilePart> {
    let (range, length) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let file_bytes = if length == "*" { None } else { Some(length.parse().ok()?) };
    let part = FilePart { first: first.parse().ok()?, last: last.parse().ok()?, file_bytes };
    let is_inside = part.file_bytes.is_none_or(|bytes| part.last < bytes);
    Some(part).filter(|part| part.first <= part.last && is_inside)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_part_says_where_it_begins_and_ends() {
        let part = |first, last, file_bytes| Some(FilePart { first, last, file_bytes });
        assert_eq!(parse_range("bytes 7-9/10"), part(7, 9, Some(10)));
        assert_eq!(parse_range("bytes 7-9/*"), part(7, 9, None));
        for text in ["", "bytes */10", "bytes 9-7/10", "bytes 7-10/10", "7-9/10", "bytes a-9/10"] {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }

    fn check_redirect(from: &str, to: &str, expected: Option<(&str, bool)>) {
        let authorization = Some(HeaderValue::from_static("Basic x"));
        let from = HttpTarget { uri: from.parse().unwrap(), authorization };
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
        let found = follow(&from, &headers).ok();
        let found = found.map(|to| (to.uri.to_string(), to.authorization.is_some()));
        assert_eq!(found, expected.map(|(uri, is_sent)| (uri.to_owned(), is_sent)), "{to}");
    }

    #[test]
    fn a_redirect_may_be_relative_and_another_protocol_is_named() {
        let from = "http://a.example/x/y/f.ere";
        let same = |uri| Some((uri, true));
        check_redirect(from, "g.ere", same("http://a.example/x/y/g.ere"));
        check_redirect(from, "z/g.ere?k=a/b", same("http://a.example/x/y/z/g.ere?k=a/b"));
        check_redirect(from, "../g.ere#part", same("http://a.example/x/g.ere"));
        check_redirect(from, "../../../../g.ere", same("http://a.example/g.ere"));
        check_redirect(from, "..", same("http://a.example/x/"));
        check_redirect(from, "?k=1", same("http://a.example/x/y/f.ere?k=1"));
        check_redirect(from, "//b.example/g.ere", Some(("http://b.example/g.ere", false)));
        check_redirect(from, "https:g.ere", None);
        let target = HttpTarget { uri: from.parse().unwrap(), authorization: None };
        for (to, said) in [
            ("ftp://a.example/f", "leads elsewhere: to another protocol: ftp"),
            ("mailto:a@b.example", "leads elsewhere: to no URL"),
        ] {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(to))]);
            assert_eq!(follow(&target, &headers).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn redirects_keep_tls_and_take_credentials_to_no_other_host() {
        let from = "https://a.example/x/f.ere";
        check_redirect(from, "/y/f.ere", Some(("https://a.example/y/f.ere", true)));
        check_redirect(from, "https://b.example/f", Some(("https://b.example/f", false)));
        check_redirect(from, "http://a.example/x/f.ere", None);
        check_redirect(from, "ftp://a.example/f", None);
        check_redirect(
            "http://a.example/f",
            "https://a.example/f?k=1",
            Some(("https://a.example/f?k=1", true)),
        );
    }
}
