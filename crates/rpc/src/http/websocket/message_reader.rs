//! A client's messages, put together from its frames as the bytes come.
//!
//! tungstenite reads the heads of frames. Its messages are not used: it reserves the length of a frame
//! when the head comes, and a message in several frames has three times its bytes at the end.

use std::future::{Future as _, poll_fn};
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Sleep, sleep};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use crate::budget::{Budget, ByteLease, LeasedFor};
use crate::spare;

/// Bytes of a control frame at the most (RFC 6455, 5.5).
const CONTROL_BYTES_MAX: usize = 125;

/// What a client sent.
#[derive(Debug)]
pub(super) enum ClientMessage {
    /// A text, and what its memory is counted as.
    Text(Bytes, ByteLease),
    Ping(Vec<u8>),
    Pong,
    /// With the code that it is answered with, if it has one.
    Close(Option<CloseCode>),
}

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFailure {
    /// The message is longer than it may be.
    TooLarge,
    /// A text that is none.
    NotUtf8,
    /// A message that is no text.
    Binary,
    /// Frames that are not as RFC 6455 has them.
    Malformed,
    /// There is no room for more of the message.
    NoRoom,
    /// The rest of the message did not come in time.
    Late,
    /// The client or the network ended it.
    Ended,
}

/// What a message may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageLimits {
    pub(super) bytes_max: usize,
    /// From its first byte to its last.
    pub(super) timeout: Duration,
}

/// A frame whose head came.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    opcode: OpCode,
    is_final: bool,
    mask: [u8; 4],
    payload_left: usize,
}

/// What came, and what it is part of. A connection that sends nothing has no buffer.
#[derive(Debug)]
pub(super) struct MessageReader {
    budget: Arc<Budget>,
    limits: MessageLimits,
    /// What was read, as far as it has not been looked at from `begin` on.
    read: Vec<u8>,
    begin: usize,
    frame: Option<OpenFrame>,
    /// The payload of a control frame, which may come between those of a message.
    control: Vec<u8>,
    /// What came of a text, once its first frame has begun.
    text: Option<Vec<u8>>,
    lease: ByteLease,
    /// Until the time of what has begun is over. Control frames inside a message do not move it.
    time_left: Option<Pin<Box<Sleep>>>,
}

impl MessageReader {
    pub(super) fn new(budget: Arc<Budget>, limits: MessageLimits) -> Self {
        Self {
            budget,
            limits,
            read: Vec::new(),
            begin: 0,
            frame: None,
            control: Vec::new(),
            text: None,
            lease: ByteLease::default(),
            time_left: None,
        }
    }

    /// What the client sends next. It may be dropped and asked for again at any moment.
    pub(super) async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<ClientMessage, ReadFailure> {
        poll_fn(|context| self.poll_next(stream, context)).await
    }

    /// Gives what has begun so much more time: for as long nobody read.
    pub(super) fn extend_time(&mut self, by: Duration) {
        if let Some(time_left) = &mut self.time_left {
            let deadline = time_left.deadline();
            time_left.as_mut().reset(deadline.checked_add(by).unwrap_or(deadline));
        }
    }

