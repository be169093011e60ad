//! Frames of HTTP/2, written and read by hand. The tests of the executable use this file too.

use std::io::{Read, Result};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;

pub(crate) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Bytes of a frame that every peer takes.
const PAYLOAD_BYTES_MAX: usize = 16_384;

/// A frame. Its payload is shorter than 16 MiB.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let [_, high, middle, low] = length.to_be_bytes();
    [&[high, middle, low, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// What a client begins a connection with.
pub(crate) fn preface(settings: &[(u16, u32)]) -> Vec<u8> {
    let pairs = settings.iter();
    let settings: Vec<u8> = pairs
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
        .collect();
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &settings)].concat()
}

/// Asks for a page of a host.
pub(crate) fn get(stream: u32, path: &str, host: &str) -> Vec<u8> {
    let head = [&b"\x82\x86"[..], &field(0x04, path), &field(0x01, host)].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)
}

/// The head of a POST of JSON: POST, http, a path, a host, a content type, and fields whose names are in
/// no table.
pub(crate) fn post_head(stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let usual = [&field(0x01, "test")[..], &[0x0f, 0x10], &text("application/json")].concat();
    let more = fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat());
    let head = [&b"\x83\x86"[..], &field(0x04, path), &usual, &more.collect::<Vec<_>>()].concat();
    frame(HEADERS, END_HEADERS, stream, &head)
}

/// Asks by POST.
pub(crate) fn post(stream: u32, body: &[u8]) -> Vec<u8> {
    post_with(stream, "/", &[], body)
}

/// The same with a path and with fields whose names are in no table.
pub(crate) fn post_with(stream: u32, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = post_head(stream, path, fields);
    let mut parts = body.chunks(PAYLOAD_BYTES_MAX).peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_none() { END_STREAM } else { 0 };
        bytes.extend(frame(DATA, flags, stream, part));
    }
    bytes
}

/// A frame that came.
#[derive(Debug)]
pub(crate) struct Http2Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The next frame.
pub(crate) fn read_frame(source: &mut impl Read) -> Result<Http2Frame> {
    let mut length = [0; 4];
    let [_, rest @ ..] = &mut length;
    source.read_exact(rest)?;
    let [mut kind, mut flags] = [[0]; 2];
    source.read_exact(&mut kind)?;
    source.read_exact(&mut flags)?;
    let mut stream = [0; 4];
    source.read_exact(&mut stream)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or_default();
    let mut payload = vec![0; length];
    source.read_exact(&mut payload)?;
    let ([kind], [flags]) = (kind, flags);
    Ok(Http2Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
}

fn text(text: &str) -> Vec<u8> {
    // One byte has room for what is shorter than 127 bytes, and no name or value here is longer.
    [&[u8::try_from(text.len()).unwrap_or_default()], text.as_bytes()].concat()
}

/// A field whose name is in the static table, not to be remembered.
fn field(name: u8, value: &str) -> Vec<u8> {
    [vec![name], text(value)].concat()
}
