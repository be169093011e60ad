//! Ranges on disk, bounded in bytes: files of records that only grow, the oldest of which goes.
//!
//! Nothing here is synced and nothing is missed: a record that a crash tore, a file that was cut and a
//! folder that was removed cost a fetch. Every record is checked each time that it is read.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::disk::CachedRead;

use super::cache_file::CacheFile;
use super::cache_folder::CacheFolder;
use super::key::{CacheRank, EntryKey, FileKey, part_of};
use super::record::{HEAD_BYTES, RecordPlace, encode_record, is_record};
use crate::remote_counts::RemoteCounters;

/// What may wait to be written. Beyond it entries are not taken: the disk is slower than the bucket.
const QUEUE_BYTES_MAX: usize = 32 << 20;
/// A cache has about so many files, within the bounds below: each is a descriptor, and the oldest of
/// them goes at once.
const FILES: u64 = 64;
const FILE_BYTES_MIN: u64 = 16 << 20;
const FILE_BYTES_MAX: u64 = 2 << 30;
/// A file is never more than this part of a small cache.
const FILES_MIN: u64 = 8;

/// How large one file of a cache may be.
fn file_bytes_max(bytes_max: u64) -> u64 {
    (bytes_max / FILES).clamp(FILE_BYTES_MIN, FILE_BYTES_MAX).min(bytes_max / FILES_MIN)
}

/// An entry to write.
#[derive(Debug)]
pub(super) struct CacheWrite {
    pub(super) key: EntryKey,
    pub(super) rank: CacheRank,
    pub(super) bytes: Bytes,
}

/// The cache on disk.
#[derive(Debug)]
pub(super) struct DiskCache {
    path: PathBuf,
    bytes_max: u64,
    file_bytes_max: u64,
    counters: Arc<RemoteCounters>,
    index: Mutex<DiskIndex>,
    /// Held while files change.
    writer: Mutex<DiskWriter>,
    queue: Mutex<WriteQueue>,
    /// Why nothing can be written; said once.
    fault: Mutex<Option<String>>,
}

/// What can be read.
#[derive(Debug, Default)]
struct DiskIndex {
    entries: BTreeMap<EntryKey, DiskEntry>,
    files: BTreeMap<u64, IndexedFile>,
    lookup_bytes: u64,
    page_bytes: u64,
}

#[derive(Debug)]
struct DiskEntry {
    file_number: u64,
    place: RecordPlace,
    /// Since it was written.
    is_used: bool,
}

#[derive(Debug)]
struct IndexedFile {
    file: Arc<CacheFile>,
    places: Vec<RecordPlace>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct DiskWriter {
    /// `None` while another process has the folder, or there is none.
    folder: Option<CacheFolder>,
    active_lookups: Option<u64>,
    active_pages: Option<u64>,
}

#[derive(Debug, Default)]
struct WriteQueue {
    writes: VecDeque<CacheWrite>,
    bytes: usize,
    /// Somebody writes what is queued.
    is_drained: bool,
}

/// What the disk has of a range.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DiskLookup {
    /// The buffer holds it.
    Ready,
    /// It is there, and reading it would wait.
    WouldBlock,
    /// It is not there.
    Missing,
}

impl DiskIndex {
    fn bytes_of(&mut self, rank: CacheRank) -> &mut u64 {
        match rank {
            CacheRank::Lookup => &mut self.lookup_bytes,
            CacheRank::Page => &mut self.page_bytes,
        }
    }

    fn bytes(&self) -> u64 {
        self.lookup_bytes.saturating_add(self.page_bytes)
    }

    fn add_file(&mut self, number: u64, file: Arc<CacheFile>) {
        self.files.insert(number, IndexedFile { file, places: Vec::new(), bytes: 0 });
    }

    /// A file has grown to so many bytes.
    fn grow(&mut self, number: u64, bytes: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        let (rank, more) = (file.file.rank(), bytes.saturating_sub(file.bytes));
        file.bytes = bytes;
        let sum = self.bytes_of(rank);
        *sum = sum.saturating_add(more);
    }

    fn add_entry(&mut self, file_number: u64, place: RecordPlace) {
        if let Some(file) = self.files.get_mut(&file_number) {
            file.places.push(place);
        }
        self.entries.insert(place.key, DiskEntry { file_number, place, is_used: false });
    }

