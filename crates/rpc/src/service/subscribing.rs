//! Subscriptions of a connection: how they begin and end, and what leads a subscriber to the tip.
//!
//! Knows: which are served here, and which go to a node.
//! Never knows: sockets, or when a subscriber is sent something.

use std::sync::Arc;

use store::{Reader, View};
use tracing::error;

use super::{CallFailure, Service, give_reader, take_reader};
use crate::envelope::Call;
use crate::heads::Seen;
use crate::json::block::put_header;
use crate::json::{Object, put_text};
use crate::methods::Method;
use crate::params::Params;
use crate::refusal::Refusal;
use crate::subscription::Channel;

/// The one thing that can be subscribed to here.
const NEW_HEADS: &str = "newHeads";
/// Letters of another that a refusal repeats.
const KIND_SHOWN_MAX: usize = 32;

impl Service {
    /// Begins or ends a subscription.
    pub(super) async fn subscribe(
        &self,
        channel: &Channel,
        view: &Arc<View>,
        method: Method,
        call: &Call<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let text = Params::new(call.params).text()?;
        if method == Method::Unsubscribe {
            let is_ended = channel.unsubscribe(&text);
            out.extend_from_slice(b"true");
            return if is_ended { Ok(()) } else { Err(Refusal::SubscriptionNotFound) };
        }
        if text != NEW_HEADS {
            let id = self.subscribe_at_node(channel, &text, call).await?;
            put_text(out, &id);
            return Ok(());
        }
        let seen = Seen::all_of(Arc::clone(view));
        put_text(out, &channel.subscribe(&self.subscription_ids, seen)?);
        Ok(())
    }

    /// Subscribes to something that is not served here, if a node has it and the operator lets it be
    /// asked.
    async fn subscribe_at_node(
        &self,
        channel: &Channel,
        kind: &str,
        call: &Call<'_>,
    ) -> Result<String, Refusal> {
        let unknown =
            || Refusal::UnknownSubscription { kind: kind.chars().take(KIND_SHOWN_MAX).collect() };
        let forwarding = self.forwarding.as_ref().filter(|it| it.takes(&call.method));
        let forwarding = forwarding.ok_or_else(unknown)?;
        channel.check_room()?;
        if let Some(reason) = self.conflict() {
            return Err(Refusal::NotPassed { reason });
        }
        match forwarding.subscribe(call).await {
            Ok(subscription) => channel.subscribe_at_node(&self.subscription_ids, subscription),
            Err(Refusal::UnknownMethod { .. }) => Err(unknown()),
            Err(refusal) => Err(refusal),
        }
    }

    /// The notifications that lead a subscriber from what it has seen to the newest view, as many as
    /// are sent at once; and whether there are more.
    pub(crate) async fn new_heads(
        &self,
        id: &str,
        seen: &mut Seen,
    ) -> Result<(Vec<Vec<u8>>, bool), HeadsFailed> {
        let mut reader = take_reader().map_err(|failure| heads_failed(&failure))?;
        let told = self.put_heads(&mut reader, id, seen).await;
        give_reader(reader);
        match told {
            Ok(told) => Ok(told),
            // The newer view is announced as every other is.
            Err(failure) if self.is_gone(&failure) => Ok((Vec::new(), true)),
            Err(failure) => Err(heads_failed(&failure)),
        }
    }

    async fn put_heads(
        &self,
        reader: &mut Reader,
        id: &str,
        seen: &mut Seen,
    ) -> Result<(Vec<Vec<u8>>, bool), CallFailure> {
        let view = self.store.view();
        let Some(due) = seen.due(reader, &view).await? else {
            *seen = Seen::all_of(view);
            return Ok((Vec::new(), false));
        };
        let last = *due.numbers.end();
        let mut messages = Vec::new();
        for number in due.numbers {
            let header = view.read_header(reader, number).await?.ok_or(CallFailure::NotABlock)?;
            let mut out =
                b"{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":".to_vec();
            let mut params = Object::begin(&mut out);
            put_text(params.member("subscription"), id);
            put_header(params.member("result"), &header)?;
            params.end();
            out.push(b'}');
            messages.push(out);
        }
        *seen = Seen::up_to(view, last);
        Ok((messages, !due.is_all))
    }
}

/// New heads cannot be read; the log says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadsFailed;

fn heads_failed(failure: &CallFailure) -> HeadsFailed {
    error!(?failure, "cannot read new heads");
    HeadsFailed
}
