//! Index files: from a hash, an address or a topic to where it occurs.
//!
//! An index file, or *run*, covers an aligned power of two of 8192-block slots ([`RunSpan`],
//! [`plan_runs`]). It maps keys, which are the first bits of hashes ([`IndexKey`]), to values. The value
//! is an ordinal, the place of one transaction or block ([`Position`]), or a posting list, all places at
//! which an address or topic occurs ([`FoundPostings`]). Keys are sorted, spread over buckets, and kept
//! in Elias-Fano form beside their values. A probe reads one bucket; the file's tail, which stays in
//! memory, says which. `docs/format-index.md` describes the bytes.
//!
//! # How many bits of a hash
//!
//! All runs of a subject keep the same number of bits H of every hash, so merging two runs needs no hash
//! and gives what a direct build gives. Over `n` keys, of which Elias-Fano spends at most 2 bits each on
//! the first log2 n bits, a key with an ordinal costs
//!
//! ```text
//! 2 + (H - log2 n)    its prefix
//!   + ceil(log2 n)    its value: the ordinals of all slots laid end to end
//!   + 0.2             checksum and directory, a share of its bucket's
//! = H + 2.2 to H + 3.2 bits, whatever n is
//! ```
//!
//! because a large run needs longer values and shorter prefixes by the same amount. A hash that is not
//! in the run meets a false candidate with probability n / 2^H. With H = 39 that is 1/256 for 2^31 keys,
//! and a key costs 5.1 to 5.3 bytes. Merging stops at [`SLOT_COUNT_MAX`] slots.
//!
//! Posting lists are searched in place rather than hashed again, and H = 33 is enough. With `U` places in
//! the file, a key with one place costs `33 - log2 n + 2` bits, one bit for its count, and `log2 U` for
//! its place; each further place of a key that has `c` costs `log2(U / c) + 2`.
//!
//! # Who proves a hit
//!
//! The caller, by hashing or reading what a candidate points at. Keys may be equal by chance or by
//! intent: then all their positions are candidates, and none is lost.

#![warn(clippy::arithmetic_side_effects)]

mod bits;
mod bucket;
mod error;
mod file;
mod key;
mod list;
mod long_list;
mod merge;
mod ordinal;
mod part;
mod posting;
mod postings_builder;
mod span;
mod sum;
mod writer;

pub use bucket::VerifiedBuckets;
pub use error::{BuildError, CorruptIndex, MergeError, Side};
pub use file::{Run, RunOpening};
pub use key::{HASH_KEY_BITS, IndexKey, KeyKind, RunSubject};
pub use long_list::{LongListPlace, LongListTable};
pub use merge::{Merge, MergeStep};
pub use ordinal::{Entry, OrdinalsBuilder, OrdinalsWriter, Position, Positions};
pub use part::{BlockParts, PartsUnion, SlotParts, part_of, transactions_of};
pub use posting::{FoundPostings, KeyEntry};
pub use postings_builder::PostingsBuilder;
pub use span::{RunSpan, SLOT_COUNT_MAX, SpanError, plan_runs};
pub use sum::PostingSum;

#[cfg(test)]
mod ordinal_tests;
#[cfg(test)]
mod posting_tests;
