//! Long bodies: worked on by a thread on which no connection is served.
//!
//! Knows: which bodies are long, and that a client who leaves wants no answer.
//! Never knows: what is in a body.
//!
//! Reading a body, decompressing it and refusing a million requests in it take many milliseconds
//! without a pause, for which nobody else on the thread would be served.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::Bytes;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::Server;
use crate::budget::ByteLease;
use crate::refusal::Refusal;
use crate::reply::{Reply, refusal_body};
use crate::service::RequestLimits;
use crate::subscription::Channel;

/// Longer bodies are worked on elsewhere.
pub(super) const INLINE_BYTES_MAX: usize = 64 * 1024;

impl Server {
    /// The limits of a request that has come whole just now.
    pub(super) fn limits(&self) -> RequestLimits<'_> {
        let until = Instant::now().checked_add(self.settings.answer_timeout);
        RequestLimits { until, budget: &self.budget }
    }

    /// Answers a body that has come whole, wherever its length asks for. Its lease goes where the body
    /// goes: a client that leaves gives nothing back before the memory is free.
    pub(super) async fn reply(
        &self,
        channel: Option<Channel>,
        body: Bytes,
        lease: ByteLease,
    ) -> Option<Reply> {
        let limits = self.limits();
        if body.len() <= INLINE_BYTES_MAX {
            return self.service.reply(channel.as_ref(), &body, limits).await;
        }
        let (service, budget) = (Arc::clone(&self.service), Arc::clone(&self.budget));
        let until = limits.until;
        let replying = async move {
            let limits = RequestLimits { until, budget: &budget };
            let reply = service.reply(channel.as_ref(), &body, limits).await;
            drop((body, lease));
            reply
        };
        self.elsewhere(replying).await.unwrap_or_else(|_| Some(broken_off()))
    }

    /// Does work that would keep others waiting.
    pub(super) async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        match self.bulk_thread.get() {
            Some(thread) => AbortOnDrop(thread.spawn(work)).await,
            None => Ok(work.await),
        }
    }
}

/// What a client is told whose work broke off; the log says why.
pub(super) fn broken_off() -> Reply {
    Reply::of(refusal_body(&Refusal::Internal))
}

/// Work that ends when nobody waits for it any more.
pub(super) struct AbortOnDrop<T>(pub(super) JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(context)))
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
