//! Why the tip could not be followed.

use alloy_primitives::B256;
use chain::Mismatch;
use store::StoreError;
use store::head::HeadError;
use thiserror::Error;

use node::{FetchError, UpstreamsError};

/// Two chains that differ at a block that is final here.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("block {number} is final as {ours} here, and {theirs} by the upstream")]
pub struct FinalityConflict {
    /// Which block.
    pub number: u64,
    /// Its hash here.
    pub ours: B256,
    /// Its hash there.
    pub theirs: B256,
}

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
    /// A tip that lies below all that it could be compared with.
    #[error(
        "the upstream's tip is block {number}, below block {held} that is held here: it is not known \
        whether it follows this chain"
    )]
    Below {
        /// The tip.
        number: u64,
        /// The lowest block above it that is held.
        held: u64,
    },
    /// A branch whose fork point, or whose final block, is more blocks below it than are followed.
    #[error(
        "the upstream's block {number} leaves our chain, or its final block, more than \
        {claims_max} blocks below it: `quipu rewind` or a larger --gap-max resolves it"
    )]
    TooDeep {
        /// The tip of the branch.
        number: u64,
        /// How many blocks down it was looked for.
        claims_max: u64,
    },
    /// What is final here is not what the node has.
    #[error(transparent)]
    Conflict(FinalityConflict),
}

impl FollowError {
    /// The block that no node gives in a form that this build knows, if that is why.
    pub(super) fn unknown_fork(&self) -> Option<u64> {
        if let Self::Upstreams(UpstreamsError::UnknownFork { number, .. }) = self {
            return Some(*number);
        }
        None
    }

    /// Whether one node gave a block of a fork that this build does not know: another may give it in a
    /// form that it does.
    pub(super) fn is_unknown_here(&self) -> bool {
        matches!(self, Self::Fetch { cause: FetchError::UnknownFork { .. }, .. })
    }

    /// The block that was missing, if that is why.
    pub(super) fn missing_block(&self) -> Option<u64> {
        match self {
            Self::Moved { number } | Self::Upstreams(UpstreamsError::NotThere { number, .. }) => {
                Some(*number)
            }
            Self::Upstreams(_)
            | Self::Store(_)
            | Self::False { .. }
            | Self::Fetch { .. }
            | Self::Below { .. }
            | Self::TooDeep { .. }
            | Self::Conflict(_) => None,
        }
    }

    /// The bytes that the head would have had, and may have, if it is full.
    pub(super) fn full_head(&self) -> Option<(u64, u64)> {
        if let Self::Store(StoreError::Head(HeadError::Full { bytes, bytes_max })) = self {
            return Some((*bytes, *bytes_max));
        }
        None
    }

    /// Whether trying again does not help until a human acts or finality moves.
    pub(super) fn is_lasting(&self) -> bool {
        let is_unknown =
            matches!(self, Self::Upstreams(UpstreamsError::UnknownFork { is_settled: true, .. }));
        is_unknown
            || self.full_head().is_some()
            || matches!(self, Self::Conflict(_) | Self::TooDeep { .. })
            || matches!(self, Self::Store(StoreError::Head(HeadError::Final { .. })))
    }
}
