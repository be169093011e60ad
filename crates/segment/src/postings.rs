//! Posting lists: from the address and the topics of logs to the places where they occur.
//!
//! Knows: the bytes of a posting file, how two of them merge, and which bytes a query needs.
//! Never knows: where the bytes live, what a log says, whether a place has what was asked for.
//!
//! A posting file covers an aligned power of two of 8192-block slots, as lookup runs do
//! ([`RunSpan`](crate::lookup::RunSpan)). It maps a [`PostingKey`] (33 bits of the SHA-256 of what is
//! searched for) to a list of places. A place is a block and a part of its transactions
//! ([`BlockParts`]): it depends on the chain alone, neither on the pages of a segment nor on the order
//! in which blocks arrived, so that the files of the same blocks are the same.
//!
//! # What a key and a place cost
//!
//! Keys are spread over buckets by their prefix and kept in Elias-Fano form, and so are the places of
//! each key. With `n` keys and `U` places in the file, a key with one place costs
//! `33 - log2(n) + 2` bits for itself, one for its count, and `log2(U)` for its place; every further
//! place of a key that has `c` costs `log2(U / c) + 2`.
//!
//! # Who proves a hit
//!
//! The caller, by looking at the logs of the place. Two values may share a key: then the places of
//! both are candidates, and none is lost.

#![warn(clippy::arithmetic_side_effects)]

mod bucket;
mod error;
mod key;
mod list;
mod long_list;
mod merge;
mod part;
mod reader;
mod sum;
mod tail;
mod writer;

pub use error::{CorruptPostings, PostingsBuildError, PostingsMergeError};
pub use key::{PostingKey, PostingKind};
pub use long_list::{LongListPlace, LongListTable};
pub use merge::{PostingsMerge, merge_posting_files};
pub use part::{BlockParts, PartsUnion, SlotParts, part_of, transactions_of};
pub use reader::{FoundPostings, KeyEntry, Postings};
pub use sum::PostingSum;
pub use tail::PostingsFooter;
pub use writer::{PostingsBuilder, PostingsWriter};

#[cfg(test)]
mod tests;
