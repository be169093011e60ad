//! A block by its number and its hash.

use alloy_primitives::B256;
use chain::BlockNumber;

/// A block by both its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId {
    /// Its number.
    pub number: BlockNumber,
    /// Its hash.
    pub hash: B256,
}
