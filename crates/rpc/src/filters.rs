//! Filters that clients poll: what each asks for, and how far its client knows the chain.
//!
//! A filter holds a block's number and hash, and nothing of what came since: however rarely it is
//! polled, it does not grow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::BloomQuery;
use tokio::time::Instant;

use crate::admission::ClientId;
use crate::heads::ChainCursor;
use crate::kept_filter::{ChainFeed, FilterBudget, KeptFilter, WantedShare};
use crate::log_filter::LogFilter;
use crate::refusal::Refusal;

/// A filter that is not polled for this long gives way to a new one of its client, or of a client that
/// has no more. Clients poll every few seconds.
const EVICTABLE_AFTER: Duration = Duration::from_secs(30);

/// How many filters there may be, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Filters of all clients.
    pub count_max: usize,
    /// A filter that is not polled for so long is dropped.
    pub idle_timeout: Duration,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self { count_max: 1000, idle_timeout: Duration::from_mins(5) }
    }
}

/// All filters of a service.
#[derive(Debug)]
pub(crate) struct Filters {
    limits: Mutex<FilterLimits>,
    budget: FilterBudget,
    list: Mutex<HashMap<String, PolledFilter>>,
}

#[derive(Debug)]
struct PolledFilter {
    /// The client that made it.
    client: ClientId,
    feed: ChainFeed,
    seen: ChainCursor,
    /// When it was made or polled last.
    used: Instant,
}

/// A poll that is answered.
#[derive(Debug)]
struct FilterPoll {
    id: String,
    before: ChainCursor,
    after: ChainCursor,
}

/// The polls of one body. Dropped before its answer is handed over, they are undone: what the answer
/// would have told is told by the next poll.
#[derive(Debug)]
pub(crate) struct FilterPolls<'a> {
    filters: &'a Filters,
    list: Mutex<Vec<FilterPoll>>,
}

impl Filters {
    pub(crate) fn new(limits: FilterLimits) -> Self {
        let limits = Mutex::new(limits);
        Self { limits, budget: FilterBudget::default(), list: Mutex::default() }
    }

    /// These limits hold from now on.
    pub(crate) fn set_limits(&self, limits: FilterLimits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    fn limits(&self) -> FilterLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a log filter, also one of a subscription, if there is memory for it. Filters of this client and
    /// of larger ones give way, but only if that is enough.
    pub(crate) fn keep(
        &self,
        client: ClientId,
        filter: LogFilter,
        for_blooms: BloomQuery,
    ) -> Result<Arc<KeptFilter>, Refusal> {
        let mut list = self.current();
        let wanted = self.budget.wanted(&filter);
        if wanted.missing > 0 {
            let clients = list.values().map(|filter| filter.client).chain([client]);
            let shares = self.budget.shares(clients);
            let size_of = |filter: &PolledFilter| filter.feed.bytes_given_back();
            if !evict(&mut list, client, wanted, shares, size_of) {
                return Err(Refusal::FiltersTooLarge);
            }
        }
        self.budget.admit(client, filter, for_blooms).ok_or(Refusal::FiltersTooLarge)
    }

    /// The same for a subscription. It is never dropped, so a client's subscriptions leave half of the
    /// memory to others.
    pub(crate) fn keep_subscribed(
        &self,
        client: ClientId,
        filter: LogFilter,
        for_blooms: BloomQuery,
    ) -> Result<Arc<KeptFilter>, Refusal> {
        if self.budget.takes_half(client) {
            return Err(Refusal::FiltersTooLarge);
        }
        self.keep(client, filter, for_blooms)
    }

    /// Adds a filter whose client knows the chain so far.
    pub(crate) fn add(
        &self,
        client: ClientId,
        id: String,
        feed: ChainFeed,
        seen: ChainCursor,
    ) -> Result<(), Refusal> {
        let mut list = self.current();
        let count_max = self.limits().count_max;
        let missing = list.len().saturating_add(1).saturating_sub(count_max);
        if missing > 0 {
            let counts = list.values().fold(BTreeMap::<_, usize>::new(), |mut counts, filter| {
                let count = counts.entry(filter.client).or_default();
                *count = count.saturating_add(1);
                counts
            });
            if !evict(&mut list, client, WantedShare { size: 1, missing }, counts, |_| 1) {
                return Err(Refusal::TooManyFilters { count_max });
            }
        }
        list.insert(id, PolledFilter { client, feed, seen, used: Instant::now() });
        Ok(())
    }

    /// A filter that is polled now.
    pub(crate) fn poll(&self, id: &str) -> Option<(ChainFeed, ChainCursor)> {
        let mut list = self.current();
        let filter = list.get_mut(id)?;
        filter.used = Instant::now();
        Some((filter.feed.clone(), filter.seen))
    }

    /// What a poll answers leads a client from `before` to `after`. False if another poll did so
    /// meanwhile: a change is told once.
    pub(crate) fn advance(
        &self,
        polls: &FilterPolls<'_>,
        id: &str,
        before: ChainCursor,
        after: ChainCursor,
    ) -> bool {
        let is_advanced = self.exchange(id, before, after);
        if is_advanced && before != after {
            polls.list().push(FilterPoll { id: id.to_owned(), before, after });
        }
        is_advanced
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.current().len()
    }

    /// Ends a filter; tells whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        self.current().remove(id).is_some()
    }

