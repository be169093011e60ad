//! HTTP/1.1 as clients write and read it.

use std::io::{BufRead, Error, ErrorKind, Read as _, Result};

/// Of an answer's head; the server's are a few hundred.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// No answer is longer.
const BODY_BYTES_MAX: usize = 64 << 20;

/// What nearly every client sends, which the server reads itself.
pub(crate) const PLAIN: &str = "";
/// What browsers send too, with which a request goes through hyper.
pub(crate) const BROWSER: &str = "origin: http://a.example\r\n";

/// A request with a body; `fields` are lines that are added to its head.
pub(crate) fn post(fields: &str, body: &[u8]) -> Vec<u8> {
    [post_head(fields, body.len()).as_bytes(), body].concat()
}

/// The head of a request with so many bytes behind it.
pub(crate) fn post_head(fields: &str, body_bytes: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {body_bytes}\r\n{fields}\r\n"
    )
}

/// Reads one answer: its status, with its body in `body`. `None` if the connection ended before it.
pub(crate) fn read_answer(source: &mut impl BufRead, body: &mut Vec<u8>) -> Result<Option<u16>> {
    let (mut status, mut length) = (None, 0_usize);
    let mut head_bytes = 0_usize;
    loop {
        let mut line = Vec::new();
        let left = HEAD_BYTES_MAX.saturating_sub(head_bytes);
        source.take(u64::try_from(left).unwrap_or_default()).read_until(b'\n', &mut line)?;
        head_bytes = head_bytes.saturating_add(line.len());
        let line = String::from_utf8_lossy(&line);
        let Some(line) = line.strip_suffix("\r\n") else {
            let is_end = head_bytes == 0;
            return if is_end { Ok(None) } else { Err(malformed("a head that does not end")) };
        };
        if status.is_none() {
            // A request of HTTP/1.0 has an answer of the same version.
            let rest = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
            let word = rest.and_then(|rest| rest.split(' ').next());
            let found = word.and_then(|word| word.parse().ok());
            status = Some(found.ok_or_else(|| malformed("no status line"))?);
        } else if line.is_empty() {
            break;
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            let found = value.trim().parse().ok().filter(|length| *length <= BODY_BYTES_MAX);
            length = found.ok_or_else(|| malformed("no such length"))?;
        }
    }
    body.resize(length, 0);
    source.read_exact(body)?;
    Ok(status)
}

fn malformed(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_one_by_one_and_never_beyond_their_end() {
        let mut source = &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n[]\
                            HTTP/1.1 503 Service Unavailable\r\n\r\nHTTP/1.1 2"[..];
        let mut body = Vec::new();
        assert_eq!(read_answer(&mut source, &mut body).unwrap(), Some(200));
        assert_eq!(body, b"[]");
        assert_eq!(read_answer(&mut source, &mut body).unwrap(), Some(503));
        assert_eq!(body, b"");
        assert!(read_answer(&mut source, &mut body).is_err());
        assert_eq!(read_answer(&mut source, &mut body).unwrap(), None);
        let old = b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(read_answer(&mut &old[..], &mut body).unwrap(), Some(200));
        for broken in ["what\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"] {
            assert!(read_answer(&mut broken.as_bytes(), &mut body).is_err(), "{broken}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert!(read_answer(&mut endless.as_bytes(), &mut body).is_err());
    }

    #[test]
    fn a_request_has_the_length_of_its_body() {
        let request = String::from_utf8(post(BROWSER, b"[]")).unwrap();
        assert!(request.ends_with("content-length: 2\r\norigin: http://a.example\r\n\r\n[]"));
    }
}
