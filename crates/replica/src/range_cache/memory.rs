//! Ranges in memory, bounded in bytes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::MEMORY_ENTRY_BYTES_MAX;
use super::key::{CacheRank, EntryKey, FileKey, part_of};

/// What an entry takes beside its bytes: its keys, and its node of the tree.
const ENTRY_OVERHEAD: u64 = 128;
/// Entries are spread over so many locks, if each part is worth it: those that begin in the same
/// granule of a file are in one part, so that no file has more room than another.
const SHARDS_MAX: u64 = 16;
const SHARD_BYTES_MIN: u64 = 16 << 20;
/// Beside a disk no entry is longer, so what begins in one granule ends in the next one at the latest.
/// Of a longer one only what lies in its first two granules is found.
const GRANULE_BYTES: u64 = 1 << 20;
const _: () = assert!(MEMORY_ENTRY_BYTES_MAX == 1 << 20, "an entry is no longer than a granule");

/// A second-chance queue for each rank, over one tree of entries, in several parts.
#[derive(Debug)]
pub(super) struct MemoryCache {
    shards: Vec<Mutex<MemoryShard>>,
}

#[derive(Debug, Default)]
struct MemoryShard {
    bytes_max: u64,
    entries: BTreeMap<EntryKey, MemoryEntry>,
    lookups: EvictionQueue,
    pages: EvictionQueue,
}

/// Keys in the order of their arrival; those whose entry is gone are passed over.
#[derive(Debug, Default)]
struct EvictionQueue {
    keys: VecDeque<EntryKey>,
    bytes: u64,
}

#[derive(Debug)]
struct MemoryEntry {
    bytes: Bytes,
    rank: CacheRank,
    /// Since it was last considered for eviction.
    is_used: bool,
}

impl MemoryEntry {
    fn cost(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX).saturating_add(ENTRY_OVERHEAD)
    }
}

impl MemoryCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        let count = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let shard = || MemoryShard { bytes_max: bytes_max / count, ..MemoryShard::default() };
        Self { shards: (0..count).map(|_| Mutex::new(shard())).collect() }
    }

    /// The part with the entries that begin in a granule of the file. There is at least one part.
    fn shard(&self, file: FileKey, granule: u64) -> Option<MutexGuard<'_, MemoryShard>> {
        let file = u64::from_le_bytes(*file.0.first_chunk()?);
        let count = u64::try_from(self.shards.len()).ok()?;
        // Names are digests, and granules follow each other: their sum is spread well enough.
        let index = usize::try_from(file.wrapping_add(granule).checked_rem(count)?).ok()?;
        Some(self.shards.get(index)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes of `range`, if one entry has them all.
    pub(super) fn find(&self, file: FileKey, range: &Range<u64>) -> Option<Bytes> {
        let granule = range.start / GRANULE_BYTES;
        let found = self.find_in(file, granule, range);
        // With one part it was looked through already.
        let before = granule.checked_sub(1).filter(|_| self.shards.len() > 1);
        found.or_else(|| self.find_in(file, before?, range))
    }

    fn find_in(&self, file: FileKey, granule: u64, range: &Range<u64>) -> Option<Bytes> {
        let mut shard = self.shard(file, granule)?;
        let mut before = shard.entries.range_mut((file, 0)..=(file, range.start));
        let ((_, start), entry) = before.next_back()?;
        let part = part_of(*start, entry.bytes.len(), range)?;
        entry.is_used = true;
        Some(entry.bytes.slice(part))
    }

    /// Adds an entry, unless a longer one begins at the same byte.
    pub(super) fn insert(&self, key: EntryKey, rank: CacheRank, bytes: Bytes) {
        let (file, start) = key;
        let Some(mut shard) = self.shard(file, start / GRANULE_BYTES) else { return };
        if shard.entries.get(&key).is_some_and(|entry| entry.bytes.len() >= bytes.len()) {
            return;
        }
        let entry = MemoryEntry { bytes, rank, is_used: false };
        if entry.cost() > shard.bytes_max {
            return;
        }
        shard.remove(&key);
        let queue = shard.queue(rank);
        queue.keys.push_back(key);
        queue.bytes = queue.bytes.saturating_add(entry.cost());
        shard.entries.insert(key, entry);
        shard.evict();
    }

    /// Drops every entry of a file.
    pub(super) fn discard(&self, file: FileKey) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).discard(file);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let bytes = |shard: &Mutex<MemoryShard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.lookups.bytes.saturating_add(shard.pages.bytes)
        };
        self.shards.iter().map(bytes).sum()
    }
}

impl MemoryShard {
    fn queue(&mut self, rank: CacheRank) -> &mut EvictionQueue {
        match rank {
            CacheRank::Lookup => &mut self.lookups,
            CacheRank::Page => &mut self.pages,
        }
    }

    /// Removes an entry; its key stays in the queue, and means nothing or the entry that came after.
    fn remove(&mut self, key: &EntryKey) {
        let Some(entry) = self.entries.remove(key) else { return };
        let queue = self.queue(entry.rank);
        queue.bytes = queue.bytes.saturating_sub(entry.cost());
    }

    fn discard(&mut self, file: FileKey) {
        let keys = self.entries.range((file, 0)..=(file, u64::MAX)).map(|(key, _)| *key);
        for key in keys.collect::<Vec<_>>() {
            self.remove(&key);
        }
        // Keys without entries must not pile up where files are discarded again and again.
        self.lookups.keys.retain(|(queued, _)| *queued != file);
        self.pages.keys.retain(|(queued, _)| *queued != file);
    }

