//! Anchors: what a proof ends at, and the two kinds of way from a block to one.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::hash::{Hash32, sha256_pair};
use crate::header::HeaderParts;
use crate::step::{ProofRefusal, ProofStep, ProofStepName};

/// What a proof ends at. Whoever trusts it may believe the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofAnchor {
    /// A block.
    Block {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: Hash32,
    },
    /// The blocks before the merge, by the root over the roots of their epochs.
    Accumulator {
        /// The hash tree root.
        root: Hash32,
    },
}

/// Mainnet's blocks before the merge: the hash tree root of `HistoricalHashesAccumulator` that EIP-7643
/// publishes.
pub const MAINNET_ACCUMULATOR: ProofAnchor = ProofAnchor::Accumulator {
    root: Hash32([
        0xec, 0x8e, 0x04, 0x0f, 0xd6, 0xc5, 0x57, 0xb4, 0x1c, 0xa8, 0xdd, 0xd3, 0x8f, 0x7e, 0x9d,
        0x58, 0xa9, 0x28, 0x19, 0x18, 0xdc, 0x92, 0xbd, 0xb7, 0x23, 0x42, 0xa3, 0x8f, 0xb0, 0x85,
        0xe7, 0x01,
    ]),
};

impl fmt::Display for ProofAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { number, hash } => write!(f, "{number}:{hash}"),
            Self::Accumulator { root } => write!(f, "accumulator:{root}"),
        }
    }
}

/// A text is not an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofAnchorError;

impl fmt::Display for ProofAnchorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an anchor is NUMBER:HASH or accumulator:ROOT, the hash as 0x and 64 digits")
    }
}

impl core::error::Error for ProofAnchorError {}

impl FromStr for ProofAnchor {
    type Err = ProofAnchorError;

    /// Reads `NUMBER:HASH` or `accumulator:ROOT`; capital digits are accepted here.
    fn from_str(text: &str) -> Result<Self, ProofAnchorError> {
        let (kind, digits) = text.split_once(":0x").ok_or(ProofAnchorError)?;
        let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            u8::try_from(high? << 4 | low?).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let hash = bytes.filter(|_| odd.is_empty()).and_then(|bytes| bytes.try_into().ok());
        let hash = Hash32(hash.ok_or(ProofAnchorError)?);
        if kind == "accumulator" {
            return Ok(Self::Accumulator { root: hash });
        }
        let is_number = kind.bytes().all(|digit| digit.is_ascii_digit());
        let number = kind.parse().ok().filter(|_| is_number).ok_or(ProofAnchorError)?;
        Ok(Self::Block { number, hash })
    }
}

/// What a bundle says of its anchor: where the way ends, and the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnchorWay {
    pub(crate) anchor: ProofAnchor,
    pub(crate) path: AnchorPath,
}

/// The evidence of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnchorPath {
    /// The RLP of the headers that follow the block, up to the anchor's.
    Headers(Vec<Vec<u8>>),
    /// The sibling of each node from the block's hash up to the accumulator's root.
    Accumulator(Vec<Hash32>),
}

/// A leaf for each block of an epoch.
const EPOCH_DEPTH: u32 = 13;
/// A leaf for each epoch that the list can have.
const EPOCH_LIST_DEPTH: u32 = 11;

/// Siblings of a branch: the total difficulty beside the block's hash, the tree of the epoch, its
/// length, the tree of all epochs, their count, and the container's other field.
pub(crate) const ACCUMULATOR_SIBLINGS: usize = 28;

impl AnchorWay {
    /// Follows the way from a block; the steps, of which the last has the anchor's hash.
    pub(crate) fn follow(&self, block: &HeaderParts) -> Result<Vec<ProofStep>, ProofRefusal> {
        let (mut steps, reached) = match &self.path {
            AnchorPath::Headers(headers) => follow_headers(block, headers)?,
            AnchorPath::Accumulator(siblings) => follow_branch(block, siblings)?,
        };
        if reached != self.anchor {
            return Err(ProofStepName::Anchor.refuse(format!(
                "the way from block {} leads to {reached}, not to {}",
                block.number, self.anchor
            )));
        }
        let (what, hash) = match reached {
            ProofAnchor::Block { number, hash } => {
                (format!("the way ends at block {number}"), hash)
            }
            ProofAnchor::Accumulator { root } => {
                (String::from("the way ends at the accumulator"), root)
            }
        };
        steps.push(ProofStepName::Anchor.pass(what, hash));
        Ok(steps)
    }
}

fn follow_headers(
    block: &HeaderParts,
    headers: &[Vec<u8>],
) -> Result<(Vec<ProofStep>, ProofAnchor), ProofRefusal> {
    let mut before = block.clone();
    for (place, rlp) in headers.iter().enumerate() {
        let refuse =
            |why: String| ProofStepName::HeaderLinks.refuse(format!("header {place}: {why}"));
        let header = HeaderParts::read(rlp).map_err(refuse)?;
        if let Some(why) = header.unlinked(&before) {
            return Err(refuse(why));
        }
        before = header;
    }
    let what = format!("{} headers name each other as parents", headers.len());
    let steps = vec![ProofStepName::HeaderLinks.pass(what, before.hash)];
    Ok((steps, ProofAnchor::Block { number: before.number, hash: before.hash }))
}

fn follow_branch(
    block: &HeaderParts,
    siblings: &[Hash32],
) -> Result<(Vec<ProofStep>, ProofAnchor), ProofRefusal> {
    let refuse = |why: String| ProofStepName::AccumulatorBranch.refuse(why);
    if block.number >> (EPOCH_DEPTH + EPOCH_LIST_DEPTH) != 0 {
        return Err(refuse(format!("block {} is in no epoch before the merge", block.number)));
    }
    if siblings.len() != ACCUMULATOR_SIBLINGS {
        let (count, right) = (siblings.len(), ACCUMULATOR_SIBLINGS);
        return Err(refuse(format!("a branch has {right} siblings, not {count}")));
    }
    let epoch = block.number >> EPOCH_DEPTH;
    let place = block.number & ((1 << EPOCH_DEPTH) - 1);
    // Which sides the siblings are on follows from the number alone.
    let is_right = |bits: u64, depth: u32| (0..depth).map(move |level| bits >> level & 1 == 1);
    let in_epoch = core::iter::once(false).chain(is_right(place, EPOCH_DEPTH)).chain([false]);
    let in_list = is_right(epoch, EPOCH_LIST_DEPTH).chain([false, false]);
    let climb = |node: Hash32, (right, sibling): (bool, &Hash32)| {
        if right { sha256_pair(sibling, &node) } else { sha256_pair(&node, sibling) }
    };
    let (lower, upper) = siblings.split_at_checked(15).unwrap_or((siblings, &[]));
    let epoch_root = in_epoch.zip(lower).fold(block.hash, climb);
    let root = in_list.zip(upper).fold(epoch_root, climb);
    let branch = ProofStepName::AccumulatorBranch;
    let steps = vec![
        branch
            .pass(format!("block {} is record {place} of epoch {epoch}", block.number), epoch_root),
        branch.pass(format!("epoch {epoch} is in the list of epochs"), root),
    ];
    Ok((steps, ProofAnchor::Accumulator { root }))
}
