//! A file of the faulty disk, held open: it outlives its name, and no power cut.

use std::io;
use std::ops::Range;

use rustix::io::Errno;

use super::{FaultyDisk, file_place, length};
use crate::disk::{CachedRead, DataFile, DiskError, FileVersion, Operation, range_bytes};

/// One opening of a file.
#[derive(Debug)]
pub(super) struct FaultyFile {
    disk: FaultyDisk,
    place: String,
    id: u64,
    file_bytes: u64,
    /// How many crashes there had been: a process does not outlive one, nor do its open files.
    crash_count: u64,
}

impl FaultyFile {
    pub(super) fn open(disk: &FaultyDisk, name: &str) -> Result<Self, DiskError> {
        let (id, file_bytes, crash_count) =
            disk.with_file(name, Operation::Read, |state, failure| {
                let id = state.id(name)?;
                let file_bytes = length(state.file(name)?.content.len());
                if state.open_counts.values().sum::<usize>() >= state.open_files_max {
                    return Err(Errno::MFILE.into());
                }
                state.hold_open(id, failure);
                Ok((id, file_bytes, state.crash_count))
            })?;
        Ok(Self { disk: disk.clone(), place: file_place(name), id, file_bytes, crash_count })
    }

    /// Reads the range; `None` if `may_refuse` and chance says that it would take waiting.
    fn read(
        &self,
        range: &Range<u64>,
        buffer: &mut Vec<u8>,
        may_refuse: bool,
    ) -> Result<CachedRead, DiskError> {
        buffer.clear();
        let count = range_bytes(&self.place, range, self.file_bytes)?;
        let mut state = self.disk.state();
        let mut outcome = state.begin().and_then(|failure| match failure {
            Some(failure) => Err(failure.cause()),
            None => Ok(()),
        });
        if state.crash_count != self.crash_count {
            outcome = Err(io::Error::other("opened before the power was cut"));
        }
        outcome
            .map_err(|cause| DiskError::from_system(self.place.clone(), Operation::Read, cause))?;
        if may_refuse && state.may_block && state.chance.flip() {
            return Ok(CachedRead::WouldBlock);
        }
        let content = state.files.get(&self.id).map_or(&[][..], |file| &file.content);
        let found = length(content.len());
        if found < range.end {
            let place = self.place.clone();
            return Err(DiskError::Shrunk { place, file_bytes: self.file_bytes, found });
        }
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        buffer.extend(content.iter().skip(start).take(count));
        Ok(CachedRead::Ready)
    }
}

impl DataFile for FaultyFile {
    fn place(&self) -> &str {
        &self.place
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn version(&self) -> Option<FileVersion> {
        self.disk.state().version(self.id)
    }

    fn read_at(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<(), DiskError> {
        self.read(&range, buffer, false).map(|_| ())
    }

    fn read_now(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<CachedRead, DiskError> {
        self.read(&range, buffer, true)
    }
}

impl Drop for FaultyFile {
    fn drop(&mut self) {
        self.disk.state().close(self.id, self.crash_count);
    }
}
