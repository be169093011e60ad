//! Where a client's messages end, in bytes that come as they like.
//!
//! Knows: the heads of frames, as tungstenite reads them.
//! Never knows: what is in a frame, or whether it may come now.

use std::io::Cursor;

use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode;

/// How far a client is in its frames.
#[derive(Debug, Default)]
pub(super) struct MessageEnd {
    /// What came of the head of the next frame.
    head: Vec<u8>,
    /// What has to come of the frame whose head came last.
    payload_left: usize,
    /// A message ends with that frame. Control frames are no messages.
    is_last: bool,
}

impl MessageEnd {
    /// How many of the bytes that come next there are up to the end of a message, or of all of them.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some((first, behind)) = rest.split_first() {
            if self.payload_left > 0 {
                let (payload, behind) = rest.split_at(self.payload_left.min(rest.len()));
                self.payload_left = self.payload_left.saturating_sub(payload.len());
                rest = behind;
            } else {
                self.head.push(*first);
                self.look_at_head();
                rest = behind;
            }
            if self.is_last && self.payload_left == 0 {
                self.is_last = false;
                break;
            }
        }
        bytes.len().saturating_sub(rest.len())
    }

    fn look_at_head(&mut self) {
        (self.payload_left, self.is_last) = match FrameHeader::parse(&mut Cursor::new(&self.head)) {
            Ok(None) => return,
            Ok(Some((head, length))) => {
                // Nobody takes more than that either.
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                (length, head.is_final && matches!(head.opcode, OpCode::Data(_)))
            }
            // The session ends with the same error when it reads this.
            Err(_) => (usize::MAX, false),
        };
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// A frame of a client: its first byte, and so many bytes, their count in as few bytes as it takes.
    fn frame(begin: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![begin];
        if length < 126 {
            frame.push(0x80 | u8::try_from(length).unwrap());
        } else if let Ok(length) = u16::try_from(length) {
            frame.push(0xfe);
            frame.extend(length.to_be_bytes());
        } else {
            frame.push(0xff);
            frame.extend(u64::try_from(length).unwrap().to_be_bytes());
        }
        frame.extend(MASK);
        // As a frame with an end would begin.
        frame.resize(frame.len() + length, 0x81);
        frame
    }

    /// Where bytes are cut that come so many at a time.
    fn cuts(bytes: &[u8], part_bytes: usize) -> Vec<usize> {
        let (mut end, mut cuts, mut place) = (MessageEnd::default(), Vec::new(), 0);
        for part in bytes.chunks(part_bytes) {
            let mut rest = part;
            while !rest.is_empty() {
                let count = end.advance(rest);
                place += count;
                rest = &rest[count..];
                if !rest.is_empty() {
                    cuts.push(place);
                }
            }
        }
        cuts
    }

    #[test]
    fn messages_end_where_their_last_frames_do_however_they_come() {
        let short = frame(0x81, 7);
        let empty = frame(0x81, 0);
        let long =
            [frame(0x01, 70_000), frame(0x89, 125), frame(0x00, 300), frame(0x80, 1)].concat();
        let bytes = [&short[..], &empty, &long, &short].concat();
        let mut ends = vec![short.len()];
        for message in [&empty, &long] {
            ends.push(ends.last().unwrap() + message.len());
        }
        for part_bytes in [1, 2, 5, 11, 126, 8192, bytes.len()] {
            // What comes next begins with a message then, and is not cut.
            let cut = ends.iter().copied().filter(|end| !end.is_multiple_of(part_bytes));
            assert_eq!(cuts(&bytes, part_bytes), cut.collect::<Vec<_>>(), "{part_bytes} at a time");
        }
        // A message that ends with its last byte.
        let mut end = MessageEnd::default();
        assert_eq!(end.advance(&long[..long.len() - 1]), long.len() - 1);
        assert_eq!(end.advance(&[0x81, 0x80]), 1);
    }

    #[test]
    fn what_is_no_frame_is_passed_on() {
        // An opcode that RFC 6455 has no meaning for, and whatever length.
        let bytes = [&[0x83, 0x80][..], &MASK, &frame(0x81, 7)].concat();
        assert_eq!(MessageEnd::default().advance(&bytes), bytes.len());
        let bytes = [&[0x82, 0xff][..], &[0xff; 8], &MASK, &frame(0x81, 7)].concat();
        assert_eq!(MessageEnd::default().advance(&bytes), bytes.len());
    }
}
