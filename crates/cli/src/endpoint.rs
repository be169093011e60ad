//! Another server's JSON-RPC over plain HTTP: one body there, one body back.
//!
//! Knows: the address, one connection that is kept, and limits of size and time.
//! Never knows: what is asked.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// For a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For an answer to come back, all of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer. The largest block as JSON has some 20 MB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Tries of a question where the server is busy or the connection breaks.
const TRIES_MAX: u32 = 4;
/// Before the second try; twice as long before each further one.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Letters of a body that an error shows.
const SHOWN_MAX: usize = 200;

/// Where another server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "write http://HOST[:PORT][/PATH]".to_owned();
        let uri: Uri = text.parse().map_err(|_| wanted())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(
                    "https is not built in yet: ask over http, or through a proxy on this \
                            machine that speaks https for you"
                        .to_owned(),
                );
            }
            _ => return Err(wanted()),
        }
        let authority = uri.authority().filter(|it| !it.as_str().contains('@'));
        let host = authority.map(Authority::host).filter(|it| !it.is_empty()).ok_or_else(wanted)?;
        // The brackets of an IPv6 address belong to the URL.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(80);
        Ok(Self { uri, host, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum EndpointError {
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the connection broke: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("HTTP {status}: {begin}")]
    Status { status: StatusCode, begin: String },
}

impl EndpointError {
    /// Whether it may go better another time.
    fn is_passing(&self) -> bool {
        match self {
            Self::Broken(_) => true,
            Self::Status { status, .. } => {
                *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
            }
            Self::Connect(_) | Self::Late(_) | Self::TooLarge { .. } => false,
        }
    }
}

/// One connection, made when it is first needed and again when the server has closed it.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn to(endpoint: Endpoint) -> Self {
        Self { endpoint, sender: None }
    }

    /// Sends a body by POST; gives back the answer's body.
    pub(crate) async fn ask(&mut self, body: Vec<u8>) -> Result<Bytes, EndpointError> {
        let body = Bytes::from(body);
        let (mut tries, mut pause) = (1, RETRY_PAUSE);
        loop {
            let asking = self.ask_once(body.clone(), ANSWER_BYTES_MAX);
            let asked = timeout(ANSWER_TIMEOUT, asking).await;
            let asked = asked.unwrap_or(Err(EndpointError::Late(ANSWER_TIMEOUT)));
            match asked {
                Err(error) if tries < TRIES_MAX && error.is_passing() => {
                    self.sender = None;
                    sleep(pause).await;
                    (tries, pause) = (tries + 1, pause * 2);
                }
                asked => return asked,
            }
        }
    }

    /// The same without another try, for an answer of this size at the most. What the server never
    /// got is sent again: it may close a connection that was kept at any moment.
    pub(crate) async fn ask_once(
        &mut self,
        body: Bytes,
        bytes_max: usize,
    ) -> Result<Bytes, EndpointError> {
        let mut request = self.request(body)?;
        let (answer, sender) = loop {
            let kept = match self.sender.take() {
                Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
                None => None,
            };
            let is_kept = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => connect(&self.endpoint).await?,
            };
            match sender.try_send_request(request).await {
                Ok(answer) => break (answer, sender),
                Err(mut error) => match error.take_message().filter(|_| is_kept) {
                    Some(unsent) => request = unsent,
                    None => return Err(EndpointError::Broken(error.into_error().into())),
                },
            }
        };
        let status = answer.status();
        let body = match Limited::new(answer.into_body(), bytes_max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(cause) if cause.is::<LengthLimitError>() => {
                return Err(EndpointError::TooLarge { bytes_max });
            }
            Err(cause) => return Err(EndpointError::Broken(cause)),
        };
        self.sender = Some(sender);
        if status != StatusCode::OK {
            let letters = String::from_utf8_lossy(&body);
            let letters = letters.chars().filter(|letter| !letter.is_control());
            let begin = letters.take(SHOWN_MAX).collect();
            return Err(EndpointError::Status { status, begin });
        }
        Ok(body)
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, EndpointError> {
        let uri = &self.endpoint.uri;
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        let host = uri.authority().map_or("", |authority| authority.as_str());
        Request::builder()
            .method(Method::POST)
            .uri(target)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|cause| EndpointError::Broken(cause.into()))
    }
}

async fn connect(endpoint: &Endpoint) -> Result<SendRequest<Full<Bytes>>, EndpointError> {
    let connecting = TcpStream::connect((endpoint.host.as_str(), endpoint.port));
    let connected = timeout(CONNECT_TIMEOUT, connecting).await;
    let stream = connected.map_err(|_| EndpointError::Late(CONNECT_TIMEOUT))?;
    let stream = stream.map_err(EndpointError::Connect)?;
    // Questions are written whole: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let connected = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = connected.map_err(|cause| EndpointError::Broken(cause.into()))?;
    // Whatever ends the connection is told to whoever waits for an answer on it.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_plain_http_address() {
        for (text, host, port) in [
            ("http://localhost", "localhost", 80),
            ("http://127.0.0.1:8545/path?key=1", "127.0.0.1", 8545),
            ("http://[::1]:8545", "::1", 8545),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port));
        }
        for text in ["", "localhost:8545", "ftp://a", "http://", "http://a:b@c", "http:// a", "/"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        let refused = "https://a.example".parse::<Endpoint>().unwrap_err();
        assert!(refused.starts_with("https is not built in yet"), "{refused}");
    }
}
