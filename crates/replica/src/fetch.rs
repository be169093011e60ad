//! Fetching ranges of a bucket's files: each once, however many wait for it, and neighbours together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Shared, WeakShared, join_all};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::bucket::Bucket;
use crate::range_cache::{CacheRank, FileKey, RangeCache, range_bytes};
use crate::remote_counts::RemoteCounters;

mod error;
mod join;
mod request;

pub(crate) use error::RangeFetchError;
use join::{JoinedRange, join_neighbours};
use request::RangeRequests;

/// How ranges are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeReadSettings {
    /// How many requests may be under way, hedges aside.
    pub requests_max: usize,
    /// How long one attempt may take from its beginning to its last byte.
    pub attempt_timeout: Duration,
    /// When a second request is sent beside a first one that has not ended.
    pub hedge_after: Duration,
    /// Bytes a second that are waited for beyond that: a long range is not slow because it is long.
    pub hedge_bytes_per_second: u64,
    /// How often a request is repeated that failed.
    pub retries: u32,
    /// How often one is repeated for an object that is not there: some stores list what they do not show
    /// everywhere yet.
    pub missing_retries: u32,
    /// How long all attempts of a request may take together, pauses and hedges and all.
    pub total_timeout: Duration,
    /// The pause before the first repetition; each further one is twice as long.
    pub retry_pause: Duration,
    /// Ranges of a file with no more than this between them come by one request.
    pub join_gap_bytes: u64,
    /// What one request brings at most if it was joined.
    pub join_bytes_max: u64,
}

impl Default for RangeReadSettings {
    fn default() -> Self {
        Self {
            requests_max: 64,
            attempt_timeout: Duration::from_secs(10),
            hedge_after: Duration::from_millis(300),
            hedge_bytes_per_second: 8 << 20,
            retries: 3,
            missing_retries: 2,
            total_timeout: Duration::from_secs(30),
            retry_pause: Duration::from_millis(100),
            join_gap_bytes: 16 << 10,
            join_bytes_max: 4 << 20,
        }
    }
}

/// A file of the bucket, as far as fetching goes.
#[derive(Clone, Debug)]
pub(crate) struct RemoteObject {
    pub(crate) name: Arc<str>,
    pub(crate) key: FileKey,
    /// How long it is listed to be.
    pub(crate) file_bytes: u64,
}

/// What a fetch ended with, for everybody who waits for it.
pub(crate) type Fetched = Result<Bytes, Arc<RangeFetchError>>;

/// A range on its way. When the last of these is dropped before its end, the request is given up.
pub(crate) type Fetching = Shared<oneshot::Receiver<Fetched>>;

type FlightKey = (FileKey, u64, u64);

/// Fetches ranges.
#[derive(Debug)]
pub(crate) struct Fetcher {
    requests: RangeRequests,
    cache: Arc<RangeCache>,
    runtime: Handle,
    settings: RangeReadSettings,
    permits: Arc<Semaphore>,
    flights: Mutex<BTreeMap<FlightKey, WeakShared<oneshot::Receiver<Fetched>>>>,
    /// Ranges that no request was made for yet, by file.
    waiting: Mutex<BTreeMap<FileKey, Vec<WantedRange>>>,
}

/// A range that was asked for.
#[derive(Debug)]
struct WantedRange {
    range: Range<u64>,
    /// What it is kept as; `None` for bytes that were guessed to be useful.
    rank: Option<CacheRank>,
    sender: oneshot::Sender<Fetched>,
}

impl Fetcher {
    pub(crate) fn new(
        bucket: Bucket,
        cache: Arc<RangeCache>,
        runtime: Handle,
        settings: RangeReadSettings,
    ) -> Self {
        let requests = RangeRequests::new(bucket, settings, Arc::clone(cache.counters()));
        let permits = Arc::new(Semaphore::new(settings.requests_max.max(1)));
        let (flights, waiting) = (Mutex::default(), Mutex::default());
        Self { requests, cache, runtime, settings, permits, flights, waiting }
    }

