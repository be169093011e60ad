//! The one place that touches files: a flat folder of them, behind a small trait.
//!
//! What is promised of every [`Disk`]: a write is visible to the next read at once; its bytes survive
//! a crash after [`WritableFile::fsync`], its name after [`Disk::fsync_folder`], and neither before;
//! [`Disk::rename`] puts one file in the place of another and is never seen half done.

mod empty;
// Unit tests cannot use the crate `testing`: it implements the traits of another build of this crate.
#[cfg(test)]
#[path = "../../testing/src/disk/faulty/mod.rs"]
pub mod faulty;
mod file;
mod folder;
mod positional;

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use rustix::io::Errno;
use thiserror::Error;

pub use empty::EmptyDisk;
pub use file::{DataFile, WritableFile};
pub use folder::Folder;
pub use positional::{CachedRead, PositionalFile};

/// What the name of a file ends with while [`replace_file`] writes it; what a crash leaves there means
/// nothing.
pub(crate) const STAGED_END: &str = ".staged";

/// The longest file name.
pub const NAME_BYTES_MAX: usize = 255;

/// A flat folder of files.
pub trait Disk: fmt::Debug + Send + Sync {
    /// The folder, as messages name it.
    fn place(&self) -> String;

    /// The names of all files, sorted. What could not have been written through this trait, such as
    /// a folder or a name that [`is_file_name`] refuses, is passed over.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// What is there under names that files could have and is no regular file, sorted: a folder, a
    /// FIFO, a device. A disk that holds nothing but files has none.
    fn irregular(&self) -> Result<Vec<Irregular>, DiskError> {
        Ok(Vec::new())
    }

    /// How many bytes can still be written, where that is known.
    fn free_bytes(&self) -> Result<Option<u64>, DiskError> {
        Ok(None)
    }

    /// A file's length.
    fn file_bytes(&self, name: &str) -> Result<u64, DiskError>;

    /// Tells a file from the one that had its name before, and from itself before it was changed.
    fn version(&self, name: &str) -> Result<FileVersion, DiskError>;

    /// A whole file, refused before it is read if it is longer than `bytes_max`.
    fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError>;

    /// The bytes of `range`, all of them.
    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, DiskError>;

    /// The file, held open for reading.
    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError>;

    /// Makes the file hold exactly `bytes`; it is created or emptied first. After an error it may
    /// hold any part of them. Only the file that is returned can make them durable.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError>;

    /// Adds `bytes` at the end of the file, which must be there. After an error any part of them may have
    /// been added. Only the file that is returned can make them durable.
    fn append(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError>;

    /// Gives the file another name, in place of a file that had it.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// All names are durable.
    fn fsync_folder(&self) -> Result<(), DiskError>;

    /// Removes the file.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Takes the exclusive lock of this name, at once or not at all. It is given back when the guard
    /// is dropped, and when the process ends in whatever way.
    fn lock(&self, name: &str) -> Result<LockGuard, DiskError>;
}

/// One state of one file: equal as long as nobody replaces or changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// The device and the inode, or what stands for them.
    pub identity: (u64, u64),
    /// Its length.
    pub bytes: u64,
    /// When it was last changed, in seconds and nanoseconds.
    pub changed_at: (i64, i64),
}

impl FileVersion {
    fn of(found: &Metadata) -> Self {
        Self {
            identity: (found.dev(), found.ino()),
            bytes: found.len(),
            // Changes with every write and every rename, whatever a copy says of its age.
            changed_at: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Something that is no regular file, under a name that a file could have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Irregular {
    /// The name.
    pub name: String,
    /// What it is, with its article.
    pub kind: &'static str,
}

/// Puts a file with these bytes in the place of the one of this name, or where there was none.
///
/// After a crash the folder has the old file or this one, whole. After an error too, and the caller
/// reads it to learn which: only the last step can fail with the new one in place.
pub(crate) fn replace_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
    let staged = format!("{name}{STAGED_END}");
    let mut file = disk.write(&staged, bytes)?; // 1. beside the old one, over what a crash left
    file.fsync()?; //                              2. the contents are durable
    disk.rename(&staged, name)?; //                3. readers see it; a crash before changes nothing
    disk.fsync_folder() //                         4. the name is durable
}

/// A lock that is held for as long as this lives.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct LockGuard {
    held: Box<dyn LockHolder>,
}

impl LockGuard {
    /// The guard of a lock that `held` gives back.
    pub fn new(held: impl LockHolder + 'static) -> Self {
        Self { held: Box::new(held) }
    }

    /// Whether the file that is locked still has its name.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.held.is_in_place()
    }
}

/// What gives a lock back when it is dropped.
pub trait LockHolder: fmt::Debug + Send + Sync {
    /// Whether the file that is locked still has its name.
    fn is_in_place(&self) -> bool;
}

