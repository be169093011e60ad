//! Raw requests, replayed over both paths: whoever reads a request, it is answered alike.

use std::io::{ErrorKind, Read, Write};

use rpc::ServiceSettings;
use rpc::http::HttpSettings;

use crate::harness::hosted::{Hosted, service};
use crate::harness::http2::{DATA, HEADERS, Http2, SETTINGS, frame};
use crate::harness::raw_requests::{RawRequest, raw_requests, valid_request};
use crate::harness::stores::data_folder;

/// Reads one answer; its status, if it comes.
pub(crate) fn read_answer(stream: &mut impl Read) -> Option<u16> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return None,
            // It was closed before it had read all that was sent.
            Err(error)
                if [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof]
                    .contains(&error.kind()) =>
            {
                return None;
            }
            read => read.map(drop).unwrap(),
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |text| text.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    Some(head[9..12].parse().unwrap())
}

#[test]
fn both_paths_answer_raw_requests_alike() {
    let hosted = Hosted::start(
        service(&data_folder("gap"), ServiceSettings::default()),
        HttpSettings::default(),
    );
    answer_alike(|| hosted.connect());
}

/// Replays the table on connections that are opened so.
pub(crate) fn answer_alike<S: Read + Write>(connect: impl Fn() -> S) {
    for is_hyper in [false, true] {
        for RawRequest { name, raw, statuses, is_closed } in raw_requests() {
            let mut stream = connect();
            if is_hyper {
                // From here on the connection is hyper's.
                stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n").unwrap();
                assert_eq!(read_answer(&mut stream), Some(200));
            }
            // The server may have closed before all of it is sent.
            let _ = stream.write_all(&raw);
            let found: Vec<u16> = statuses.iter().map_while(|_| read_answer(&mut stream)).collect();
            assert_eq!(found, statuses, "{name}, through hyper: {is_hyper}");
            if is_closed {
                assert_eq!(read_answer(&mut stream), None, "{name}, through hyper: {is_hyper}");
            }
        }
    }
}

