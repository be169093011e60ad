//! A disk in memory that crashes, tears writes, fills up, fails and lies, all from one seed.
//!
//! Knows: which bytes and names would survive a power cut, and which are only in memory.
//! Never knows: what a file holds.
//!
//! For model tests, of other crates too. Two pictures are kept apart: what reads see, and what is
//! durable. [`FaultyDisk::crash`] makes the second the first, and of what lies between the two it may
//! keep any part, as a real disk does: of each file's writes a beginning, the last of them torn or
//! with its bytes still zero, and of the renames, creations and removals any selection.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chain::SplitMix64;

use super::{
    DataFile, Disk, DiskError, FileVersion, LockGuard, LockHolder, Operation, is_file_name,
    range_bytes,
};

mod file;

use file::FaultyFile;

/// Which error an operation fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// ENOSPC. A write leaves a part of its bytes behind.
    NoSpace,
    /// EIO. A failed fsync forgets the bytes that it was to make durable, as Linux does.
    Io,
}

impl DiskFailure {
    fn cause(self) -> io::Error {
        match self {
            Self::NoSpace => io::ErrorKind::StorageFull.into(),
            Self::Io => io::Error::other("input/output error"),
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

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.with_file(name, Operation::Write, |state, failure| {
            let written = state.part_written(bytes.len(), failure);
            let file = state.file_or_new(name);
            file.put(Change::Truncate);
            file.put(Change::Put {
                offset: 0,
                bytes: bytes.iter().take(written).copied().collect(),
            });
            Ok(())
        })
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.with_file(name, Operation::Append, |state, failure| {
            state.id(name)?;
            let written = state.part_written(bytes.len(), failure);
            let file = state.file(name)?;
            let offset = file.content.len();
            file.put(Change::Put { offset, bytes: bytes.iter().take(written).copied().collect() });
            Ok(())
        })
    }

    fn fsync_file(&self, name: &str) -> Result<(), DiskError> {
        self.with_file(name, Operation::FsyncFile, |state, failure| {
            let is_lying = state.is_lying;
            let file = state.file(name)?;
            match failure {
                None if is_lying => {}
                None => {
                    file.durable.clone_from(&file.content);
                    // Bytes that a failed fsync forgot stay forgotten.
                    for hole in &file.forgotten {
                        blank(&mut file.durable, hole);
                    }
                    file.unsynced.clear();
                }
                Some(_) => file.forget(),
            }
            Ok(())
        })
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
            state.file_or_new(name);
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
}

impl FaultyState {
    /// Counts an operation, and tells if it is to fail.
    fn begin(&mut self) -> io::Result<Option<DiskFailure>> {
        let number = self.operation_count;
        self.operation_count = number.saturating_add(1);
        if self.stop_at.is_some_and(|stop_at| number >= stop_at) {
            return Err(io::Error::other("the power is cut"));
        }
        Ok(self.failures.remove(&number))
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
        Ok(self.files.entry(id).or_default())
    }

    fn file_or_new(&mut self, name: &str) -> &mut StoredFile {
        let id = self.names.get(name).copied().unwrap_or_else(|| {
            let id = self.new_id();
            self.change_names(NameChange::Create { name: name.to_owned(), id });
            id
        });
        self.files.entry(id).or_default()
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

/// A change of the folder.
#[derive(Debug)]
enum NameChange {
    Create { name: String, id: u64 },
    Rename { from: String, to: String, id: u64 },
    Remove { name: String },
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Create { name, id } => {
                names.insert(name.clone(), *id);
            }
            Self::Rename { from, to, id } => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
        }
    }
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
