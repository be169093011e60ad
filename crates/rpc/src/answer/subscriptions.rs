//! Subscriptions of a connection: how they begin and end.

use std::borrow::Cow;

use super::{Answering, CallResult, Context};
use crate::heads::ChainCursor;
use crate::health::Health;
use crate::json::put_text;
use crate::kept_filter::ChainFeed;
use crate::log_filter::LogFilter;
use crate::params::Params;
use crate::refusal::Refusal;
use crate::subscription::Channel;

/// What can be subscribed to here.
const NEW_HEADS: &str = "newHeads";
const LOGS: &str = "logs";
/// Letters of another that a refusal repeats.
const KIND_SHOWN_MAX: usize = 32;

impl Context<'_> {
    /// The subscriptions of the connection, if it carries notifications.
    pub(super) fn channel(&self) -> Result<&Channel, Refusal> {
        self.channel.ok_or(Refusal::NoNotifications)
    }

    /// Whether a node tells of new logs: where none is followed, and one is asked in our place.
    pub(super) fn is_told_by_node(&self) -> bool {
        self.node.is_some() && !self.is_following
    }

    pub(super) async fn subscribe(
        &self,
        on: &mut Answering<'_>,
        (channel, kind): (&Channel, Cow<'_, str>),
        more: &mut Params<'_>,
    ) -> CallResult {
        let feed = match &*kind {
            NEW_HEADS => Some(ChainFeed::Blocks),
            LOGS => {
                let filter = more.take(LogFilter::parse)?;
                filter.check_for_new_blocks()?;
                if self.is_told_by_node() {
                    None
                } else {
                    // First, since a filter that is kept may take the room of others.
                    channel.check_room()?;
                    let for_blooms = self.hash_for_blooms(filter.query()).await;
                    let kept = self.filters.keep_subscribed(self.client, filter, for_blooms)?;
                    Some(ChainFeed::Logs(kept))
                }
            }
            _ => None,
        };
        let id = match feed {
            Some(feed) => {
                let seen = ChainCursor::at_tip(on.reader, self.view).await?;
                channel.subscribe(self.subscription_ids, feed, seen)?
            }
            None => self.subscribe_at_node(on, channel, &kind).await?,
        };
        put_text(on.out, &id);
        Ok(None)
    }

    #[expect(clippy::unused_async, reason = "the functions of all methods have one form")]
    pub(super) async fn unsubscribe(
        &self,
        on: &mut Answering<'_>,
        (channel, id): (&Channel, Cow<'_, str>),
    ) -> CallResult {
        if !channel.unsubscribe(&id) {
            return Err(Refusal::SubscriptionNotFound.into());
        }
        on.out.extend_from_slice(b"true");
        Ok(None)
    }

    /// Subscribes to something that is not served here, if a node has it and the operator lets it be
    /// asked.
    async fn subscribe_at_node(
        &self,
        on: &Answering<'_>,
        channel: &Channel,
        kind: &str,
    ) -> Result<String, Refusal> {
        let unknown =
            || Refusal::UnknownSubscription { kind: kind.chars().take(KIND_SHOWN_MAX).collect() };
        let node = self.node.ok_or_else(unknown)?;
        channel.check_room()?;
        if let Some(reason) = self.health.and_then(Health::conflict) {
            return Err(Refusal::NotPassed { reason });
        }
        match node.subscribe(on.call).await {
            Ok(subscription) => channel.subscribe_at_node(self.subscription_ids, subscription),
            Err(Refusal::UnknownMethod { .. }) => Err(unknown()),
            Err(refusal) => Err(refusal),
        }
    }
}
