//! Log filters that outlive their call: those of subscriptions and those that are polled.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::BloomQuery;

use crate::admission::ClientId;
use crate::log_filter::LogFilter;

/// Memory of all filters that are kept. One has up to 200 kB, and a server may have very many
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
pub(crate) struct FilterBudget(Arc<Mutex<TakenBytes>>);

/// What the filters of clients take, also those of subscriptions.
#[derive(Debug, Default)]
struct TakenBytes {
    of_all: usize,
    /// None of them is 0.
    by_client: BTreeMap<ClientId, usize>,
}

/// What a new filter takes of something that all filters share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedShare {
    pub(crate) size: usize,
    /// What other filters have to give back for it.
    pub(crate) missing: usize,
}

/// A filter that is kept; its memory is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct KeptFilter {
    filter: LogFilter,
    /// Its values, hashed once for all blocks.
    for_blooms: BloomQuery,
    client: ClientId,
    bytes: usize,
    budget: FilterBudget,
}

impl ChainFeed {
    /// What it gives back of the memory of filters if it is dropped: nothing while a poll reads it.
    pub(crate) fn bytes_given_back(&self) -> usize {
        match self {
            Self::Logs(kept) if Arc::strong_count(kept) == 1 => kept.bytes,
            Self::Logs(_) | Self::Blocks => 0,
        }
    }
}

impl FilterBudget {
    /// What a filter takes of the memory.
    pub(crate) fn wanted(&self, filter: &LogFilter) -> WantedShare {
        let (size, taken) = (bytes_of(filter), self.taken().of_all);
        WantedShare { size, missing: taken.saturating_add(size).saturating_sub(BYTES_MAX) }
    }

    /// Whether a client takes half of the memory, or more.
    pub(crate) fn takes_half(&self, client: ClientId) -> bool {
        self.taken().by_client.get(&client).is_some_and(|taken| *taken >= BYTES_MAX / 2)
    }

    /// What some clients take.
    pub(crate) fn shares(
        &self,
        clients: impl Iterator<Item = ClientId>,
    ) -> BTreeMap<ClientId, usize> {
        let taken = self.taken();
        clients.filter_map(|it| Some((it, *taken.by_client.get(&it)?))).collect()
    }

    /// Keeps a filter whose values are hashed, if there is room for it.
    pub(crate) fn admit(
        &self,
        client: ClientId,
        filter: LogFilter,
        for_blooms: BloomQuery,
    ) -> Option<Arc<KeptFilter>> {
        let bytes = bytes_of(&filter);
        let mut taken = self.taken();
        taken.of_all = taken.of_all.checked_add(bytes).filter(|sum| *sum <= BYTES_MAX)?;
        let share = taken.by_client.entry(client).or_default();
        *share = share.saturating_add(bytes);
        Some(Arc::new(KeptFilter { filter, for_blooms, client, bytes, budget: self.clone() }))
    }

    fn taken(&self) -> MutexGuard<'_, TakenBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(filter: &LogFilter) -> usize {
    // An address has 20 bytes, and what blooms need of it 6.
    let bytes = filter.query().bytes();
    size_of::<KeptFilter>().saturating_add(bytes).saturating_add(bytes / 3)
}

impl KeptFilter {
    /// The filter.
    pub(crate) fn filter(&self) -> &LogFilter {
        &self.filter
    }

    /// Its query, made ready for blooms.
    pub(crate) fn for_blooms(&self) -> &BloomQuery {
        &self.for_blooms
    }
}

impl Drop for KeptFilter {
    fn drop(&mut self) {
        let mut taken = self.budget.taken();
        taken.of_all = taken.of_all.saturating_sub(self.bytes);
        if let Entry::Occupied(mut share) = taken.by_client.entry(self.client) {
            *share.get_mut() = share.get().saturating_sub(self.bytes);
            if *share.get() == 0 {
                share.remove();
            }
        }
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
        let admit = || {
            let for_blooms = filter.query().for_blooms();
            budget.admit(ClientId::default(), filter.clone(), for_blooms)
        };
        while let Some(one) = admit() {
            kept.push(one);
        }
        let count = kept.len();
        kept.pop();
        admit().unwrap();
        drop(kept);
        let taken = budget.taken();
        assert_eq!((taken.of_all, taken.by_client.len()), (0, 0));
        count
    }

    #[test]
    fn filters_are_kept_while_there_is_room_for_all_their_topics() {
        let count = kept_count(&filter(1000));
        assert!((1400..1600).contains(&count), "{count}");
    }
}
