//! Why the tip could not be followed.

use chain::Mismatch;
use store::StoreError;
use thiserror::Error;

use super::status::Conflict;
use crate::upstream::{FetchError, UpstreamsError};

/// Why the tip could not be followed. What is held stays, and it is tried again.
#[derive(Debug, Error)]
pub enum FollowError {
    /// No node answers.
    #[error(transparent)]
    Upstreams(#[from] UpstreamsError),
    /// The folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A node's block is not true.
    #[error("upstream {name}: {mismatch}")]
    False {
        /// Who told it.
        name: String,
        /// Which block, and why.
        mismatch: Mismatch,
    },
    /// A node's block cannot be rebuilt.
    #[error("upstream {name}: {cause}")]
    Fetch {
        /// Who told it.
        name: String,
        /// Why.
        cause: FetchError,
    },
    /// The chain changed while it was asked for.
    #[error("the chain moved at block {number} while it was asked for")]
    Moved {
        /// Where.
        number: u64,
    },
    /// What is final here is not what the node has.
    #[error(transparent)]
    Conflict(Conflict),
}
