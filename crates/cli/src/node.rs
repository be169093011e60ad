//! The node that is asked what is not served here, so many questions at a time.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_primitives::B256;
use chain::ChainSpec;
use node::{AskError, AskLimits, Identity, Subscription, SubscriptionLink, Upstream, UpstreamUrl};
use rpc::{
    AnswerRoom, NextMessage, NodeSubscription, PassThrough, PassThroughError, Passing, Subscribing,
};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tracing::{error, info};

/// How long a node is believed to be the one that was asked which chain it follows: behind a name or a
/// proxy it may be exchanged, and nothing tells.
const IDENTITY_TIME: Duration = Duration::from_secs(30);
/// How long one of another chain is refused without asking it again.
const FOREIGN_TIME: Duration = Duration::from_secs(2);

/// What is asked of a node at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeLimits {
    /// Requests on their way to the node; more wait, as long as their callers do.
    pub(crate) requests_max: usize,
    /// Subscriptions at the node, of all clients; each has a connection of its own.
    pub(crate) subscriptions_max: usize,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    limits: NodeLimits,
    endpoint: Upstream,
    /// Where subscriptions go.
    socket_url: Option<UpstreamUrl>,
    subscriptions: Arc<Semaphore>,
    places: Semaphore,
    chain: OnceLock<OwnChain>,
    identity: Mutex<KnownIdentity>,
    /// Told when the server stops: nobody waits for a node then.
    stopping: watch::Sender<bool>,
}

/// What tells our chain from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnChain {
    chain_id: Option<u64>,
    genesis_hash: Option<B256>,
}

/// What is known of the node.
#[derive(Debug, Default)]
struct KnownIdentity {
    /// Until when it is believed.
    until: Option<Instant>,
    /// Why it is not asked, if it is of another chain.
    foreign: Option<String>,
    /// How many connections there were then: a new one may lead to another node.
    connection_count: u64,
}

impl OwnChain {
    const UNKNOWN: Self = Self { chain_id: None, genesis_hash: None };

    pub(crate) fn of(spec: &ChainSpec) -> Self {
        Self { chain_id: spec.chain_id(), genesis_hash: spec.genesis_hash() }
    }

    /// Why a node is none of this chain; none if it is.
    fn find_difference(self, found: Identity) -> Option<String> {
        if self == Self::UNKNOWN {
            return Some("the chain that is served here is not known yet".to_owned());
        }
        found.find_difference(self.chain_id, self.genesis_hash)
    }
}

impl Node {
    /// A node that is asked at one address, and subscribed to at another if it has one.
    pub(crate) fn at(
        url: UpstreamUrl,
        socket_url: Option<UpstreamUrl>,
        limits: NodeLimits,
    ) -> Result<Self, AskError> {
        let name = url.name().to_owned();
        // A request for its identity is repeated once.
        let endpoint = Upstream::new(url, AskLimits { tries_max: 2, ..AskLimits::default() })?;
        Ok(Self {
            name,
            limits,
            endpoint,
            socket_url,
            subscriptions: Arc::new(Semaphore::new(
                limits.subscriptions_max.min(Semaphore::MAX_PERMITS),
            )),
            places: Semaphore::new(limits.requests_max.min(Semaphore::MAX_PERMITS)),
            chain: OnceLock::new(),
            identity: Mutex::default(),
            stopping: watch::Sender::new(false),
        })
    }

