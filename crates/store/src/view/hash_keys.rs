//! What a hash lookup keeps of blocks that are held.

use chain::BlockRange;
use segment::index::{IndexKey, RunSubject};

use super::View;
use crate::error::StoreError;
use crate::read::block_on;
use crate::reader::Reader;

impl View {
    /// What a hash lookup keeps of these blocks, in their order.
    pub(crate) fn read_hash_keys(
        &self,
        subject: RunSubject,
        range: BlockRange,
    ) -> Result<Vec<IndexKey>, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut keys = Vec::new();
        for number in range.numbers() {
            let absent = StoreError::NotHeld { number };
            match subject {
                RunSubject::Blocks => {
                    let hash = block_on(self.read_hash(&mut reader, number))?.ok_or(absent)?;
                    keys.push(IndexKey::of_hash(&hash));
                }
                RunSubject::Transactions => {
                    let block = block_on(self.read_hashes(&mut reader, number))?.ok_or(absent)?;
                    keys.extend(block.hashes.iter().map(IndexKey::of_hash));
                }
                RunSubject::Logs => {}
            }
        }
        Ok(keys)
    }
}
