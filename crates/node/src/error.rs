//! Why a question was not answered, and what to do about it.
//!
//! Knows: which failures pass, which mean that a node is asked too much, which are its last word.
//! Never knows: which node it was; whoever asked does.

use std::fmt;
use std::time::Duration;

use alloy_primitives::B256;
use thiserror::Error;

use super::address::UpstreamUrl;
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
    /// More bytes than there is room for just now.
    #[error("there is no room for the answer")]
    NoRoom,
    /// HTTP says no.
    #[error("HTTP {status}{}: {begin}", wait_text(*.retry_after))]
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

/// How long a node asks us to wait, in words.
fn wait_text(retry_after: Option<Duration>) -> String {
    retry_after.map_or(String::new(), |time| format!(", to be left alone for {} s", time.as_secs()))
}

impl AskError {
    /// The first letters of a text that somebody else wrote.
    #[must_use]
    pub fn begin_of(text: &[u8]) -> String {
        let text = text.get(..text.len().min(SHOWN_MAX.saturating_mul(4))).unwrap_or_default();
        let letters = String::from_utf8_lossy(text);
        letters.chars().filter(|letter| !letter.is_control()).take(SHOWN_MAX).collect()
    }

    /// The same without what the node repeats of its address.
    pub(super) fn hidden_by(self, url: &UpstreamUrl) -> Self {
        let change = |words: String| {
            let is_cut = words.chars().count() >= SHOWN_MAX;
            url.hide_in(words, is_cut)
        };
        match self {
            Self::Status { status, retry_after, begin } => {
                Self::Status { status, retry_after, begin: change(begin) }
            }
            Self::Malformed(said) => Self::Malformed(change(said)),
            Self::Refused { code, message } => Self::Refused { code, message: change(message) },
            Self::Connect(_)
            | Self::Late(_)
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::NoRoom => self,
        }
    }

    /// Whether the node is asked more than it can or will answer.
    #[must_use]
    pub fn is_pressure(&self) -> bool {
        match self {
            Self::Late(_) => true,
            Self::Status { status, .. } => [429, 502, 503, 504].contains(status),
            // What the large providers and EIP-1474 answer with beside HTTP's own codes.
            Self::Refused { code, .. } => [-32005, 429].contains(code),
            Self::Connect(_)
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::NoRoom
            | Self::Malformed(_) => false,
        }
    }

    /// Whether the same question may be answered another time.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Broken(_) | Self::NoRoom | Self::Malformed(_) => true,
            Self::Status { status, .. } => self.is_pressure() || *status >= 500,
            Self::Late(_) | Self::TooLarge { .. } | Self::Refused { .. } => self.is_pressure(),
        }
    }

    /// Whether the node says that it does not have the block, or does not know its name. Chains without
    /// finality refuse the names `safe` and `finalized` with one of these. Every other refusal (too many
    /// questions, an error inside the node) says nothing of the block.
    #[must_use]
    pub fn is_unknown_block(&self) -> bool {
        let Self::Refused { code, message } = self else { return false };
        // Unknown block (execution-apis), pruned history (EIP-4444), unknown method, invalid parameters
        // and method not supported (EIP-1474).
        let is_code = [-39001, 4444, -32601, -32602, -32004].contains(code);
        !self.is_pressure() && (is_code || is_unknown_block_text(message))
    }

    /// Whether the node does not know the method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        // Some answer with "invalid request" or "method not supported" instead.
        matches!(self, Self::Refused { code: -32601 | -32004 | -32600, .. })
    }

    /// How long the node asks us to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Connect(_)
            | Self::Late(_)
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::NoRoom
            | Self::Malformed(_)
            | Self::Refused { .. } => None,
        }
    }
}

/// The cause beneath all that wrap it: hyper's own words are only where it happened.
#[must_use]
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Whether a message of a node says that it lacks a block, whatever its code: geth says "finalized block
/// not found", Nethermind "block ... could not be found", others "unknown block" or "header not found".
fn is_unknown_block_text(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| message.contains(word));
    has_any(&["block", "header", "tag", "finalized", "safe", "history"])
        && has_any(&[
            "not found",
            "not be found",
            "unknown",
            "not supported",
            "unsupported",
            "invalid",
            "does not exist",
            "pruned",
        ])
}

/// Why a block could not be had from a node.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FetchError {
    /// It did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// It says that there is no such block, or that it lacks a part of it.
    #[error("block {number}{part}")]
    NotThere {
        /// Which block.
        number: u64,
        /// What of it.
        part: AbsentPart,
    },
    /// It has another block in that place than the one that is looked for.
    #[error("block {number} is of another branch")]
    Elsewhere {
        /// Which block.
        number: u64,
    },
    /// It tells a tip, and lacks a block below it.
    #[error("it tells block {number} as its tip and has no block {missing}")]
    UnservedTip {
        /// The tip that it tells.
        number: u64,
        /// The block that it lacks.
        missing: u64,
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

/// What a node does not have of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentPart {
    /// The block itself.
    Block,
    /// Its receipts, though the block is there: the node may have pruned them, or not made them yet.
    Receipts,
    /// Its ommers, though the block is there.
    Ommers,
    /// The method that gives ommers: no waiting helps.
    OmmerMethod,
}

impl fmt::Display for AbsentPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => " is not there",
            Self::Receipts => " is there, and its receipts are not: the node answers null for them",
            Self::Ommers => " is there, and its ommers are not: the node answers null for them",
            Self::OmmerMethod => {
                " has ommers, and the node does not offer eth_getUncleByBlockHashAndIndex: take such \
                 blocks from archives or from another node"
            }
        })
    }
}

impl FetchError {
    /// Whether the node answered that it does not give it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Ask(AskError::Refused { .. }))
    }

    /// Whether the answer cannot be read. Of a short one, such as a header, that is a failure: it
    /// tells nothing that could be false.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Rebuild { fault: RebuildFault::Json { .. }, .. })
    }

    /// Whether the node said what is not true, as opposed to not being able to say it.
    #[must_use]
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Rebuild { fault, .. } => fault.is_lie(),
            Self::Ask(_)
            | Self::NotThere { .. }
            | Self::Elsewhere { .. }
            | Self::UnservedTip { .. }
            | Self::Moved { .. }
            | Self::UnknownFork { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_that_speak_of_the_block_say_that_it_is_not_there() {
        let is_unknown = |code: i64, message: &str| {
            AskError::Refused { code, message: message.to_owned() }.is_unknown_block()
        };
        for (code, message) in [
            (-32000, "finalized block not found"),
            (-32000, "safe block not found"),
            (-32001, "Block finalized could not be found"),
            (-32000, "header not found"),
            (-39001, "Unknown block"),
            (4444, "pruned history unavailable"),
            (-32602, "invalid argument 0: hex string without 0x prefix"),
            (-32601, "the method is not available"),
        ] {
            assert!(is_unknown(code, message), "{code}: {message}");
        }
        for (code, message) in [
            (-32005, "limit exceeded: unknown block"),
            (429, "too many requests"),
            (-32603, "internal error"),
            (-32000, "execution timeout"),
            (-32600, "API key not found"),
            (-32002, "resource unavailable"),
        ] {
            assert!(!is_unknown(code, message), "{code}: {message}");
        }
    }
}
