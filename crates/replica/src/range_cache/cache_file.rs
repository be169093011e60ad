//! One file of the cache, held open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use store::disk::{CachedRead, PositionalFile};

use super::key::CacheRank;
use super::record::{RecordPlace, encode_table};

/// A file of records of one rank. It stays readable when its name is removed.
#[derive(Debug)]
pub(super) struct CacheFile {
    number: u64,
    rank: CacheRank,
    file: PositionalFile,
}

impl CacheFile {
    pub(super) fn new(number: u64, rank: CacheRank, file: File) -> Self {
        Self { number, rank, file: PositionalFile::new(file) }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn rank(&self) -> CacheRank {
        self.rank
    }

    /// Fills the buffer from the offset on, and waits for the disk.
    pub(super) fn read(&self, offset: u32, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(buffer, offset.into())
    }

    /// Fills the buffer from the offset on, if the bytes are in memory.
    pub(super) fn read_now(&self, offset: u32, buffer: &mut [u8]) -> io::Result<CachedRead> {
        self.file.read_now(buffer, offset.into())
    }

    pub(super) fn write(&self, record: &[u8], offset: u64) -> io::Result<()> {
        self.file.file().write_all_at(record, offset)
    }

    /// Appends the table of the records; the length with it, if that went well.
    pub(super) fn seal(&self, places: &[RecordPlace], file_bytes: u64) -> Option<u64> {
        let table = encode_table(places);
        self.write(&table, file_bytes).ok()?;
        Some(file_bytes.saturating_add(u64::try_from(table.len()).ok()?))
    }
}