    fn counters(&self) -> &RemoteCounters {
        self.cache.counters()
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn cache(&self) -> &Arc<RangeCache> {
        &self.cache
    }

    /// How messages call the file.
    pub(crate) fn place_of(&self, object: &RemoteObject) -> String {
        self.requests.place_of(&object.name)
    }

    fn lock_flights(
        &self,
    ) -> MutexGuard<'_, BTreeMap<FlightKey, WeakShared<oneshot::Receiver<Fetched>>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a range. Whoever asks for the same one while it is on its way gets the same fetch.
    pub(crate) fn fetch(
        self: &Arc<Self>,
        object: &RemoteObject,
        range: Range<u64>,
        rank: Option<CacheRank>,
    ) -> Fetching {
        let key = (object.key, range.start, range.end);
        let mut flights = self.lock_flights();
        if let Some(fetching) = flights.get(&key).and_then(WeakShared::upgrade) {
            self.counters().shared_fetches.add(1);
            return fetching;
        }
        self.counters().bytes_asked.add(range_bytes(&range));
        let (sender, receiver) = oneshot::channel();
        let fetching = receiver.shared();
        if let Some(weak) = fetching.downgrade() {
            flights.insert(key, weak);
        }
        drop(flights);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = waiting.entry(object.key).or_default();
        of_file.push(WantedRange { range, rank, sender });
        let is_first = of_file.len() == 1;
        drop(waiting);
        if is_first {
            let unsent =
                UnsentRanges { fetcher: Arc::clone(self), file: object.key, is_taken: false };
            self.runtime.spawn(send_waiting(unsent, object.clone()));
        }
        fetching
    }

    /// Fetches a joined range, unless nobody waits for any part of it any more.
    async fn send(
        self: Arc<Self>,
        object: RemoteObject,
        mut joined: JoinedRange<WantedRange>,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let range = joined.range.clone();
        let request = async {
            let permit = match permit {
                Some(permit) => Some(permit),
                None => Arc::clone(&self.permits).acquire_owned().await.ok(),
            };
            let fetched = self.requests.get(&object, range).await;
            drop(permit);
            fetched
        };
        let closed = join_all(joined.parts.iter_mut().map(|part| part.sender.closed()));
        let fetched = tokio::select! {
            biased;
            fetched = request => fetched.map_err(Arc::new),
            _ = closed => {
                self.land(&object, &joined.parts);
                return;
            }
        };
        let mut writes = false;
        if let Ok(bytes) = &fetched {
            for part in &joined.parts {
                let (Some(rank), Some(own)) = (part.rank, joined.part(bytes, &part.range)) else {
                    continue;
                };
                // A part must not keep the bytes of its neighbours in memory.
                let own = if own.len() == bytes.len() { own } else { Bytes::copy_from_slice(&own) };
                writes |= self.cache.insert(object.key, part.range.start, rank, own);
            }
        }
        self.land(&object, &joined.parts);
        for part in std::mem::take(&mut joined.parts) {
            let own = fetched.clone().and_then(|bytes| {
                joined.part(&bytes, &part.range).ok_or_else(|| {
                    let place = self.place_of(&object);
                    Arc::new(RangeFetchError::Torn { place, range: part.range.clone() })
                })
            });
            // Who does not wait any more needs no answer.
            drop(part.sender.send(own));
        }
        if writes {
            self.write_cached();
        }
    }

    /// Has what was cached written, where waiting is allowed.
    pub(crate) fn write_cached(&self) {
        let cache = Arc::clone(&self.cache);
        self.runtime.spawn_blocking(move || cache.write_queued());
    }

    /// These ranges are not on their way any more.
    fn land(&self, object: &RemoteObject, parts: &[WantedRange]) {
        let mut flights = self.lock_flights();
        for part in parts {
            let key = (object.key, part.range.start, part.range.end);
            // Given up and asked for anew, it belongs to a later fetch.
            let is_anew = part.sender.is_closed()
                && flights.get(&key).and_then(WeakShared::upgrade).is_some();
            if !is_anew {
                flights.remove(&key);
            }
        }
    }
}

/// Ranges of a file that no request was made for. A runtime that ends drops them: nobody waits on.
struct UnsentRanges {
    fetcher: Arc<Fetcher>,
    file: FileKey,
    is_taken: bool,
}

impl UnsentRanges {
    fn take(&mut self) -> Vec<WantedRange> {
        if std::mem::replace(&mut self.is_taken, true) {
            return Vec::new();
        }
        let waiting = self.fetcher.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner).remove(&self.file).unwrap_or_default()
    }
}

impl Drop for UnsentRanges {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Makes requests of all ranges of a file that wait by then: those that were asked for at the same
/// moment, and under load those that came while there was no permit.
async fn send_waiting(mut unsent: UnsentRanges, object: RemoteObject) {
    let fetcher = Arc::clone(&unsent.fetcher);
    let mut permit = Arc::clone(&fetcher.permits).acquire_owned().await.ok();
    // Whoever asks for several ranges at once asks for the others now.
    tokio::task::yield_now().await;
    let (given_up, wanted): (Vec<_>, Vec<_>) =
        unsent.take().into_iter().partition(|it| it.sender.is_closed());
    fetcher.land(&object, &given_up);
    let RangeReadSettings { join_gap_bytes, join_bytes_max, .. } = fetcher.settings;
    for joined in join_neighbours(wanted, |it| &it.range, join_gap_bytes, join_bytes_max) {
        let joined_count = u64::try_from(joined.parts.len()).unwrap_or(u64::MAX);
        fetcher.counters().joined_ranges.add(joined_count.saturating_sub(1));
        let sent = Arc::clone(&fetcher).send(object.clone(), joined, permit.take());
        fetcher.runtime.spawn(sent);
    }
}

#[cfg(test)]
mod tests;
