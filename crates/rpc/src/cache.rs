//! Results that are asked for again and again, kept as they were written.
//!
//! A result is kept when it is made for the second time in a short while: those that are asked for
//! once, as a scan over history does, cost next to nothing and drive nothing out. They take no
//! lock, unless a kept one has the same bits: its memory would go from core to core with each.

use std::collections::VecDeque;
use std::collections::hash_map::Entry as Place;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use alloy_primitives::map::HashMap;
use chain::BlockNumber;
use hyper::body::Bytes;

/// Parts with a lock of their own: threads seldom meet in one.
const SHARDS: usize = 8;
/// Results made lately that are remembered.
const RECENT: usize = 8192;
/// Counts of what is kept, at the most.
const COUNTS_MAX: usize = 65_536;
/// What a kept result takes beside its bytes.
const ENTRY_BYTES: usize = 256;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheSubject {
    /// A block with its transactions.
    FullBlock,
    /// A block with the hashes of its transactions.
    Block,
    /// A transaction.
    Transaction,
    /// A transaction's receipt.
    Receipt,
}

/// How a result is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheForm {
    /// As it was written.
    Plain,
    /// Packed, to become a part of a gzip body.
    Gzip,
    /// The same of a zstd body.
    Zstd,
}

/// What is kept of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    subject: CacheSubject,
    form: CacheForm,
    hash: B256,
}

/// A result, and the block that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheEntry {
    pub(crate) number: BlockNumber,
    pub(crate) block_hash: B256,
    pub(crate) result: Bytes,
}

