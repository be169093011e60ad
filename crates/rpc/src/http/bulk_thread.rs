//! Long bodies: worked on by a thread on which no connection is served.
//!
//! Reading a body, decompressing it and refusing a million requests in it take many milliseconds
//! without a pause, for which nobody else on the thread would be served.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::Server;
use crate::admission::{Caller, ClientId};
use crate::budget::{Budget, ByteLease};
use crate::in_time::in_time;
use crate::refusal::Refusal;
use crate::reply::{Reply, refusal_body};
use crate::service::RequestLimits;
use crate::subscription::Channel;

/// Longer bodies are worked on by the bulk thread.
pub(super) const INLINE_BYTES_MAX: usize = 64 * 1024;
/// For work whose time is over to say so of each of its calls.
const END_GRACE: Duration = Duration::from_secs(2);

impl Server {
    /// The limits of a request that has come whole just now.
    pub(super) fn limits<'a>(
        &'a self,
        caller: Option<&'a Caller>,
        client: ClientId,
        request_id: Option<&'a str>,
    ) -> RequestLimits<'a> {
        let begun = Instant::now();
        let until = begun.checked_add(self.settings.answer_timeout);
        RequestLimits { until, begun, budget: &self.budget, caller, client, request_id }
    }

    /// Answers a body that has come whole, wherever its length asks for. Its lease goes where the body
    /// goes: a client that leaves gives nothing back before the memory is free.
    pub(super) async fn reply(
        &self,
        origin: RequestOrigin,
        channel: Option<Channel>,
        body: Bytes,
        lease: ByteLease,
    ) -> Option<Reply> {
        let RequestOrigin { caller, client, request_id } = &origin;
        let limits = self.limits(caller.as_deref(), *client, request_id.as_deref());
        if body.len() <= INLINE_BYTES_MAX {
            return self.service.reply(channel.as_ref(), &body, limits).await;
        }
        let (service, budget) = (Arc::clone(&self.service), Arc::clone(&self.budget));
        let RequestLimits { until, begun, .. } = limits;
        let queued = QueuedRequest {
            server: self,
            until,
            begun,
            origin: origin.clone(),
            is_socket: channel.is_some(),
            body_bytes: body.len(),
            has_begun: Arc::default(),
        };
        // Boxed: it is moved from hand to hand until it is a task, and is large.
        let replying = Box::pin(async move {
            let limits = origin.limits(begun, until, &budget);
            let reply = service.reply(channel.as_ref(), &body, limits).await;
            drop((body, lease));
            reply
        });
        self.run_on_bulk_thread(queued, replying)
            .await
            .unwrap_or_else(|failure| Some(failure.into()))
    }

    /// Does work that would keep others waiting, which knows its end itself. Work that does not even
    /// begin until then, because of all that came before it, is given up.
    pub(super) async fn run_on_bulk_thread<T: Send + 'static>(
        &self,
        queued: QueuedRequest<'_>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, BulkFailure> {
        let has_begun = Arc::clone(&queued.has_begun);
        let work = async move {
            has_begun.store(true, Ordering::Relaxed);
            work.await
        };
        let Some(thread) = self.bulk_thread.get() else { return Ok(work.await) };
        let end = || queued.until?.checked_add(END_GRACE);
        match in_time(AbortOnDrop(thread.spawn(work)), end).await {
            Some(done) => done.map_err(|_| BulkFailure::BrokenOff),
            None => Err(BulkFailure::Late),
        }
    }
}

/// A request that waits for the bulk thread. If it ends there, it is counted and logged all the same.
#[derive(Debug)]
pub(super) struct QueuedRequest<'a> {
    pub(super) server: &'a Server,
    /// The end of its time.
    pub(super) until: Option<Instant>,
    /// When it had come whole.
    pub(super) begun: Instant,
    pub(super) origin: RequestOrigin,
    pub(super) is_socket: bool,
    /// As it came.
    pub(super) body_bytes: usize,
    /// The thread has begun with it: the service counts it.
    pub(super) has_begun: Arc<AtomicBool>,
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        if !self.has_begun.load(Ordering::Relaxed) {
            let Self { server, until, begun, origin, .. } = self;
            let limits = origin.limits(*begun, *until, &server.budget);
            server.service.record_unread(limits, self.is_socket, self.body_bytes);
        }
    }
}

/// Who sent a request, and how they call it.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestOrigin {
    /// Who was let in; none where everybody may ask.
    pub(super) caller: Option<Arc<Caller>>,
    /// The client that it counts for.
    pub(super) client: ClientId,
    /// What the client calls the request, if it says so.
    pub(super) request_id: Option<String>,
}

impl RequestOrigin {
    /// The limits of its request, which had come whole at a time.
    pub(super) fn limits<'a>(
        &'a self,
        begun: Instant,
        until: Option<Instant>,
        budget: &'a Arc<Budget>,
    ) -> RequestLimits<'a> {
        let (caller, request_id) = (self.caller.as_deref(), self.request_id.as_deref());
        RequestLimits { until, begun, budget, caller, client: self.client, request_id }
    }
}

/// Why work has no outcome.
#[derive(Clone, Copy, Debug)]
pub(super) enum BulkFailure {
    /// It broke off; the log says why.
    BrokenOff,
    /// Its time is over.
    Late,
}

impl From<BulkFailure> for Reply {
    fn from(failure: BulkFailure) -> Self {
        Self::of(refusal_body(&match failure {
            BulkFailure::BrokenOff => Refusal::Internal,
            BulkFailure::Late => Refusal::TimedOut,
        }))
    }
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

#[cfg(test)]
mod tests {
    use chain::ChainSpec;
    use store::read::Inline;
    use store::{Limits, Store};
    use testing::disk::faulty::FaultyDisk;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;
    use crate::call_counts::CallOutcome;
    use crate::http::HttpSettings;
    use crate::service::{Service, ServiceSettings};

    /// Seen: long bodies that the thread did not come to were in no counter.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_get_its_turn_is_counted() {
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
        let spec = ChainSpec::bare("live", Some(7), None);
        let service = Service::new(store, spec, ServiceSettings::default());
        let server = Server::new(Arc::new(service), HttpSettings::default());
        // A thread that never comes to anything.
        let busy = Builder::new_current_thread().build().unwrap();
        server.bulk_thread.set(busy.handle().clone()).unwrap();
        let body = Bytes::from(vec![b' '; INLINE_BYTES_MAX + 1]);
        let ask =
            || server.reply(RequestOrigin::default(), None, body.clone(), ByteLease::default());
        let late = ask().await.unwrap().into_bytes().0;
        assert!(String::from_utf8_lossy(&late).contains("-32002"), "{late:?}");
        assert!(timeout(Duration::from_secs(1), ask()).await.is_err());
        let counts = server.counts();
        let unknown = counts.methods.iter().find(|it| it.method == "unknown").unwrap();
        let ended = [CallOutcome::Timeout, CallOutcome::Cancelled].map(|it| unknown.ended(it));
        assert_eq!((counts.traffic.requests, ended), (2, [1, 1]), "{unknown:?}");
        drop(server);
        busy.shutdown_background();
    }
}
