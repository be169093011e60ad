//! What a hash lookup keeps of blocks that are held.
//!
//! Knows: that it is read from the headers and rows of the blocks.
//! Never knows: the bytes of a run, or which runs there are.

use chain::BlockRange;
use segment::lookup::{HashPrefix, Subject};

use super::View;
use crate::error::StoreError;
use crate::read::block_on;
use crate::reader::Reader;

impl View {
    /// What a hash lookup keeps of these blocks, in their order.
    pub(crate) fn read_hash_keys(
        &self,
        subject: Subject,
        range: BlockRange,
    ) -> Result<Vec<HashPrefix>, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut keys = Vec::new();
        for number in range.numbers() {
            let absent = StoreError::NotHeld { number };
            match subject {
                Subject::Blocks => {
                    let hash = block_on(self.read_hash(&mut reader, number))?.ok_or(absent)?;
                    keys.push(HashPrefix::of(&hash));
                }
                Subject::Transactions => {
                    let block = block_on(self.read_hashes(&mut reader, number))?.ok_or(absent)?;
                    keys.extend(block.hashes.iter().map(HashPrefix::of));
                }
            }
        }
        Ok(keys)
    }
}
