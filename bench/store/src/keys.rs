//! What readers ask for: the hash and the place of every transaction, told by the archive.

use alloy_primitives::B256;
use anyhow::Result;
use archive::Archive;
use chain::{BlockNumber, BlockRange, keccak256_each};
use store::TxIndex;

use crate::archives::ArchiveFile;

/// A transaction's hash and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its hash.
    pub hash: B256,
    /// Its block.
    pub number: BlockNumber,
    /// Its position there.
    pub index: TxIndex,
}

/// The keys of all transactions of the first blocks of an archive, in order: as many blocks as it
/// takes to reach `count_min` transactions, and which blocks these are.
pub fn read_keys(file: &ArchiveFile, count_min: u64) -> Result<(BlockRange, Vec<Key>)> {
    let archive = Archive::open(&file.path)?;
    let all = archive.range();
    let mut keys: Vec<Key> = Vec::new();
    for number in all.numbers() {
        let block = archive.read_block(number.get())?;
        let hashes = keccak256_each(&block.body.transactions);
        keys.extend((0..).map(TxIndex).zip(hashes).map(|(index, hash)| Key {
            hash,
            number,
            index,
        }));
        if crate::figure::count(&keys) >= count_min {
            let range = BlockRange::from_ends(all.first(), number).unwrap_or(all);
            return Ok((range, keys));
        }
    }
    Ok((all, keys))
}

/// The keys of the blocks whose number of transactions is nearest to `wanted`, `blocks_max` blocks
/// at the most.
#[must_use]
pub fn nearest_blocks(keys: &[Key], wanted: usize, blocks_max: usize) -> Vec<&[Key]> {
    let blocks = || keys.chunk_by(|one, next| one.number == next.number);
    let nearest = blocks().map(|block| block.len().abs_diff(wanted)).min();
    let is_nearest = |block: &&[Key]| Some(block.len().abs_diff(wanted)) == nearest;
    blocks().filter(is_nearest).take(blocks_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_blocks_are_all_at_the_same_distance() {
        let mut keys = Vec::new();
        for (number, size) in [(7, 3), (8, 5), (9, 9), (10, 5), (11, 7)] {
            let number = BlockNumber(number);
            let key = |index| Key { hash: B256::ZERO, number, index: TxIndex(index) };
            keys.extend((0..size).map(key));
        }
        let numbers = |wanted, blocks_max| -> Vec<u64> {
            let nearest = nearest_blocks(&keys, wanted, blocks_max);
            nearest.iter().filter_map(|block| Some(block.first()?.number.get())).collect()
        };
        assert_eq!(numbers(6, 9), [8, 10, 11]);
        assert_eq!(numbers(6, 2), [8, 10]);
        assert_eq!(numbers(100, 2), [9]);
        assert!(nearest_blocks(&[], 6, 2).is_empty());
    }
}