/// hyper writes these, and nothing of ours is asked: `docs/api.md` says so.
#[test]
fn a_head_that_cannot_be_read_is_refused_without_a_body() {
    let hosted = Hosted::start(
        service(&data_folder("gap"), ServiceSettings::default()),
        HttpSettings::default(),
    );
    let unread = |name: &str| raw_requests().into_iter().find(|row| row.name == name).unwrap();
    for (name, status) in [("no such version", 400), ("too many fields", 431)] {
        let mut stream = hosted.connect();
        stream.write_all(&unread(name).raw).unwrap();
        let mut answer = String::new();
        let ended = stream.read_to_string(&mut answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{ended:?} {answer:?}");
        assert!(body.is_empty() && !head.contains("content-type"), "{answer:?}");
    }
}

/// The connection became one of HTTP/2, while a proxy before it takes what comes for answers of HTTP/1.1.
#[test]
fn http_2_does_not_begin_behind_a_request_of_http_1() {
    let hosted = Hosted::start(
        service(&data_folder("gap"), ServiceSettings::default()),
        HttpSettings::default(),
    );
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    // Together with the request before it, and in pieces of every length behind its answer.
    for cut in 0..25 {
        let mut stream = hosted.connect();
        let (begin, rest) = preface.split_at(cut);
        stream.write_all(&[valid_request().as_bytes(), begin].concat()).unwrap();
        assert_eq!(read_answer(&mut stream), Some(200), "{cut}");
        // The server may have closed already.
        let _ = stream.write_all(rest);
        let mut last = String::new();
        let ended = stream.read_to_string(&mut last);
        assert!(last.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{cut}: {ended:?} {last:?}");
        assert!(last.contains("HTTP/2 cannot begin behind a request"), "{cut}: {last}");
    }
    // What only begins like it goes on as ever.
    let mut stream = hosted.connect();
    let other = [&valid_request(), "PRI / HTTP/1.1\r\nhost: test\r\n\r\n"].concat();
    stream.write_all(other.as_bytes()).unwrap();
    assert_eq!([(); 2].map(|()| read_answer(&mut stream)), [Some(200), Some(405)]);
}

#[test]
fn an_authority_counts_as_a_host_over_http_2() {
    let settings = HttpSettings { hosts: vec!["test".to_owned()], ..HttpSettings::default() };
    let hosted = Hosted::start(service(&data_folder("gap"), ServiceSettings::default()), settings);
    let mut http2 = Http2::open(&hosted, &[]);
    http2.get(1, "/healthz", "test:8545");
    assert_eq!(http2.next_of(DATA, 1).payload, b"ok\n");
    http2.get(3, "/openrpc.json", "evil");
    // 403 is not in the static table of heads; 200, which is 0x88, it is not.
    assert_ne!(http2.next_of(HEADERS, 3).payload[0], 0x88);
    let body = String::from_utf8(http2.next_of(DATA, 3).payload).unwrap();
    assert!(body.contains("invalid host specified"), "{body}");
    // Whoever watches the process may know it by another name.
    http2.get(5, "/healthz", "evil");
    assert_eq!(http2.next_of(DATA, 5).payload, b"ok\n");
    // It is as valid as a Host field has to be.
    for (stream_id, authority) in [(7, "user@test"), (9, "test:x")] {
        http2.get(stream_id, "/healthz", authority);
        assert_ne!(http2.next_of(HEADERS, stream_id).payload[0], 0x88, "{authority}");
        let body = String::from_utf8(http2.next_of(DATA, stream_id).payload).unwrap();
        assert!(body.contains("the host specified is not valid"), "{authority}: {body}");
    }
    // But by one name only: others may have read another request.
    let mut stream = hosted.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\nhost: test\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream), Some(400));
    // A target that names a host counts over HTTP/1.1 too.
    for (target, host, status) in [
        ("http://test/openrpc.json", "test", 200),
        ("http://evil/openrpc.json", "test", 403),
        ("http://test/openrpc.json", "evil", 403),
    ] {
        let mut stream = hosted.connect();
        let raw = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        stream.write_all(raw.as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream), Some(status), "{target} {host}");
        let raw = valid_request()
            .replace("POST /", &format!("POST {target}"))
            .replace("host: test", &format!("host: {host}"));
        let mut stream = hosted.connect();
        stream.write_all(raw.as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream), Some(status), "POST {target} {host}");
    }
}

/// hyper went on with the next request before such an answer was sent, and kept the heads of answers
/// that nobody read without a bound.
#[test]
fn a_body_that_is_not_read_ends_its_connection() {
    let hosted = Hosted::start(
        service(&data_folder("gap"), ServiceSettings::default()),
        HttpSettings::default(),
    );
    for (first_line, status) in [
        ("OPTIONS / HTTP/1.1", 204),
        ("HEAD /healthz HTTP/1.1", 200),
        ("GET /healthz HTTP/1.1", 200),
        ("DELETE / HTTP/1.1", 405),
        ("POST / HTTP/1.1\r\ncontent-type: text/plain\r\norigin: http://a", 200),
        ("POST / HTTP/1.1\r\ncontent-type: application/json\r\ncontent-encoding: x", 415),
        ("GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket", 200),
    ] {
        let request = format!(
            "{first_line}\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        );
        let mut stream = hosted.connect();
        let _ = stream.write_all(request.repeat(2).as_bytes());
        let mut answers = String::new();
        // The second request may be what the connection is reset for.
        let _ = stream.read_to_string(&mut answers);
        let count = answers.matches("HTTP/1.1 ").count();
        let is_read = first_line.contains("text/plain");
        assert!(answers.starts_with(&format!("HTTP/1.1 {status}")), "{first_line}: {answers}");
        assert!(is_read || answers.contains("connection: close"), "{first_line}: {answers}");
        assert_eq!(count, if is_read { 2 } else { 1 }, "{first_line}: {answers}");
    }
}
