//! A WebSocket's bytes, counted and timed while its messages come in.
//!
//! Knows: how many bytes came since the last message was whole, and since when.
//! Never knows: what is in a message.
//!
//! What comes behind a message is held back until it is asked for again. So whoever reads has nothing
//! of the next message when one is whole: what is counted for one belongs to it, and the next one is
//! timed as soon as it is read.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::message_end::MessageEnd;
use crate::budget::{Budget, ByteLease, LeasedFor};

/// Before the payload of a client's control frame: two bytes, and the mask.
const CONTROL_HEAD_BYTES: usize = 6;

/// A stream whose unfinished message is counted. Reading fails when there is no room for more of it, and
/// when the rest of it does not come in time.
#[derive(Debug)]
pub(super) struct MeteredStream<S> {
    stream: S,
    message_end: MessageEnd,
    /// What came with the end of a message, and is not of it: less than is read at a time.
    held_back: Bytes,
    budget: Arc<Budget>,
    /// Since the last message.
    bytes: usize,
    limits: MessageLimits,
    lease: ByteLease,
    /// Until the time of the unfinished message is over. Control frames do not move it.
    time_left: Option<Pin<Box<Sleep>>>,
}

/// What a message may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageLimits {
    /// No message is longer, and what frames add to it is read over: no more is counted.
    pub(super) bytes_max: usize,
    /// From its first byte to its last.
    pub(super) timeout: Duration,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, budget: Arc<Budget>, limits: MessageLimits) -> Self {
        Self {
            stream,
            message_end: MessageEnd::default(),
            held_back: Bytes::new(),
            budget,
            bytes: 0,
            limits,
            lease: ByteLease::default(),
            time_left: None,
        }
    }

    /// A control frame with so many bytes came and is gone: it is no part of a message.
    pub(super) fn forget_control(&mut self, payload_bytes: usize) {
        let frame_bytes = payload_bytes.saturating_add(CONTROL_HEAD_BYTES);
        self.bytes = self.bytes.saturating_sub(frame_bytes);
        if self.bytes == 0 {
            self.time_left = None;
        }
        let Self { budget, bytes, lease, .. } = self;
        // Less always fits.
        let _ = lease.resize(budget, *bytes, LeasedFor::Body);
    }

    /// A message is whole: the lease of its bytes.
    pub(super) fn take_lease(&mut self) -> ByteLease {
        self.bytes = 0;
        self.time_left = None;
        std::mem::take(&mut self.lease)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let Self { stream, message_end, held_back, budget, bytes, limits, lease, time_left } =
            &mut *self;
        let read = if held_back.is_empty() {
            poll_read_message(Pin::new(stream), context, buffer, message_end, held_back)
        } else {
            Poll::Ready(Ok(put_message(buffer, message_end, held_back)))
        };
        if let Poll::Ready(count) = read {
            *bytes = bytes.saturating_add(count?).min(limits.bytes_max);
            let counted = lease.resize(budget, *bytes, LeasedFor::Body);
            return Poll::Ready(counted.map_err(|_| Error::from(ErrorKind::OutOfMemory)));
        }
        // All that came has been looked at: what is counted belongs to a message whose rest is waited
        // for.
        if *bytes > 0 {
            let time_left = time_left.get_or_insert_with(|| Box::pin(sleep(limits.timeout)));
            return time_left.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

/// Reads up to the end of a message, and holds back what comes behind it; how many bytes those are.
fn poll_read_message(
    stream: Pin<&mut impl AsyncRead>,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
    message_end: &mut MessageEnd,
    held_back: &mut Bytes,
) -> Poll<Result<usize>> {
    let before = buffer.filled().len();
    ready!(stream.poll_read(context, buffer))?;
    let (_, came) = buffer.filled().split_at(before);
    let count = message_end.advance(came);
    let (_, behind) = came.split_at(count);
    if !behind.is_empty() {
        *held_back = Bytes::copy_from_slice(behind);
        buffer.set_filled(before.saturating_add(count));
    }
    Poll::Ready(Ok(count))
}

/// Takes what was held back, up to the end of a message; how many bytes those are.
fn put_message(
    buffer: &mut ReadBuf<'_>,
    message_end: &mut MessageEnd,
    held_back: &mut Bytes,
) -> usize {
    let (fitting, _) = held_back.split_at(held_back.len().min(buffer.remaining()));
    let count = message_end.advance(fitting);
    let (part, _) = fitting.split_at(count);
    buffer.put_slice(part);
    held_back.advance(count);
    if held_back.is_empty() {
        // An empty part would keep the memory of the whole.
        *held_back = Bytes::new();
    }
    count
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
