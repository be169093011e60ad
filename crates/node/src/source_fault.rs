//! Why a block of an upstream was not taken.

use chain::Mismatch;
use thiserror::Error;

use super::error::FetchError;
use super::upstreams::UpstreamsError;

/// Why a block of the upstream was not taken.
#[derive(Debug, Error)]
pub enum SourceFault {
    /// It does not prove itself, or does not descend from the one before it.
    #[error("upstream {name}: {mismatch}")]
    False {
        /// The node.
        name: String,
        /// Its place in the order of preference.
        member_index: usize,
        /// Which block, and why.
        mismatch: Mismatch,
    },
    /// It could not be rebuilt.
    #[error("upstream {name}: {cause}")]
    Fetch {
        /// The node.
        name: String,
        /// Its place in the order of preference.
        member_index: usize,
        /// Why.
        cause: FetchError,
    },
    /// It does not fit a block that is held, or that another node sent, which proves neither of them
    /// wrong.
    #[error("upstream {name}: {said}")]
    Differs {
        /// The node.
        name: String,
        /// Its place in the order of preference.
        member_index: usize,
        /// The other node, if it is one.
        against: Option<usize>,
        /// Both blocks.
        said: String,
    },
    /// No node answers.
    #[error(transparent)]
    Upstreams(UpstreamsError),
}
