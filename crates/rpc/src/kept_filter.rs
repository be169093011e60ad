//! Log filters that outlive their call: those of subscriptions and those that are polled.
//!
//! Knows: how much memory all of them take, and how much they may.
//! Never knows: who keeps one, or for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::log_filter::LogFilter;

/// Memory of all filters that are kept. One has up to 150 kB, and a server may have very many
/// subscribers.
const BYTES_MAX: usize = 64 << 20;

/// What a subscriber is sent of the chain, or a filter tells of it.
#[derive(Clone, Debug)]
pub(crate) enum ChainFeed {
    /// New blocks: headers for subscribers, hashes for filters.
    Blocks,
    /// The logs of new blocks, and of blocks that left.
    Logs(Arc<KeptFilter>),
}

/// The memory of filters, shared by all who keep some.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterBudget(Arc<AtomicUsize>);

/// A filter that is kept; its memory is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct KeptFilter {
    filter: LogFilter,
    bytes: usize,
    budget: FilterBudget,
}

impl ChainFeed {
    /// What it takes of the memory of filters.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Blocks => 0,
            Self::Logs(kept) => kept.bytes,
        }
    }
}

impl FilterBudget {
    /// How many bytes would have to be given back before a filter is kept.
    pub(crate) fn missing(&self, filter: &LogFilter) -> usize {
        let room = BYTES_MAX.saturating_sub(self.0.load(Ordering::Relaxed));
        bytes_of(filter).saturating_sub(room)
    }

    /// Keeps a filter, or gives it back if there is no room for it.
    pub(crate) fn admit(&self, filter: LogFilter) -> Result<Arc<KeptFilter>, LogFilter> {
        let bytes = bytes_of(&filter);
        let fitting = |sum: usize| sum.checked_add(bytes).filter(|sum| *sum <= BYTES_MAX);
        let order = Ordering::Relaxed;
        if self.0.fetch_update(order, order, fitting).is_err() {
            return Err(filter);
        }
        Ok(Arc::new(KeptFilter { filter, bytes, budget: self.clone() }))
    }
}

fn bytes_of(filter: &LogFilter) -> usize {
    size_of::<KeptFilter>().saturating_add(filter.query().bytes())
}

impl KeptFilter {
    /// The filter.
    pub(crate) fn filter(&self) -> &LogFilter {
        &self.filter
    }
}

impl Drop for KeptFilter {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::envelope::{Item, RequestBody, parse};

    /// A filter that asks for one of so many topics.
    pub(crate) fn filter(topics: usize) -> LogFilter {
        let topics = (0..topics).map(|it| format!("0x{it:064x}")).collect::<Vec<_>>();
        let body = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "m", "params": [{ "topics": [topics] }],
        });
        let body = body.to_string();
        let Ok(RequestBody::Single(Item::Call(call))) = parse(body.as_bytes()) else {
            panic!("{body}")
        };
        LogFilter::parse(call.params.unwrap().items().next().unwrap()).unwrap()
    }

    /// How many of a filter there is room for.
    fn kept_count(filter: &LogFilter) -> usize {
        let budget = FilterBudget::default();
        let mut kept = Vec::new();
        while let Ok(one) = budget.admit(filter.clone()) {
            kept.push(one);
        }
        let count = kept.len();
        kept.pop();
        budget.admit(filter.clone()).unwrap();
        count
    }

    #[test]
    fn filters_are_kept_while_there_is_room_for_all_their_topics() {
        let count = kept_count(&filter(1000));
        assert!((1900..2100).contains(&count), "{count}");
    }
}