    /// Ends a filter whose client knows the chain so far, and not further by now.
    pub(crate) fn remove_at(&self, id: &str, seen: ChainCursor) {
        let mut list = self.list();
        if list.get(id).is_some_and(|it| it.seen == seen) {
            list.remove(id);
        }
    }

    fn exchange(&self, id: &str, before: ChainCursor, after: ChainCursor) -> bool {
        let mut list = self.list();
        let Some(filter) = list.get_mut(id).filter(|it| it.seen == before) else { return false };
        filter.seen = after;
        true
    }

    /// All that were used lately; the others are dropped.
    fn current(&self) -> MutexGuard<'_, HashMap<String, PolledFilter>> {
        let idle_timeout = self.limits().idle_timeout;
        let (mut list, now) = (self.list(), Instant::now());
        list.retain(|_, filter| filter.idle(now) < idle_timeout);
        list
    }

    fn list(&self) -> MutexGuard<'_, HashMap<String, PolledFilter>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PolledFilter {
    fn idle(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.used)
    }

    /// Whether nobody seems to poll it any more.
    fn is_evictable(&self, now: Instant) -> bool {
        self.idle(now) >= EVICTABLE_AFTER
    }
}

/// Drops filters for a new one of a client, if they give back enough; returns whether they do. Filters that
/// are not polled give way to a client whose share is not larger than theirs, and polled ones to a client
/// whose share stays smaller with the new filter. Of these the largest share gives first, and of one
/// client the filter that was used longest ago.
fn evict(
    list: &mut HashMap<String, PolledFilter>,
    client: ClientId,
    wanted: WantedShare,
    mut shares: BTreeMap<ClientId, usize>,
    size_of: impl Fn(&PolledFilter) -> usize,
) -> bool {
    let now = Instant::now();
    let share_of = |shares: &BTreeMap<ClientId, usize>, client: ClientId| {
        shares.get(&client).copied().unwrap_or_default()
    };
    let gives_way = |filter: &PolledFilter, share: usize, own: usize| {
        share > own.saturating_add(wanted.size) || (filter.is_evictable(now) && share >= own)
    };
    // The share of the client gets smaller with each of its own filters that is dropped.
    let given = list.values().filter(|it| it.client == client && it.is_evictable(now));
    let given = given.map(&size_of).fold(0, usize::saturating_add);
    let own_min = share_of(&shares, client).saturating_sub(given);
    let may_give = |filter: &PolledFilter| {
        size_of(filter) > 0 && gives_way(filter, share_of(&shares, filter.client), own_min)
    };
    let mut candidates: Vec<_> = list.iter().filter(|(_, filter)| may_give(filter)).collect();
    let most = candidates.iter().map(|(_, it)| size_of(it)).fold(0, usize::saturating_add);
    if most < wanted.missing {
        return false;
    }
    candidates.sort_by_cached_key(|(_, filter)| {
        let (is_idle, share) = (filter.is_evictable(now), share_of(&shares, filter.client));
        (Reverse((is_idle, share)), filter.used)
    });
    let (mut freed, mut dropped) = (0_usize, BTreeSet::new());
    for (id, filter) in candidates {
        if freed >= wanted.missing {
            break;
        }
        let (share, own) = (share_of(&shares, filter.client), share_of(&shares, client));
        if gives_way(filter, share, own) {
            let size = size_of(filter);
            freed = freed.saturating_add(size);
            shares.insert(filter.client, share.saturating_sub(size));
            dropped.insert(id.clone());
        }
    }
    if freed < wanted.missing {
        return false;
    }
    list.retain(|id, _| !dropped.contains(id));
    true
}

