//! Why a node gave no answer, or no block.

use std::time::Duration;

use alloy_primitives::B256;
use thiserror::Error;

use super::address::UpstreamUrl;

/// Characters of a node's message that are shown.
const SHOWN_MAX: usize = 200;

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AskError {
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The answer, or a part of it, did not arrive in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// The connection ended before the answer did.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The answer exceeds the limit.
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// Memory for answers is exhausted now.
    #[error("there is no room for the answer")]
    NoRoom,
    /// The HTTP status is not 2xx. `begin` is the start of the body.
    #[error("HTTP {status}{}: {begin}", wait_text(*.retry_after))]
    Status { status: u16, retry_after: Option<Duration>, begin: String },
    /// The answer is not JSON-RPC.
    #[error("not a JSON-RPC answer: {0}")]
    Malformed(String),
    /// The node answered with an error.
    #[error("refused with {code}: {message}")]
    Refused { code: i64, message: String },
}

fn wait_text(retry_after: Option<Duration>) -> String {
    retry_after.map_or(String::new(), |time| format!(", retry after {} s", time.as_secs()))
}

impl AskError {
    /// The first characters of a text that a node sent.
    #[must_use]
    pub fn begin_of(text: &[u8]) -> String {
        let text = text.get(..text.len().min(SHOWN_MAX.saturating_mul(4))).unwrap_or_default();
        let letters = String::from_utf8_lossy(text);
        letters.chars().filter(|letter| !letter.is_control()).take(SHOWN_MAX).collect()
    }

    /// The same without parts of the node's address, which may be secret.
    pub(super) fn hidden_by(mut self, url: &UpstreamUrl) -> Self {
        if let Self::Status { begin: said, .. }
        | Self::Malformed(said)
        | Self::Refused { message: said, .. } = &mut self
        {
            let is_cut = said.chars().count() >= SHOWN_MAX;
            *said = url.hide_in(std::mem::take(said), is_cut);
        }
        self
    }

    /// Whether the node is overloaded or limits the rate of requests.
    #[must_use]
    pub fn is_pressure(&self) -> bool {
        // Large providers and EIP-1474 use these codes beside those of HTTP.
        matches!(
            self,
            Self::Late(_)
                | Self::Status { status: 429 | 502 | 503 | 504, .. }
                | Self::Refused { code: -32005 | 429, .. }
        )
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let is_transient = matches!(
            self,
            Self::Connect(_)
                | Self::Broken(_)
                | Self::NoRoom
                | Self::Malformed(_)
                | Self::Status { status: 500.., .. }
        );
        is_transient || self.is_pressure()
    }

    /// Whether the node lacks the block or does not know its name. Chains without finality refuse the
    /// names `safe` and `finalized` with one of these. Other errors say nothing about the block.
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
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// The cause beneath all that wrap it: hyper's own words are only where it happened.
#[must_use]
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
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

/// Why a node gave no block, or none that can be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum FetchError {
    /// It did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// It lacks the block or a part of it. Another backend of the same address may have it, unless this
    /// is lasting.
    #[error("block {number}{what}")]
    NotThere { number: u64, what: &'static str, is_lasting: bool },
    /// It has another block under this number.
    #[error("block {number} is of another branch")]
    Elsewhere { number: u64 },
    /// The response is not the requested block, or no block at all: the node misbehaves.
    #[error("block {number}: {reason}")]
    Invalid { number: u64, reason: String },
    /// Receipts from before Byzantium have a status where consensus commits to a root.
    #[error(
        "block {number}: this upstream cannot give post-state roots before Byzantium (receipt {index})"
    )]
    NoPostState { number: u64, index: usize },
    /// The block has what no fork of this build has. It may be valid.
    #[error(
        "block {number}: this node is on a fork that this build does not know: upgrade ({reason})"
    )]
    UnknownFork { number: u64, hash: Option<B256>, reason: String },
}

impl FetchError {
    /// Whether the node answered with an error of its own.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Ask(AskError::Refused { .. }))
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