    fn evict(&mut self) {
        while self.lookups.bytes.saturating_add(self.pages.bytes) > self.bytes_max {
            let rank = CacheRank::to_evict(self.lookups.bytes, self.pages.bytes, self.bytes_max);
            let Some(key) = self.queue(rank).keys.pop_front() else { return };
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if std::mem::take(&mut entry.is_used) {
                self.queue(rank).keys.push_back(key);
                continue;
            }
            let cost = entry.cost();
            self.entries.remove(&key);
            let queue = self.queue(rank);
            queue.bytes = queue.bytes.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(file: &str, start: u64) -> EntryKey {
        (FileKey::of(file), start)
    }

    fn entry(byte: u8) -> Bytes {
        Bytes::from(vec![byte; 1000])
    }

    /// Room for so many entries of 1,000 bytes.
    fn cache_of(entries: u64) -> MemoryCache {
        MemoryCache::new(entries * (1000 + ENTRY_OVERHEAD))
    }

    fn holds(cache: &MemoryCache, file: &str, start: u64) -> bool {
        cache.find(FileKey::of(file), &(start..start + 1000)).is_some()
    }

    #[test]
    fn a_part_of_an_entry_is_found_and_what_reaches_beyond_it_is_not() {
        let cache = cache_of(4);
        cache.insert(key("a", 100), CacheRank::Page, Bytes::from_static(b"0123456789"));
        let find = |range: Range<u64>| cache.find(FileKey::of("a"), &range);
        assert_eq!(find(100..110).unwrap(), "0123456789");
        assert_eq!(find(103..105).unwrap(), "34");
        assert_eq!(find(99..105), None);
        assert_eq!(find(105..111), None);
        assert_eq!(cache.find(FileKey::of("b"), &(100..110)), None);
    }

    #[test]
    fn a_longer_entry_replaces_a_shorter_one_and_stays() {
        let cache = cache_of(4);
        cache.insert(key("a", 0), CacheRank::Page, Bytes::from_static(b"01"));
        cache.insert(key("a", 0), CacheRank::Page, Bytes::from_static(b"0123"));
        cache.insert(key("a", 0), CacheRank::Page, Bytes::from_static(b"012"));
        assert_eq!(cache.find(FileKey::of("a"), &(0..4)).unwrap(), "0123");
        assert_eq!(cache.bytes(), 4 + ENTRY_OVERHEAD);
    }

    #[test]
    fn what_was_used_outlasts_what_was_not() {
        let cache = cache_of(3);
        for start in [0, 1000, 2000] {
            cache.insert(key("a", start), CacheRank::Page, entry(1));
        }
        assert!(holds(&cache, "a", 0));
        cache.insert(key("a", 3000), CacheRank::Page, entry(1));
        let held = [0, 1000, 2000, 3000].map(|start| holds(&cache, "a", start));
        assert_eq!(held, [true, false, true, true]);
        assert!(cache.bytes() <= 3 * (1000 + ENTRY_OVERHEAD));
    }

    /// Seen: a reader of three files used three sixteenths of its memory.
    #[test]
    fn one_file_may_have_all_the_room_and_ranges_may_end_in_the_next_granule() {
        let cache = MemoryCache::new(256 << 20);
        let large = Bytes::from(vec![7; 1 << 20]);
        for granule in 0..48 {
            // All of them share their bytes: the room is counted, not taken.
            let start = granule * GRANULE_BYTES + 10;
            cache.insert(key("a", start), CacheRank::Page, large.clone());
        }
        let find = |start: u64, end: u64| cache.find(FileKey::of("a"), &(start..end));
        for granule in 0..48 {
            let start = granule * GRANULE_BYTES;
            assert!(find(start + 10, start + 20).is_some(), "{granule}");
            assert!(
                find(start + GRANULE_BYTES + 3, start + GRANULE_BYTES + 10).is_some(),
                "{granule}"
            );
        }
        assert!(find(3, 9).is_none());
        cache.discard(FileKey::of("a"));
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn pages_go_before_lookups_and_keep_their_share() {
        let cache = cache_of(16);
        for number in 0..16 {
            cache.insert(key("pages", number * 1000), CacheRank::Page, entry(1));
        }
        for number in 0..40 {
            cache.insert(key("lookups", number * 1000), CacheRank::Lookup, entry(2));
        }
        let count = |file| (0..40).filter(|number| holds(&cache, file, number * 1000)).count();
        assert_eq!(count("pages"), 2);
        assert_eq!(count("lookups"), 14);
    }

    #[test]
    fn an_entry_beyond_the_room_is_not_taken_and_a_discarded_file_leaves_nothing() {
        let cache = MemoryCache::new(500);
        cache.insert(key("a", 0), CacheRank::Page, entry(1));
        assert_eq!(cache.bytes(), 0);
        let cache = cache_of(8);
        cache.insert(key("a", 0), CacheRank::Page, entry(1));
        cache.insert(key("a", 1000), CacheRank::Lookup, entry(1));
        cache.insert(key("b", 0), CacheRank::Page, entry(1));
        cache.discard(FileKey::of("a"));
        assert!(!holds(&cache, "a", 0) && !holds(&cache, "a", 1000) && holds(&cache, "b", 0));
        assert_eq!(cache.bytes(), 1000 + ENTRY_OVERHEAD);
    }
}
