//! A block of the head, with what is worked out of it once.

use std::mem::{size_of, size_of_val};

use alloy_primitives::{B256, Log};
use chain::{Block, BlockNumber, Receipt, Transaction, Verified, keccak256_each};

/// A block of the head.
#[derive(Debug)]
pub struct HeadBlock {
    block: Verified<Block>,
    tx_hashes: Vec<B256>,
    bytes: u64,
}

impl HeadBlock {
    pub(super) fn new(block: Verified<Block>) -> Self {
        let encoded: Vec<_> = block.transactions.iter().map(|tx| &tx.encoded).collect();
        let tx_hashes = keccak256_each(&encoded);
        let bytes = memory_bytes(&block);
        Self { block, tx_hashes, bytes }
    }

    /// The block.
    #[must_use]
    pub fn block(&self) -> &Verified<Block> {
        &self.block
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> BlockNumber {
        BlockNumber(self.block.header.number)
    }

    /// Its hash.
    #[must_use]
    pub fn hash(&self) -> B256 {
        self.block.hash
    }

    /// Its parent's hash.
    #[must_use]
    pub fn parent_hash(&self) -> B256 {
        self.block.header.parent_hash
    }

    /// The hashes of its transactions, in order.
    #[must_use]
    pub fn tx_hashes(&self) -> &[B256] {
        &self.tx_hashes
    }

    /// About how much memory it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An estimate from the sizes of what grows with a block.
fn memory_bytes(block: &Block) -> u64 {
    let mut bytes = size_of::<Block>() + block.header_rlp.len() + block.ommers_rlp.len();
    bytes += block.withdrawals_rlp.as_ref().map_or(0, |rlp| 4 * rlp.len()); // raw and decoded
    for tx in &block.transactions {
        // Raw and decoded, and its hash twice: in the block and in the view.
        bytes += size_of::<Transaction>() + 2 * tx.encoded.len() + 3 * size_of::<B256>();
    }
    for receipt in block.receipts.iter().flatten() {
        bytes += size_of::<Receipt>();
        for log in &receipt.fields.logs {
            bytes += size_of::<Log>() + size_of_val(log.data.topics()) + log.data.data.len();
        }
    }
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
