//! HTTP/2 by hand: frames as they are sent, and as they come back.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use crate::harness::hosted::Hosted;
use crate::harness::http2_frames::{self as frames, Http2Frame, read_frame};

pub(crate) use crate::harness::http2_frames::{DATA, HEADERS, PING, SETTINGS, frame};

pub(crate) const GOAWAY: u8 = 7;

/// A connection.
pub(crate) struct Http2 {
    pub(crate) stream: TcpStream,
}

impl Http2 {
    /// Begins with these settings.
    pub(crate) fn open(hosted: &Hosted, settings: &[(u16, u32)]) -> Self {
        let mut stream = hosted.connect();
        stream.write_all(&frames::preface(settings)).unwrap();
        Self { stream }
    }

    /// Begins a connection to a server that is another process.
    pub(crate) fn at(address: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&frames::preface(&[])).unwrap();
        Self { stream }
    }

    /// Asks by POST, with a path and with fields.
    pub(crate) fn post_with(
        &mut self,
        stream: u32,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) {
        let sent = frames::post_with(stream, path, fields, body);
        self.stream.write_all(&sent).unwrap();
    }

    /// Asks for a page of a host.
    pub(crate) fn get(&mut self, stream: u32, path: &str, host: &str) {
        self.stream.write_all(&frames::get(stream, path, host)).unwrap();
    }

    /// Asks by POST.
    pub(crate) fn post(&mut self, stream: u32, body: &[u8]) {
        self.stream.write_all(&frames::post(stream, body)).unwrap();
    }

    /// The next frame; `None` when the server closed.
    pub(crate) fn next(&mut self) -> Option<Http2Frame> {
        read_frame(&mut self.stream).ok()
    }

    /// The next frame of a kind on a stream.
    pub(crate) fn next_of(&mut self, kind: u8, stream: u32) -> Http2Frame {
        loop {
            let frame = self.next().unwrap_or_else(|| panic!("closed before {kind} on {stream}"));
            if frame.kind == kind && frame.stream == stream {
                return frame;
            }
        }
    }
}
