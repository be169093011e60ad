//! The files of a bucket, read in place: by ranges, through a cache.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures_util::future::try_join;
use store::FileSource;
use store::disk::{CachedRead, DataFile, Disk, DiskError, is_file_name};
use store::read::{Blocking, LocalBytes, Reading, SegmentBytes};
use tokio::runtime::Handle;

use crate::bucket::Bucket;
use crate::fetch::{Fetched, Fetcher, RangeFetchError, RangeReadSettings, RemoteObject};
use crate::range_cache::{CacheLookup, CacheRank, FileKey, RangeCache};
use crate::read_ahead::ReadAhead;
use crate::remote_counts::RemoteCounts;

/// No tail begins here.
const UNKNOWN: u64 = u64::MAX;

/// The files of a bucket.
#[derive(Clone, Debug)]
pub struct RemoteFiles {
    fetcher: Arc<Fetcher>,
    place: Arc<str>,
    pinned: Arc<PinnedFiles>,
}

impl RemoteFiles {
    /// The files of `bucket`, through `cache`. Requests run on `runtime`, whoever polls for their
    /// bytes.
    #[must_use]
    pub fn new(
        bucket: Bucket,
        cache: Arc<RangeCache>,
        runtime: Handle,
        settings: RangeReadSettings,
    ) -> Self {
        let place = Arc::from(bucket.place());
        let fetcher = Arc::new(Fetcher::new(bucket, cache, runtime, settings));
        Self { fetcher, place, pinned: Arc::default() }
    }

    /// What was read, from where, and what the caches take.
    #[must_use]
    pub fn counts(&self) -> RemoteCounts {
        self.fetcher.cache().counts()
    }

    /// From here on the file is read from its copy in this folder, also where it is open already.
    pub(crate) fn pin(&self, file_name: &str, folder: &Arc<dyn Disk>) -> Result<(), DiskError> {
        let blocking = RuntimeBlocking(self.fetcher.runtime().clone());
        let bytes = LocalBytes::new(folder.open(file_name)?, Arc::new(blocking));
        let copy = PinnedCopy { bytes, folder: Arc::clone(folder) };
        self.pinned.slot(file_name).store(Some(Arc::new(copy)));
        Ok(())
    }

    /// Whether copies were removed since the last call because they could not be read or were damaged:
    /// they are to be made anew.
    #[must_use]
    pub fn take_lost_copies(&self) -> bool {
        self.pinned.are_lost.swap(false, Ordering::AcqRel)
    }
}

impl FileSource for RemoteFiles {
    fn open(&self, file_name: &str, file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        if !is_file_name(file_name) {
            let (folder, found) = (self.place.to_string(), file_name.to_owned());
            return Err(DiskError::Name { folder, found });
        }
        let (name, key) = (Arc::from(file_name), FileKey::of(file_name));
        Ok(Arc::new(RemoteBytes {
            fetcher: Arc::clone(&self.fetcher),
            object: RemoteObject { name, key, file_bytes },
            ahead: ReadAhead::of(file_name, file_bytes),
            lead: Mutex::new(None),
            tail_start: AtomicU64::new(UNKNOWN),
            pinned: Arc::clone(&self.pinned),
            copy: self.pinned.slot(file_name),
            is_of_copy: AtomicBool::new(false),
        }))
    }
}

/// A copy of a file.
#[derive(Debug)]
struct PinnedCopy {
    bytes: LocalBytes,
    folder: Arc<dyn Disk>,
}

/// A copy of a file, or none.
type PinnedSlot = Arc<ArcSwapOption<PinnedCopy>>;

/// Local copies of files, each shared by all that have the file open.
#[derive(Debug, Default)]
struct PinnedFiles {
    slots: Mutex<BTreeMap<String, PinnedSlot>>,
    /// Whether some were removed.
    are_lost: AtomicBool,
}

impl PinnedFiles {
    fn slot(&self, file_name: &str) -> PinnedSlot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(file_name.to_owned()).or_default())
    }
}

/// Waits for the disk on the threads that a runtime has for that.
#[derive(Clone, Debug)]
struct RuntimeBlocking(Handle);

impl Blocking for RuntimeBlocking {
    fn read(&self, file: Arc<dyn DataFile>, range: Range<u64>) -> Reading<'_> {
        let place = file.place().to_owned();
        let read = self.0.spawn_blocking(move || {
            let mut buffer = Vec::new();
            file.read_at(range, &mut buffer).map(|()| buffer)
        });
        Box::pin(async move { read.await.map_err(|_| DiskError::PoolClosed { place })? })
    }
}

