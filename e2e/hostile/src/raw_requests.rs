//! Raw requests of HTTP/1.1, right and wrong, and how they are answered. The tests of the executable
//! replay this table over both paths of the server.

const POST: &str = "POST / HTTP/1.1\r\n";
const USUAL: &str = "host: test\r\ncontent-type: application/json\r\n";
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;

/// What is sent, and the statuses that come back; then whether the server closes.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) name: &'static str,
    pub(crate) raw: Vec<u8>,
    pub(crate) statuses: &'static [u16],
    pub(crate) is_closed: bool,
}

fn row(name: &'static str, raw: impl Into<Vec<u8>>, statuses: &'static [u16]) -> RawRequest {
    // What is malformed ends the connection; what is only refused does not.
    let is_closed = statuses.last().is_some_and(|status| [400, 414, 431].contains(status));
    RawRequest { name, raw: raw.into(), statuses, is_closed }
}

/// A request that is as it should be.
pub(crate) fn valid_request() -> String {
    format!("{POST}{USUAL}content-length: {}\r\n\r\n{BODY}", BODY.len())
}

/// All of them.
pub(crate) fn raw_requests() -> Vec<RawRequest> {
    let valid = valid_request();
    let with = |more: &str| valid.replace("host: test\r\n", &format!("host: test\r\n{more}\r\n"));
    let long = "y".repeat(70_000);
    vec![
        row("a request", valid.clone(), &[200]),
        row("three together", valid.repeat(3), &[200, 200, 200]),
        row("a request and half of the next", [&valid, POST, "host: te"].concat(), &[200]),
        row("a request and half of a body", [&valid, &valid[..valid.len() - 9]].concat(), &[200]),
        row(
            "chunked",
            with("transfer-encoding: chunked").replace(
                &format!("content-length: {}\r\n\r\n{BODY}", BODY.len()),
                &format!("\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()),
            ),
            &[200],
        ),
        row("a field without a colon", [&valid, POST, "host test\r\n\r\n"].concat(), &[200, 400]),
        row("no such version", "POST / HTTP/3.7\r\nhost: test\r\n\r\n", &[400]),
        row("a method of blanks", "   / HTTP/1.1\r\nhost: test\r\n\r\n", &[400]),
        row("a control character in a name", with("x\u{1}: y"), &[400]),
        row(
            "a length that is none",
            valid.replace("content-length: 5", "content-length: x"),
            &[400],
        ),
        row("two lengths", with("content-length: 3"), &[400]),
        row("a head that is too long", with(&format!("x: {long}")), &[431]),
        row("too many fields", with(&"x: y\r\n".repeat(200)[..1198]), &[431]),
        row("two hosts", with("host: test"), &[400]),
        row("two hosts in any case", with("HOST: other"), &[400]),
        row("no host", valid.replace("host: test\r\n", ""), &[400]),
        row("a host that is none", valid.replace("host: test", "host: user@test"), &[400]),
        row(
            "a target whose host is none",
            valid.replace("POST / ", "POST http://user@test/ "),
            &[400],
        ),
        row(
            "no host before HTTP/1.1",
            valid.replace("HTTP/1.1\r\nhost: test\r\n", "HTTP/1.0\r\n"),
            &[200],
        ),
        row(
            "too long a body that waits to be asked for",
            format!("{POST}{USUAL}expect: 100-continue\r\ncontent-length: 6000000\r\n\r\n"),
            &[413],
        ),
        row("another content type", valid.replace("application/json", "text/html"), &[415]),
        row("a page that is not there", "GET /nowhere HTTP/1.1\r\nhost: test\r\n\r\n", &[404]),
        row("another method", "PUT / HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n", &[405]),
    ]
}
