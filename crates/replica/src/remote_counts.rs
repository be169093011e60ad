//! What reading from a bucket took: counters that every part of it adds to.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one reader: its cache and its requests share them.
#[derive(Debug, Default)]
pub(crate) struct RemoteCounters {
    pub(crate) requests: Counter,
    pub(crate) bytes_asked: Counter,
    pub(crate) bytes_fetched: Counter,
    pub(crate) memory_hits: Counter,
    pub(crate) disk_hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) shared_fetches: Counter,
    pub(crate) joined_ranges: Counter,
    pub(crate) hedges: Counter,
    pub(crate) retries: Counter,
    pub(crate) failures: Counter,
    pub(crate) damaged_entries: Counter,
    pub(crate) skipped_writes: Counter,
}

/// A picture of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCounts {
    /// Requests that were sent to the store, hedges and retries among them.
    pub requests: u64,
    /// Bytes that readers asked for and no cache had.
    pub bytes_asked: u64,
    /// Bytes that the store sent.
    pub bytes_fetched: u64,
    /// Reads that memory answered.
    pub memory_hits: u64,
    /// Reads that the disk cache answered.
    pub disk_hits: u64,
    /// Reads that no cache answered.
    pub misses: u64,
    /// Reads that waited for the fetch of another.
    pub shared_fetches: u64,
    /// Ranges that came with the request of a neighbour.
    pub joined_ranges: u64,
    /// Second requests because the first was slow.
    pub hedges: u64,
    /// Requests that were sent again because one failed.
    pub retries: u64,
    /// Fetches that failed for good.
    pub failures: u64,
    /// Entries of the disk cache that were dropped because their checksum was wrong.
    pub damaged_entries: u64,
    /// Entries that the disk cache did not take, because it was busy or failed.
    pub skipped_writes: u64,
    /// Bytes of the memory cache.
    pub memory_bytes: u64,
    /// Bytes of the disk cache.
    pub disk_bytes: u64,
}

impl RemoteCounters {
    /// The counters now, beside what the caches take.
    pub(crate) fn snapshot(&self, memory_bytes: u64, disk_bytes: u64) -> RemoteCounts {
        RemoteCounts {
            requests: self.requests.get(),
            bytes_asked: self.bytes_asked.get(),
            bytes_fetched: self.bytes_fetched.get(),
            memory_hits: self.memory_hits.get(),
            disk_hits: self.disk_hits.get(),
            misses: self.misses.get(),
            shared_fetches: self.shared_fetches.get(),
            joined_ranges: self.joined_ranges.get(),
            hedges: self.hedges.get(),
            retries: self.retries.get(),
            failures: self.failures.get(),
            damaged_entries: self.damaged_entries.get(),
            skipped_writes: self.skipped_writes.get(),
            memory_bytes,
            disk_bytes,
        }
    }
}
