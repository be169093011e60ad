//! Subscriptions of one connection, and how a call reaches them.
//!
//! What a node sends is not queued: a task for each subscription holds one message until the connection
//! has taken the one before it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::heads::ChainCursor;
use crate::kept_filter::ChainFeed;
use crate::pass_through::{NodeSubscription, notification};
use crate::refusal::Refusal;

/// The ids of all subscriptions of a service: no two are the same, and those of another run are
/// others.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionIds {
    seed: RandomState,
    count: AtomicU64,
    /// How many subscriptions there are.
    open: Arc<AtomicU64>,
}

/// A subscription that is counted until this is dropped.
#[derive(Debug)]
struct CountedSubscription(Arc<AtomicU64>);

impl Drop for CountedSubscription {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SubscriptionIds {
    /// The next id.
    pub(crate) fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        format!("{:#x}", self.seed.hash_one(count))
    }

    /// How many subscriptions there are.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    fn count_open(&self) -> CountedSubscription {
        self.open.fetch_add(1, Ordering::Relaxed);
        CountedSubscription(Arc::clone(&self.open))
    }
}

/// The subscriptions of one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    count_max: usize,
    list: Mutex<Vec<OpenSubscription>>,
    /// Where tasks hand over what a node sent.
    news: mpsc::Sender<NodeNews>,
}

/// What a node sent for a subscription.
#[derive(Debug)]
pub(crate) enum NodeNews {
    /// A notification for the client.
    Message {
        /// The subscription.
        id: String,
        /// The whole message, under that id.
        text: Vec<u8>,
    },
    /// The node has ended it, or the connection to it is gone.
    Ended {
        /// The subscription.
        id: String,
    },
}

#[derive(Debug)]
struct OpenSubscription {
    id: String,
    /// The request that began it.
    request: u64,
    /// Whether the client has been told its id: nothing is sent before.
    is_confirmed: bool,
    source: Source,
    _counted: CountedSubscription,
}

/// Who serves a subscription.
#[derive(Debug)]
enum Source {
    /// We do.
    Chain {
        /// With this.
        feed: ChainFeed,
        /// So far the subscriber knows the chain.
        seen: ChainCursor,
    },
    /// A node does, by a task that begins when it is told to and ends when this is dropped.
    Node { begin: Option<oneshot::Sender<()>>, _end: oneshot::Sender<()> },
}

/// A subscription that we serve, and how far its subscriber knows the chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainSubscriber {
    pub(crate) id: String,
    pub(crate) feed: ChainFeed,
    pub(crate) seen: ChainCursor,
}

/// The way from a call back to its connection.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Which request of the connection it is.
    pub(crate) request: u64,
}

impl Channel {
    /// Begins a subscription to new blocks; it is silent until the answer has been sent.
    pub(crate) fn subscribe(
        &self,
        ids: &SubscriptionIds,
        feed: ChainFeed,
        seen: ChainCursor,
    ) -> Result<String, Refusal> {
        self.add(ids, ids.next(), Source::Chain { feed, seen })
    }

    /// Begins one that a node serves; as silent until then.
    pub(crate) fn subscribe_at_node(
        &self,
        ids: &SubscriptionIds,
        subscription: Box<dyn NodeSubscription>,
    ) -> Result<String, Refusal> {
        let id = ids.next();
        let (begin, start) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let told = self.add(ids, id.clone(), Source::Node { begin: Some(begin), _end: end })?;
        let news = self.subscriptions.news.clone();
        tokio::spawn(carry(subscription, id, start, ended, news));
        Ok(told)
    }

    /// Refuses one more than there may be.
    pub(crate) fn check_room(&self) -> Result<(), Refusal> {
        self.subscriptions.check_room(&self.subscriptions.list())
    }

    fn add(&self, ids: &SubscriptionIds, id: String, source: Source) -> Result<String, Refusal> {
        let mut list = self.subscriptions.list();
        self.subscriptions.check_room(&list)?;
        list.push(OpenSubscription {
            id: id.clone(),
            request: self.request,
            is_confirmed: false,
            source,
            _counted: ids.count_open(),
        });
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
    /// None yet, and where what nodes send will come.
    pub(crate) fn new(count_max: usize) -> (Arc<Self>, mpsc::Receiver<NodeNews>) {
        let (news, coming) = mpsc::channel(1);
        (Arc::new(Self { count_max, list: Mutex::default(), news }), coming)
    }

    /// Whether there is one of this id.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.list().iter().any(|subscription| subscription.id == id)
    }

    fn check_room(&self, list: &[OpenSubscription]) -> Result<(), Refusal> {
        let count_max = self.count_max;
        if list.len() < count_max {
            return Ok(());
        }
        Err(Refusal::TooManySubscriptions { count_max, of: "this connection" })
    }

    /// The answer to a request has been sent, with the ids in it. Tells whether new blocks may have come
    /// since for any of them.
    pub(crate) fn confirm(&self, request: u64) -> bool {
        let mut is_any = false;
        for subscription in self.list().iter_mut().filter(|it| it.request == request) {
            let is_first = !std::mem::replace(&mut subscription.is_confirmed, true);
            match &mut subscription.source {
                Source::Chain { .. } => is_any |= is_first,
                Source::Node { begin, .. } => {
                    if let Some(begin) = begin.take() {
                        let _ = begin.send(());
                    }
                }
            }
        }
        is_any
    }

    /// There was no room for the answer to a request: nobody knows the ids that were in it.
    pub(crate) fn forget(&self, request: u64) {
        self.list().retain(|subscription| subscription.request != request);
    }

    /// Whether anyone waits for new blocks.
    pub(crate) fn is_any_confirmed(&self) -> bool {
        self.list().iter().any(|it| it.is_confirmed && matches!(it.source, Source::Chain { .. }))
    }

    /// Those that may be told of new blocks.
    pub(crate) fn confirmed(&self) -> Vec<ChainSubscriber> {
        let list = self.list();
        let confirmed = list.iter().filter(|subscription| subscription.is_confirmed);
        confirmed
            .filter_map(|subscription| match &subscription.source {
                Source::Chain { feed, seen } => Some(ChainSubscriber {
                    id: subscription.id.clone(),
                    feed: feed.clone(),
                    seen: *seen,
                }),
                Source::Node { .. } => None,
            })
            .collect()
    }

    /// A subscriber has seen more.
    pub(crate) fn advance(&self, id: &str, now: ChainCursor) {
        for subscription in self.list().iter_mut().filter(|it| it.id == id) {
            if let Source::Chain { seen, .. } = &mut subscription.source {
                *seen = now;
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<OpenSubscription>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands over what a node sends, one message at a time, until the client or the node ends it.
async fn carry(
    mut subscription: Box<dyn NodeSubscription>,
    id: String,
    start: oneshot::Receiver<()>,
    mut ended: oneshot::Receiver<()>,
    news: mpsc::Sender<NodeNews>,
) {
    // The client learns the id before anything that bears it.
    if start.await.is_err() {
        return subscription.end().await;
    }
    loop {
        let message = tokio::select! {
            _ = &mut ended => return subscription.end().await,
            message = subscription.next() => message,
        };
        let Some(message) = message else {
            let _ = news.send(NodeNews::Ended { id }).await;
            return;
        };
        // What is no notification, such as an answer, is nobody's.
        let Some(text) = notification(&id, &message) else { continue };
        let item = NodeNews::Message { id: id.clone(), text };
        let is_taken = tokio::select! {
            _ = &mut ended => false,
            sent = news.send(item) => sent.is_ok(),
        };
        if !is_taken {
            return subscription.end().await;
        }
    }
}
