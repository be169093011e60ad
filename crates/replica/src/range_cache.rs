//! Ranges of immutable files that were fetched once: in memory, then on disk.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::remote_counts::{RemoteCounters, RemoteCounts};

mod cache_file;
mod cache_folder;
mod disk;
mod key;
mod memory;
mod record;

use disk::{CacheWrite, DiskCache, DiskLookup};
pub(crate) use key::{CacheRank, FileKey, range_bytes};
use memory::MemoryCache;
pub(crate) use record::reencode_records;

/// Longer ranges go to the disk alone, if there is one: they are files that somebody keeps in memory.
const MEMORY_ENTRY_BYTES_MAX: usize = 1 << 20;

/// How much a cache may take, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCacheSettings {
    /// Memory for ranges.
    pub memory_bytes_max: u64,
    /// Where ranges outlive the process; `None` keeps them in memory alone.
    pub disk: Option<DiskCacheSettings>,
}

impl Default for RangeCacheSettings {
    fn default() -> Self {
        Self { memory_bytes_max: 256 << 20, disk: None }
    }
}

/// A folder for ranges, which may be removed at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCacheSettings {
    /// The folder.
    pub folder: PathBuf,
    /// What its files may take. Some 100 bytes of memory go with each entry, which has 1 to 20 KB.
    pub bytes_max: u64,
}

/// A cache of ranges. Several readers may share it.
#[derive(Debug)]
pub struct RangeCache {
    memory: MemoryCache,
    disk: Option<(DiskCacheSettings, DiskCache)>,
    counters: Arc<RemoteCounters>,
}

/// What could be read without waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The buffer holds the range.
    Ready,
    /// It is on disk, and reading it would wait.
    OnDisk,
    /// It is not here.
    Missing,
}

impl RangeCache {
    /// A cache with what an earlier process left in its folder. If the folder cannot be used, the
    /// cache works without it, and [`Self::disk_fault`] says why.
    #[must_use]
    pub fn open(settings: &RangeCacheSettings) -> Self {
        let counters = Arc::<RemoteCounters>::default();
        let open = |disk: &DiskCacheSettings| {
            let cache = DiskCache::open(&disk.folder, disk.bytes_max, Arc::clone(&counters));
            (disk.clone(), cache)
        };
        let disk = settings.disk.as_ref().map(open);
        Self { memory: MemoryCache::new(settings.memory_bytes_max), disk, counters }
    }

    /// The folder of the cache.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.disk.as_ref().map(|(settings, _)| settings.folder.as_path())
    }

    /// Why nothing is cached on disk, if that was wanted: another process has the folder, or it
    /// cannot be written.
    #[must_use]
    pub fn disk_fault(&self) -> Option<String> {
        self.disk.as_ref().and_then(|(_, disk)| disk.fault())
    }

    /// The counters of the cache, and of everything that reads through it.
    #[must_use]
    pub fn counts(&self) -> RemoteCounts {
        let disk_bytes = self.disk.as_ref().map_or(0, |(_, disk)| disk.bytes());
        self.counters.snapshot(self.memory.bytes(), disk_bytes)
    }

    pub(crate) fn counters(&self) -> &Arc<RemoteCounters> {
        &self.counters
    }

    /// Fills the buffer with the range, if it is here and that takes no waiting.
    pub(crate) fn read_now(
        &self,
        file: FileKey,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> CacheLookup {
        buffer.clear();
        if let Some(bytes) = self.memory.find(file, range) {
            buffer.extend_from_slice(&bytes);
            self.counters.memory_hits.add(1);
            return CacheLookup::Ready;
        }
        let Some((_, disk)) = &self.disk else { return CacheLookup::Missing };
        match disk.read_now(file, range, buffer) {
            DiskLookup::Ready => {
                self.counters.disk_hits.add(1);
                CacheLookup::Ready
            }
            DiskLookup::WouldBlock => CacheLookup::OnDisk,
            DiskLookup::Missing => CacheLookup::Missing,
        }
    }

    /// The range, if it is on disk. Waits for the disk.
    pub(crate) fn read_disk(&self, file: FileKey, range: &Range<u64>) -> Option<Vec<u8>> {
        let (_, disk) = self.disk.as_ref()?;
        let mut buffer = Vec::new();
        let is_read = disk.read(file, range, &mut buffer) == DiskLookup::Ready;
        is_read.then(|| {
            self.counters.disk_hits.add(1);
            buffer
        })
    }

    /// Keeps a page, or a part of a lookup, which is asked for again and again. True if
    /// [`Self::write_queued`] is to be called where waiting is allowed.
    pub(crate) fn insert(&self, file: FileKey, start: u64, rank: CacheRank, bytes: Bytes) -> bool {
        if self.disk.is_none() || bytes.len() <= MEMORY_ENTRY_BYTES_MAX {
            self.memory.insert((file, start), rank, bytes.clone());
        }
        self.insert_disk(file, start, rank, bytes)
    }

    /// Keeps the tail of a file. Whoever opened the file has it in memory, taken apart: it goes to the
    /// disk alone if there is one.
    pub(crate) fn insert_tail(&self, file: FileKey, start: u64, bytes: Bytes) -> bool {
        if self.disk.is_none() || self.disk_fault().is_some() {
            self.memory.insert((file, start), CacheRank::Lookup, bytes);
            return false;
        }
        self.insert_disk(file, start, CacheRank::Lookup, bytes)
    }

    fn insert_disk(&self, file: FileKey, start: u64, rank: CacheRank, bytes: Bytes) -> bool {
        let write = CacheWrite { key: (file, start), rank, bytes };
        self.disk.as_ref().is_some_and(|(_, disk)| disk.enqueue(write))
    }

    /// Writes what waits for the disk.
    pub(crate) fn write_queued(&self) {
        if let Some((_, disk)) = &self.disk {
            disk.write_queued();
        }
    }

    /// Drops all that is kept of a file: some of it was wrong when it came.
    pub(crate) fn discard(&self, file: FileKey) {
        self.memory.discard(file);
        if let Some((_, disk)) = &self.disk {
            disk.discard(file);
        }
    }
}
