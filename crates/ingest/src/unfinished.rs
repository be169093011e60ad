//! Files that are not whole yet: named as such, locked by whoever writes them, and removed if nobody does.
//!
//! Knows: their names, and that a lock tells a file under way from one that a kill has left.
//! Never knows: what is written.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How the name of every such file begins.
const PREFIX: &str = ".unfinished-";

/// Tells the unfinished files of one process apart.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A file without its final name; it is removed unless it is kept.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    is_kept: bool,
}

impl Unfinished {
    /// A new file in this folder, open for reading and writing.
    pub(crate) fn create(folder: &Path) -> io::Result<(Self, File)> {
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}{serial}", own_prefix()));
            let created = File::options().read(true).write(true).create_new(true).open(&path);
            let file = match created {
                // A process of the same number elsewhere has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            let unfinished = Self { path, is_kept: false };
            // A file system without locks keeps what a kill leaves, and nothing else is worse.
            let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            // Whoever cleans up may have had it in hand before it was locked.
            if !is_taken && unfinished.path.exists() {
                return Ok((unfinished, file));
            }
        }
    }

    /// Gives the file its name.
    pub(crate) fn keep_as(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing to do about a failure: the name says that the file is unfinished.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn own_prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// Removes what writers that are gone have left in this folder. Those that are at work hold a lock.
pub fn remove_abandoned(folder: &Path) -> io::Result<()> {
    for path in list(folder, PREFIX)? {
        let Ok(file) = File::open(&path) else { continue };
        match file.try_lock() {
            Ok(()) => remove(&path)?,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
    Ok(())
}

/// Removes what this process has under way in this folder: for when it is told to end.
pub fn remove_own(folder: &Path) -> io::Result<()> {
    list(folder, &own_prefix())?.iter().try_for_each(|path| remove(path))
}

fn list(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_wanted = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
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
        let (unfinished, _file) = Unfinished::create(folder.path()).unwrap();
        remove_own(folder.path()).unwrap();
        assert!(!unfinished.path.exists() && whole.exists() && other.exists());
    }
}
