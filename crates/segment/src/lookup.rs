//! Lookups: from the hash of a transaction or a block to where it is.
//!
//! Knows: the bytes of a run file, how runs merge, which runs a coverage has, and which bytes a
//! probe needs.
//! Never knows: where the bytes live, what a hash commits to, whether a candidate is a hit.
//!
//! A *run* covers an aligned power of two of 8192-block slots ([`RunSpan`], [`plan_runs`]) and maps
//! the first 39 bits of each hash to a [`Position`]: a slot, and an ordinal inside it. Keys are
//! sorted, spread over buckets by their prefix, and kept in Elias-Fano form beside their values. A
//! probe reads one bucket; which one, the run's tail tells. `docs/format-lookup.md` draws the bytes.
//!
//! # How many bits of a hash
//!
//! All runs keep the same number of bits H of every hash, so merging two runs needs no hash, and
//! gives what a direct build gives. Over `n` keys, of which Elias-Fano spends at most 2 bits each on
//! the first log2 n bits, a key costs
//!
//! ```text
//! 2 + (H - log2 n)    its prefix
//!   + ceil(log2 n)    its value: the ordinals of all slots laid end to end
//!   + 0.2             checksum, rounding and directory, a share of its bucket's
//! = H + 2.2 to H + 3.2 bits, whatever n is
//! ```
//!
//! because a large run needs longer values and has shorter rests by as much. A hash that is not in
//! the run meets a false candidate with probability n / 2^H. With H = 39 that is 1/256 for 2^31 keys,
//! and a key costs 5.1 to 5.3 bytes. Merging stops at [`SLOT_COUNT_MAX`] slots, level 12.
//!
//! # Who proves a hit
//!
//! The caller, by hashing what a candidate points at. Prefixes may be equal by chance or by malice:
//! then all their positions are candidates, none is lost.

#![warn(clippy::arithmetic_side_effects)]

pub(crate) mod bits;
mod bucket;
mod error;
pub(crate) mod geometry;
mod merge;
mod opening;
mod prefix;
mod run;
mod span;
mod tail;
mod verified_buckets;
mod writer;

use std::fmt;

pub use error::{BuildError, CorruptRun, MergeError, Side};
pub use geometry::{Geometry, KEY_COUNT_MAX};
pub use merge::{Merge, MergeStep, merge_files};
pub use opening::RunOpening;
pub use prefix::{HashPrefix, PREFIX_BITS};
pub use run::Run;
pub use span::{RunSpan, SLOT_COUNT_MAX, SpanError, plan_runs};
pub use verified_buckets::VerifiedBuckets;
pub use writer::{RunBuilder, RunWriter};

/// What the hashes of a run are hashes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Transactions: an ordinal counts the transactions of a slot.
    Transactions,
    /// Blocks: an ordinal is a block's number less the first of its slot.
    Blocks,
}

impl Subject {
    fn code(self) -> u8 {
        match self {
            Self::Transactions => 1,
            Self::Blocks => 2,
        }
    }

    fn from_code(code: u8) -> Result<Self, CorruptRun> {
        match code {
            1 => Ok(Self::Transactions),
            2 => Ok(Self::Blocks),
            found => Err(CorruptRun::Subject { found }),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transactions => "transactions",
            Self::Blocks => "blocks",
        })
    }
}

/// Where something is: the 8192-block slot, and which one it is inside the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// A block's number divided by 8192.
    pub slot: u64,
    /// Counted from 0 at the beginning of the slot.
    pub ordinal: u32,
}

/// Where a hash may be: nearly always nowhere, or at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    first: Option<Position>,
    /// What only prefixes that are equal by chance need.
    others: Vec<Position>,
}

impl Positions {
    fn push(&mut self, position: Position) {
        match self.first {
            None => self.first = Some(position),
            Some(_) => self.others.push(position),
        }
    }
}

impl IntoIterator for Positions {
    type Item = Position;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Position>, std::vec::IntoIter<Position>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// What a run holds of one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The beginning of the hash.
    pub prefix: HashPrefix,
    /// Where the hash belongs.
    pub position: Position,
}

#[cfg(test)]
mod tests;
