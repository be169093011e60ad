//! Filters that clients poll: what each asks for, and how far its client knows the chain.
//!
//! Knows: their ids, how many there may be, and when one was polled last.
//! Never knows: how changes are found or written.
//!
//! A filter holds a block's number and hash, and nothing of what came since: however rarely it is
//! polled, it does not grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::heads::HeadCursor;
use crate::kept_filter::{FilterRoom, KeptFilter};
use crate::refusal::Refusal;

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
    limits: FilterLimits,
    room: FilterRoom,
    list: Mutex<HashMap<String, PolledFilter>>,
}

/// What a filter tells of.
#[derive(Clone, Debug)]
pub(crate) enum FilterKind {
    /// The hashes of new blocks.
    Blocks,
    /// The logs of new blocks, and of blocks that left.
    Logs(Arc<KeptFilter>),
}

#[derive(Debug)]
struct PolledFilter {
    kind: FilterKind,
    seen: HeadCursor,
    /// When it was made or polled last.
    used: Instant,
}

/// A poll that is answered.
#[derive(Debug)]
struct FilterPoll {
    id: String,
    before: HeadCursor,
    after: HeadCursor,
}

/// The polls of one body.
#[derive(Debug, Default)]
pub(crate) struct FilterPolls(Mutex<Vec<FilterPoll>>);

impl Filters {
    pub(crate) fn new(limits: FilterLimits) -> Self {
        Self { limits, room: FilterRoom::default(), list: Mutex::default() }
    }

    /// Room for log filters, also for those of subscriptions.
    pub(crate) fn room(&self) -> &FilterRoom {
        &self.room
    }

    /// Adds a filter whose client knows the chain so far.
    pub(crate) fn add(
        &self,
        id: String,
        kind: FilterKind,
        seen: HeadCursor,
    ) -> Result<(), Refusal> {
        let mut list = self.current();
        let count_max = self.limits.count_max;
        if list.len() >= count_max {
            return Err(Refusal::TooManyFilters { count_max });
        }
        list.insert(id, PolledFilter { kind, seen, used: Instant::now() });
        Ok(())
    }

    /// A filter that is polled now.
    pub(crate) fn poll(&self, id: &str) -> Option<(FilterKind, HeadCursor)> {
        let mut list = self.current();
        let filter = list.get_mut(id)?;
        filter.used = Instant::now();
        Some((filter.kind.clone(), filter.seen))
    }

    /// What a poll answers leads a client from `before` to `after`. False if another poll did so
    /// meanwhile: a change is told once.
    pub(crate) fn advance(
        &self,
        polls: &FilterPolls,
        id: &str,
        before: HeadCursor,
        after: HeadCursor,
    ) -> bool {
        let is_advanced = self.exchange(id, before, after);
        if is_advanced {
            polls.list().push(FilterPoll { id: id.to_owned(), before, after });
        }
        is_advanced
    }

    /// The answer to these polls is not sent: what it told is to be told again.
    pub(crate) fn take_back(&self, polls: &FilterPolls) {
        for poll in polls.list().drain(..).rev() {
            self.exchange(&poll.id, poll.after, poll.before);
        }
    }

    /// Ends a filter; tells whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        self.current().remove(id).is_some()
    }

    fn exchange(&self, id: &str, before: HeadCursor, after: HeadCursor) -> bool {
        let mut list = self.list();
        let Some(filter) = list.get_mut(id).filter(|it| it.seen == before) else { return false };
        filter.seen = after;
        true
    }

    /// All that were used lately; the others are dropped.
    fn current(&self) -> MutexGuard<'_, HashMap<String, PolledFilter>> {
        let mut list = self.list();
        list.retain(|_, filter| filter.used.elapsed() < self.limits.idle_timeout);
        list
    }

    fn list(&self) -> MutexGuard<'_, HashMap<String, PolledFilter>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FilterPolls {
    fn list(&self) -> MutexGuard<'_, Vec<FilterPoll>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
