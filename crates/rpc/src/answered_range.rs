//! Which blocks an answer is of: told in a header, so that a client can see that nothing is missing.

use std::fmt;

use alloy_primitives::B256;
use chain::BlockRange;

/// The header's name.
pub(crate) const ANSWERED: &str = "quipu-answered";

/// The blocks that an answer is of, and the hash of the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredRange {
    pub(crate) blocks: BlockRange,
    pub(crate) last_hash: B256,
}

impl fmt::Display for AnsweredRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, last_hash } = self;
        write!(f, "{}..{}@{last_hash}", blocks.first(), blocks.last())
    }
}
