//! Whether a proven block is canonical: anchors, and the status that each range has because of them.
//!
//! - *anchored*: at or below a trusted hash by parent links, or inside a trusted accumulator epoch;
//! - *linked*: descends from genesis or an anchored block; canonical on the word of its source;
//! - *unanchored*: proven inside, linked to nothing known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use alloy_consensus::constants::MAINNET_GENESIS_HASH;
use alloy_primitives::B256;
use thiserror::Error;

use crate::accumulator::EpochRoots;
use crate::spec::ChainSpec;

mod assess;

pub use assess::{
    Assessment, Claims, Epoch, Opponent, ProvenRun, TrustConflict, TrustOrder, assess,
    meeting_points,
};

/// A block hash that is trusted beforehand, written `NUMBER:HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Anchor {
    /// Which block.
    pub number: u64,
    /// The hash it must have.
    pub hash: B256,
}

/// Why a text is not an anchor.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not an anchor: {reason}; write NUMBER:HASH, such as 100:0x and 64 hex digits")]
pub struct AnchorParseError {
    text: String,
    reason: &'static str,
}

impl FromStr for Anchor {
    type Err = AnchorParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| AnchorParseError { text: text.to_owned(), reason };
        let (number, hash) = text.split_once(':').ok_or_else(|| refuse("it has no colon"))?;
        // Rust's own parser would let a plus sign through.
        let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_decimal);
        let number = number.ok_or_else(|| refuse("the part before the colon is not a number"))?;
        let is_prefixed = hash.starts_with("0x");
        let hash = hash.parse().ok().filter(|_| is_prefixed);
        let hash = hash.ok_or_else(|| refuse("the part after the colon is not a hash"))?;
        Ok(Self { number, hash })
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

/// Who vouches for a trusted hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchorKind {
    /// The chain's spec: it is block 0.
    Genesis,
    /// The operator.
    Operator,
}

impl fmt::Display for AnchorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Genesis => "genesis",
            Self::Operator => "the operator's anchor",
        })
    }
}

/// Everything that is trusted beforehand about one chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    genesis_hash: Option<B256>,
    operator: BTreeMap<u64, B256>,
    epoch_roots: Option<EpochRoots>,
    /// Epochs whose roots were recomputed before, when the list was at hand.
    proven_epochs: BTreeSet<u64>,
}

/// Two trusted hashes for one block.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("anchor {refused} contradicts {kind}, which says that block {} is {trusted}", refused.number)]
pub struct AnchorConflict {
    /// The anchor that came second.
    pub refused: Anchor,
    /// The hash that was trusted before.
    pub trusted: B256,
    /// Who vouched for it.
    pub kind: AnchorKind,
}

impl Anchors {
    /// Trusts nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Trusts a chain's genesis.
    #[must_use]
    pub fn of(spec: &ChainSpec) -> Self {
        Self::of_genesis(spec.genesis_hash())
    }

    /// Trusts block 0 to have this hash, if there is one.
    #[must_use]
    pub fn of_genesis(genesis_hash: Option<B256>) -> Self {
        Self { genesis_hash, ..Self::default() }
    }

    /// Trusts one more block on the operator's word.
    pub fn with_operator(self, anchor: Anchor) -> Result<Self, AnchorConflict> {
        self.with_operators([anchor])
    }

    /// Trusts more blocks on the operator's word.
    pub fn with_operators(
        mut self,
        anchors: impl IntoIterator<Item = Anchor>,
    ) -> Result<Self, AnchorConflict> {
        for anchor in anchors {
            match self.expected_hash(anchor.number) {
                None => {
                    self.operator.insert(anchor.number, anchor.hash);
                }
                Some((trusted, _)) if trusted == anchor.hash => {}
                Some((trusted, kind)) => {
                    return Err(AnchorConflict { refused: anchor, trusted, kind });
                }
            }
        }
        Ok(self)
    }

    /// Trusts mainnet's pre-merge epochs. They count only for mainnet itself, which its genesis
    /// hash tells: a chain id or a name proves nothing.
    #[must_use]
    pub fn with_epoch_roots(mut self, roots: EpochRoots) -> Self {
        self.epoch_roots = Some(roots);
        self
    }

    /// Trusts that a run which claims this epoch has been held against its root before: whoever
    /// keeps runs need not keep the list of roots.
    #[must_use]
    pub fn with_proven_epoch(mut self, epoch: u64) -> Self {
        self.proven_epochs.insert(epoch);
        self
    }

    /// The hash that block `number` must have, and who says so.
    #[must_use]
    pub fn expected_hash(&self, number: u64) -> Option<(B256, AnchorKind)> {
        let genesis_hash = self.genesis_hash.filter(|_| number == 0);
        let genesis = genesis_hash.map(|hash| (hash, AnchorKind::Genesis));
        let operator = || self.operator.get(&number).map(|hash| (*hash, AnchorKind::Operator));
        genesis.or_else(operator)
    }

    /// The accumulator root that an epoch's blocks must give.
    #[must_use]
    pub fn expected_epoch_root(&self, epoch: u64) -> Option<B256> {
        let is_mainnet = self.genesis_hash == Some(MAINNET_GENESIS_HASH);
        self.epoch_roots.as_ref().filter(|_| is_mainnet)?.get(epoch)
    }

    /// Whether a run that gave this epoch's root is anchored by it.
    fn is_epoch_trusted(&self, epoch: u64) -> bool {
        self.proven_epochs.contains(&epoch) || self.expected_epoch_root(epoch).is_some()
    }

    /// The operator's anchors, lowest number first. One at genesis is not repeated here.
    pub fn operator(&self) -> impl Iterator<Item = Anchor> {
        self.operator_between(0, u64::MAX)
    }

    /// Those from `first` to `last`, which must not be lower.
    fn operator_between(&self, first: u64, last: u64) -> impl DoubleEndedIterator<Item = Anchor> {
        let between = self.operator.range(first..=last);
        between.map(|(number, hash)| Anchor { number: *number, hash: *hash })
    }
}

/// How far the blocks of a range can be trusted to be canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrustStatus {
    /// Canonical if the anchor is.
    Anchored(AnchoredBy),
    /// Canonical on the word of the source.
    Linked(LinkedTo),
    /// Proven inside, and that is all.
    Unanchored,
}

/// The trusted hash that proves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchoredBy {
    /// The block is at or below an operator's anchor.
    Operator(Anchor),
    /// The block is in, or below, the accumulator epoch of this index.
    Epoch(u64),
    /// The block is block 0 itself.
    Genesis,
}

/// The trusted block that a block descends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkedTo {
    /// Block 0.
    Genesis,
    /// An operator's anchor, or a block that some anchor proves.
    Anchor(Anchor),
    /// The last pre-merge block of the accumulator epoch of this index.
    Epoch(u64),
}

impl fmt::Display for TrustStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchored(AnchoredBy::Operator(anchor)) => write!(f, "anchored by {anchor}"),
            Self::Anchored(AnchoredBy::Epoch(epoch)) => {
                write!(f, "anchored by accumulator epoch {epoch}")
            }
            Self::Anchored(AnchoredBy::Genesis) => f.write_str("anchored by genesis"),
            Self::Linked(LinkedTo::Genesis) => f.write_str("linked to genesis"),
            Self::Linked(LinkedTo::Anchor(anchor)) => write!(f, "linked to {anchor}"),
            Self::Linked(LinkedTo::Epoch(epoch)) => {
                write!(f, "linked to accumulator epoch {epoch}")
            }
            Self::Unanchored => f.write_str("not anchored"),
        }
    }
}

#[cfg(test)]
mod tests;
