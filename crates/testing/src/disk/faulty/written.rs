//! A file of the faulty disk, held open for writing.

use std::io;

use super::{DiskFailure, FaultyDisk, FaultyState, file_place};
use crate::disk::{DiskError, Operation, WritableFile};

/// One opening of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedToWrite {
    pub(super) id: u64,
    /// How many of the file's failed write-backs this opening does not report (any more).
    pub(super) seen_write_backs: u64,
    pub(super) crash_count: u64,
}

/// A file that is held open for writing.
#[derive(Debug)]
pub(super) struct FaultyWritten {
    disk: FaultyDisk,
    place: String,
    opened: OpenedToWrite,
}

impl FaultyWritten {
    pub(super) fn new(disk: &FaultyDisk, name: &str, opened: OpenedToWrite) -> Self {
        Self { disk: disk.clone(), place: file_place(name), opened }
    }

    fn act(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut FaultyState, Option<DiskFailure>) -> io::Result<()>,
    ) -> Result<(), DiskError> {
        let mut state = self.disk.state();
        let outcome = state.begin().and_then(|failure| {
            if state.crash_count != self.opened.crash_count {
                return Err(io::Error::other("opened before the power was cut"));
            }
            act(&mut state, failure)?;
            failure.map_or(Ok(()), |failure| Err(failure.cause()))
        });
        outcome.map_err(|cause| DiskError::from_system(self.place.clone(), operation, cause))
    }
}

impl WritableFile for FaultyWritten {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.act(Operation::Append, |state, failure| {
            state.append(self.opened.id, bytes, failure);
            Ok(())
        })
    }

    fn fsync(&mut self) -> Result<(), DiskError> {
        let mut seen = self.opened.seen_write_backs;
        let outcome = self.act(Operation::FsyncFile, |state, failure| {
            let is_lying = state.is_lying;
            let file = state.file_of(self.opened.id);
            let is_unseen = file.failed_write_backs != seen;
            seen = file.failed_write_backs;
            match failure {
                Some(_) => file.forget(),
                None if is_lying => {}
                None => {
                    file.fsync();
                    if is_unseen {
                        return Err(DiskFailure::WriteBack.cause());
                    }
                }
            }
            Ok(())
        });
        self.opened.seen_write_backs = seen;
        outcome
    }
}

impl Drop for FaultyWritten {
    fn drop(&mut self) {
        self.disk.state().close(self.opened.id, self.opened.crash_count);
    }
}
