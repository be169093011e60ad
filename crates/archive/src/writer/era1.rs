//! One era1 file: block after block, then the accumulator and the index.

use std::io;
use std::path::Path;

use alloy_primitives::{B256, U256};
use chain::{Candidate, accumulator, encode_receipts};

use super::sink::Sink;
use super::{BlockMeta, WriteError, at};
use crate::e2store::{Tag, deflate};

#[derive(Debug)]
pub(super) struct Era1File {
    sink: Sink,
    header_offsets: Vec<u64>,
    records: Vec<(B256, U256)>,
}

impl Era1File {
    pub(super) fn create(folder: &Path) -> Result<Self, WriteError> {
        let sink = Sink::create(folder).map_err(at(folder))?;
        Ok(Self { sink, header_offsets: Vec::new(), records: Vec::new() })
    }

    pub(super) fn push(
        &mut self,
        place: BlockMeta,
        candidate: &Candidate,
        folder: &Path,
    ) -> Result<(), WriteError> {
        let BlockMeta { number, hash, total_difficulty } = place;
        let total_difficulty = total_difficulty.ok_or(WriteError::PostMerge { number })?;
        let receipts = candidate.receipts.as_deref();
        let receipts =
            receipts.ok_or(WriteError::ReceiptsPresence { number, has_receipts: false })?;
        self.header_offsets.push(self.sink.position());
        self.records.push((hash, total_difficulty));
        let parts = [
            (Tag::Header, deflate(&candidate.header)),
            (Tag::Body, deflate(&candidate.body.encode())),
            (Tag::Receipts, deflate(&encode_receipts(receipts))),
            (Tag::TotalDifficulty, Ok(total_difficulty.to_le_bytes_vec())),
        ];
        for (tag, data) in parts {
            data.and_then(|data| self.sink.entry(tag, &data)).map_err(at(folder))?;
        }
        Ok(())
    }

    /// Writes what comes after the blocks. The accumulator root names the file.
    pub(super) fn finish(mut self, first: u64) -> io::Result<(Sink, B256, bool)> {
        let root = accumulator::epoch_root(&self.records);
        self.sink.entry(Tag::Accumulator, root.as_slice())?;
        let index_offset = self.sink.position();
        let mut index = first.to_le_bytes().to_vec();
        for offset in &self.header_offsets {
            index.extend_from_slice(&offset.wrapping_sub(index_offset).to_le_bytes());
        }
        let count = u64::try_from(self.header_offsets.len()).map_err(io::Error::other)?;
        index.extend_from_slice(&count.to_le_bytes());
        self.sink.entry(Tag::BlockIndex, &index)?;
        Ok((self.sink, root, true))
    }
}