    /// Drops an entry, if it is still that record.
    fn remove_entry(&mut self, place: &RecordPlace, number: u64) -> Option<DiskEntry> {
        let is_it = |entry: &DiskEntry| entry.file_number == number && entry.place == *place;
        self.entries.get(&place.key).filter(|entry| is_it(entry))?;
        self.entries.remove(&place.key)
    }

    /// Drops a file; what is left of it are the records that were used.
    fn remove_file(&mut self, number: u64) -> Option<(IndexedFile, Vec<RecordPlace>)> {
        let removed = self.files.remove(&number)?;
        let sum = self.bytes_of(removed.file.rank());
        *sum = sum.saturating_sub(removed.bytes);
        let entries = removed.places.iter().filter_map(|place| self.remove_entry(place, number));
        let used = entries.filter(|entry| entry.is_used).map(|entry| entry.place).collect();
        Some((removed, used))
    }

    /// The oldest file of the rank that goes first, or of the other if that has none.
    fn oldest(&self, bytes_max: u64) -> Option<u64> {
        let rank = CacheRank::to_evict(self.lookup_bytes, self.page_bytes, bytes_max);
        let of_rank = |(number, file): (&u64, &IndexedFile)| {
            (file.file.rank() == rank && file.bytes > 0).then_some(*number)
        };
        self.files.iter().find_map(of_rank).or_else(|| self.files.keys().next().copied())
    }
}

impl DiskWriter {
    fn active(&mut self, rank: CacheRank) -> &mut Option<u64> {
        match rank {
            CacheRank::Lookup => &mut self.active_lookups,
            CacheRank::Page => &mut self.active_pages,
        }
    }
}

impl DiskCache {
    /// The cache in this folder, with what an earlier process left there. Without a folder that can be
    /// written it holds nothing, and [`Self::fault`] says why.
    pub(super) fn open(path: &Path, bytes_max: u64, counters: Arc<RemoteCounters>) -> Self {
        let cache = Self {
            path: path.to_owned(),
            bytes_max,
            file_bytes_max: file_bytes_max(bytes_max),
            counters,
            index: Mutex::default(),
            writer: Mutex::default(),
            queue: Mutex::default(),
            fault: Mutex::default(),
        };
        cache.check_folder(&mut cache.lock_writer());
        cache
    }

