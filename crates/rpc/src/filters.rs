//! Filters that clients poll: what each asks for, and how far its client knows the chain.
//!
//! Knows: their ids, how many there may be, when one was polled last, and which gives way to another.
//! Never knows: how changes are found or written.
//!
//! A filter holds a block's number and hash, and nothing of what came since: however rarely it is
//! polled, it does not grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::heads::ChainCursor;
use crate::kept_filter::{ChainFeed, FilterBudget, KeptFilter};
use crate::log_filter::LogFilter;
use crate::refusal::Refusal;

/// A filter that is not polled for so long gives way to a new one where there is no room: whoever
/// makes filters and does not poll them leaves room for others. Clients poll every few seconds.
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

    /// Keeps a log filter, also one of a subscription, if there is room for it.
    /// Filters that nobody polls make room, but only if that is enough.
    pub(crate) fn keep(&self, mut filter: LogFilter) -> Result<Arc<KeptFilter>, Refusal> {
        let mut list = self.current();
        loop {
            filter = match self.budget.admit(filter) {
                Ok(kept) => return Ok(kept),
                Err(refused) => refused,
            };
            let takes_room = |it: &PolledFilter| it.feed.bytes() > 0;
            let evictable = list.values().filter(|it| it.is_evictable());
            let evictable = evictable.map(|it| it.feed.bytes()).fold(0, usize::saturating_add);
            if evictable < self.budget.missing(&filter) || !evict(&mut list, takes_room) {
                return Err(Refusal::FiltersTooLarge);
            }
        }
    }

    /// Adds a filter whose client knows the chain so far.
    pub(crate) fn add(
        &self,
        id: String,
        feed: ChainFeed,
        seen: ChainCursor,
    ) -> Result<(), Refusal> {
        let mut list = self.current();
        let count_max = self.limits().count_max;
        if list.len() >= count_max && !evict(&mut list, |_| true) {
            return Err(Refusal::TooManyFilters { count_max });
        }
        list.insert(id, PolledFilter { feed, seen, used: Instant::now() });
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
    fn is_evictable(&self) -> bool {
        self.idle(Instant::now()) >= EVICTABLE_AFTER
    }
}

/// Drops of such filters the one that was used longest ago, unless all are polled; tells whether one was
/// dropped.
fn evict(
    list: &mut HashMap<String, PolledFilter>,
    is_such: impl Fn(&PolledFilter) -> bool,
) -> bool {
    let evictable = list.iter().filter(|(_, filter)| is_such(filter) && filter.is_evictable());
    let oldest = evictable.min_by_key(|(_, filter)| filter.used).map(|(id, _)| id.clone());
    oldest.is_some_and(|id| list.remove(&id).is_some())
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

    fn with_filter(id: &str) -> Filters {
        let filters = Filters::new(FilterLimits { count_max: 2, ..FilterLimits::default() });
        filters.add(id.to_owned(), ChainFeed::Blocks, at(1)).unwrap();
        filters
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
        filters.add("polled".to_owned(), ChainFeed::Blocks, at(1)).unwrap();
        let add = |id: &str| filters.add(id.to_owned(), ChainFeed::Blocks, at(1));
        assert_eq!(add("new"), Err(Refusal::TooManyFilters { count_max: 2 }));
        tokio::time::advance(EVICTABLE_AFTER).await;
        assert_eq!(seen(&filters, "polled"), Some(at(1)));
        add("new").unwrap();
        assert_eq!((seen(&filters, "idle"), seen(&filters, "polled")), (None, Some(at(1))));
        assert_eq!(add("another"), Err(Refusal::TooManyFilters { count_max: 2 }));
    }

    /// What subscriptions hold cannot be made room of: filters were dropped for nothing.
    #[tokio::test(start_paused = true)]
    async fn filters_are_not_dropped_for_one_that_there_is_no_room_for() {
        let filters = with_filter("blocks");
        let small = ChainFeed::Logs(filters.keep(filter(1)).unwrap());
        filters.add("small".to_owned(), small, at(1)).unwrap();
        let large = filter(1000);
        let held: Vec<_> = std::iter::from_fn(|| filters.keep(large.clone()).ok()).collect();
        assert!(held.len() > 1000, "{}", held.len());
        tokio::time::advance(EVICTABLE_AFTER).await;
        assert_eq!(filters.keep(filter(1000)).err(), Some(Refusal::FiltersTooLarge));
        assert_eq!((seen(&filters, "blocks"), seen(&filters, "small")), (Some(at(1)), Some(at(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_filter_that_nobody_polls_gives_its_room_and_one_of_blocks_stays() {
        let filters = with_filter("blocks");
        let first = ChainFeed::Logs(filters.keep(filter(1000)).unwrap());
        filters.add("large".to_owned(), first, at(1)).unwrap();
        let large = filter(1000);
        let held: Vec<_> = std::iter::from_fn(|| filters.keep(large.clone()).ok()).collect();
        tokio::time::advance(EVICTABLE_AFTER).await;
        let kept = filters.keep(filter(1000));
        assert!(kept.is_ok(), "{} are held", held.len());
        assert_eq!((seen(&filters, "blocks"), seen(&filters, "large")), (Some(at(1)), None));
    }
}
