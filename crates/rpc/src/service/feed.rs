//! What subscribers are sent of the chain, in portions, and how that ends.

use std::sync::Arc;

use hyper::body::Bytes;
use tracing::{debug, error};

use super::readers::LentReader;
use super::{CallFailure, Service};
use crate::admission::Caller;
use crate::budget::{Budget, ByteLease, LeasedFor};
use crate::heads::ChainCursor;
use crate::json::{Object, put_text};
use crate::kept_filter::ChainFeed;
use crate::refusal::Refusal;
use crate::work_slice::WorkSlice;

/// What a notification has around its result, and room to spare.
const AROUND_BYTES: usize = 128;

/// What a subscriber is sent at once.
#[derive(Debug, Default)]
pub(crate) struct FeedPortion {
    /// Results of notifications, as JSON.
    pub(crate) items: Vec<Bytes>,
    /// Whether there is more already.
    pub(crate) has_more: bool,
    /// Counts the items until they are sent.
    pub(crate) _lease: ByteLease,
}

/// Why a subscriber can be sent nothing more, or nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedEnd {
    /// Something cannot be read; the log says what.
    Failed,
    /// It may subscribe again, and ask for what it missed.
    Ended(&'static str),
    /// Others take all the bytes that there may be under way; later there is room again.
    NoRoom,
}

/// The notification of a result for one subscriber.
pub(crate) fn feed_notification(id: &str, result: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len().saturating_add(AROUND_BYTES));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":");
    let mut params = Object::begin(&mut out);
    put_text(params.member("subscription"), id);
    params.member("result").extend_from_slice(result);
    params.end();
    out.push(b'}');
    out
}

impl Service {
    /// What leads a subscriber from what it has seen towards the newest view, as much as is sent at
    /// once. What is read for it is charged to whoever subscribed.
    pub(crate) async fn next_portion(
        &self,
        caller: Option<&Caller>,
        feed: &ChainFeed,
        seen: &mut ChainCursor,
        budget: &Arc<Budget>,
        slice: &mut WorkSlice,
    ) -> Result<FeedPortion, FeedEnd> {
        let shown = self.store.current_view();
        let mut lent = LentReader::new(caller, &self.traffic);
        let reader = lent.take().map_err(|failure| feed_end(&failure))?;
        let read = match feed {
            ChainFeed::Blocks => self.read_heads(reader, seen).await,
            ChainFeed::Logs(kept) => self.read_new_logs(reader, kept, seen, budget, slice).await,
        };
        lent.give_back();
        match read {
            Ok(portion) => portion.admit(budget),
            // Another view may help, whoever noted the file.
            Err(failure) if self.has_newer(&shown, &failure) => {
                Ok(FeedPortion { has_more: true, ..FeedPortion::default() })
            }
            Err(failure) => Err(feed_end(&failure)),
        }
    }
}

impl FeedPortion {
    fn admit(self, budget: &Arc<Budget>) -> Result<Self, FeedEnd> {
        let lease = ByteLease::of(budget, self.bytes(), LeasedFor::Answer);
        let lease = lease.map_err(|_| FeedEnd::NoRoom)?;
        Ok(Self { _lease: lease, ..self })
    }

    /// Bytes of all items.
    pub(super) fn bytes(&self) -> usize {
        self.items.iter().fold(0, |sum: usize, item| sum.saturating_add(item.len()))
    }
}

fn feed_end(failure: &CallFailure) -> FeedEnd {
    match failure {
        CallFailure::NoRoom => FeedEnd::NoRoom,
        CallFailure::Refused(Refusal::FilterDropped { reason }) => FeedEnd::Ended(reason),
        CallFailure::Refused(Refusal::ReceiptsNotHeld { .. }) => {
            FeedEnd::Ended("receipts of new blocks are not held")
        }
        // The store has noted the file: that is told once.
        CallFailure::Store(cause) if cause.is_of_file() => {
            debug!(%cause, "cannot read new blocks");
            FeedEnd::Failed
        }
        CallFailure::Refused(_)
        | CallFailure::Store(_)
        | CallFailure::NotABlock
        | CallFailure::AskNode => {
            error!(?failure, "cannot read new blocks");
            FeedEnd::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_names_its_subscription() {
        let expected = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x7","result":{"number":"0x1"}}}"#;
        let notification = feed_notification("0x7", br#"{"number":"0x1"}"#);
        assert_eq!(String::from_utf8(notification).unwrap(), expected);
    }
}
