//! What clients have asked so far, and what the log is told of each request.
//!
//! Knows: counts of requests, calls and bytes. They are kept apart by thread: serving threads would wait
//! for each other's cache lines otherwise.
//! Never knows: how a rate is made of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::time::Instant;
use tracing::{Level, debug, enabled};

use crate::envelope::{Item, RequestBody, parse};

/// Threads beyond so many share counters.
const SHARDS: usize = 32;

/// Of a method's name that a log shows: a client may send megabytes as one.
const NAME_CHARS_MAX: usize = 64;

/// Counters of some threads, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct TrafficShard {
    requests: AtomicU64,
    calls: AtomicU64,
    answer_bytes: AtomicU64,
}

/// Counters of all threads.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    shards: [TrafficShard; SHARDS],
}

/// What clients have asked since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Bodies over HTTP, messages over WebSocket.
    pub requests: u64,
    /// Calls in them: a batch has several.
    pub calls: u64,
    /// Bytes of their answers, before compression.
    pub answer_bytes: u64,
}

thread_local! {
    static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Traffic {
    /// A request was answered, or had nothing to be answered.
    pub(crate) fn count(&self, calls: usize, answer_bytes: usize) {
        let Some(shard) = self.shards.get(shard_index()) else { return };
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        shard.requests.fetch_add(1, Ordering::Relaxed);
        shard.calls.fetch_add(number(calls), Ordering::Relaxed);
        shard.answer_bytes.fetch_add(number(answer_bytes), Ordering::Relaxed);
    }

    /// The sums, which grow meanwhile.
    pub(crate) fn counts(&self) -> TrafficCounts {
        let sum = |counter: fn(&TrafficShard) -> &AtomicU64| {
            self.shards.iter().map(|shard| counter(shard).load(Ordering::Relaxed)).sum()
        };
        TrafficCounts {
            requests: sum(|shard| &shard.requests),
            calls: sum(|shard| &shard.calls),
            answer_bytes: sum(|shard| &shard.answer_bytes),
        }
    }
}

/// The counters of this thread.
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

/// A request that the log will be told of, once it is answered.
#[derive(Debug)]
pub(crate) struct RequestLog {
    begun: Instant,
    asked: String,
    body_bytes: usize,
}

impl RequestLog {
    /// None unless somebody wants to read it: the body is taken apart once more for it.
    pub(crate) fn begin(body: &[u8]) -> Option<Self> {
        enabled!(Level::DEBUG).then(|| {
            let asked = match parse(body) {
                Ok(RequestBody::Single(Item::Call(call))) => {
                    call.method.chars().take(NAME_CHARS_MAX).collect()
                }
                Ok(RequestBody::Single(Item::Notification)) => "a notification".to_owned(),
                Ok(RequestBody::Batch(batch)) => format!("a batch of {}", batch.count()),
                Ok(RequestBody::Single(Item::Invalid(..))) | Err(_) => "no request".to_owned(),
            };
            Self { begun: Instant::now(), asked, body_bytes: body.len() }
        })
    }

    /// Tells the log. What a client wrote is escaped.
    pub(crate) fn end(self, answer_bytes: usize) {
        let Self { begun, asked, body_bytes } = self;
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        debug!(?asked, body_bytes, answer_bytes, micros, "answered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_are_summed() {
        let traffic = Traffic::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| traffic.count(3, 100));
            }
        });
        let expected = TrafficCounts { requests: 40, calls: 120, answer_bytes: 4000 };
        assert_eq!(traffic.counts(), expected);
    }
}
