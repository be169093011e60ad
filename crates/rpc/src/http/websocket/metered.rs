//! A WebSocket's bytes, counted while its messages come in.
//!
//! Knows: how many bytes came since the last message was whole.
//! Never knows: where frames begin or end.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::budget::{Budget, ByteLease, LeasedFor};

/// Before the payload of a client's control frame: two bytes, and the mask.
const CONTROL_HEAD_BYTES: usize = 6;

/// A stream whose unfinished message is counted. Reading fails when there is no room for more of it.
#[derive(Debug)]
pub(super) struct MeteredStream<S> {
    stream: S,
    budget: Arc<Budget>,
    /// Since the last message.
    bytes: usize,
    /// No message is longer, and what frames add to it is read over: no more is counted.
    bytes_max: usize,
    lease: ByteLease,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, budget: Arc<Budget>, bytes_max: usize) -> Self {
        Self { stream, budget, bytes: 0, bytes_max, lease: ByteLease::default() }
    }

    /// A control frame with so many bytes came and is gone: it is no part of a message.
    pub(super) fn forget_control(&mut self, payload_bytes: usize) {
        let frame_bytes = payload_bytes.saturating_add(CONTROL_HEAD_BYTES);
        self.bytes = self.bytes.saturating_sub(frame_bytes);
        let Self { budget, bytes, lease, .. } = self;
        // Less always fits.
        let _ = lease.resize(budget, *bytes, LeasedFor::Body);
    }

    /// A message is whole: the lease of its bytes.
    pub(super) fn take_lease(&mut self) -> ByteLease {
        self.bytes = 0;
        std::mem::take(&mut self.lease)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len().saturating_sub(before);
        let Self { budget, bytes, bytes_max, lease, .. } = &mut *self;
        *bytes = bytes.saturating_add(count).min(*bytes_max);
        let counted = lease.resize(budget, *bytes, LeasedFor::Body);
        Poll::Ready(counted.map_err(|_| Error::from(ErrorKind::OutOfMemory)))
    }
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