/// Results, bounded in bytes.
#[derive(Debug)]
pub(crate) struct AnswerCache {
    shards: Vec<Mutex<Shard>>,
    /// Of each part.
    bytes_max: usize,
    counts: FingerprintCounts,
    /// A few bits of what was made lately, at places that others of their bits tell. Threads that
    /// write at once lose one word or the other: then a result is kept a little later.
    recent: Vec<AtomicU32>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    /// Results, each in one form.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// How many kept results have some of their bits in common: where none has, none has to be looked for.
/// A count that overflows is a result that is made again, or looked for in vain.
#[derive(Debug)]
struct FingerprintCounts(Vec<AtomicU16>);

#[derive(Debug, Default)]
struct Shard {
    kept: HashMap<CacheKey, CacheSlot>,
    /// All that is kept, in the order in which it came or was last spared.
    queue: VecDeque<CacheKey>,
    bytes: usize,
}

#[derive(Debug)]
struct CacheSlot {
    kept: CacheEntry,
    /// Whether it was taken since it was last looked at for removal.
    is_used: bool,
}

impl AnswerCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let entries_max = bytes_max / ENTRY_BYTES;
        let counts = FingerprintCounts::new(entries_max.clamp(1, COUNTS_MAX));
        let recent = (0..RECENT).map(|_| AtomicU32::new(0)).collect();
        Self { shards, bytes_max: bytes_max / SHARDS, counts, recent }
    }

    /// A result that is kept.
    pub(crate) fn find(&self, key: CacheKey) -> Option<CacheEntry> {
        if !self.counts.is_any(key) {
            return None;
        }
        let mut shard = self.shard(key)?;
        let slot = shard.kept.get_mut(&key)?;
        slot.is_used = true;
        Some(slot.kept.clone())
    }

    /// Tells of a result that was made, and keeps it if it was made lately.
    pub(crate) fn offer(
        &self,
        key: CacheKey,
        number: BlockNumber,
        block_hash: B256,
        result: &[u8],
    ) {
        if self.has_room(result.len()) && self.was_recent(key) {
            let result = Bytes::copy_from_slice(result);
            self.keep(key, CacheEntry { number, block_hash, result });
        }
    }

    /// Keeps a result, or another form of one.
    pub(crate) fn keep(&self, key: CacheKey, kept: CacheEntry) {
        if !self.has_room(kept.result.len()) {
            return;
        }
        if let Some(mut shard) = self.shard(key) {
            shard.keep(key, kept, self.bytes_max, &self.counts);
        }
    }

    /// How much is kept.
    pub(crate) fn size(&self) -> CacheSize {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.shards.iter().fold(CacheSize::default(), |sum, shard| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            CacheSize {
                entries: sum.entries.saturating_add(number(shard.kept.len())),
                bytes: sum.bytes.saturating_add(number(shard.bytes)),
            }
        })
    }

    /// Whether it was made lately; from now on it was.
    fn was_recent(&self, key: CacheKey) -> bool {
        let (place, bits) = key.bits();
        let Some(seen) = self.recent.get(place) else { return false };
        let was = seen.load(Ordering::Relaxed) == bits;
        seen.store(bits, Ordering::Relaxed);
        was
    }

    /// None may drive out everything else.
    fn has_room(&self, length: usize) -> bool {
        length.saturating_add(ENTRY_BYTES) <= self.bytes_max / 2
    }

    fn shard(&self, key: CacheKey) -> Option<MutexGuard<'_, Shard>> {
        let [.., bits] = key.hash.0;
        let shard = self.shards.get(usize::from(bits) % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CacheKey {
    /// What was written about the block or transaction with this hash.
    pub(crate) fn new(subject: CacheSubject, hash: B256) -> Self {
        Self { subject, form: CacheForm::Plain, hash }
    }

    /// The same in another form.
    pub(crate) fn in_form(self, form: CacheForm) -> Self {
        Self { form, ..self }
    }

    /// Some of its bits, those of two subjects apart.
    fn bits(&self) -> (usize, u32) {
        let [a, b, c, d, place, place_high, ..] = self.hash.0;
        let kind = match self.subject {
            CacheSubject::FullBlock => 0,
            CacheSubject::Block => 1,
            CacheSubject::Transaction => 2,
            CacheSubject::Receipt => 3,
        };
        let place = usize::from(u16::from_le_bytes([place, place_high])) % RECENT;
        (place, u32::from_le_bytes([a, b, c, d]).wrapping_add(kind))
    }
}

impl FingerprintCounts {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU16::new(0)).collect())
    }

    fn of(&self, key: CacheKey) -> Option<&AtomicU16> {
        let [.., a, b, c, _] = key.hash.0;
        let bits = usize::try_from(u32::from_le_bytes([a, b, c, 0])).ok()?;
        self.0.get(bits.checked_rem(self.0.len())?)
    }

    fn is_any(&self, key: CacheKey) -> bool {
        self.of(key).is_some_and(|count| count.load(Ordering::Relaxed) != 0)
    }

    fn add(&self, key: CacheKey) {
        if let Some(count) = self.of(key) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remove(&self, key: CacheKey) {
        if let Some(count) = self.of(key) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Shard {
    fn keep(
        &mut self,
        key: CacheKey,
        kept: CacheEntry,
        bytes_max: usize,
        counts: &FingerprintCounts,
    ) {
        let bytes = kept.result.len().saturating_add(ENTRY_BYTES);
        let slot = CacheSlot { kept, is_used: false };
        match self.kept.entry(key) {
            // Another thread was quicker, or its block was replaced: the newest word counts.
            Place::Occupied(mut place) => {
                let before = place.insert(slot).kept.result.len().saturating_add(ENTRY_BYTES);
                self.bytes = self.bytes.saturating_sub(before);
            }
            Place::Vacant(place) => {
                place.insert(slot);
                self.queue.push_back(key);
                counts.add(key);
            }
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.shrink(bytes_max, counts);
    }

    /// Removes what was not taken for the longest time.
    fn shrink(&mut self, bytes_max: usize, counts: &FingerprintCounts) {
        while self.bytes > bytes_max {
            let Some(key) = self.queue.pop_front() else { return };
            match self.kept.get_mut(&key) {
                Some(slot) if slot.is_used => {
                    slot.is_used = false;
                    self.queue.push_back(key);
                }
                Some(slot) => {
                    let bytes = slot.kept.result.len().saturating_add(ENTRY_BYTES);
                    self.bytes = self.bytes.saturating_sub(bytes);
                    self.kept.remove(&key);
                    counts.remove(key);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> CacheKey {
        // One shard for all: its limit is what is tested.
        let mut hash = B256::repeat_byte(seed);
        hash.0[31] = 0;
        CacheKey::new(CacheSubject::Transaction, hash)
    }

    fn offer(cache: &AnswerCache, key: CacheKey, bytes: usize) {
        cache.offer(key, BlockNumber(7), B256::ZERO, &vec![b'x'; bytes]);
    }

    #[test]
    fn what_is_asked_once_is_not_kept_and_what_is_asked_twice_is() {
        let cache = AnswerCache::new(1 << 20);
        offer(&cache, key(1), 10);
        assert_eq!(cache.find(key(1)), None);
        offer(&cache, key(1), 10);
        let kept = cache.find(key(1)).unwrap();
        assert_eq!((kept.number, kept.result.len()), (BlockNumber(7), 10));
        // The same hash asked for something else.
        assert_eq!(cache.find(CacheKey::new(CacheSubject::Receipt, key(1).hash)), None);
        // Another form of it is kept when it is made: it is asked for already.
        let packed = key(1).in_form(CacheForm::Gzip);
        assert_eq!(cache.find(packed), None);
        cache.keep(packed, kept.clone());
        assert_eq!(cache.find(packed), Some(kept));
    }

    #[test]
    fn bytes_are_bounded_and_what_is_taken_stays() {
        let cache = AnswerCache::new(SHARDS * 10_000);
        for seed in 1..=100 {
            offer(&cache, key(seed), 1000);
            offer(&cache, key(seed), 1000);
            assert!(cache.find(key(1)).is_some(), "asked for all the time: {seed}");
            let shard = cache.shards[0].lock().unwrap();
            assert!(shard.bytes <= 10_000, "{}", shard.bytes);
            assert_eq!(shard.kept.len(), shard.queue.len());
            let sum: usize =
                shard.kept.values().map(|slot| slot.kept.result.len() + ENTRY_BYTES).sum();
            assert_eq!(shard.bytes, sum);
            let counted = |count: &AtomicU16| usize::from(count.load(Ordering::Relaxed));
            assert_eq!(cache.counts.0.iter().map(counted).sum::<usize>(), shard.kept.len());
        }
        assert!(cache.find(key(2)).is_none() && cache.find(key(100)).is_some());
    }

    #[test]
    fn a_result_that_is_made_again_takes_the_place_of_the_old_one() {
        let cache = AnswerCache::new(1 << 20);
        for bytes in [10, 10, 20] {
            offer(&cache, key(1), bytes);
        }
        assert_eq!(cache.find(key(1)).unwrap().result.len(), 20);
        assert_eq!(cache.size(), CacheSize { entries: 1, bytes: 20 + 256 });
    }

    #[test]
    fn what_is_larger_than_half_of_the_room_is_never_kept() {
        let cache = AnswerCache::new(SHARDS * 1000);
        offer(&cache, key(1), 600);
        offer(&cache, key(1), 600);
        assert_eq!(cache.find(key(1)), None);
        let none = AnswerCache::new(0);
        offer(&none, key(1), 0);
        offer(&none, key(1), 0);
        assert_eq!(none.find(key(1)), None);
    }
}
