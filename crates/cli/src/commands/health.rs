//! `quipu health`: whether a running server is well, asked over HTTP as any other client would.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rpc::http::NOT_ENCRYPTED;

use crate::Failure;
use crate::args::health::HealthArgs;
use crate::output::print_lines;

/// For the server to be reached, and again for every part of its answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

pub(crate) fn run(args: &HealthArgs) -> Result<(), Failure> {
    let address = match &args.metrics_listen {
        Some(listen) => listen.resolve_for("--metrics-listen")?,
        None => args.listen.resolve()?,
    };
    let address = reachable(address);
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let place = format!("http://{address}{path}");
    let answer = ask(address, path).with_context(|| place.clone())?;
    let Some((code, body)) = parse_answer(&answer) else {
        return Err(Failure::Work(anyhow!("{place}: this is no answer over HTTP")));
    };
    if code != 200 {
        let hint = if body.contains(NOT_ENCRYPTED) {
            "\n  hint: set metrics_listen: health is asked there, without TLS"
        } else {
            ""
        };
        return Err(Failure::Work(anyhow!("{place}: {code}: {}{hint}", body.trim())));
    }
    Ok(print_lines(&[body.trim().to_owned()])?)
}

/// An address that can be asked: what listens on all of them listens on the loopback address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(it) if it.ip().is_unspecified() => {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        SocketAddr::V6(it) if it.ip().is_unspecified() => {
            address.set_ip(Ipv6Addr::LOCALHOST.into());
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    address
}

fn ask(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // In one piece: a server that refuses the first byte would not see the others.
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The code and the body; none for what is no answer.
fn parse_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    Some((code.parse().ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_the_loopback_address() {
        for (listen, expected) in [
            ("0.0.0.0:8545", "127.0.0.1:8545"),
            ("[::]:8545", "[::1]:8545"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn an_answer_has_a_code_and_a_body() {
        let ok = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n";
        assert_eq!(parse_answer(ok), Some((200, "ok\n")));
        for wrong in
            ["", "\r\n\r\n", "HTTP/1.1 2\r\n\r\n", "\u{15}\u{3}\u{3}", "HTTP/1.1 200 OK\r\n"]
        {
            assert_eq!(parse_answer(wrong), None, "{wrong:?}");
        }
    }
}