impl<'a> FilterPolls<'a> {
    pub(crate) fn new(filters: &'a Filters) -> Self {
        Self { filters, list: Mutex::default() }
    }

    /// The answer is handed over: what it tells is told.
    pub(crate) fn settle(&self) {
        self.list().clear();
    }

    fn list(&self) -> MutexGuard<'_, Vec<FilterPoll>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FilterPolls<'_> {
    fn drop(&mut self) {
        let polls = std::mem::take(&mut *self.list());
        for FilterPoll { id, before, after } in polls.into_iter().rev() {
            // A later poll has told what follows. Without the filter its client learns of the loss.
            if !self.filters.exchange(&id, after, before) {
                self.filters.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use chain::BlockNumber;
    use store::BlockId;

    use super::*;
    use crate::kept_filter::tests::filter;

    fn at(number: u64) -> ChainCursor {
        ChainCursor::up_to(BlockId { number: BlockNumber(number), hash: B256::ZERO })
    }

    fn client(number: u8) -> ClientId {
        ClientId::at([192, 0, 2, number].into())
    }

    fn with_filter(id: &str) -> Filters {
        let filters = Filters::new(FilterLimits { count_max: 2, ..FilterLimits::default() });
        filters.add(client(1), id.to_owned(), ChainFeed::Blocks, at(1)).unwrap();
        filters
    }

    fn keep(filters: &Filters, number: u8, filter: &LogFilter) -> Result<ChainFeed, Refusal> {
        let for_blooms = filter.query().for_blooms();
        filters.keep(client(number), filter.clone(), for_blooms).map(ChainFeed::Logs)
    }

    fn add(filters: &Filters, number: u8, id: &str, filter: &LogFilter) -> Result<(), Refusal> {
        filters.add(client(number), id.to_owned(), keep(filters, number, filter)?, at(1))
    }

    fn seen(filters: &Filters, id: &str) -> Option<ChainCursor> {
        filters.poll(id).map(|(_, seen)| seen)
    }

    #[test]
    fn of_two_polls_at_the_same_time_one_is_answered_with_a_change() {
        let filters = with_filter("a");
        let (first, second) = (FilterPolls::new(&filters), FilterPolls::new(&filters));
        assert_eq!((seen(&filters, "a"), seen(&filters, "a")), (Some(at(1)), Some(at(1))));
        assert!(filters.advance(&first, "a", at(1), at(2)));
        assert!(!filters.advance(&second, "a", at(1), at(3)));
        assert!(filters.advance(&second, "a", at(2), at(3)));
        first.settle();
        drop(first);
        assert_eq!(seen(&filters, "a"), Some(at(3)));
        drop(second);
        assert_eq!(seen(&filters, "a"), Some(at(2)));
    }

    #[test]
    fn polls_whose_answer_is_not_handed_over_are_undone() {
        let filters = with_filter("a");
        let polls = FilterPolls::new(&filters);
        assert!(filters.advance(&polls, "a", at(1), at(2)));
        assert!(filters.advance(&polls, "a", at(2), at(3)));
        drop(polls);
        assert_eq!(seen(&filters, "a"), Some(at(1)));
    }

    /// What the first had told was lost without a word.
    #[test]
    fn a_filter_is_dropped_if_a_poll_cannot_be_undone() {
        let filters = with_filter("a");
        let (first, second) = (FilterPolls::new(&filters), FilterPolls::new(&filters));
        assert!(filters.advance(&first, "a", at(1), at(2)));
        assert!(filters.advance(&second, "a", at(2), at(3)));
        second.settle();
        drop(first);
        assert_eq!(seen(&filters, "a"), None);
    }

    #[test]
    fn polls_without_a_change_need_no_undoing() {
        let filters = with_filter("a");
        let (first, second) = (FilterPolls::new(&filters), FilterPolls::new(&filters));
        assert!(filters.advance(&first, "a", at(1), at(1)));
        assert!(filters.advance(&second, "a", at(1), at(2)));
        second.settle();
        drop(first);
        assert_eq!(seen(&filters, "a"), Some(at(2)));
    }

    #[test]
    fn a_filter_that_another_poll_led_on_is_not_removed() {
        let filters = with_filter("a");
        filters.remove_at("a", at(2));
        assert_eq!(seen(&filters, "a"), Some(at(1)));
        filters.remove_at("a", at(1));
        assert_eq!(seen(&filters, "a"), None);
    }

    /// Whoever made as many as there may be kept everybody else from making one for five minutes.
    #[tokio::test(start_paused = true)]
    async fn the_filter_polled_longest_ago_gives_way_to_a_new_one_and_polled_ones_do_not() {
        let filters = with_filter("idle");
        filters.add(client(1), "polled".to_owned(), ChainFeed::Blocks, at(1)).unwrap();
        let add = |id: &str| filters.add(client(1), id.to_owned(), ChainFeed::Blocks, at(1));
        assert_eq!(add("new"), Err(Refusal::TooManyFilters { count_max: 2 }));
        tokio::time::advance(EVICTABLE_AFTER).await;
        assert_eq!(seen(&filters, "polled"), Some(at(1)));
        add("new").unwrap();
        assert_eq!((seen(&filters, "idle"), seen(&filters, "polled")), (None, Some(at(1))));
        assert_eq!(add("another"), Err(Refusal::TooManyFilters { count_max: 2 }));
    }

    /// One client took all filters from all others, with a batch every thirty seconds.
    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_filters_gives_way_to_others_and_takes_none_of_theirs() {
        let filters = Filters::new(FilterLimits { count_max: 10, ..FilterLimits::default() });
        let add =
            |number: u8, id: String| filters.add(client(number), id, ChainFeed::Blocks, at(1));
        let held = |number: u8| {
            filters.list().values().filter(|filter| filter.client == client(number)).count()
        };
        let refused: Result<(), Refusal> = Err(Refusal::TooManyFilters { count_max: 10 });
        add(1, "quiet".to_owned()).unwrap();
        for round in 0..5 {
            // All that one client can make, whatever was not polled meanwhile.
            let made = (0..20).filter(|it| add(2, format!("many {round} {it}")).is_ok()).count();
            assert!(made >= if round == 0 { 9 } else { 1 }, "{made} in round {round}");
            assert_eq!((held(1), held(2)), (1, 9), "round {round}");
            tokio::time::advance(EVICTABLE_AFTER).await;
        }
        // Polled ones too, until both have as many.
        for id in (0..9).map(|it| format!("many 4 {it}")).chain(["quiet".to_owned()]) {
            assert_eq!(seen(&filters, &id), Some(at(1)));
        }
        for index in 0..4 {
            add(3, index.to_string()).unwrap();
            assert_eq!((held(1), held(2) + held(3)), (1, 9), "{index}");
        }
        assert_eq!((held(2), add(3, "one too many".to_owned())), (5, refused.clone()));
        assert_eq!((add(2, "many".to_owned()), held(1)), (refused, 1));
    }

    /// What subscriptions hold cannot be made room of: filters were dropped for nothing.
    #[tokio::test(start_paused = true)]
    async fn filters_are_not_dropped_for_one_that_there_is_no_room_for() {
        let filters = with_filter("blocks");
        add(&filters, 1, "small", &filter(1)).unwrap();
        let large = filter(1000);
        let held: Vec<_> = std::iter::from_fn(|| keep(&filters, 1, &large).ok()).collect();
        assert!(held.len() > 1000, "{}", held.len());
        tokio::time::advance(EVICTABLE_AFTER).await;
        assert_eq!(keep(&filters, 1, &large).err(), Some(Refusal::FiltersTooLarge));
        assert_eq!((seen(&filters, "blocks"), seen(&filters, "small")), (Some(at(1)), Some(at(1))));
    }

    /// One client took the memory of all log filters.
    #[tokio::test(start_paused = true)]
    async fn a_client_with_large_filters_gives_way_to_others() {
        let filters = Filters::new(FilterLimits { count_max: 10_000, ..FilterLimits::default() });
        let (small, large) = (filter(10), filter(1000));
        let add = |number: u8, id: usize, filter: &LogFilter| {
            add(&filters, number, &format!("{number} {id}"), filter)
        };
        add(1, 0, &small).unwrap();
        let count = (0..10_000).take_while(|id| add(2, *id, &large).is_ok()).count();
        assert!(count > 1000, "{count}");
        add(3, 0, &large).unwrap();
        let left = filters.list().values().filter(|filter| filter.client == client(2)).count();
        assert_eq!((seen(&filters, "1 0"), left), (Some(at(1)), count - 1));
        assert_eq!(add(2, count, &large), Err(Refusal::FiltersTooLarge));
        tokio::time::advance(EVICTABLE_AFTER).await;
        add(2, count, &large).unwrap();
        assert_eq!(seen(&filters, "1 0"), Some(at(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_filter_that_nobody_polls_gives_its_room_and_one_of_blocks_stays() {
        let filters = with_filter("blocks");
        let large = filter(1000);
        add(&filters, 1, "large", &large).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| keep(&filters, 1, &large).ok()).collect();
        tokio::time::advance(EVICTABLE_AFTER).await;
        let kept = keep(&filters, 1, &large);
        assert!(kept.is_ok(), "{} are held", held.len());
        assert_eq!((seen(&filters, "blocks"), seen(&filters, "large")), (Some(at(1)), None));
    }

    /// What a client's subscriptions hold was nobody's: with them it took the room of polled filters.
    #[tokio::test(start_paused = true)]
    async fn subscriptions_count_for_their_client_and_take_nothing_of_polled_filters() {
        let filters = Filters::new(FilterLimits::default());
        let large = filter(1000);
        let polled = ["first", "second", "third"];
        for id in polled {
            add(&filters, 1, id, &large).unwrap();
        }
        let mut subscribed = Vec::new();
        let mut subscribe = || {
            subscribed.extend(std::iter::from_fn(|| keep(&filters, 2, &large).ok()));
            filters.list().values().filter(|filter| filter.client == client(1)).count()
        };
        assert_eq!(subscribe(), 3);
        tokio::time::advance(EVICTABLE_AFTER).await;
        assert_eq!(subscribe(), 3);
        // Of polled ones, the one of whoever has so many subscriptions gives way.
        assert!(polled.iter().all(|id| seen(&filters, id).is_some()));
        subscribed.pop();
        add(&filters, 2, "of the subscriber", &large).unwrap();
        keep(&filters, 3, &large).unwrap();
        assert_eq!((seen(&filters, "of the subscriber"), filters.count()), (None, 3));
    }

    /// A poll under way keeps its filter's memory, whether the filter is dropped or not.
    #[tokio::test(start_paused = true)]
    async fn a_filter_that_a_poll_reads_gives_no_room_and_is_not_dropped_for_it() {
        let filters = Filters::new(FilterLimits::default());
        let large = filter(1000);
        add(&filters, 1, "read", &large).unwrap();
        let under_way = filters.poll("read");
        add(&filters, 1, "idle", &large).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| keep(&filters, 1, &large).ok()).collect();
        tokio::time::advance(EVICTABLE_AFTER).await;
        let last = keep(&filters, 1, &large).unwrap();
        assert_eq!((seen(&filters, "read"), seen(&filters, "idle")), (Some(at(1)), None));
        drop((under_way, last, held));
    }

    /// Each that gave way was looked for among all others, and for nothing if they were too few.
    #[test]
    fn subscriptions_of_one_client_leave_half_of_the_memory_to_others() {
        let filters = Filters::new(FilterLimits::default());
        let large = filter(1000);
        let subscribe = |number| {
            let for_blooms = large.query().for_blooms();
            filters.keep_subscribed(client(number), large.clone(), for_blooms)
        };
        let half: Vec<_> = std::iter::from_fn(|| subscribe(1).ok()).collect();
        let rest: Vec<_> = std::iter::from_fn(|| subscribe(2).ok()).collect();
        assert!(half.len() > 500 && half.len() - rest.len() <= 2, "{} {}", half.len(), rest.len());
        drop(rest);
        assert_eq!(subscribe(1).err(), Some(Refusal::FiltersTooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn filters_that_give_way_are_looked_for_once() {
        let filters = Filters::new(FilterLimits { count_max: 1000, ..FilterLimits::default() });
        for id in 0..1000 {
            filters.add(client(1), id.to_string(), ChainFeed::Blocks, at(1)).unwrap();
        }
        tokio::time::advance(EVICTABLE_AFTER).await;
        let mut list = filters.list();
        for (missing, left) in [(1001, 1000), (500, 500)] {
            let looks = std::cell::Cell::new(0);
            let size_of = |_: &PolledFilter| {
                looks.set(looks.get() + 1);
                1
            };
            let shares = BTreeMap::from([(client(1), 1000)]);
            let wanted = WantedShare { size: 1, missing };
            assert_eq!(evict(&mut list, client(2), wanted, shares, size_of), left == 500);
            assert_eq!(list.len(), left);
            assert!(looks.get() <= 4000, "{} looks", looks.get());
        }
    }
}
