//! Why a question was not answered, and what to do about it.
//!
//! Knows: which failures pass, which mean that a node is asked too much, which are its last word.
//! Never knows: which node it was; whoever asked does.

use std::time::Duration;

use alloy_primitives::B256;
use thiserror::Error;

use super::rebuild::RebuildFault;

/// Letters of a node's own words that are shown.
const SHOWN_MAX: usize = 200;

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AskError {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// Nothing, or not all of it, in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// The connection ended in the middle.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// More bytes than are taken.
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// How many are taken.
        bytes_max: usize,
    },
    /// HTTP says no.
    #[error("HTTP {status}: {begin}")]
    Status {
        /// The status code.
        status: u16,
        /// How long the node asks us to wait.
        retry_after: Option<Duration>,
        /// The first letters of what it says.
        begin: String,
    },
    /// What came back is no JSON-RPC.
    #[error("not a JSON-RPC answer: {0}")]
    Malformed(String),
    /// The node's own refusal.
    #[error("refused with {code}: {message}")]
    Refused {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
}

impl AskError {
    /// The first letters of a text that somebody else wrote.
    pub(super) fn begin_of(text: &[u8]) -> String {
        let text = text.get(..text.len().min(SHOWN_MAX.saturating_mul(4))).unwrap_or_default();
        let letters = String::from_utf8_lossy(text);
        letters.chars().filter(|letter| !letter.is_control()).take(SHOWN_MAX).collect()
    }

    /// Whether the node is asked more than it can or will answer.
    #[must_use]
    pub fn is_pressure(&self) -> bool {
        match self {
            Self::Late(_) => true,
            Self::Status { status, .. } => [429, 502, 503, 504].contains(status),
            // What the large providers and EIP-1474 answer with beside HTTP's own codes.
            Self::Refused { code, .. } => [-32005, 429].contains(code),
            Self::Connect(_) | Self::Broken(_) | Self::TooLarge { .. } | Self::Malformed(_) => {
                false
            }
        }
    }

    /// Whether the same question may be answered another time.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Broken(_) | Self::Malformed(_) => true,
            Self::Status { status, .. } => self.is_pressure() || *status >= 500,
            Self::Late(_) | Self::TooLarge { .. } | Self::Refused { .. } => self.is_pressure(),
        }
    }

    /// Whether the node does not know the method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        // Some answer with "invalid request" or "method not supported" instead.
        matches!(self, Self::Refused { code: -32601 | -32004 | -32600, .. })
    }

    /// How long the node asks us to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Connect(_)
            | Self::Late(_)
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::Malformed(_)
            | Self::Refused { .. } => None,
        }
    }
}

/// Why a block could not be had from a node.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FetchError {
    /// It did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// It says that there is no such block.
    #[error("block {number} is not there")]
    NotThere {
        /// Which block.
        number: u64,
    },
    /// It has another block in that place than the one that is looked for.
    #[error("block {number} is of another branch")]
    Elsewhere {
        /// Which block.
        number: u64,
    },
    /// The chain moved between two answers.
    #[error("block {number} was {one}, and a moment later {other}")]
    Moved {
        /// Which block.
        number: u64,
        /// Its hash by the block.
        one: B256,
        /// Its hash by the receipts.
        other: B256,
    },
    /// Its answer is not the block that was asked for, or no block.
    #[error("block {number}: {fault}")]
    Rebuild {
        /// Which block.
        number: u64,
        /// Why.
        fault: RebuildFault,
    },
    /// Its block has what no fork of this build has: it is not taken, and the node did not lie.
    #[error(
        "block {number}: this node is on a fork that this build does not know: upgrade ({reason})"
    )]
    UnknownFork {
        /// Which block.
        number: u64,
        /// Its hash, if that is known.
        hash: Option<B256>,
        /// What is not known.
        reason: String,
    },
}

impl FetchError {
    /// Whether the node answered that it does not give it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Ask(AskError::Refused { .. }))
    }

    /// Whether the node said what is not true, as opposed to not being able to say it.
    #[must_use]
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Rebuild { fault, .. } => fault.is_lie(),
            Self::Ask(_)
            | Self::NotThere { .. }
            | Self::Elsewhere { .. }
            | Self::Moved { .. }
            | Self::UnknownFork { .. } => false,
        }
    }
}
