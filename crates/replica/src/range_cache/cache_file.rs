//! One file of the cache, held open.
//!
//! Knows: how to read a record at once or not at all, how to wait for it, and how to write one.
//! Never knows: which records are wanted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use store::disk::CachedRead;

use super::key::CacheRank;
use super::record::{RecordPlace, encode_table};

/// A file of records of one rank. It stays readable when its name is removed.
#[derive(Debug)]
pub(super) struct CacheFile {
    number: u64,
    rank: CacheRank,
    file: File,
    /// Whether the file system answers reads that may not wait. Asked until it says no.
    can_read_now: AtomicBool,
}

impl CacheFile {
    pub(super) fn new(number: u64, rank: CacheRank, file: File) -> Self {
        let can_read_now = AtomicBool::new(cfg!(target_os = "linux"));
        Self { number, rank, file, can_read_now }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn rank(&self) -> CacheRank {
        self.rank
    }

    /// Fills the buffer from the offset on, and waits for the disk.
    pub(super) fn read(&self, offset: u32, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset.into())
    }

    /// Fills the buffer from the offset on, if the bytes are in memory.
    pub(super) fn read_now(&self, offset: u32, buffer: &mut [u8]) -> io::Result<CachedRead> {
        if self.can_read_now.load(Ordering::Relaxed) {
            self.try_read(buffer, offset.into())
        } else {
            Ok(CachedRead::WouldBlock)
        }
    }

    #[cfg(target_os = "linux")]
    fn try_read(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<CachedRead> {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};

        while !buffer.is_empty() {
            let slices = &mut [io::IoSliceMut::new(buffer)];
            match preadv2(&self.file, slices, offset, ReadWriteFlags::NOWAIT) {
                // At the file's end too: only a read that waits tells the two apart.
                Ok(0) | Err(Errno::AGAIN) => return Ok(CachedRead::WouldBlock),
                Ok(count) => {
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                    offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                }
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.can_read_now.store(false, Ordering::Relaxed);
                    return Ok(CachedRead::WouldBlock);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(CachedRead::Ready)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "elsewhere it reads")]
    fn try_read(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<CachedRead> {
        Ok(CachedRead::WouldBlock)
    }

    pub(super) fn write(&self, record: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(record, offset)
    }

    /// Appends the table of the records; the length with it, if that went well.
    pub(super) fn seal(&self, places: &[RecordPlace], file_bytes: u64) -> Option<u64> {
        let table = encode_table(places);
        self.write(&table, file_bytes).ok()?;
        Some(file_bytes.saturating_add(u64::try_from(table.len()).ok()?))
    }
}