    fn poll_next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<Result<ClientMessage, ReadFailure>> {
        loop {
            if let Some(message) = self.advance()? {
                return Poll::Ready(Ok(message));
            }
            match self.poll_read(stream, context) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(ReadFailure::Ended)),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    let has_begun =
                        self.text.is_some() || self.frame.is_some() || !self.read.is_empty();
                    if has_begun {
                        let timeout = self.limits.timeout;
                        let time_left =
                            self.time_left.get_or_insert_with(|| Box::pin(sleep(timeout)));
                        ready!(time_left.as_mut().poll(context));
                        return Poll::Ready(Err(ReadFailure::Late));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads behind what is left: the beginning of a head at the most.
    fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.read.drain(..self.begin);
        self.begin = 0;
        if self.read.capacity() == 0 {
            self.read = spare::take();
        }
        let read = pin!(stream.read_buf(&mut self.read)).poll(context);
        if self.read.is_empty() {
            spare::give(std::mem::take(&mut self.read));
        }
        read
    }

    /// Goes on with what was read, up to the end of a message.
    fn advance(&mut self) -> Result<Option<ClientMessage>, ReadFailure> {
        loop {
            let mut frame = match self.frame {
                Some(frame) => frame,
                None => match self.begin_frame()? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            self.take_payload(&mut frame)?;
            if frame.payload_left > 0 {
                self.frame = Some(frame);
                return Ok(None);
            }
            self.frame = None;
            if let Some(message) = self.end_frame(frame)? {
                return Ok(Some(message));
            }
        }
    }

    /// Reads the head of a frame; none if it has not come whole.
    fn begin_frame(&mut self) -> Result<Option<OpenFrame>, ReadFailure> {
        let mut cursor = Cursor::new(self.read.get(self.begin..).unwrap_or_default());
        let parsed = FrameHeader::parse(&mut cursor).map_err(|_| ReadFailure::Malformed)?;
        let Some((head, length)) = parsed else { return Ok(None) };
        let head_bytes = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        let payload_left = usize::try_from(length).unwrap_or(usize::MAX);
        let FrameHeader { is_final, rsv1, rsv2, rsv3, opcode, mask } = head;
        let has_begun = self.text.is_some();
        let is_in_order = match opcode {
            OpCode::Control(_) => is_final && payload_left <= CONTROL_BYTES_MAX,
            OpCode::Data(Data::Continue) => has_begun,
            OpCode::Data(Data::Text | Data::Binary) => !has_begun,
            OpCode::Data(Data::Reserved(_)) => false,
        };
        let Some(mask) = mask.filter(|_| is_in_order && !(rsv1 || rsv2 || rsv3)) else {
            return Err(ReadFailure::Malformed);
        };
        if opcode == OpCode::Data(Data::Binary) {
            return Err(ReadFailure::Binary);
        }
        if matches!(opcode, OpCode::Data(_)) {
            let text = self.text.get_or_insert_default();
            if text.len().saturating_add(payload_left) > self.limits.bytes_max {
                return Err(ReadFailure::TooLarge);
            }
        }
        self.begin = self.begin.saturating_add(head_bytes);
        Ok(Some(OpenFrame { opcode, is_final, mask, payload_left }))
    }

    /// Takes what was read of a frame's payload, unmasked.
    fn take_payload(&mut self, frame: &mut OpenFrame) -> Result<(), ReadFailure> {
        let unread = self.read.get(self.begin..).unwrap_or_default();
        let (payload, _) = unread.split_at(frame.payload_left.min(unread.len()));
        let out = match (frame.opcode, &mut self.text) {
            (OpCode::Data(_), Some(text)) => {
                // No more than came is needed, unless this is the end of the message.
                let length = text.len().saturating_add(payload.len());
                let whole = text.len().saturating_add(frame.payload_left);
                let most = if frame.is_final { whole } else { self.limits.bytes_max };
                if length > text.capacity() {
                    let capacity = text.capacity().saturating_mul(2).min(most).max(length);
                    let counted = self.lease.resize(&self.budget, capacity, LeasedFor::Body);
                    counted.map_err(|_| ReadFailure::NoRoom)?;
                    text.reserve_exact(capacity.saturating_sub(text.len()));
                }
                text
            }
            (OpCode::Data(_) | OpCode::Control(_), _) => &mut self.control,
        };
        let before = out.len();
        out.extend_from_slice(payload);
        unmask(out.get_mut(before..).unwrap_or_default(), frame.mask);
        // The mask goes on where it was broken off.
        frame.mask.rotate_left(payload.len() % 4);
        frame.payload_left = frame.payload_left.saturating_sub(payload.len());
        self.begin = self.begin.saturating_add(payload.len());
        Ok(())
    }

    /// What a frame is the end of, now that all of it is there.
    fn end_frame(&mut self, frame: OpenFrame) -> Result<Option<ClientMessage>, ReadFailure> {
        let message = match frame.opcode {
            OpCode::Data(_) if !frame.is_final => return Ok(None),
            OpCode::Data(_) => {
                let text = self.text.take().unwrap_or_default();
                if std::str::from_utf8(&text).is_err() {
                    return Err(ReadFailure::NotUtf8);
                }
                ClientMessage::Text(text.into(), std::mem::take(&mut self.lease))
            }
            OpCode::Control(Control::Ping) => {
                ClientMessage::Ping(std::mem::take(&mut self.control))
            }
            OpCode::Control(Control::Pong) => {
                self.control = Vec::new();
                ClientMessage::Pong
            }
            OpCode::Control(Control::Close | Control::Reserved(_)) => {
                ClientMessage::Close(close_code(&self.control)?)
            }
        };
        if self.text.is_none() {
            self.time_left = None;
        }
        Ok(Some(message))
    }
}

/// The code that a client's close frame is answered with.
fn close_code(payload: &[u8]) -> Result<Option<CloseCode>, ReadFailure> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(ReadFailure::Malformed) };
    };
    let code = CloseCode::from(u16::from_be_bytes(*code));
    if std::str::from_utf8(reason).is_err() {
        return Err(ReadFailure::NotUtf8);
    }
    Ok(Some(if code.is_allowed() { code } else { CloseCode::Protocol }))
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let key = u32::from_ne_bytes(mask);
    let (words, rest) = payload.as_chunks_mut();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ key).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    const MIB: usize = 1 << 20;
    const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

    fn reader(budget: &Arc<Budget>) -> MessageReader {
        let limits = MessageLimits { bytes_max: 5 * MIB, timeout: Duration::from_secs(30) };
        MessageReader::new(Arc::clone(budget), limits)
    }

    /// The head of a client's frame: its first byte, and how many bytes it announces.
    fn head(begin: u8, length: usize) -> Vec<u8> {
        let mut head = vec![begin];
        if length < 126 {
            head.push(0x80 | u8::try_from(length).unwrap());
        } else if let Ok(length) = u16::try_from(length) {
            head.push(0xfe);
            head.extend(length.to_be_bytes());
        } else {
            head.push(0xff);
            head.extend(u64::try_from(length).unwrap().to_be_bytes());
        }
        head.extend(MASK);
        head
    }

    fn frame(begin: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = head(begin, payload.len());
        frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
        frame
    }

    /// What is read of bytes that come so many at a time, in short.
    async fn shown(raw: &[u8], part_bytes: usize) -> Vec<String> {
        let mut reader = reader(&Budget::unbounded());
        let (mut client, mut stream) = tokio::io::duplex(part_bytes);
        let raw = raw.to_vec();
        let writing = tokio::spawn(async move { client.write_all(&raw).await });
        let mut shown = Vec::new();
        loop {
            let next = reader.next(&mut stream).await;
            let is_end = matches!(next, Err(_) | Ok(ClientMessage::Close(_)));
            shown.push(match next {
                Ok(ClientMessage::Text(text, _)) if text.len() > 20 => format!("{}", text.len()),
                Ok(ClientMessage::Text(text, _)) => String::from_utf8(text.to_vec()).unwrap(),
                Ok(ClientMessage::Ping(payload)) => format!("ping {}", payload.len()),
                Ok(ClientMessage::Pong) => "pong".to_owned(),
                Ok(ClientMessage::Close(code)) => format!("close {:?}", code.map(u16::from)),
                Err(failure) => format!("{failure:?}"),
            });
            if is_end {
                drop(stream);
                drop(writing.await.unwrap());
                return shown;
            }
        }
    }

    #[tokio::test]
    async fn messages_come_out_as_they_were_sent_however_they_come() {
        let long: Vec<u8> = (0..70_000_u32).map(|it| b'a' + it.to_le_bytes()[0] % 26).collect();
        let raw = [
            frame(0x81, b"short"),
            frame(0x81, b""),
            frame(0x01, &long),
            frame(0x89, &[7; 125]),
            frame(0x00, &long[..301]),
            frame(0x00, b""),
            frame(0x8a, b"x"),
            frame(0x80, b"!"),
            // A letter of three bytes, in two frames.
            frame(0x01, &[0xe2, 0x82]),
            frame(0x80, &[0xac]),
            frame(0x88, &[0x03, 0xe8, b'o', b'k']),
        ]
        .concat();
        let expected = ["short", "", "ping 125", "pong", "70302", "\u{20ac}", "close Some(1000)"];
        for part_bytes in [1, 2, 3, 5, 11, 126, 4096, raw.len()] {
            assert_eq!(shown(&raw, part_bytes).await, expected, "{part_bytes} at a time");
        }
    }

    #[tokio::test]
    async fn what_rfc_6455_does_not_let_a_client_send_ends_its_connection() {
        let unmasked = vec![0x81, 2, b'h', b'i'];
        let cases = [
            ("nothing", vec![], "Ended"),
            ("half of a frame", head(0x81, 5), "Ended"),
            ("no mask", unmasked, "Malformed"),
            ("a reserved bit", frame(0xc1, b"hi"), "Malformed"),
            ("an unknown opcode", frame(0x83, b"hi"), "Malformed"),
            ("an unknown control frame", frame(0x8b, b"hi"), "Malformed"),
            ("an end of nothing", frame(0x80, b"hi"), "Malformed"),
            ("two at once", [frame(0x01, b"hi"), frame(0x81, b"hi")].concat(), "Malformed"),
            ("half of a ping", frame(0x09, b"hi"), "Malformed"),
            ("a long ping", head(0x89, 126), "Malformed"),
            ("bytes", head(0x82, 5), "Binary"),
            ("no text", frame(0x81, &[0xff]), "NotUtf8"),
            ("half of a letter", frame(0x81, &[0xe2, 0x82]), "NotUtf8"),
            ("too long", head(0x81, 5 * MIB + 1), "TooLarge"),
            ("far too long", head(0x81, usize::MAX), "TooLarge"),
            ("too long in parts", [frame(0x01, b"hi"), head(0x80, 5 * MIB)].concat(), "TooLarge"),
            ("a close without a code", frame(0x88, b""), "close None"),
            ("a close with half a code", frame(0x88, &[3]), "Malformed"),
            ("a close with a code of nobody", frame(0x88, &[0x03, 0xee]), "close Some(1002)"),
            ("a close that is no text", frame(0x88, &[0x03, 0xe8, 0xff]), "NotUtf8"),
        ];
        for (name, raw, expected) in cases {
            assert_eq!(shown(&raw, 1024).await, [expected], "{name}");
        }
    }

    /// A client that sent a message while it took a long answer was closed: nobody read it meanwhile.
    #[tokio::test]
    async fn time_in_which_nobody_read_is_not_the_client_s() {
        let limits = MessageLimits { bytes_max: MIB, timeout: Duration::ZERO };
        let mut reader = MessageReader::new(Budget::unbounded(), limits);
        let (mut client, mut stream) = tokio::io::duplex(1024);
        client.write_all(&frame(0x01, b"begun, ")).await.unwrap();
        reader.time_left = Some(Box::pin(sleep(Duration::ZERO)));
        reader.extend_time(Duration::from_hours(1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(reader.poll_next(&mut stream, &mut context).is_pending());
        client.write_all(&frame(0x80, b"ended")).await.unwrap();
        let message = reader.next(&mut stream).await;
        assert!(matches!(&message, Ok(ClientMessage::Text(text, _)) if *text == "begun, ended"));
        // The next one has its own time, which is over at once.
        client.write_all(&frame(0x01, b"more")).await.unwrap();
        let late = reader.next(&mut stream).await;
        assert!(matches!(late, Err(ReadFailure::Late)), "{late:?}");
    }

    /// The length of a frame was reserved with its head, and a message in parts held three times what
    /// was counted for it.
    #[tokio::test]
    async fn memory_follows_the_bytes_that_came_and_all_of_it_is_counted() {
        let budget = Budget::new(64 * MIB);
        let (mut client, mut stream) = tokio::io::duplex(64 * 1024);
        let mut reader = reader(&budget);
        // A whole message in one frame, and one of three.
        let last = [(0x81, 4 * MIB)].to_vec();
        for frames in [last, vec![(0x01, 2 * MIB), (0x00, MIB), (0x80, MIB)]] {
            let mut sent = 0;
            for (begin, length) in frames {
                client.write_all(&head(begin, length)).await.unwrap();
                let mut left = length;
                while left > 0 {
                    let part = vec![0; left.min(30_000)];
                    left -= part.len();
                    let is_end = begin & 0x80 != 0 && left == 0;
                    client.write_all(&part).await.unwrap();
                    sent += part.len();
                    if is_end {
                        break;
                    }
                    // The runtime lets a task read only so often before it yields.
                    tokio::task::yield_now().await;
                    let mut context = Context::from_waker(Waker::noop());
                    let polled = reader.poll_next(&mut stream, &mut context);
                    assert!(polled.is_pending(), "{polled:?}");
                    let held = reader.text.as_ref().unwrap();
                    assert_eq!(held.len(), sent);
                    assert!(held.capacity() <= 2 * sent.max(spare::BYTES), "{}", held.capacity());
                    assert_eq!(budget.bytes(), held.capacity());
                    assert_eq!((reader.read.capacity(), reader.control.capacity()), (0, 0));
                }
            }
            let Ok(ClientMessage::Text(text, lease)) = reader.next(&mut stream).await else {
                panic!("no text")
            };
            assert_eq!(text.len(), sent);
            assert!(budget.bytes() >= sent && reader.text.is_none());
            drop((text, lease));
            assert_eq!(budget.bytes(), 0);
        }
    }
}
