//! The address of a node, and which parts of it may be shown.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use hyper::Uri;
use hyper::header::HeaderValue;
use thiserror::Error;

/// What is shorter is like `/v3`, and would be hidden wherever it occurs.
const SECRET_BYTES_MIN: usize = 4;
/// One segment of a path that is as long and has a digit in it, or is twice as long, is a key.
const KEY_BYTES_MIN: usize = 8;
/// In place of one.
const HIDDEN: &str = "...";

/// How a node is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    WebSocket,
}

/// The address of a node. Only its host and port are ever shown: the rest may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    pub(super) scheme: Scheme,
    /// Whether TLS is used.
    pub is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Without credentials.
    pub uri: Uri,
    /// The `Authorization` header of its credentials.
    pub authorization: Option<HeaderValue>,
    name: String,
}

/// Why a text is not the address of a node. The text is not repeated: it may hold a key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not the address of a node: {0}")]
pub struct AddressError(&'static str);

const NO_URL: AddressError =
    AddressError("invalid URL; write http, https, ws or wss, then ://HOST[:PORT][/PATH]");
const NO_HOST: AddressError =
    AddressError("no host; write http, https, ws or wss, then ://HOST[:PORT][/PATH]");

impl FromStr for UpstreamUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        // A host and a port alone can be read as a URI of another form.
        if !text.contains("://") {
            return Err(AddressError("no scheme; put http:// or ws:// in front"));
        }
        let uri: Uri = text.parse().map_err(|_| NO_URL)?;
        let (scheme, is_secure) = match uri.scheme_str() {
            Some("http") => (Scheme::Http, false),
            Some("https") => (Scheme::Http, true),
            Some("ws") => (Scheme::WebSocket, false),
            Some("wss") => (Scheme::WebSocket, true),
            _ => return Err(AddressError("unsupported scheme; use http, https, ws or wss")),
        };
        let authority = uri.authority().ok_or(NO_HOST)?.clone();
        let (credentials, place) = match authority.as_str().rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, authority.as_str()),
        };
        let host = authority.host();
        if host.is_empty() {
            return Err(NO_HOST);
        }
        let authorization = credentials.map(basic).transpose()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let shown = uri.scheme_str().unwrap_or_default();
        let plain = format!("{shown}://{place}{path}");
        let plain = plain.parse().map_err(|_| NO_URL)?;
        Ok(Self {
            scheme,
            is_secure,
            // The brackets of an IPv6 address belong to the URL.
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            uri: plain,
            authorization,
            name: place.to_owned(),
        })
    }
}

