//! HTTP/2 by hand: frames as they are sent, and as they come back.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::harness::hosted::Hosted;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[high, middle, low, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A frame that came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u8,
    pub(crate) payload: Vec<u8>,
}

/// A connection.
pub(crate) struct Http2 {
    pub(crate) stream: TcpStream,
}

impl Http2 {
    /// Begins with these settings.
    pub(crate) fn open(hosted: &Hosted, settings: &[(u16, u32)]) -> Self {
        let mut stream = hosted.connect();
        let pairs = settings.iter();
        let settings: Vec<u8> = pairs
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &settings)).unwrap();
        Self { stream }
    }

    /// Asks for a page of a host.
    pub(crate) fn get(&mut self, stream: u8, path: &str, host: &str) {
        let head = [&b"\x82\x86"[..], &field(0x04, path), &field(0x01, host)].concat();
        self.stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)).unwrap();
    }

    /// Asks by POST.
    pub(crate) fn post(&mut self, stream: u8, body: &[u8]) {
        // POST, http, a path, a host and a content type in HPACK's plainest form.
        let head =
            [&b"\x83\x86\x84"[..], &field(0x01, "test"), &[0x0f, 0x10], &text("application/json")]
                .concat();
        let mut bytes = frame(HEADERS, END_HEADERS, stream, &head);
        let mut parts = body.chunks(16_384).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { END_STREAM } else { 0 };
            bytes.extend(frame(DATA, flags, stream, part));
        }
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next frame; `None` when the server closed.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame { kind: head[3], flags: head[4], stream: head[8], payload })
    }

    /// The next frame of a kind on a stream.
    pub(crate) fn next_of(&mut self, kind: u8, stream: u8) -> Frame {
        loop {
            let frame = self.next().unwrap_or_else(|| panic!("closed before {kind} on {stream}"));
            if frame.kind == kind && frame.stream == stream {
                return frame;
            }
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// A field whose name is in the static table, not to be remembered.
fn field(name: u8, value: &str) -> Vec<u8> {
    [vec![name], text(value)].concat()
}
