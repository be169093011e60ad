//! The stream of a connection that hyper or a WebSocket reads: timed, and in slices.
//!
//! Whoever reads it does all that it can with each read, and reads again: a client whose frames take
//! longer to work on than to send would keep its thread for long. So a stream whose slice is used up
//! has nothing to read until others had their turn. Answers are written at once: they are made, and
//! the runtime counts writes.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::idle_timer::IdleTimer;
use crate::http::byte_stream::ByteStream;
use crate::work_slice::TimeSlice;

/// A stream. What was read of it before comes first.
pub(super) struct TimedStream<S> {
    stream: S,
    unread: Bytes,
    timer: Arc<IdleTimer>,
    slice: TimeSlice,
}

impl<S> TimedStream<S> {
    pub(super) fn new(stream: S, unread: Bytes, timer: Arc<IdleTimer>, slice: TimeSlice) -> Self {
        Self { stream, unread, timer, slice }
    }
}

impl<S: ByteStream> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let polled = if self.unread.is_empty() {
            // Whoever waits for its client needs no turn.
            if self.stream.poll_readable(context).is_ready() {
                ready!(self.slice.poll_go_on(context));
            }
            let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
            if polled.is_pending() {
                self.slice.begin();
            }
            polled
        } else {
            let count = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread.split_to(count));
            Poll::Ready(Ok(()))
        };
        if let Some(bytes) = buffer.filled().get(before..).filter(|bytes| !bytes.is_empty()) {
            self.timer.has_read(bytes);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
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
