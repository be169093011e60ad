//! Frames of WebSocket (RFC 6455), as a client writes them by hand.

/// Asks for a WebSocket.
pub(crate) const HANDSHAKE: &str = "GET / HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\nsec-websocket-version: 13\r\n\
    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The first byte of a message in one frame.
pub(crate) const TEXT: u8 = 0x81;
/// The first byte of a message's first frame, with more to come.
pub(crate) const TEXT_BEGIN: u8 = 0x01;
/// The first byte of what comes after it, with more to come.
pub(crate) const CONTINUE: u8 = 0x00;
pub(crate) const PING: u8 = 0x89;

/// What a client writes before a payload of so many bytes, masked with zeros: the payload is sent as it
/// is.
pub(crate) fn head(first: u8, payload_bytes: u64) -> Vec<u8> {
    let length = match (u8::try_from(payload_bytes), u16::try_from(payload_bytes)) {
        (Ok(length @ 0..=125), _) => vec![0x80 | length],
        (_, Ok(length)) => [&[0xfe][..], &length.to_be_bytes()].concat(),
        _ => [&[0xff][..], &payload_bytes.to_be_bytes()].concat(),
    };
    [&[first][..], &length, &[0; 4]].concat()
}

/// A frame.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(first, u64::try_from(payload.len()).unwrap_or(u64::MAX));
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        assert_eq!(frame(PING, b"ab"), [0x89, 0x82, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(head(TEXT, 126), [0x81, 0xfe, 0, 126, 0, 0, 0, 0]);
        assert_eq!(head(TEXT, 1 << 40), [0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
