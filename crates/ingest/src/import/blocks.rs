//! Blocks that arrive, and between them those that the data folder holds already.

use std::sync::Arc;

use alloy_primitives::B256;
use chain::{BlockRange, Candidate, Mismatch};
use store::read::block_on;
use store::{Reader, StoreError, View};

use super::ImportError;
use crate::archive::{Archive, ReadAt};
use crate::prove::Blocks;

/// A part of an archive, continued on both sides by what is held.
pub(super) struct Joined<'a, S> {
    pub(super) archive: &'a Archive<S>,
    /// What is taken of the archive.
    pub(super) part: BlockRange,
    pub(super) view: Arc<View>,
}

impl<S: ReadAt> Blocks for Joined<'_, S> {
    type Error = ImportError;

    fn read_block(&self, number: u64) -> Result<Candidate, ImportError> {
        if self.part.contains(number) {
            return Ok(Blocks::read_block(self.archive, number)?);
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.view.read_candidate(&mut reader, number))?;
        Ok(held.ok_or(StoreError::NotHeld { number })?)
    }

    fn find_hash(&self, number: u64) -> Result<Option<B256>, ImportError> {
        if self.part.contains(number) {
            return Ok(self.archive.find_hash(number)?);
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        Ok(block_on(self.view.read_hash(&mut reader, number))?)
    }

    fn block_bytes(&self, number: u64) -> u64 {
        self.archive.block_bytes(number)
    }

    fn refuse(&self, mismatch: Mismatch) -> ImportError {
        if self.part.contains(mismatch.number) {
            return self.archive.refuse(mismatch).into();
        }
        StoreError::Block { file: self.view.file_of(mismatch.number), mismatch }.into()
    }
}
