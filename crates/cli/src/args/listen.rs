//! Where to listen, in the forms that people write.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use anyhow::anyhow;

use crate::Failure;

/// What stands for a port that is left out.
const PORT_DEFAULT: u16 = 8545;
/// The same where metrics are asked for.
const METRICS_PORT_DEFAULT: u16 = 9545;

/// Where to listen, as it was written. A name is looked up by whoever listens: every command reads the
/// file with settings, and none of the others shall depend on a name server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Socket(SocketAddr),
    Named { name: String, port: u16 },
}

impl ListenAddress {
    /// The address, of a name the first one, of IPv4 if it has any.
    pub(crate) fn resolve(&self) -> Result<SocketAddr, Failure> {
        self.resolve_for("--listen")
    }

    /// The same for another flag, which errors name.
    pub(crate) fn resolve_for(&self, flag: &str) -> Result<SocketAddr, Failure> {
        let (name, port) = match self {
            Self::Socket(address) => return Ok(*address),
            Self::Named { name, port } => (name.as_str(), *port),
        };
        let found = (name, port)
            .to_socket_addrs()
            .map_err(|error| Failure::Usage(anyhow!("{flag} {name}: {error}; {}", wrong())))?;
        let found = found.min_by_key(|address| !address.is_ipv4());
        found.ok_or_else(|| Failure::Usage(anyhow!("{flag} {name}: it has no address")))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => write!(f, "{address}"),
            Self::Named { name, port } => write!(f, "{name}:{port}"),
        }
    }
}

/// `ADDRESS:PORT`, a name in place of the address, or either of the two alone. An address that is left
/// out is the loopback address: to be asked by other machines is for an operator to say.
pub(super) fn parse_listen(text: &str) -> Result<ListenAddress, String> {
    parse(text, PORT_DEFAULT)
}

/// The same with another port where it is left out.
pub(super) fn parse_metrics_listen(text: &str) -> Result<ListenAddress, String> {
    parse(text, METRICS_PORT_DEFAULT)
}

/// A host name or an address without its port. What no Host header can have is refused: a server with
/// only that name would reject every request.
pub(super) fn parse_allowed_host(text: &str) -> Result<String, String> {
    if let Ok(ListenAddress::Socket(address)) = parse_listen(text)
        && address.ip().is_unspecified()
    {
        return Err(format!(
            "this address stands for all interfaces and is in no Host header; did you mean --listen \
             {address}?"
        ));
    }
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let is_address = bare.parse::<IpAddr>().is_ok();
    if is_address || (!bare.is_empty() && bare.chars().all(is_of_name)) {
        return Ok(bare.to_owned());
    }
    Err("write a host name without scheme, port and wildcard, such as rpc.example".to_owned())
}

/// An origin as browsers send it, with which it is compared letter by letter; `*` stands for all.
pub(super) fn parse_origin(text: &str) -> Result<String, String> {
    // Pages of sandboxes and files.
    if ["*", "null"].contains(&text) {
        return Ok(text.to_owned());
    }
    let is_plain = |letter: char| letter.is_ascii_graphic() && !letter.is_ascii_uppercase();
    let (scheme, host) = text.split_once("://").unwrap_or_default();
    let is_default_port = [("http", ":80"), ("https", ":443")]
        .iter()
        .any(|(name, port)| scheme == *name && host.ends_with(port));
    let is_origin = !scheme.is_empty()
        && !host.is_empty()
        && text.chars().all(is_plain)
        && !host.contains(['/', '?', '#', '@', '*']);
    if is_origin && !is_default_port {
        return Ok(text.to_owned());
    }
    Err("write an origin as browsers send it: scheme, host and any unusual port, in lower case and without \
         a path, such as https://app.example; or * for all"
        .to_owned())
}

fn parse(text: &str, port_default: u16) -> Result<ListenAddress, String> {
    let socket = |address, port| ListenAddress::Socket(SocketAddr::new(address, port));
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(ListenAddress::Socket(address));
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok(socket(loopback, port));
    }
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(socket(address, port_default));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
        None => (text, port_default),
    };
    // Machines disagree on which of its two addresses comes first.
    if name == "localhost" {
        return Ok(socket(loopback, port));
    }
    // Digits alone would be taken for an address of long ago.
    let has_letter = name.chars().any(|letter| letter.is_ascii_alphabetic());
    if !has_letter || !name.chars().all(is_of_name) {
        return Err(wrong());
    }
    Ok(ListenAddress::Named { name: name.to_owned(), port })
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._".contains(letter)
}

fn wrong() -> String {
    "write ADDRESS:PORT, such as 127.0.0.1:8545 or 0.0.0.0:8545 for all interfaces, or a port"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_host_is_one_that_a_request_can_have() {
        for text in ["0.0.0.0", "0.0.0.0:8545", "::", "[::]", "[::]:8545"] {
            let refused = parse_allowed_host(text).unwrap_err();
            assert!(refused.contains("did you mean --listen "), "{text}: {refused}");
        }
        for text in ["", "*", "*.example", "rpc.example:443", "[::1]:8545", "https://rpc.example"] {
            assert!(parse_allowed_host(text).is_err(), "{text}");
        }
        for text in ["rpc.example", "localhost", "127.0.0.1", "::1"] {
            assert_eq!(parse_allowed_host(text).as_deref(), Ok(text));
        }
        assert_eq!(parse_allowed_host("[::1]").as_deref(), Ok("::1"));
    }

    #[test]
    fn an_origin_is_one_that_a_browser_can_send() {
        for text in [
            "*",
            "null",
            "https://app.example",
            "http://localhost:3000",
            "http://[::1]:8080",
            "https://app.example:8443",
            "chrome-extension://abcdefgh",
        ] {
            assert_eq!(parse_origin(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "app.example",
            "https://",
            "://app.example",
            "https://app.example/",
            "https://app.example/page",
            "https://App.example",
            "HTTPS://app.example",
            "https://*.example",
            "https://app.example:443",
            "http://app.example:80",
            "https://me@app.example",
            "https://app.example?a",
            "https://a.example b",
        ] {
            assert!(parse_origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_or_an_address_may_be_left_out_and_no_name_is_looked_up() {
        for (text, expected) in [
            ("127.0.0.1:8545", "127.0.0.1:8545"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:9", "[::1]:9"),
            ("9545", "127.0.0.1:9545"),
            (":9545", "127.0.0.1:9545"),
            ("localhost:0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:8545"),
            ("0.0.0.0", "0.0.0.0:8545"),
            ("::1", "[::1]:8545"),
            ("[::]", "[::]:8545"),
            ("no-such-host.invalid:7", "no-such-host.invalid:7"),
            ("no-such-host.invalid", "no-such-host.invalid:8545"),
        ] {
            assert_eq!(parse_listen(text).unwrap().to_string(), expected, "{text}");
        }
        for text in
            ["", ":", "localhost:", "70000", "http://localhost:8545", "a b:1", "127.0.0.1:x"]
        {
            assert!(parse_listen(text).is_err(), "{text}");
        }
        let metrics = |text| parse_metrics_listen(text).unwrap().to_string();
        assert_eq!(
            (metrics("0.0.0.0"), metrics("1")),
            ("0.0.0.0:9545".into(), "127.0.0.1:1".into())
        );
    }
}
