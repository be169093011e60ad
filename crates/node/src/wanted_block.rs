//! The block that is requested: by its number, or by its hash.

use alloy_primitives::B256;

use super::answers::NodeCall;

/// A requested block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedBlock {
    /// Whatever the node has under this number.
    Number(u64),
    /// This block and no other.
    Hash {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
    },
}

impl WantedBlock {
    /// The block's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) | Self::Hash { number, .. } => *number,
        }
    }

    /// The block's hash, if it is known.
    #[must_use]
    pub fn hash(&self) -> Option<B256> {
        match self {
            Self::Number(_) => None,
            Self::Hash { hash, .. } => Some(*hash),
        }
    }

    pub(super) fn block_call(&self) -> NodeCall {
        match self {
            Self::Number(number) => {
                NodeCall::new("eth_getBlockByNumber", format!("[\"{number:#x}\",true]"))
            }
            Self::Hash { hash, .. } => {
                NodeCall::new("eth_getBlockByHash", format!("[\"{hash}\",true]"))
            }
        }
    }

    pub(super) fn receipts_call(&self) -> NodeCall {
        let params = match self {
            Self::Number(number) => format!("[\"{number:#x}\"]"),
            Self::Hash { hash, .. } => format!("[\"{hash}\"]"),
        };
        NodeCall::new("eth_getBlockReceipts", params)
    }
}