/// A file of the bucket.
#[derive(Debug)]
struct RemoteBytes {
    fetcher: Arc<Fetcher>,
    object: RemoteObject,
    ahead: ReadAhead,
    /// The end of the file, from the read of the footer to that of the tail.
    lead: Mutex<Option<Bytes>>,
    /// Where the tail begins; [`UNKNOWN`] before it was read.
    tail_start: AtomicU64,
    pinned: Arc<PinnedFiles>,
    copy: PinnedSlot,
    /// Whether a copy was read.
    is_of_copy: AtomicBool,
}

impl SegmentBytes for RemoteBytes {
    fn file_bytes(&self) -> u64 {
        self.object.file_bytes
    }

    fn is_far(&self) -> bool {
        self.copy.load().is_none()
    }

    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        buffer.clear();
        self.check_range(&range)?;
        if let Some(copy) = self.find_copy() {
            match copy.bytes.read_now(range.clone(), buffer) {
                Ok(read) => return Ok(read),
                // A copy that fails is none.
                Err(error) => self.fail_copy(&error),
            }
            buffer.clear();
        }
        if let Some(bytes) = self.read_lead(&range) {
            buffer.extend_from_slice(&bytes);
            return Ok(CachedRead::Ready);
        }
        Ok(match self.fetcher.cache().read_now(self.object.key, &range, buffer) {
            CacheLookup::Ready => {
                self.note_tail(&range);
                CachedRead::Ready
            }
            CacheLookup::OnDisk | CacheLookup::Missing => CachedRead::WouldBlock,
        })
    }

    fn read(&self, range: Range<u64>) -> Reading<'_> {
        Box::pin(async move {
            self.check_range(&range)?;
            if let Some(copy) = self.find_copy() {
                match copy.bytes.read(range.clone()).await {
                    Ok(bytes) => return Ok(bytes),
                    Err(error) => self.fail_copy(&error),
                }
            }
            if let Some(bytes) = self.read_cached(&range).await {
                self.note_tail(&range);
                return Ok(bytes);
            }
            self.fetcher.cache().counters().misses.add(1);
            self.fetch(range).await.map_err(|error| error.to_disk_error())
        })
    }

    fn discard_copies(&self) -> bool {
        let is_of_copy = self.is_of_copy.load(Ordering::Acquire);
        if is_of_copy {
            self.lose_copy("its bytes are damaged");
        }
        *self.lock_lead() = None;
        self.fetcher.cache().discard(self.object.key);
        is_of_copy
    }
}

impl RemoteBytes {
    /// The copy of the file, if it is pinned.
    fn find_copy(&self) -> Option<Arc<PinnedCopy>> {
        let copy = self.copy.load_full()?;
        // Written by every read, it would be taken from one core to another each time.
        if !self.is_of_copy.load(Ordering::Relaxed) {
            self.is_of_copy.store(true, Ordering::Release);
        }
        Some(copy)
    }

    /// Reads the copy no more. If the disk is at fault, another copy would fare no better.
    fn fail_copy(&self, error: &DiskError) {
        if error.is_of_file() {
            return self.lose_copy(&error.to_string());
        }
        tracing::warn!(%error, "a pinned file cannot be read");
        self.copy.store(None);
    }

    /// Reads the copy no more, and removes it, so that it is made anew.
    fn lose_copy(&self, reason: &str) {
        let Some(copy) = self.copy.swap(None) else { return };
        let (name, pinned) = (Arc::clone(&self.object.name), Arc::clone(&self.pinned));
        tracing::warn!(file = %name, reason, "a pinned copy is not used any more");
        let remove = move || match copy.folder.remove(&name) {
            Err(error) if !error.is_missing() => {
                tracing::warn!(%error, "a pinned copy that is not used cannot be removed");
            }
            _ => pinned.are_lost.store(true, Ordering::Release),
        };
        drop(self.fetcher.runtime().spawn_blocking(remove));
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), DiskError> {
        let file_bytes = self.object.file_bytes;
        if range.start <= range.end && range.end <= file_bytes {
            return Ok(());
        }
        let (start, end) = (range.start, range.end);
        Err(DiskError::Range { place: self.fetcher.place_of(&self.object), start, end, file_bytes })
    }