    /// Refuses what it is asked from now on, and what it has not answered yet.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    async fn unless_stopped<T>(
        &self,
        asking: impl Future<Output = Result<T, PassThroughError>>,
    ) -> Result<T, PassThroughError> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            answered = asking => answered,
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {
                Err(PassThroughError::Failed("the server stops".to_owned()))
            }
        }
    }

    async fn pass(
        &self,
        request: Vec<u8>,
        room: &mut AnswerRoom,
    ) -> Result<Vec<u8>, PassThroughError> {
        let failed = |error: String| PassThroughError::Failed(error);
        let _place = self.places.acquire().await.map_err(|closed| failed(closed.to_string()))?;
        self.identify().await?;
        // Once only: what changes something, as a raw transaction does, is not sent twice.
        let bytes_max = room.bytes_max();
        let mut has_room = |bytes| room.holds(bytes);
        match self.endpoint.post_once(request.into(), bytes_max, &mut has_room).await {
            Ok(answer) => {
                // It may have come over a new connection.
                self.identify().await?;
                Ok(answer)
            }
            Err(AskError::TooLarge { .. }) => Err(PassThroughError::TooLarge),
            Err(AskError::NoRoom) => Err(PassThroughError::NoRoom),
            Err(error) => {
                self.forget_identity().await;
                Err(failed(error.to_string()))
            }
        }
    }

    /// Says which chain is ours, as soon as that is known. Until then nothing is asked.
    pub(crate) fn expect_chain(&self, chain: OwnChain) {
        if chain != OwnChain::UNKNOWN {
            self.chain.get_or_init(|| chain);
        }
    }

    /// Makes sure that the node follows our chain. It is asked on new connections, after failures, and
    /// when [`IDENTITY_TIME`] is over.
    async fn identify(&self) -> Result<(), PassThroughError> {
        let mut known = self.identity.lock().await;
        let is_recent = known.until.is_some_and(|until| Instant::now() < until);
        let is_foreign = known.foreign.is_some();
        if is_recent && (is_foreign || known.connection_count == self.endpoint.connection_count()) {
            let foreign = known.foreign.clone();
            return foreign.map_or(Ok(()), |reason| Err(PassThroughError::Foreign(reason)));
        }
        let found = self.endpoint.fetch_identity().await.map_err(|error| {
            known.until = None;
            PassThroughError::Failed(format!("it does not say which chain it follows: {error}"))
        })?;
        known.connection_count = self.endpoint.connection_count();
        let foreign = self.find_difference(found);
        self.log_change(known.foreign.as_ref(), foreign.as_ref());
        let time = if foreign.is_some() { FOREIGN_TIME } else { IDENTITY_TIME };
        known.until = Instant::now().checked_add(time);
        known.foreign.clone_from(&foreign);
        foreign.map_or(Ok(()), |reason| Err(PassThroughError::Foreign(reason)))
    }

    fn find_difference(&self, found: Identity) -> Option<String> {
        self.chain.get().copied().unwrap_or(OwnChain::UNKNOWN).find_difference(found)
    }

    fn log_change(&self, before: Option<&String>, now: Option<&String>) {
        match (before, now) {
            (before, Some(reason)) if before != Some(reason) => {
                error!(node = self.name, reason, "nothing is passed to this node");
            }
            (Some(_), None) => info!(node = self.name, "calls are passed to this node again"),
            (_, _) => {}
        }
    }

    async fn open_subscription(
        &self,
        params: String,
    ) -> Result<Box<dyn NodeSubscription>, PassThroughError> {
        let url = self.socket_url.as_ref().ok_or(PassThroughError::NoSubscriptions)?;
        let permit = Arc::clone(&self.subscriptions).try_acquire_owned();
        let permit = permit.map_err(|_| PassThroughError::TooManySubscriptions {
            count_max: self.limits.subscriptions_max,
        })?;
        let failed = |error: String| PassThroughError::Failed(error);
        let link = SubscriptionLink::connect(url, AskLimits::default()).await;
        let (link, identity) = link.map_err(|error| failed(error.to_string()))?;
        // Every connection is asked who is at its other end.
        if let Some(reason) = self.find_difference(identity) {
            error!(node = url.name(), reason, "nothing is subscribed to at this node");
            return Err(PassThroughError::Foreign(reason));
        }
        let subscription = link.subscribe(params).await.map_err(|error| match error {
            AskError::Refused { code, message } => {
                PassThroughError::Refused { code: i32::try_from(code).unwrap_or(-32000), message }
            }
            AskError::Connect(_)
            | AskError::Late(_)
            | AskError::Broken(_)
            | AskError::TooLarge { .. }
            | AskError::NoRoom
            | AskError::Status { .. }
            | AskError::Malformed(_) => failed(error.to_string()),
        })?;
        Ok(Box::new(PassedSubscription { subscription, _permit: permit }))
    }

    async fn forget_identity(&self) {
        self.identity.lock().await.until = None;
    }
}

impl PassThrough for Node {
    fn ask<'a>(&'a self, request: Vec<u8>, room: &'a mut AnswerRoom) -> Passing<'a> {
        Box::pin(self.unless_stopped(self.pass(request, room)))
    }

    fn subscribe(&self, params: String) -> Subscribing<'_> {
        Box::pin(self.unless_stopped(self.open_subscription(params)))
    }
}

/// A subscription at the node; it has its place for as long as it is there.
#[derive(Debug)]
struct PassedSubscription {
    subscription: Subscription,
    _permit: OwnedSemaphorePermit,
}

impl NodeSubscription for PassedSubscription {
    fn next(&mut self) -> NextMessage<'_> {
        Box::pin(async { self.subscription.next().await.map(Into::into) })
    }

    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.subscription.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_node_is_asked_before_it_is_known_which_chain_is_ours() {
        let node = Identity { chain_id: 7, genesis_hash: None };
        assert!(OwnChain::UNKNOWN.find_difference(node).is_some());
        let own = OwnChain { chain_id: Some(7), genesis_hash: None };
        assert_eq!(own.find_difference(node), None);
        let other = OwnChain { chain_id: Some(8), genesis_hash: None };
        let said = other.find_difference(node);
        assert_eq!(said.as_deref(), Some("it has chain id 7, expected 8"));
    }
}