    fn lock_index(&self) -> MutexGuard<'_, DiskIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writer(&self) -> MutexGuard<'_, DiskWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_queue(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing is written, if nothing is.
    pub(super) fn fault(&self) -> Option<String> {
        self.lock_fault().clone()
    }

    fn lock_fault(&self) -> MutexGuard<'_, Option<String>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says why nothing is written, once until something is again.
    fn tell(&self, fault: String) {
        let mut told = self.lock_fault();
        if told.is_none() {
            tracing::warn!(%fault, "ranges are not cached on disk");
        }
        *told = Some(fault);
    }

    /// What the files take.
    pub(super) fn bytes(&self) -> u64 {
        self.lock_index().bytes()
    }

    /// Fills the buffer with the range, if it is here and that takes no waiting.
    pub(super) fn read_now(
        &self,
        file: FileKey,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> DiskLookup {
        self.read_with(file, range, buffer, CacheFile::read_now)
    }

    /// Fills the buffer with the range, if it is here; waits for the disk.
    pub(super) fn read(
        &self,
        file: FileKey,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> DiskLookup {
        self.read_with(file, range, buffer, |file, offset, buffer| {
            file.read(offset, buffer).map(|()| CachedRead::Ready)
        })
    }

    fn read_with(
        &self,
        file: FileKey,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
        read: impl Fn(&CacheFile, u32, &mut [u8]) -> io::Result<CachedRead>,
    ) -> DiskLookup {
        buffer.clear();
        let Some((number, open, place, part)) = self.find(file, range) else {
            return DiskLookup::Missing;
        };
        buffer.resize(place.record_bytes(), 0);
        match read(&open, place.offset, buffer) {
            Ok(CachedRead::Ready) if is_record(buffer, &place) => {
                let begin = HEAD_BYTES.saturating_add(part.start);
                buffer.copy_within(begin..HEAD_BYTES.saturating_add(part.end), 0);
                buffer.truncate(part.len());
                DiskLookup::Ready
            }
            Ok(CachedRead::WouldBlock) => {
                buffer.clear();
                DiskLookup::WouldBlock
            }
            Ok(CachedRead::Ready) | Err(_) => {
                buffer.clear();
                self.counters.damaged_entries.add(1);
                self.lock_index().remove_entry(&place, number);
                DiskLookup::Missing
            }
        }
    }

    /// The record that has all of a range, and which part of it that is.
    fn find(
        &self,
        file: FileKey,
        range: &Range<u64>,
    ) -> Option<(u64, Arc<CacheFile>, RecordPlace, Range<usize>)> {
        let mut index = self.lock_index();
        let mut before = index.entries.range_mut((file, 0)..=(file, range.start));
        let (_, entry) = before.next_back()?;
        let payload_bytes = usize::try_from(entry.place.payload_bytes).ok()?;
        let part = part_of(entry.place.key.1, payload_bytes, range)?;
        entry.is_used = true;
        let (number, place) = (entry.file_number, entry.place);
        let open = Arc::clone(&index.files.get(&number)?.file);
        Some((number, open, place, part))
    }

    /// Drops every entry of a file of the bucket.
    pub(super) fn discard(&self, file: FileKey) {
        self.lock_queue().writes.retain(|write| write.key.0 != file);
        let mut index = self.lock_index();
        let keys = index.entries.range((file, 0)..=(file, u64::MAX)).map(|(key, _)| *key);
        for key in keys.collect::<Vec<_>>() {
            index.entries.remove(&key);
        }
    }

    /// Queues an entry. True if nobody writes what is queued: the caller has [`Self::write_queued`]
    /// called where waiting is allowed.
    pub(super) fn enqueue(&self, write: CacheWrite) -> bool {
        let mut queue = self.lock_queue();
        if queue.bytes.saturating_add(write.bytes.len()) > QUEUE_BYTES_MAX {
            self.counters.skipped_writes.add(1);
            return false;
        }
        queue.bytes = queue.bytes.saturating_add(write.bytes.len());
        queue.writes.push_back(write);
        !std::mem::replace(&mut queue.is_drained, true)
    }

    /// Writes what is queued. Waits for the disk.
    pub(super) fn write_queued(&self) {
        let mut writer = self.lock_writer();
        self.check_folder(&mut writer);
        loop {
            let mut queue = self.lock_queue();
            let Some(write) = queue.writes.pop_front() else {
                // What `discard` dropped took room too.
                queue.bytes = 0;
                queue.is_drained = false;
                return;
            };
            queue.bytes = queue.bytes.saturating_sub(write.bytes.len());
            drop(queue);
            self.write(&mut writer, write);
        }
    }

    /// Sees to it that the folder is there and ours. One that was removed is begun anew; one that
    /// another process has is taken up when that has ended.
    fn check_folder(&self, writer: &mut DiskWriter) {
        if writer.folder.as_ref().is_some_and(CacheFolder::is_in_place) {
            return;
        }
        *self.lock_index() = DiskIndex::default();
        *writer = DiskWriter::default();
        match self.load() {
            Ok(folder) => {
                writer.folder = Some(folder);
                *self.lock_fault() = None;
            }
            Err(fault) => self.tell(fault),
        }
        self.evict_beyond(writer, 0);
    }

    /// Takes the folder, and reads what its files hold.
    fn load(&self) -> Result<CacheFolder, String> {
        let (folder, files) = CacheFolder::take(&self.path)?;
        let mut index = self.lock_index();
        for found in files {
            let (number, bytes) = (found.file.number(), found.bytes);
            index.add_file(number, found.file);
            index.grow(number, bytes);
            found.places.into_iter().for_each(|place| index.add_entry(number, place));
        }
        Ok(folder)
    }

    fn write(&self, writer: &mut DiskWriter, write: CacheWrite) {
        // What is carried over from files that go is written before anything else goes.
        let mut pending = VecDeque::from([write]);
        while let Some(write) = pending.pop_front() {
            match self.append(writer, &write) {
                Ok(carried) => pending.extend(carried),
                Err(fault) => {
                    self.counters.skipped_writes.add(1);
                    self.tell(fault);
                }
            }
        }
    }

    /// Appends a record, and returns what is to be written again because its file went.
    fn append(
        &self,
        writer: &mut DiskWriter,
        write: &CacheWrite,
    ) -> Result<Vec<CacheWrite>, String> {
        let Ok(payload_bytes) = u32::try_from(write.bytes.len()) else { return Ok(Vec::new()) };
        let known = self.lock_index().entries.get(&write.key).map(|it| it.place.payload_bytes);
        if writer.folder.is_none() || known.is_some_and(|known| known >= payload_bytes) {
            return Ok(Vec::new());
        }
        let record = encode_record(write.key, &write.bytes, payload_bytes);
        let record_bytes = u64::try_from(record.len()).unwrap_or(u64::MAX);
        if record_bytes > self.file_bytes_max {
            self.counters.skipped_writes.add(1);
            return Ok(Vec::new());
        }
        let carried = self.evict_beyond(writer, record_bytes);
        let (number, file, at) = self.active_file(writer, write.rank, record_bytes)?;
        let Ok(offset) = u32::try_from(at) else { return Ok(carried) };
        if let Err(cause) = file.write(&record, at) {
            // What of it was written is no record; the next one begins another file. One that has no
            // record goes: on a full disk each attempt would leave one.
            *writer.active(write.rank) = None;
            let removed = if at == 0 { self.lock_index().remove_file(number) } else { None };
            if let Some(((removed, _), folder)) = removed.zip(writer.folder.as_ref()) {
                folder.remove(&removed.file);
            }
            return Err(format!("{}: {cause}", self.path.display()));
        }
        *self.lock_fault() = None;
        let mut index = self.lock_index();
        index.grow(number, at.saturating_add(record_bytes));
        index.add_entry(number, RecordPlace { key: write.key, offset, payload_bytes });
        Ok(carried)
    }

    /// The file that grows, and where it ends. One that is full gets its table, and a new one is begun.
    fn active_file(
        &self,
        writer: &mut DiskWriter,
        rank: CacheRank,
        more: u64,
    ) -> Result<(u64, Arc<CacheFile>, u64), String> {
        if let Some(number) = *writer.active(rank) {
            let index = self.lock_index();
            let file = index.files.get(&number).map(|it| (Arc::clone(&it.file), it.bytes));
            drop(index);
            match file {
                Some((file, bytes)) if bytes.saturating_add(more) <= self.file_bytes_max => {
                    return Ok((number, file, bytes));
                }
                Some(_) | None => self.seal(number),
            }
        }
        let folder = writer.folder.as_mut().ok_or("there is no folder")?;
        let file = Arc::new(folder.create(rank)?);
        let number = file.number();
        self.lock_index().add_file(number, Arc::clone(&file));
        *writer.active(rank) = Some(number);
        Ok((number, file, 0))
    }

    /// Writes the table of a file, if it can be written: without it, a start takes longer.
    fn seal(&self, number: u64) {
        let mut index = self.lock_index();
        let Some(file) = index.files.get(&number) else { return };
        let bytes = file.file.seal(&file.places, file.bytes);
        if let Some(bytes) = bytes {
            index.grow(number, bytes);
        }
    }

    /// Removes the oldest files until there is room for `more`, and returns what was used of them.
    fn evict_beyond(&self, writer: &mut DiskWriter, more: u64) -> Vec<CacheWrite> {
        let mut carried = Vec::new();
        loop {
            let mut index = self.lock_index();
            if index.bytes().saturating_add(more) <= self.bytes_max {
                return carried;
            }
            let Some(number) = index.oldest(self.bytes_max) else { return carried };
            let Some((removed, used)) = index.remove_file(number) else { return carried };
            drop(index);
            for active in [&mut writer.active_lookups, &mut writer.active_pages] {
                *active = active.filter(|active| *active != number);
            }
            carried.extend(carry(&removed, &used));
            if let Some(folder) = &writer.folder {
                folder.remove(&removed.file);
            }
        }
    }
}

/// The records that were used, as long as they are less than half of their file: an eviction that
/// frees nothing would never end.
fn carry(removed: &IndexedFile, used: &[RecordPlace]) -> Vec<CacheWrite> {
    let mut room = removed.bytes / 2;
    let mut carried = Vec::new();
    for place in used {
        let record_bytes = u64::try_from(place.record_bytes()).unwrap_or(u64::MAX);
        let Some(left) = room.checked_sub(record_bytes) else { continue };
        let mut record = vec![0; place.record_bytes()];
        let is_read = removed.file.read(place.offset, &mut record).is_ok();
        if is_read && is_record(&record, place) {
            room = left;
            let bytes = Bytes::from(record).slice(HEAD_BYTES..);
            carried.push(CacheWrite { key: place.key, rank: removed.file.rank(), bytes });
        }
    }
    carried
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        self.write_queued();
        let mut writer = self.lock_writer();
        let active = [writer.active_lookups.take(), writer.active_pages.take()];
        active.into_iter().flatten().for_each(|number| self.seal(number));
    }
}

#[cfg(test)]
mod tests;
