//! An archive whose reading ends when it is told to.

use alloy_primitives::Bytes;
use archive::{Archive, ReadAt};
use chain::{Candidate, Mismatch};
use store::StoreError;
use tokio::sync::watch;

use super::ImportError;
use crate::prove::Blocks;
use crate::stop::is_stopped;

/// An archive, and who may end its reading.
pub(super) struct StoppableArchive<'a, S> {
    pub(super) archive: &'a Archive<S>,
    pub(super) stop: Option<&'a watch::Receiver<bool>>,
}

impl<S: ReadAt> Blocks for StoppableArchive<'_, S> {
    type Error = ImportError;

    fn read_block(&self, number: u64) -> Result<Candidate, ImportError> {
        if is_stopped(self.stop) {
            return Err(StoreError::Stopped.into());
        }
        Ok(Blocks::read_block(self.archive, number)?)
    }

    fn find_header(&self, number: u64) -> Result<Option<Bytes>, ImportError> {
        Ok(Blocks::find_header(self.archive, number)?)
    }

    fn block_bytes(&self, number: u64) -> u64 {
        Blocks::block_bytes(self.archive, number)
    }

    fn refuse(&self, mismatch: Mismatch) -> ImportError {
        Blocks::refuse(self.archive, mismatch).into()
    }
}
