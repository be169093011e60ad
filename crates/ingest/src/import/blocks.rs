//! Blocks that arrive, and between them those that the data folder holds already.

use std::sync::Arc;

use alloy_primitives::Bytes;
use chain::{BlockNumber, BlockRange, Candidate, Fault, Mismatch};
use store::read::block_on;
use store::{Reader, StoreError, View};

use super::ImportError;
use crate::prove::Blocks;

/// A part of a source, continued on both sides by what is held.
pub(super) struct Joined<'a, B> {
    pub(super) source: &'a B,
    /// What is taken of the source.
    pub(super) part: BlockRange,
    pub(super) view: Arc<View>,
}

impl<B: Blocks> Blocks for Joined<'_, B>
where
    ImportError: From<B::Error>,
{
    type Error = ImportError;

    fn read_block(&self, number: u64) -> Result<Candidate, ImportError> {
        if self.part.contains(number) {
            return Ok(self.source.read_block(number)?);
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.view.read_candidate(&mut reader, BlockNumber(number)))?;
        Ok(held.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?)
    }

    fn find_header(&self, number: u64) -> Result<Option<Bytes>, ImportError> {
        if self.part.contains(number) {
            return Ok(self.source.find_header(number)?);
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.view.read_header(&mut reader, BlockNumber(number)))?;
        Ok(held.map(|header| header.rlp))
    }

    fn block_bytes(&self, number: u64) -> u64 {
        self.source.block_bytes(number)
    }

    fn refuse(&self, mismatch: Mismatch) -> ImportError {
        // What is held was proven before: if it does not descend from what arrives, the latter is false.
        let is_link = matches!(*mismatch.fault, Fault::ParentHash { .. } | Fault::Rule(_));
        let is_child = is_link && mismatch.number == self.part.end();
        if is_child || self.part.contains(mismatch.number) {
            return self.source.refuse(mismatch).into();
        }
        StoreError::Block { file: self.view.file_of(BlockNumber(mismatch.number)), mismatch }.into()
    }
}
