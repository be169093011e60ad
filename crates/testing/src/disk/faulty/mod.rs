//! A disk in memory that crashes, tears writes, fills up, fails and lies, all from one seed.
//!
//! Two pictures are kept apart: what reads see, and what is
//! durable. [`FaultyDisk::crash`] makes the second the first, and of what lies between the two it may
//! keep any part, as a real disk does: of each file's writes a beginning, the last of them torn or
//! with its bytes still zero, and of the renames, creations and removals any selection.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chain::SplitMix64;

use crate::disk::{
    DataFile, Disk, DiskError, FileVersion, LockGuard, LockHolder, Operation, WritableFile,
    is_file_name, range_bytes,
};

mod file;
mod name_change;
mod written;

use file::FaultyFile;
use name_change::NameChange;
use written::{FaultyWritten, OpenedToWrite};

/// Which error an operation fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// ENOSPC. A write leaves a part of its bytes behind.
    NoSpace,
    /// EIO. A failed fsync forgets the bytes that it was to make durable, as Linux does.
    Io,
    /// EIO while the system writes back on its own, which no operation waits for: the bytes of all files
    /// that were not fsynced are forgotten. Only the next fsync of a file that is open for writing reports
    /// it: a file that is opened later does not, as if the inode had been evicted.
    WriteBack,
}

impl DiskFailure {
    fn cause(self) -> io::Error {
        match self {
            Self::NoSpace => io::ErrorKind::StorageFull.into(),
            Self::Io | Self::WriteBack => io::Error::other("input/output error"),
        }
    }
}

/// What a crash may leave of what was not fsynced. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// Of each file's writes a beginning may survive, torn at any byte.
    pub may_tear_writes: bool,
    /// Any of the renames, creations and removals may survive.
    pub may_keep_names: bool,
}

/// A folder in memory. Clones are the same folder.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    state: Arc<Mutex<FaultyState>>,
}

impl FaultyDisk {
    /// An empty folder; all that is left to chance follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = FaultyState {
            chance: Chance(SplitMix64::new(seed)),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            locks: BTreeMap::new(),
            open_counts: BTreeMap::new(),
            crash_count: 0,
            next_id: 0,
            operation_count: 0,
            failures: BTreeMap::new(),
            stop_at: None,
            is_lying: false,
            may_block: false,
            open_files_max: usize::MAX,
            free_bytes: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How many operations were asked for until now, failed ones included.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        self.state().operation_count
    }

    /// The operation after `count` more fails, once.
    pub fn fail_after(&self, count: u64, failure: DiskFailure) {
        let mut state = self.state();
        let number = state.operation_count.saturating_add(count);
        state.failures.insert(number, failure);
    }

    /// After `count` more operations nothing is done any more, until [`FaultyDisk::crash`].
    pub fn stop_after(&self, count: u64) {
        let mut state = self.state();
        state.stop_at = Some(state.operation_count.saturating_add(count));
    }

    /// Whether fsync says that bytes and names are durable and does nothing.
    pub fn set_lying(&self, is_lying: bool) {
        self.state().is_lying = is_lying;
    }

    /// How many files may be open at once, as a process may have so many descriptors.
    pub fn set_open_files_max(&self, open_files_max: usize) {
        self.state().open_files_max = open_files_max;
    }

    /// How many bytes [`Disk::free_bytes`] reports.
    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.state().free_bytes = Some(free_bytes);
    }

    /// Whether [`DataFile::read_now`] answers at chance that it would block. It never does unless
    /// told so.
    pub fn set_may_block(&self, may_block: bool) {
        self.state().may_block = may_block;
    }

    /// The power is cut and comes back: what was not durable is lost or torn, locks are free, open
    /// files are dead, failures that did not happen yet are forgotten.
    pub fn crash(&self, crash: Crash) {
        self.state().crash(crash);
    }

    fn state(&self) -> MutexGuard<'_, FaultyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the file of this name; `act` is told if it is to fail.
    fn with_file<T>(
        &self,
        name: &str,
        operation: Operation,
        act: impl FnOnce(&mut FaultyState, Option<DiskFailure>) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        if !is_file_name(name) {
            return Err(DiskError::Name { folder: self.place(), found: name.to_owned() });
        }
        let mut state = self.state();
        let outcome = state.begin().and_then(|failure| {
            let value = act(&mut state, failure)?;
            failure.map_or(Ok(value), |failure| Err(failure.cause()))
        });
        outcome.map_err(|cause| DiskError::from_system(file_place(name), operation, cause))
    }

    /// Reads the file's content, or refuses.
    fn read_with<T>(
        &self,
        name: &str,
        act: impl FnOnce(&[u8], u64) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let content = self
            .with_file(name, Operation::Read, |state, _| Ok(state.file(name)?.content.clone()))?;
        act(&content, length(content.len()))
    }
}

