//! Connections without sockets, for fuzzers: bytes go in and come out of a pipe in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::{AcceptedConnection, ConnectionLimiter};
use crate::http::Server;
use crate::http::fast_path::{self, FastPathOutcome};

/// Who reads a connection first.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstReader {
    /// The fast path, and hyper from the first request on that is none of its kind: as ever.
    FastPath,
    /// hyper, from the first byte on.
    Hyper,
}

impl Server {
    /// Serves a connection to its end, on the task that asks for it.
    #[doc(hidden)]
    pub async fn serve_in_memory(self: &Arc<Self>, stream: DuplexStream, first: FirstReader) {
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let Ok(place) = ConnectionLimiter::new(1, None).enter(client) else { return };
        let (server, open) = (Arc::clone(self), self.counters.open());
        let taken = AcceptedConnection { server, client, open, _place: place };
        // Kept to the end: whoever sees it gone takes the server for one that stops.
        let is_stopping = watch::Sender::new(false);
        let mut stopping = is_stopping.subscribe();
        let (stream, unread) = match first {
            FirstReader::Hyper => (stream, Bytes::new()),
            FirstReader::FastPath => {
                match fast_path::serve(self, stream, client, &mut stopping).await {
                    FastPathOutcome::Ended => return,
                    FastPathOutcome::Other(stream, unread) => (stream, unread),
                }
            }
        };
        taken.serve_other(stream, unread, &mut stopping).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chain::ChainSpec;
    use store::disk::Folder;
    use store::read::Inline;
    use store::{Limits, Store};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::http::HttpSettings;
    use crate::{Service, ServiceSettings};

    const PLAIN: &str = "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
        content-length: 2\r\n\r\n{}";
    /// Both paths end the connection at this one.
    const MALFORMED: &str = "POST / HTTP/1.1\r\nno field\r\n\r\n";

    fn server(folder: &std::path::Path) -> Arc<Server> {
        let disk = Arc::new(Folder::create(folder).unwrap());
        let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
        let spec = ChainSpec::bare("private", Some(1337), None);
        let service = Service::new(Arc::new(store), spec, ServiceSettings::default());
        Arc::new(Server::new(Arc::new(service), HttpSettings::default()))
    }

    /// The statuses of all answers until the server closes.
    async fn statuses(server: &Arc<Server>, raw: &[u8], first: FirstReader) -> String {
        let (mut client, stream) = duplex(1 << 20);
        client.write_all(raw).await.unwrap();
        let mut answered = Vec::new();
        let reading = client.read_to_end(&mut answered);
        let both = async { tokio::join!(server.serve_in_memory(stream, first), reading) };
        timeout(Duration::from_secs(10), both).await.expect("the server closes").1.unwrap();
        let text = String::from_utf8_lossy(&answered);
        let statuses = text.split("HTTP/1.").skip(1).filter_map(|answer| answer.get(2..5));
        statuses.collect::<Vec<_>>().join(" ")
    }

    /// The first was found by fuzzing both paths against each other, the others by reading on from there:
    /// the fast path answered each with 200.
    #[tokio::test]
    async fn requests_that_were_read_in_two_ways_are_answered_alike() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path());
        let with = |from: &str, to: &str| PLAIN.replace(from, to);
        let json = "content-type: application/json\r\n";
        for (name, raw, expected) in [
            ("two types", with(json, &format!("content-type: text/html\r\n{json}")), "415"),
            ("a type that is no text", with("json\r\n", "json; \u{e9}\r\n"), "415"),
            ("a letter that no path has", with("POST /", "POST /<"), "400"),
        ] {
            let raw = [&raw, MALFORMED].concat();
            for first in [FirstReader::FastPath, FirstReader::Hyper] {
                let found = statuses(&server, raw.as_bytes(), first).await;
                assert_eq!(found, expected, "{name}, {first:?}");
            }
        }
    }

    /// RFC 9112, 3.2: the first of these were answered with 200.
    #[tokio::test]
    async fn a_request_needs_one_valid_host() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path());
        let health = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
        for (host, expected) in [
            ("", "400"),
            ("host: a b\r\n", "400"),
            ("host: a/b\r\n", "400"),
            ("host: user@a\r\n", "400"),
            ("host: a:b\r\n", "400"),
            ("host: [::1\r\n", "400"),
            ("host: \u{e9}\r\n", "400"),
            ("host: a\r\nhost: a\r\n", "400"),
            ("host:\r\n", "200 400"),
            ("host: [::1]:8545\r\n", "200 400"),
        ] {
            for request in [PLAIN, &PLAIN.replace("POST /", "POST http://a/"), health] {
                let raw = [&request.replace("host: a\r\n", host), MALFORMED].concat();
                for first in [FirstReader::FastPath, FirstReader::Hyper] {
                    let found = statuses(&server, raw.as_bytes(), first).await;
                    assert_eq!(found, expected, "{raw}, {first:?}");
                }
            }
        }
        // Before HTTP/1.1 there was no such field.
        let old = PLAIN.replace("HTTP/1.1\r\nhost: a\r\n", "HTTP/1.0\r\n");
        for first in [FirstReader::FastPath, FirstReader::Hyper] {
            assert_eq!(statuses(&server, old.as_bytes(), first).await, "200", "{first:?}");
        }
    }

    /// The time limit was chosen by the bytes of the first read: HTTP/2 that came as `PR` and the rest
    /// had the limit of a head between its requests, and a head that began with `PRI` had none.
    #[tokio::test(start_paused = true)]
    async fn the_protocol_is_decided_by_the_same_bytes_however_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path());
        let HttpSettings { header_timeout, idle_timeout, .. } = *server.settings;
        let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        // Its answer begins with the length of a short frame.
        let (frame, refused): (&[u8], &[u8]) = (b"\0\0", b"HTTP/1.1 405");
        let cases: [(&str, &[u8], &[u8], Duration); 5] = [
            ("HTTP/2", http2, frame, idle_timeout),
            ("half of a preface", b"PRI * HTTP/2.0\r\n", b"", header_timeout),
            ("half of a head", b"PRIX / HTTP/1.1\r\nhost: a\r\n", b"", header_timeout),
            ("a method", b"PRIX / HTTP/1.1\r\nhost: a\r\n\r\n", refused, idle_timeout),
            ("another", b"PRI / HTTP/1.1\r\nhost: a\r\n\r\n", refused, idle_timeout),
        ];
        for (name, raw, expected, time) in cases {
            for first in [FirstReader::FastPath, FirstReader::Hyper] {
                for read_bytes in [1, 2, 3, 5, 24, 1024] {
                    // No read finds more than the pipe holds.
                    let (client, stream) = duplex(read_bytes);
                    let (mut reader, mut writer) = tokio::io::split(client);
                    let begun = Instant::now();
                    let mut answered = Vec::new();
                    let ((), written, read) = tokio::join!(
                        server.serve_in_memory(stream, first),
                        writer.write_all(raw),
                        reader.read_to_end(&mut answered),
                    );
                    written.and(read.map(drop)).unwrap();
                    let case = format!("{name}, {read_bytes} at a time, {first:?} first");
                    let said = String::from_utf8_lossy(&answered);
                    assert!(answered.starts_with(expected), "{case}: {said}");
                    let took = begun.elapsed();
                    let is_in_time = took >= time && took < time + Duration::from_secs(1);
                    assert!(is_in_time, "{case}: closed after {took:?}, expected {time:?}");
                }
            }
        }
    }

    /// Requests that came together were answered without a pause.
    #[tokio::test]
    async fn requests_that_come_together_let_others_in() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path());
        // All is there before it is read, so that only the server decides when it waits.
        let (mut client, stream) = duplex(4 << 20);
        client.write_all(PLAIN.repeat(3200).as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let serving = server.serve_in_memory(stream, FirstReader::FastPath);
        timeout(Duration::from_mins(1), serving).await.expect("the client has closed");
        // At most 32 requests are one slice.
        let pauses = server.budget().pauses();
        assert!(pauses >= 99, "{pauses} turns for others");
    }

    /// They were read until the runtime's own count of reads ran out, a megabyte later, for which others
    /// waited tens of milliseconds.
    #[tokio::test]
    async fn frames_that_are_much_work_for_few_bytes_let_others_in() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let handshake = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\n\
            upgrade: websocket\r\nsec-websocket-version: 13\r\n\
            sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        // Masks of zeros: a message that begins, and a byte more of it.
        let text = [0x01, 0x81, 0, 0, 0, 0, b'['];
        let more = [0x00, 0x81, 0, 0, 0, 0, b' '];
        for (name, begin, frame) in [
            ("SETTINGS", preface.to_vec(), settings.to_vec()),
            ("parts of a message", [&handshake[..], &text].concat(), more.to_vec()),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let server = server(folder.path());
            let raw = [begin, frame.repeat(440_000)].concat();
            // All is there before it is read, so that only the server decides when it waits.
            let (mut client, stream) = duplex(4 << 20);
            client.write_all(&raw).await.unwrap();
            client.shutdown().await.unwrap();
            let serving = server.serve_in_memory(stream, FirstReader::FastPath);
            timeout(Duration::from_mins(1), serving).await.expect("the client has closed");
            // 10 ns a frame, which no machine does, would be 22 slices.
            let pauses = server.budget().pauses();
            assert!(pauses >= 20, "{name}: {pauses} turns for others");
        }
    }
}
