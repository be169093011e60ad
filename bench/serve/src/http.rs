//! One request and its answer, to know what is compared before anything is measured.

use std::fmt::Write as _;
use std::io::{Read as _, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// No answer that is measured is longer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// What one request gets, once its head is gone. Any status but 200 is an error.
pub fn ask(
    address: &str,
    path: &str,
    body: Option<&[u8]>,
    headers: &[(&str, &str)],
) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    request.push_str("Content-Type: application/json\r\nConnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    if let Some(body) = body {
        let _ = write!(request, "Content-Length: {}\r\n", body.len());
    }
    request.push_str("\r\n");
    Write::write_all(&mut stream, request.as_bytes())?;
    Write::write_all(&mut stream, body.unwrap_or_default())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).context("an answer")?;
    split(&bytes).with_context(|| format!("{method} http://{address}{path}"))
}

fn split(bytes: &[u8]) -> Result<Vec<u8>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
    let (head, body) = bytes.split_at(end);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(status == "200", "status {status}: {}", String::from_utf8_lossy(body).trim());
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("no content-length")?.trim().parse()?;
    let body = body.get(4..).unwrap_or_default();
    ensure!(body.len() == length, "{} bytes of {length} came", body.len());
    Ok(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(split(format!("{head}[]").as_bytes()).unwrap(), b"[]");
        assert!(split(format!("{head}[").as_bytes()).is_err());
        let refused = "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}";
        assert!(split(refused.as_bytes()).unwrap_err().to_string().contains("503"));
        assert!(split(b"").is_err());
    }
}