impl Disk for FaultyDisk {
    fn place(&self) -> String {
        FOLDER.to_owned()
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut state = self.state();
        let begun = state.begin().and_then(|failure| match failure {
            Some(failure) => Err(failure.cause()),
            None => Ok(state.names.keys().cloned().collect()),
        });
        begun.map_err(|cause| DiskError::from_system(self.place(), Operation::List, cause))
    }

    fn free_bytes(&self) -> Result<Option<u64>, DiskError> {
        Ok(self.state().free_bytes)
    }

    fn file_bytes(&self, name: &str) -> Result<u64, DiskError> {
        self.read_with(name, |_, file_bytes| Ok(file_bytes))
    }

    fn version(&self, name: &str) -> Result<FileVersion, DiskError> {
        self.with_file(name, Operation::Read, |state, _| {
            let id = state.id(name)?;
            state.version(id).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.read_with(name, |content, file_bytes| {
            if file_bytes > bytes_max {
                let place = file_place(name);
                return Err(DiskError::TooLarge { place, file_bytes, bytes_max });
            }
            Ok(content.to_vec())
        })
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, DiskError> {
        self.read_with(name, |content, file_bytes| {
            let count = range_bytes(&file_place(name), &range, file_bytes)?;
            let start = usize::try_from(range.start).unwrap_or(usize::MAX);
            Ok(content.iter().skip(start).take(count).copied().collect())
        })
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError> {
        Ok(Arc::new(FaultyFile::open(self, name)?))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        let opened = self.with_file(name, Operation::Write, |state, failure| {
            let id = state.id_or_new(name);
            state.file_of(id).put(Change::Truncate);
            state.append(id, bytes, failure);
            Ok(state.open_to_write(id, failure))
        })?;
        Ok(Box::new(FaultyWritten::new(self, name, opened)))
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        let opened = self.with_file(name, Operation::Append, |state, failure| {
            let id = state.id(name)?;
            state.append(id, bytes, failure);
            Ok(state.open_to_write(id, failure))
        })?;
        Ok(Box::new(FaultyWritten::new(self, name, opened)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        if !is_file_name(to) {
            return Err(DiskError::Name { folder: self.place(), found: to.to_owned() });
        }
        self.with_file(from, Operation::Rename, |state, failure| {
            let id = state.id(from)?;
            if failure.is_none() && from != to {
                state.change_names(NameChange::Rename {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    id,
                });
            }
            Ok(())
        })
    }

    fn fsync_folder(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        let outcome = state.begin().and_then(|failure| match failure {
            Some(failure) => Err(failure.cause()),
            None => Ok(()),
        });
        if outcome.is_ok() && !state.is_lying {
            state.durable_names = state.names.clone();
            state.unsynced_names.clear();
            state.drop_nameless();
        }
        outcome.map_err(|cause| DiskError::from_system(self.place(), Operation::FsyncFolder, cause))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.with_file(name, Operation::Remove, |state, failure| {
            state.id(name)?;
            if failure.is_none() {
                state.change_names(NameChange::Remove { name: name.to_owned() });
            }
            Ok(())
        })
    }

    fn lock(&self, name: &str) -> Result<LockGuard, DiskError> {
        let token = self.with_file(name, Operation::Lock, |state, failure| {
            state.id_or_new(name);
            if failure.is_some() || state.locks.contains_key(name) {
                return Ok(None);
            }
            let token = state.new_id();
            state.locks.insert(name.to_owned(), token);
            Ok(Some(token))
        })?;
        let held = || DiskError::Locked { place: file_place(name), holder: None };
        let token = token.ok_or_else(held)?;
        Ok(LockGuard::new(HeldLock { disk: self.clone(), name: name.to_owned(), token }))
    }
}

const FOLDER: &str = "memory";

fn file_place(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Gives the lock back, unless a crash has done so and another took it.
#[derive(Debug)]
struct HeldLock {
    disk: FaultyDisk,
    name: String,
    token: u64,
}

impl LockHolder for HeldLock {
    fn is_in_place(&self) -> bool {
        self.disk.state().locks.get(&self.name) == Some(&self.token)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.name) == Some(&self.token) {
            state.locks.remove(&self.name);
        }
    }
}

#[derive(Debug)]
struct FaultyState {
    chance: Chance,
    files: BTreeMap<u64, StoredFile>,
    /// What reads see.
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// What lies between the two, in order.
    unsynced_names: Vec<NameChange>,
    locks: BTreeMap<String, u64>,
    /// How often each file is held open.
    open_counts: BTreeMap<u64, usize>,
    crash_count: u64,
    next_id: u64,
    operation_count: u64,
    failures: BTreeMap<u64, DiskFailure>,
    stop_at: Option<u64>,
    is_lying: bool,
    may_block: bool,
    open_files_max: usize,
    free_bytes: Option<u64>,
}

impl FaultyState {
    /// Counts an operation, and tells if it is to fail.
    fn begin(&mut self) -> io::Result<Option<DiskFailure>> {
        let number = self.operation_count;
        self.operation_count = number.saturating_add(1);
        if self.stop_at.is_some_and(|stop_at| number >= stop_at) {
            return Err(io::Error::other("the power is cut"));
        }
        let failure = self.failures.remove(&number);
        if failure == Some(DiskFailure::WriteBack) {
            self.files.values_mut().for_each(StoredFile::fail_write_back);
            return Ok(None);
        }
        Ok(failure)
    }

    fn new_id(&mut self) -> u64 {
        self.next_id = self.next_id.saturating_add(1);
        self.next_id
    }

    fn id(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn version(&self, id: u64) -> Option<FileVersion> {
        let content = &self.files.get(&id)?.content;
        // There is no clock here: another content is another time.
        let changed_at = (crc32fast::hash(content).into(), 0);
        Some(FileVersion { identity: (0, id), bytes: length(content.len()), changed_at })
    }

    fn file(&mut self, name: &str) -> io::Result<&mut StoredFile> {
        let id = self.id(name)?;
        Ok(self.file_of(id))
    }

    fn file_of(&mut self, id: u64) -> &mut StoredFile {
        self.files.entry(id).or_default()
    }

    fn id_or_new(&mut self, name: &str) -> u64 {
        self.names.get(name).copied().unwrap_or_else(|| {
            let id = self.new_id();
            self.change_names(NameChange::Create { name: name.to_owned(), id });
            self.file_of(id);
            id
        })
    }

    /// Adds the bytes at a file's end, or a part of them.
    fn append(&mut self, id: u64, bytes: &[u8], failure: Option<DiskFailure>) {
        let written = self.part_written(bytes.len(), failure);
        let bytes = bytes.iter().take(written).copied().collect();
        let file = self.file_of(id);
        file.put(Change::Put { offset: file.content.len(), bytes });
    }

    fn open_to_write(&mut self, id: u64, failure: Option<DiskFailure>) -> OpenedToWrite {
        self.hold_open(id, failure);
        let seen_write_backs = self.file_of(id).failed_write_backs;
        OpenedToWrite { id, seen_write_backs, crash_count: self.crash_count }
    }

    /// Holds a file open, so that it outlives its name, unless that is to fail.
    fn hold_open(&mut self, id: u64, failure: Option<DiskFailure>) {
        if failure.is_none() {
            let count = self.open_counts.entry(id).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Closes a file that was opened after `crash_count` crashes.
    fn close(&mut self, id: u64, crash_count: u64) {
        if self.crash_count != crash_count {
            return;
        }
        if let Some(count) = self.open_counts.get_mut(&id) {
            *count = count.saturating_sub(1);
        }
        self.open_counts.retain(|_, count| *count > 0);
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    /// How many of the bytes are written.
    fn part_written(&mut self, count: usize, failure: Option<DiskFailure>) -> usize {
        if failure.is_none() { count } else { self.chance.below(count.saturating_add(1)) }
    }

    fn crash(&mut self, crash: Crash) {
        let Self { chance, files, durable_names, unsynced_names, .. } = self;
        for change in unsynced_names.drain(..) {
            if crash.may_keep_names && chance.flip() {
                change.apply(durable_names);
            }
        }
        for file in files.values_mut() {
            if crash.may_tear_writes {
                file.tear(chance);
            }
            file.content.clone_from(&file.durable);
            file.unsynced.clear();
            file.forgotten.clear();
        }
        self.names = self.durable_names.clone();
        self.open_counts.clear();
        self.crash_count = self.crash_count.saturating_add(1);
        self.drop_nameless();
        self.locks.clear();
        self.failures.clear();
        self.stop_at = None;
    }

    /// Forgets files that no name leads to and nobody holds open, in a folder whose names are all
    /// durable.
    fn drop_nameless(&mut self) {
        let live: BTreeSet<u64> =
            self.names.values().chain(self.open_counts.keys()).copied().collect();
        self.files.retain(|id, _| live.contains(id));
    }
}

/// One file.
#[derive(Debug, Default)]
struct StoredFile {
    /// What reads see.
    content: Vec<u8>,
    durable: Vec<u8>,
    /// What lies between the two, in order.
    unsynced: Vec<Change>,
    /// What a failed fsync dropped and nobody has written again.
    forgotten: Vec<Range<usize>>,
    /// How often bytes were forgotten while the system wrote back on its own.
    failed_write_backs: u64,
}

impl StoredFile {
    fn put(&mut self, change: Change) {
        match &change {
            Change::Truncate => self.forgotten.clear(),
            Change::Put { .. } => {}
        }
        change.apply(&mut self.content);
        self.unsynced.push(change);
    }

    fn fail_write_back(&mut self) {
        if !self.unsynced.is_empty() {
            self.forget();
            self.failed_write_backs = self.failed_write_backs.saturating_add(1);
        }
    }

    fn fsync(&mut self) {
        self.durable.clone_from(&self.content);
        // Bytes that a failed fsync forgot stay forgotten.
        for hole in &self.forgotten {
            blank(&mut self.durable, hole);
        }
        self.unsynced.clear();
    }

    /// A failed fsync: the system counts the bytes as written, and they are not.
    fn forget(&mut self) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Truncate => Change::Truncate.apply(&mut self.durable),
                Change::Put { offset, bytes } => {
                    self.forgotten.push(offset..offset.saturating_add(bytes.len()));
                }
            }
        }
    }

    /// A beginning of the writes becomes durable, the last of them in part.
    fn tear(&mut self, chance: &mut Chance) {
        let kept = chance.below(self.unsynced.len().saturating_add(1));
        let mut changes = self.unsynced.drain(..);
        for change in changes.by_ref().take(kept) {
            change.apply(&mut self.durable);
        }
        if let Some(Change::Put { offset, bytes }) = changes.next() {
            let whole = bytes.len();
            let cut = chance.below(whole.saturating_add(1));
            let mut bytes: Vec<u8> = bytes.into_iter().take(cut).collect();
            if chance.flip() {
                bytes.resize(whole, 0); // the length arrived before the bytes
            }
            Change::Put { offset, bytes }.apply(&mut self.durable);
        }
    }
}

/// A change of a file's bytes.
#[derive(Debug)]
enum Change {
    Truncate,
    Put { offset: usize, bytes: Vec<u8> },
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Truncate => content.clear(),
            Self::Put { offset, bytes } => {
                let end = offset.saturating_add(bytes.len());
                content.resize(content.len().max(end), 0);
                for (place, byte) in content.iter_mut().skip(*offset).zip(bytes) {
                    *place = *byte;
                }
            }
        }
    }
}

fn blank(content: &mut [u8], hole: &Range<usize>) {
    content.iter_mut().take(hole.end).skip(hole.start).for_each(|byte| *byte = 0);
}

/// Chance that follows from a seed.
#[derive(Debug)]
struct Chance(SplitMix64);

impl Chance {
    /// A number below `count`; 0 if there is none.
    fn below(&mut self, count: usize) -> usize {
        let number = self.0.below(length(count));
        usize::try_from(number).unwrap_or_default()
    }

    fn flip(&mut self) -> bool {
        self.0.next_number() & 1 == 0
    }
}
