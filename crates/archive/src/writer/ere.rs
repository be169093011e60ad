//! One ere file: all headers, then all bodies, then all receipts, and what belongs to the time
//! before the merge.

use std::io;
use std::path::Path;

use alloy_primitives::{B256, U256};
use chain::{Candidate, accumulator};

use super::sink::{Sink, Spool};
use super::{BlockMeta, WriteError, at};
use crate::e2store::{Tag, deflate};
use crate::slim::encode_slim;

#[derive(Debug)]
pub(super) struct EreFile {
    sink: Sink,
    header_offsets: Vec<u64>,
    bodies: Spool,
    /// `None` from the first block on where the source holds no receipts.
    receipts: Option<Spool>,
    /// One for each block of a file that begins before the merge; none in later files.
    total_difficulties: Vec<U256>,
    /// The pre-merge blocks.
    records: Vec<(B256, U256)>,
    last_hash: B256,
}

impl EreFile {
    pub(super) fn create(folder: &Path) -> Result<Self, WriteError> {
        let create = || -> io::Result<Self> {
            Ok(Self {
                sink: Sink::create(folder)?,
                header_offsets: Vec::new(),
                bodies: Spool::create(folder)?,
                receipts: Some(Spool::create(folder)?),
                total_difficulties: Vec::new(),
                records: Vec::new(),
                last_hash: B256::ZERO,
            })
        };
        create().map_err(at(folder))
    }

    pub(super) fn push(
        &mut self,
        place: BlockMeta,
        candidate: &Candidate,
        folder: &Path,
    ) -> Result<(), WriteError> {
        let number = place.number;
        let has_receipts = candidate.receipts.is_some();
        if self.header_offsets.is_empty() && !has_receipts {
            self.receipts = None;
        }
        if has_receipts != self.receipts.is_some() {
            return Err(WriteError::ReceiptsPresence { number, has_receipts });
        }
        self.write(place, candidate).map_err(at(folder))
    }

    fn write(&mut self, place: BlockMeta, candidate: &Candidate) -> io::Result<()> {
        let is_first = self.header_offsets.is_empty();
        self.header_offsets.push(self.sink.position());
        self.sink.entry(Tag::Header, &deflate(&candidate.header)?)?;
        self.bodies.entry(Tag::Body, &deflate(&candidate.body.encode())?)?;
        if let (Some(spool), Some(receipts)) = (&mut self.receipts, &candidate.receipts) {
            spool.entry(Tag::SlimReceipts, &deflate(&encode_slim(receipts))?)?;
        }
        match (place.total_difficulty, self.total_difficulties.last().copied()) {
            (Some(total_difficulty), last) if is_first || last.is_some() => {
                self.records.push((place.hash, total_difficulty));
                self.total_difficulties.push(total_difficulty);
            }
            // Past the merge the last sum is repeated to the end of the file.
            (None, Some(last)) => self.total_difficulties.push(last),
            _ => {}
        }
        self.last_hash = place.hash;
        Ok(())
    }

    /// Writes the other sections and the index. The last block's hash names the file.
    pub(super) fn finish(mut self, first: u64) -> io::Result<(Sink, B256, bool)> {
        let has_receipts = self.receipts.is_some();
        let mut slots = vec![self.header_offsets, self.bodies.pour(&mut self.sink)?];
        if let Some(receipts) = self.receipts {
            slots.push(receipts.pour(&mut self.sink)?);
        }
        if !self.total_difficulties.is_empty() {
            let mut offsets = Vec::with_capacity(self.total_difficulties.len());
            for total_difficulty in &self.total_difficulties {
                offsets.push(self.sink.position());
                self.sink.entry(Tag::TotalDifficulty, &total_difficulty.to_le_bytes::<32>())?;
            }
            slots.push(offsets);
            let root = accumulator::epoch_root(&self.records);
            self.sink.entry(Tag::Accumulator, root.as_slice())?;
        }
        let index = encode_index(first, self.sink.position(), &slots)?;
        self.sink.entry(Tag::DynamicBlockIndex, &index)?;
        Ok((self.sink, self.last_hash, has_receipts))
    }
}

fn encode_index(first: u64, index_offset: u64, slots: &[Vec<u64>]) -> io::Result<Vec<u8>> {
    let block_count = slots.first().map_or(0, Vec::len);
    let mut index = first.to_le_bytes().to_vec();
    for position in 0..block_count {
        for offset in slots.iter().filter_map(|offsets| offsets.get(position)) {
            index.extend_from_slice(&offset.wrapping_sub(index_offset).to_le_bytes());
        }
    }
    for count in [slots.len(), block_count] {
        let count = u64::try_from(count).map_err(io::Error::other)?;
        index.extend_from_slice(&count.to_le_bytes());
    }
    Ok(index)
}