    fn lock_lead(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tail was not read yet: until then what is fetched of the end may be there.
    fn is_opening(&self) -> bool {
        self.tail_start.load(Ordering::Acquire) == UNKNOWN
    }

    /// The range from the end that was fetched ahead. With the tail that has done its work.
    fn read_lead(&self, range: &Range<u64>) -> Option<Bytes> {
        if !self.is_opening() {
            return None;
        }
        let lead = self.lock_lead().clone()?;
        let part = part_of(&lead, self.ahead.lead().start, range)?;
        self.keep_tail(range, &lead, self.ahead.lead().start);
        Some(part)
    }

    /// Keeps what the tail is part of, if this range is the tail. `end` has the bytes of the file from
    /// `start` on.
    fn keep_tail(&self, range: &Range<u64>, end: &Bytes, start: u64) {
        let Some(tail_start) = self.ahead.tail_start(range).filter(|_| self.is_opening()) else {
            return;
        };
        let (cache, key) = (self.fetcher.cache(), self.object.key);
        let writes = if self.ahead.is_whole() {
            self.tail_start.store(0, Ordering::Release);
            cache.insert(key, 0, CacheRank::Lookup, end.clone())
        } else {
            self.tail_start.store(tail_start, Ordering::Release);
            let tail = part_of(end, start, &(tail_start..self.object.file_bytes));
            // The pages before the tail are not kept in memory with it.
            let tail = Bytes::copy_from_slice(&tail.unwrap_or_default());
            !tail.is_empty() && cache.insert_tail(key, tail_start, tail)
        };
        *self.lock_lead() = None;
        if writes {
            self.fetcher.write_cached();
        }
    }

    /// A tail that the cache had says where the tail begins, too.
    fn note_tail(&self, range: &Range<u64>) {
        if let Some(start) = self.ahead.tail_start(range).filter(|_| self.is_opening()) {
            let start = if self.ahead.is_whole() { 0 } else { start };
            self.tail_start.store(start, Ordering::Release);
        }
    }

    /// The range from the cache, be it on disk.
    async fn read_cached(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        match self.fetcher.cache().read_now(self.object.key, range, &mut buffer) {
            CacheLookup::Ready => Some(buffer),
            CacheLookup::Missing => None,
            CacheLookup::OnDisk => {
                let (cache, key) = (Arc::clone(self.fetcher.cache()), self.object.key);
                let range = range.clone();
                let read = move || cache.read_disk(key, &range);
                self.fetcher.runtime().spawn_blocking(read).await.ok().flatten()
            }
        }
    }

    async fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, Arc<RangeFetchError>> {
        let tail_start = self.tail_start.load(Ordering::Acquire);
        let lead = self.ahead.lead();
        if tail_start == UNKNOWN && range.end > lead.start {
            return self.fetch_end(range, lead).await;
        }
        let rank = if self.ahead.is_run { CacheRank::Lookup } else { CacheRank::Page };
        if tail_start != UNKNOWN && range.start >= tail_start {
            let tail = tail_start..self.object.file_bytes;
            let bytes = self.fetched(tail, Some(CacheRank::Lookup)).await?;
            return self.part(&bytes, tail_start, &range);
        }
        Ok(self.fetched(range, Some(rank)).await?.into())
    }

    /// Fetches the end of the file, and what of the range lies before it.
    async fn fetch_end(
        &self,
        range: Range<u64>,
        lead: Range<u64>,
    ) -> Result<Vec<u8>, Arc<RangeFetchError>> {
        let held = self.lock_lead().clone();
        let end = async {
            match held {
                Some(bytes) => Ok(bytes),
                None => self.fetched(lead.clone(), None).await,
            }
        };
        if range.start >= lead.start {
            let bytes = end.await?;
            *self.lock_lead() = Some(bytes.clone());
            self.keep_tail(&range, &bytes, lead.start);
            return self.part(&bytes, lead.start, &range);
        }
        let (before, end) = try_join(self.fetched(range.start..lead.start, None), end).await?;
        let all = Bytes::from([before, end].concat());
        self.keep_tail(&range, &all, range.start);
        self.part(&all, range.start, &range)
    }

    async fn fetched(&self, range: Range<u64>, rank: Option<CacheRank>) -> Fetched {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.fetcher.fetch(&self.object, range, rank).await.unwrap_or_else(|_| {
            Err(Arc::new(RangeFetchError::Ended { place: self.fetcher.place_of(&self.object) }))
        })
    }

    fn part(
        &self,
        bytes: &Bytes,
        start: u64,
        range: &Range<u64>,
    ) -> Result<Vec<u8>, Arc<RangeFetchError>> {
        let torn = || {
            let place = self.fetcher.place_of(&self.object);
            Arc::new(RangeFetchError::Torn { place, range: range.clone() })
        };
        part_of(bytes, start, range).map(Vec::from).ok_or_else(torn)
    }
}

/// The range of bytes that begin at `start`.
fn part_of(bytes: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
}

#[cfg(test)]
mod tests;
