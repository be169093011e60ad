//! Incomplete files: a name of their own, a lock while they are written, removal of those without a
//! writer.
//!
//! The lock separates a file in progress from one that a killed process left behind.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the name of every such file begins.
const PREFIX: &str = ".unfinished-";

/// Tells the unfinished files of one process apart.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// What this process has under way. Names do not tell: a process in another container may have the same
/// number.
static OWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file without its final name; it is removed unless it is kept.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    is_kept: bool,
}

impl Unfinished {
    /// A new file in this folder, open for reading and writing.
    pub fn create(folder: &Path) -> io::Result<(Self, File)> {
        let mut own = own();
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{PREFIX}{}-{serial}", std::process::id()));
            let created = File::options().read(true).write(true).create_new(true).open(&path);
            let file = match created {
                // A process of the same number elsewhere has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            // A file system without locks keeps what a kill leaves, and nothing else is worse.
            let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            // Whoever cleans up may have had it in hand before it was locked, and removes it then.
            if !is_taken && path.exists() {
                own.insert(path.clone());
                return Ok((Self { path, is_kept: false }, file));
            }
        }
    }

    /// Gives the file its name.
    pub fn keep_as(&mut self, path: &Path) -> io::Result<()> {
        let mut own = own();
        fs::rename(&self.path, path)?;
        own.remove(&self.path);
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            let mut own = own();
            // Nothing to do about a failure: the name says that the file is unfinished.
            let _ = fs::remove_file(&self.path);
            own.remove(&self.path);
        }
    }
}

/// Removes what writers that are gone have left in this folder. Those that are at work hold a lock.
pub fn remove_abandoned(folder: &Path) -> io::Result<()> {
    for path in list(folder)? {
        let Ok(file) = File::open(&path) else { continue };
        match file.try_lock() {
            Ok(()) => remove(&path)?,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
    Ok(())
}

/// From here on nothing is begun, named or removed: whoever tries waits for as long as this lives.
#[derive(Debug)]
#[must_use = "work goes on when this is dropped"]
pub struct FilesAtRest {
    _own: MutexGuard<'static, BTreeSet<PathBuf>>,
}

/// Removes what this process has under way in this folder, for when it is told to end. What comes back is to be kept until
/// it has ended: a file that is begun meanwhile would stay, and one that could not be named would be told
/// as a failure.
pub fn remove_own(folder: &Path) -> FilesAtRest {
    let own = own();
    for path in own.iter().filter(|path| path.parent() == Some(folder)) {
        // Nothing to do about a failure: the name says that the file is unfinished.
        let _ = remove(path);
    }
    FilesAtRest { _own: own }
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_wanted = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        found.extend(is_wanted.then(|| entry.path()));
    }
    Ok(found)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // Another has cleaned up too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn what_a_killed_writer_left_is_removed_and_what_is_under_way_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let abandoned = folder.path().join(".unfinished-1-0");
        fs::write(&abandoned, "half of it").unwrap();
        let other = folder.path().join("notes.txt");
        fs::write(&other, "kept").unwrap();
        let (mut unfinished, _file) = Unfinished::create(folder.path()).unwrap();
        remove_abandoned(folder.path()).unwrap();
        assert!(!abandoned.exists() && other.exists() && unfinished.path.exists());
        let whole = folder.path().join("whole");
        unfinished.keep_as(&whole).unwrap();
        drop(unfinished);
        assert!(whole.exists());
    }

    #[test]
    fn a_process_that_ends_removes_its_own_files_and_begins_no_other() {
        let folder = tempfile::tempdir().unwrap();
        // One of a process with the same number, in another container.
        let theirs = folder.path().join(format!("{PREFIX}{}-999999999", std::process::id()));
        fs::write(&theirs, "half of it").unwrap();
        let (mut unfinished, _file) = Unfinished::create(folder.path()).unwrap();
        let path = unfinished.path.clone();
        let rest = remove_own(folder.path());
        assert!(!path.exists() && theirs.exists());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let named = scope.spawn(|| {
                let named = unfinished.keep_as(&folder.path().join("whole"));
                (named, is_over.load(Ordering::SeqCst))
            });
            let begun = scope.spawn(|| {
                let begun = Unfinished::create(folder.path());
                (begun.map(drop), is_over.load(Ordering::SeqCst))
            });
            is_over.store(true, Ordering::SeqCst);
            drop(rest);
            let (named, was_over) = named.join().unwrap();
            assert!(named.is_err() && was_over, "it waited: {named:?}");
            let (begun, was_over) = begun.join().unwrap();
            assert!(begun.is_ok() && was_over, "it waited: {begun:?}");
        });
    }
}
