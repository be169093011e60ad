//! The folder of the cache: its lock, and the names of its files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::disk::{Disk as _, Folder, LockGuard};

use super::cache_file::CacheFile;
use super::key::CacheRank;
use super::record::{RecordPlace, find_records};

const LOCK_NAME: &str = "lock";
const LOOKUPS_BEGIN: &str = "lookups-";
const PAGES_BEGIN: &str = "pages-";
const NAME_END: &str = ".cache";
/// How many names are tried for a new file: somebody may have put files there by hand.
const NAMES_TRIED: u64 = 1000;

/// A folder that this process alone writes to.
#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    lock: LockGuard,
    next_number: u64,
}

/// A file that an earlier process left.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: Arc<CacheFile>,
    pub(super) places: Vec<RecordPlace>,
    pub(super) bytes: u64,
}

impl CacheFolder {
    /// Takes the folder, which is made if it is not there, and what its files hold, the oldest first.
    pub(super) fn take(path: &Path) -> Result<(Self, Vec<FoundFile>), String> {
        let folder = Folder::create(path).map_err(|error| error.to_string())?;
        let lock = folder.lock(LOCK_NAME).map_err(|error| error.to_string())?;
        let mut names = folder.list().map_err(|error| error.to_string())?;
        names.retain(|name| parse_name(name).is_some());
        let mut found = Vec::new();
        let mut next_number = 0;
        for (name, (number, rank)) in names.iter().filter_map(|it| Some((it, parse_name(it)?))) {
            next_number = next_number.max(number.saturating_add(1));
            match open_file(&path.join(name), number, rank) {
                Ok(file) if !file.places.is_empty() => found.push(file),
                // Nothing in it can be used.
                Ok(_) | Err(_) => drop(fs::remove_file(path.join(name))),
            }
        }
        found.sort_by_key(|file| file.file.number());
        Ok((Self { path: path.to_owned(), lock, next_number }, found))
    }

    /// Whether the folder that was taken is still there.
    pub(super) fn is_in_place(&self) -> bool {
        self.lock.is_in_place()
    }

    /// Begins a file.
    pub(super) fn create(&mut self, rank: CacheRank) -> Result<CacheFile, String> {
        let failed = |cause: io::Error| format!("{}: {cause}", self.path.display());
        for _ in 0..NAMES_TRIED {
            let number = self.next_number;
            self.next_number = number.saturating_add(1);
            let path = self.path.join(name_of(number, rank));
            match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
                Ok(file) => return Ok(CacheFile::new(number, rank, file)),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Removes a file. One that is gone already was to go.
    pub(super) fn remove(&self, file: &CacheFile) {
        drop(fs::remove_file(self.path.join(name_of(file.number(), file.rank()))));
    }
}

fn open_file(path: &Path, number: u64, rank: CacheRank) -> io::Result<FoundFile> {
    // To open a FIFO would wait for its other end.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file: File = OpenOptions::new().read(true).write(true).open(path)?;
    let bytes = file.metadata()?.len();
    let places = find_records(&file, bytes)?;
    Ok(FoundFile { file: Arc::new(CacheFile::new(number, rank, file)), places, bytes })
}

fn name_of(number: u64, rank: CacheRank) -> String {
    let begin = match rank {
        CacheRank::Lookup => LOOKUPS_BEGIN,
        CacheRank::Page => PAGES_BEGIN,
    };
    format!("{begin}{number:010}{NAME_END}")
}

fn parse_name(name: &str) -> Option<(u64, CacheRank)> {
    let inner = name.strip_suffix(NAME_END)?;
    let of = |begin, rank| Some((inner.strip_prefix(begin)?.parse().ok()?, rank));
    of(LOOKUPS_BEGIN, CacheRank::Lookup).or_else(|| of(PAGES_BEGIN, CacheRank::Page))
}
