//! Subscriptions of one connection, and how a call reaches them.
//!
//! Knows: their ids, how many there may be, and how far each subscriber knows the chain.
//! Never knows: sockets, or how a header is written.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::heads::Seen;
use crate::refusal::Refusal;

/// The ids of all subscriptions of a service: no two are the same, and those of another run are
/// others.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionIds {
    seed: RandomState,
    count: AtomicU64,
}

impl SubscriptionIds {
    fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!("{:#x}", self.seed.hash_one(count))
    }
}

/// The subscriptions of one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    count_max: usize,
    list: Mutex<Vec<Subscription>>,
}

#[derive(Debug)]
struct Subscription {
    id: String,
    /// The request that began it.
    request: u64,
    /// Whether the client has been told its id: nothing is sent before.
    is_told: bool,
    seen: Seen,
}

/// The way from a call back to its connection.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Which request of the connection it is.
    pub(crate) request: u64,
}

impl Channel {
    /// Begins a subscription; it is silent until the answer has been sent.
    pub(crate) fn subscribe(&self, ids: &SubscriptionIds, seen: Seen) -> Result<String, Refusal> {
        let mut list = self.subscriptions.list();
        if list.len() >= self.subscriptions.count_max {
            return Err(Refusal::TooManySubscriptions { count_max: self.subscriptions.count_max });
        }
        let id = ids.next();
        let request = self.request;
        list.push(Subscription { id: id.clone(), request, is_told: false, seen });
        Ok(id)
    }

    /// Ends a subscription; tells whether there was one.
    pub(crate) fn unsubscribe(&self, id: &str) -> bool {
        let mut list = self.subscriptions.list();
        let before = list.len();
        list.retain(|subscription| subscription.id != id);
        list.len() < before
    }
}

impl Subscriptions {
    pub(crate) fn new(count_max: usize) -> Arc<Self> {
        Arc::new(Self { count_max, list: Mutex::default() })
    }

    /// The answer to a request has been sent, with the ids in it. Tells whether there were any.
    pub(crate) fn tell(&self, request: u64) -> bool {
        let mut is_any = false;
        for subscription in self.list().iter_mut().filter(|it| it.request == request) {
            is_any |= !std::mem::replace(&mut subscription.is_told, true);
        }
        is_any
    }

    /// Whether anyone waits for something.
    pub(crate) fn is_any_told(&self) -> bool {
        self.list().iter().any(|subscription| subscription.is_told)
    }

    /// Those that may be sent something, and what each has seen.
    pub(crate) fn told(&self) -> Vec<(String, Seen)> {
        let list = self.list();
        let told = list.iter().filter(|subscription| subscription.is_told);
        told.map(|subscription| (subscription.id.clone(), subscription.seen.clone())).collect()
    }

    /// A subscriber has seen more.
    pub(crate) fn advance(&self, id: &str, seen: Seen) {
        if let Some(subscription) = self.list().iter_mut().find(|it| it.id == id) {
            subscription.seen = seen;
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