/// What a disk was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make or open the folder.
    Open,
    /// List the folder.
    List,
    /// Read from a file, or its length.
    Read,
    /// Write a file anew.
    Write,
    /// Add to a file.
    Append,
    /// Make a file's bytes durable.
    FsyncFile,
    /// Give a file another name.
    Rename,
    /// Make names durable.
    FsyncFolder,
    /// Remove a file.
    Remove,
    /// Take a lock.
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Append => "append",
            Self::FsyncFile => "fsync",
            Self::Rename => "rename",
            Self::FsyncFolder => "fsync of the folder",
            Self::Remove => "remove",
            Self::Lock => "lock",
        })
    }
}

/// Why a disk did not do what it was asked.
#[derive(Debug, Error)]
pub enum DiskError {
    /// The system refused or failed.
    #[error("{place}: {operation}: {cause}")]
    Failed {
        /// The file or folder.
        place: String,
        /// What was to be done.
        operation: Operation,
        /// The system's word.
        cause: io::Error,
    },
    /// There is no such file.
    #[error("{place}: {operation}: there is no such file")]
    Missing {
        /// The file.
        place: String,
        /// What was to be done.
        operation: Operation,
    },
    /// Not a name for a file here.
    #[error("{folder}: {found:?} is not a file name of a data folder")]
    Name {
        /// The folder.
        folder: String,
        /// The name.
        found: String,
    },
    /// The range is not inside the file.
    #[error("{place}: bytes {start}..{end} of a file of {file_bytes}")]
    Range {
        /// The file.
        place: String,
        /// The first byte that was wanted.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// How many there are.
        file_bytes: u64,
    },
    /// An open file that lost its end.
    #[error("{place}: read: the file has {found} bytes, it had {file_bytes} when it was opened")]
    Shrunk {
        /// The file.
        place: String,
        /// How long it was when it was opened.
        file_bytes: u64,
        /// How long it is.
        found: u64,
    },
    /// Nobody reads for those who may not wait any more.
    #[error("{place}: read: the reading threads have ended")]
    PoolClosed {
        /// The file.
        place: String,
    },
    /// A file longer than its reader takes.
    #[error("{place}: {file_bytes} bytes, at most {bytes_max} are read")]
    TooLarge {
        /// The file.
        place: String,
        /// How long it is.
        file_bytes: u64,
        /// How long it may be.
        bytes_max: u64,
    },
    /// Not a regular file: to open a FIFO would wait for its other end.
    #[error("{place}: {operation}: this is {kind}, not a file")]
    NotAFile {
        /// Where it is.
        place: String,
        /// What was to be done.
        operation: Operation,
        /// What is there, with its article.
        kind: &'static str,
    },
    /// Somebody else has the lock.
    #[error("{place}: the lock is held by another")]
    Locked {
        /// The lock's file.
        place: String,
        /// Which process that is, if it can be told.
        holder: Option<String>,
    },
}

impl DiskError {
    /// An error of the system.
    #[must_use]
    pub fn from_system(place: String, operation: Operation, cause: io::Error) -> Self {
        if cause.kind() == io::ErrorKind::NotFound && operation != Operation::Open {
            return Self::Missing { place, operation };
        }
        Self::Failed { place, operation, cause }
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }

    /// Whether this process, or the whole system, has no file descriptor left: that says nothing of the
    /// file.
    #[must_use]
    pub fn is_out_of_descriptors(&self) -> bool {
        let Self::Failed { cause, .. } = self else { return false };
        let errno = Errno::from_io_error(cause);
        errno.is_some_and(|errno| errno == Errno::MFILE || errno == Errno::NFILE)
    }

    /// Whether the bytes of the file are at fault, not the disk.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::Range { .. }
                | Self::Shrunk { .. }
                | Self::TooLarge { .. }
                | Self::NotAFile { .. }
        )
    }

    /// Whether the file is at fault, not the disk: it is not there, or not what it should be.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.is_missing() || self.is_of_content()
    }

    /// What the system says, if it refused or failed.
    #[must_use]
    pub fn system_kind(&self) -> Option<io::ErrorKind> {
        if let Self::Failed { cause, .. } = self { Some(cause.kind()) } else { None }
    }

    /// Whether the disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.system_kind() == Some(io::ErrorKind::StorageFull)
    }
}

/// Whether a file of a data folder can have this name: letters, digits, `-`, `_` and `.`, but not
/// first. So no name leads out of the folder, and every name is one word of a text.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(is_allowed)
}

/// How many bytes `range` has, if it lies inside a file of `file_bytes`.
pub fn range_bytes(place: &str, range: &Range<u64>, file_bytes: u64) -> Result<usize, DiskError> {
    let wanted = range.end.checked_sub(range.start).filter(|_| range.end <= file_bytes);
    wanted.and_then(|wanted| usize::try_from(wanted).ok()).ok_or_else(|| DiskError::Range {
        place: place.to_owned(),
        start: range.start,
        end: range.end,
        file_bytes,
    })
}
