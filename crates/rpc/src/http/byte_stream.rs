//! What a connection's bytes go over: a socket, TLS on a socket, or a pipe in memory that stands for one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A stream that a connection is served on.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Waits until a read may find something. A stream that cannot tell is read at once.
    fn poll_readable(&self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Whether the other side has broken off; it is looked at again when that may have changed. One
    /// that only ends what it sends may still wait for its answer.
    fn is_reset(&self, _context: &mut Context<'_>) -> bool {
        false
    }

    /// Writes as much as is taken, once any is.
    fn poll_write_parts(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write_vectored(context, parts)
    }
}

impl ByteStream for TcpStream {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn is_reset(&self, context: &mut Context<'_>) -> bool {
        self.poll_read_ready(context).is_ready() && !matches!(self.take_error(), Ok(None))
    }

    /// Tries before it asks: a socket nearly always has room for an answer.
    fn poll_write_parts(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.try_write_vectored(parts) {
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_write_ready(context))?;
                }
                written => return Poll::Ready(written),
            }
        }
    }
}

impl ByteStream for TlsStream<TcpStream> {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (socket, session) = self.get_ref();
        // What is decrypted waits in the session, not in the socket.
        if session.wants_read() { socket.poll_readable(context) } else { Poll::Ready(Ok(())) }
    }

    fn is_reset(&self, context: &mut Context<'_>) -> bool {
        self.get_ref().0.is_reset(context)
    }
}

impl ByteStream for DuplexStream {}
