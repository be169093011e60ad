//! Why no node could answer.

use std::time::Duration;

use thiserror::Error;

use crate::error::AskError;

/// Why no node could answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UpstreamsError {
    /// Every one of them is backing off or quarantined.
    #[error("no upstream answers: {0}")]
    NoneLeft(String),
    /// None of them has the block.
    #[error("no upstream has block {number}: {said}")]
    NotThere {
        /// Which block.
        number: u64,
        /// What each of them said.
        said: String,
    },
    /// None of them has blocks that fit those that are held.
    #[error("no upstream has blocks that fit those that are held here: {said}")]
    OtherBranch {
        /// What does not fit, of each of them.
        said: String,
    },
    /// None of them gives the block in a form that this build knows.
    #[error("{said}")]
    UnknownFork {
        /// Which block.
        number: u64,
        /// What each of them said.
        said: String,
        /// Whether every node that answers at all said so. If not, another one may give it soon.
        is_settled: bool,
    },
    /// The node whose word counts does not answer, though others may.
    #[error(
        "upstream {name} decides what is final and does not answer ({said}); the next one decides \
        when it has failed for {} s", .stand_in_after.as_secs()
    )]
    Undecided {
        /// Which node.
        name: String,
        /// How it is doing.
        said: String,
        /// How long it may fail before another one decides.
        stand_in_after: Duration,
    },
    /// Too few agree.
    #[error("{quorum} upstreams must agree on a block, and they do not: {said}")]
    NoQuorum {
        /// How many must.
        quorum: usize,
        /// What they say.
        said: String,
    },
    /// Too few follow the same chain.
    #[error(
        "{quorum} upstreams must agree on the chain, and they do not: {said}; name the chain with \
        --network, --genesis or --chain-id and --genesis-hash"
    )]
    NoCommonChain {
        /// How many must.
        quorum: usize,
        /// What they say.
        said: String,
    },
    /// The caller was stopped.
    #[error("stopped")]
    Stopped,
    /// A node cannot be asked at all.
    #[error("upstream {name}: {cause}")]
    Unusable {
        /// Which node.
        name: String,
        /// Why.
        cause: AskError,
    },
}