impl UpstreamUrl {
    /// Host and port: what logs and reports call the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is asked over HTTP or HTTPS.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.scheme == Scheme::Http
    }

    /// Whether it is asked over a WebSocket, where a node can send notifications.
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        self.scheme == Scheme::WebSocket
    }

    /// The text of a node without what may be secret of its address: some nodes repeat the
    /// request, and their texts are logged and shown. One that was cut may end within a secret.
    pub(super) fn hide_in(&self, mut text: String, is_cut: bool) -> String {
        for secret in self.secrets() {
            text = text.replace(&secret, HIDDEN);
            let mut begins =
                (SECRET_BYTES_MIN..secret.len()).rev().filter_map(|end| secret.get(..end));
            if let Some(begin) = begins.find(|begin| is_cut && text.ends_with(begin)) {
                text.truncate(text.len().saturating_sub(begin.len()));
                text.push_str(HIDDEN);
            }
        }
        text
    }

    /// Whole parts before parts of theirs, each as it is sent and as it is meant. Words that a node may
    /// say of itself are left: what it says also tells what went wrong.
    fn secrets(&self) -> Vec<String> {
        let path = self.uri.path_and_query().map_or("", |path| path.as_str());
        let mut secrets = vec![path.to_owned(), self.uri.path().to_owned()];
        secrets.extend(self.uri.query().map(str::to_owned));
        let is_key = |part: &&str| {
            let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
            part.len() >= if has_digit { KEY_BYTES_MIN } else { 2 * KEY_BYTES_MIN }
        };
        secrets.extend(path.split(['/', '?', '&', '=']).filter(is_key).map(str::to_owned));
        if let Some(header) = self.authorization.as_ref().and_then(|it| it.to_str().ok()) {
            let encoded = header.rsplit(' ').next().unwrap_or_default();
            let plain = BASE64.decode(encoded.as_bytes()).unwrap_or_default();
            let plain = String::from_utf8_lossy(&plain).into_owned();
            secrets.extend(plain.split_once(':').map(|(_, password)| password.to_owned()));
            secrets.extend([encoded.to_owned(), plain]);
        }
        let meant: Vec<String> =
            secrets.iter().filter_map(|secret| String::from_utf8(unescape(secret)?).ok()).collect();
        secrets.extend(meant);
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }

    /// Whether the node is on this machine, where compressing answers only costs time.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamUrl({})", self.name)
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The header for a user and a password, as RFC 7617 has it.
fn basic(credentials: &str) -> Result<HeaderValue, AddressError> {
    let refused = AddressError("its user or password is not well escaped");
    let plain = unescape(credentials).ok_or(refused)?;
    let text = format!("Basic {}", BASE64.encode(&plain));
    let mut value = HeaderValue::from_str(&text).map_err(|_| refused)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Bytes with their percent-escapes resolved.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        plain.push(u8::from_str_radix(digits, 16).ok()?);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        for (text, name, port, is_secure) in [
            ("http://localhost:8545", "localhost:8545", 8545, false),
            ("https://node.example/v3/key", "node.example", 443, true),
            ("ws://[::1]:8546", "[::1]:8546", 8546, false),
            ("wss://node.example/?key=1", "node.example", 443, true),
        ] {
            let url: UpstreamUrl = text.parse().unwrap();
            assert_eq!((url.name(), url.port, url.is_secure), (name, port, is_secure), "{text}");
        }
        for text in ["", "localhost", "ftp://a", "http://", "/path", "http://a%zz:b@c"] {
            assert!(text.parse::<UpstreamUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        let url: UpstreamUrl =
            "https://alice:s%40crecy@node.example/v3/hidden?k=hidden".parse().unwrap();
        let shown = format!("{url} {url:?} {:?}", url.authorization);
        for secret in ["alice", "crecy", "hidden"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let header = url.authorization.unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic YWxpY2U6c0BjcmVjeQ==");
        assert_eq!(url.uri.to_string(), "https://node.example/v3/hidden?k=hidden");
    }

    #[test]
    fn what_a_node_repeats_of_its_address_is_hidden() {
        let url: UpstreamUrl =
            "https://alice:s%40crecy@node.example/v3/a%2Fb/0123456789abcdef?k=hidden"
                .parse()
                .unwrap();
        let said = |text: &str| url.hide_in(text.to_owned(), false);
        for (text, expected) in [
            ("Cannot POST /v3/a%2Fb/0123456789abcdef?k=hidden", "Cannot POST ..."),
            ("Cannot POST /v3/a/b/0123456789abcdef", "Cannot POST ..."),
            ("no key 0123456789abcdef, k=hidden", "no key ..., ..."),
            ("Basic YWxpY2U6c0BjcmVjeQ==, alice:s@crecy, s@crecy", "Basic ..., ..., ..."),
            // Short parts of a path may be words of any sentence.
            ("v3: the block of alice is not found", "v3: the block of alice is not found"),
            ("ends with /v3/a", "ends with /v3/a"),
        ] {
            assert_eq!(said(text), expected);
        }
        assert_eq!(url.hide_in("cut at 0123456789".to_owned(), true), "cut at ...");
        assert_eq!(said("not cut at 0123456789"), "not cut at 0123456789");
        let plain: UpstreamUrl = "http://localhost:8545/foundry".parse().unwrap();
        assert_eq!(plain.hide_in("block not found".to_owned(), true), "block not found");
    }
}
