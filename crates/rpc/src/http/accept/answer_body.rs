//! The body of an answer that hyper sends: in parts, and timed until the last byte has left.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::idle_timer::{AnswerGuard, IdleTimer};
use crate::budget::ByteLease;
use crate::http::response::HttpBody;

/// Bytes that hyper takes at a time: it asks for more when the client has taken some.
const PART_BYTES_MAX: usize = 16 * 1024;

/// A body.
#[derive(Debug)]
pub(super) struct AnswerBody {
    rest: Bytes,
    guard: Option<Arc<AnswerGuard>>,
}

/// What every part of a body keeps alive.
struct AnswerMemory {
    bytes: Bytes,
    _lease: ByteLease,
    _guard: Arc<AnswerGuard>,
}

impl AsRef<[u8]> for AnswerMemory {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswerBody {
    pub(super) fn new(body: HttpBody, timer: &Arc<IdleTimer>) -> Self {
        let HttpBody { bytes, lease } = body;
        if bytes.is_empty() {
            return Self { rest: bytes, guard: None };
        }
        let guard = Arc::new(timer.begin_answer());
        let memory = AnswerMemory { bytes, _lease: lease, _guard: Arc::clone(&guard) };
        Self { rest: Bytes::from_owner(memory), guard: Some(guard) }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let count = self.rest.len().min(PART_BYTES_MAX);
        if count == 0 {
            // The guard goes with the last part that is sent.
            self.guard = None;
            return Poll::Ready(None);
        }
        let part = self.rest.split_to(count);
        if let Some(guard) = &self.guard {
            guard.advance(count);
        }
        if self.rest.is_empty() {
            self.rest = Bytes::new();
            self.guard = None;
        }
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}
