//! A file that is held open for reading or writing, and one of a real folder.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;

use super::positional::{CachedRead, PositionalFile};
use super::{DiskError, FileVersion, Operation, range_bytes};

/// A file held open for reading. It stays readable when its name is removed or given to another
/// file. Both ways to read fill the buffer with exactly the range, or leave it empty.
pub trait DataFile: fmt::Debug + Send + Sync {
    /// The file, as messages name it.
    fn place(&self) -> &str;

    /// How long it was when it was opened.
    fn file_bytes(&self) -> u64;

    /// Which file it is, whoever has its name now; `None` if that cannot be told.
    fn version(&self) -> Option<FileVersion> {
        None
    }

    /// Reads the range, and waits for the disk if need be.
    fn read_at(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<(), DiskError>;

    /// Reads the range if that takes no waiting.
    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError>;
}

/// A file held open for writing, from the first write until its bytes are durable.
///
/// The system reports a failed write-back only to descriptors that were open when it failed: it may
/// evict the inode, and the error with it, as soon as none is. An fsync of a file that was opened anew
/// can succeed although bytes were lost.
pub trait WritableFile: fmt::Debug + Send + Sync {
    /// Adds `bytes` at the end. After an error any part of them may have been added.
    fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes the bytes durable, but not the name. After an error the bytes that were written through this
    /// file are lost, even if the next call succeeds: they must be written again.
    fn fsync(&mut self) -> Result<(), DiskError>;
}

/// A file of a real folder, open for appending.
#[derive(Debug)]
pub(super) struct AppendFile {
    place: String,
    file: File,
}

impl AppendFile {
    pub(super) fn new(place: String, file: File) -> Self {
        Self { place, file }
    }

    fn failed(&self, operation: Operation) -> impl FnOnce(io::Error) -> DiskError {
        move |cause| DiskError::from_system(self.place.clone(), operation, cause)
    }
}

impl WritableFile for AppendFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_all(bytes).map_err(self.failed(Operation::Append))
    }

    fn fsync(&mut self) -> Result<(), DiskError> {
        self.file.sync_all().map_err(self.failed(Operation::FsyncFile))
    }
}

/// A file of a real folder.
#[derive(Debug)]
pub(super) struct OpenFile {
    place: String,
    file: PositionalFile,
    file_bytes: u64,
}

impl OpenFile {
    pub(super) fn new(place: String, file: File, file_bytes: u64) -> Self {
        Self { place, file: PositionalFile::new(file), file_bytes }
    }

    /// Gives the buffer the range's length. Bytes that a buffer brings along are not zeroed again.
    fn size(&self, range: &Range<u64>, buffer: &mut Vec<u8>) -> Result<(), DiskError> {
        match range_bytes(&self.place, range, self.file_bytes) {
            Ok(count) => buffer.resize(count, 0),
            Err(error) => {
                buffer.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until all of `buffer` is read from `offset` on; false if the file ends before.
    fn read_all(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        match self.file.read_exact(buffer, offset) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(cause) => Err(cause),
        }
    }

    fn failed(&self, cause: io::Error) -> DiskError {
        DiskError::from_system(self.place.clone(), Operation::Read, cause)
    }
}

impl DataFile for OpenFile {
    fn place(&self) -> &str {
        &self.place
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn version(&self) -> Option<FileVersion> {
        self.file.file().metadata().ok().map(|found| FileVersion::of(&found))
    }

    fn read_at(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<(), DiskError> {
        self.size(&range, buffer)?;
        let outcome = match self.read_all(buffer, range.start) {
            Ok(true) => return Ok(()),
            Ok(false) => self.file.file().metadata().map(|metadata| metadata.len()),
            Err(cause) => Err(cause),
        };
        buffer.clear();
        match outcome {
            Ok(found) => Err(shrunk(&self.place, self.file_bytes, found)),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        self.size(&range, buffer)?;
        let outcome = self.file.read_now(buffer, range.start).map_err(|cause| self.failed(cause));
        if !matches!(outcome, Ok(CachedRead::Ready)) {
            buffer.clear();
        }
        outcome
    }
}

/// A file that lost its end while it was open.
pub(super) fn shrunk(place: &str, file_bytes: u64, found: u64) -> DiskError {
    DiskError::Shrunk { place: place.to_owned(), file_bytes, found }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::fs::{Advice, fadvise};

    use super::*;
    use crate::disk::{Disk as _, Folder};

    #[test]
    fn what_left_the_memory_is_waited_for_once() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        let content: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
        disk.write("a", &content).unwrap().fsync().unwrap();
        let evicted = File::open(folder.path().join("a")).unwrap();
        fadvise(&evicted, 0, None, Advice::DontNeed).unwrap();

        let file = disk.open("a").unwrap();
        let mut buffer = vec![7; 10];
        // Advice is not an order, and a file system may know no read that does not wait.
        match file.read_now(1000..900_000, &mut buffer).unwrap() {
            CachedRead::Ready => assert_eq!(buffer, content[1000..900_000]),
            CachedRead::WouldBlock => assert!(buffer.is_empty()),
        }
        file.read_at(1000..900_000, &mut buffer).unwrap();
        assert_eq!(buffer, content[1000..900_000]);
        let is_answered = file.read_now(1000..900_000, &mut buffer).unwrap() == CachedRead::Ready;
        let probe = preadv2_is_known(&evicted);
        assert_eq!(is_answered, probe, "what was just read is in memory");
        assert!(!is_answered || buffer == content[1000..900_000]);
    }

    fn preadv2_is_known(file: &File) -> bool {
        let mut byte = [0];
        let slices = &mut [io::IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(file, slices, 0, rustix::io::ReadWriteFlags::NOWAIT).is_ok()
    }
}
