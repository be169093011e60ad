//! What clients have asked so far.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use store::ReadCounts;

use crate::call_counts::{CallCounters, CallRecord, CallTimes, MethodCounts};

/// Threads beyond so many share counters.
const SHARDS: usize = 32;

/// Counters of some threads, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct TrafficShard {
    requests: AtomicU64,
    /// Those over WebSocket among them.
    socket_requests: AtomicU64,
    calls: AtomicU64,
    body_bytes: AtomicU64,
    answer_bytes: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    lookups: AtomicU64,
    pages: AtomicU64,
    by_method: CallCounters,
}

impl TrafficShard {
    fn new() -> Self {
        Self {
            requests: AtomicU64::new(0),
            socket_requests: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            answer_bytes: AtomicU64::new(0),
            cache_hits: AtomicU64::new(0),
            cache_misses: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            by_method: CallCounters::new(),
        }
    }
}

/// Counters of all threads. Those of a thread are made when it first counts something: most never do.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    shards: [OnceLock<Box<TrafficShard>>; SHARDS],
}

/// What clients have asked since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Bodies over HTTP, messages over WebSocket.
    pub requests: u64,
    /// The messages over WebSocket among them.
    pub socket_requests: u64,
    /// Calls in them: a batch has several.
    pub calls: u64,
    /// Bytes of their bodies, decompressed.
    pub body_bytes: u64,
    /// Bytes of their answers, before compression, and of what subscribers were sent.
    pub answer_bytes: u64,
    /// Results that the response cache had.
    pub cache_hits: u64,
    /// Results that it might have had.
    pub cache_misses: u64,
    /// What reads of the store took.
    pub reads: ReadCounts,
}

/// A request that has been answered, or had nothing to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredRequest {
    pub(crate) is_socket: bool,
    pub(crate) calls: usize,
    pub(crate) body_bytes: usize,
    pub(crate) answer_bytes: usize,
}

thread_local! {
    static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Traffic {
    pub(crate) fn count(&self, answered: AnsweredRequest) {
        let Some(shard) = self.shard() else { return };
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        add(&shard.requests, 1);
        if answered.is_socket {
            add(&shard.socket_requests, 1);
        }
        add(&shard.calls, number(answered.calls));
        add(&shard.body_bytes, number(answered.body_bytes));
        add(&shard.answer_bytes, number(answered.answer_bytes));
    }

    /// Counts a call that took so long.
    pub(crate) fn count_call(&self, record: CallRecord, time: Duration) {
        if let Some(shard) = self.shard() {
            shard.by_method.count(record, time);
        }
    }

    /// Counts what a subscriber is sent.
    pub(crate) fn count_notification(&self, bytes: usize) {
        if let Some(shard) = self.shard() {
            add(&shard.answer_bytes, u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Counts a result that the response cache had, or might have had.
    pub(crate) fn count_cache(&self, is_hit: bool) {
        if let Some(shard) = self.shard() {
            add(if is_hit { &shard.cache_hits } else { &shard.cache_misses }, 1);
        }
    }

    /// Counts what reads for a call took.
    pub(crate) fn count_reads(&self, reads: ReadCounts) {
        if reads != ReadCounts::default()
            && let Some(shard) = self.shard()
        {
            add(&shard.lookups, reads.lookups);
            add(&shard.pages, reads.pages);
        }
    }

    /// The counters of this thread.
    fn shard(&self) -> Option<&TrafficShard> {
        let shard = self.shards.get(shard_index())?;
        Some(shard.get_or_init(|| Box::new(TrafficShard::new())))
    }

    fn all(&self) -> impl Iterator<Item = &TrafficShard> {
        self.shards.iter().filter_map(|shard| shard.get().map(|shard| &**shard))
    }

    /// The sums, which grow meanwhile.
    pub(crate) fn counts(&self) -> TrafficCounts {
        let sum = |counter: fn(&TrafficShard) -> &AtomicU64| {
            self.all().map(|shard| counter(shard).load(Ordering::Relaxed)).sum()
        };
        TrafficCounts {
            requests: sum(|shard| &shard.requests),
            socket_requests: sum(|shard| &shard.socket_requests),
            calls: sum(|shard| &shard.calls),
            body_bytes: sum(|shard| &shard.body_bytes),
            answer_bytes: sum(|shard| &shard.answer_bytes),
            cache_hits: sum(|shard| &shard.cache_hits),
            cache_misses: sum(|shard| &shard.cache_misses),
            reads: ReadCounts {
                lookups: sum(|shard| &shard.lookups),
                pages: sum(|shard| &shard.pages),
            },
        }
    }

    /// Calls by method, the same way.
    pub(crate) fn by_method(&self) -> Vec<MethodCounts> {
        let counters: Vec<&CallCounters> = self.all().map(|shard| &shard.by_method).collect();
        MethodCounts::sum(&counters)
    }

    /// How long all calls took.
    pub(crate) fn call_times(&self) -> CallTimes {
        let mut times = CallTimes::default();
        for counts in self.by_method() {
            times.add(&counts.times);
        }
        times
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Which counters are this thread's.
fn shard_index() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    SHARD.with(|shard| {
        shard.get().unwrap_or_else(|| {
            let index = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
            shard.set(Some(index));
            index
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_are_summed() {
        let traffic = Traffic::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    let (calls, body_bytes, answer_bytes) = (3, 10, 100);
                    let is_socket = true;
                    traffic.count(AnsweredRequest { is_socket, calls, body_bytes, answer_bytes });
                    traffic.count_reads(ReadCounts { lookups: 2, pages: 1 });
                    traffic.count_cache(false);
                });
            }
        });
        let expected = TrafficCounts {
            requests: 40,
            socket_requests: 40,
            calls: 120,
            body_bytes: 400,
            answer_bytes: 4000,
            cache_hits: 0,
            cache_misses: 40,
            reads: ReadCounts { lookups: 80, pages: 40 },
        };
        assert_eq!(traffic.counts(), expected);
    }
}
