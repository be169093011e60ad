//! What Ethereum commits to, and the one door through which a block becomes verified.
//!
//! Knows: headers, bodies, receipts, forks and blob schedules, roots, senders, anchors.
//! Never knows: files, sockets, clocks, threads, JSON.
//!
//! A source hands over a [`Candidate`]: bytes that claim to be a block. [`Verifier::verify`] is
//! the only way to a [`Verified<Block>`], so whoever holds one knows that every root, the bloom,
//! the gas sums and every sender were recomputed from those bytes. Whether the block is *canonical*
//! is a separate question, answered by [`trust`].
//!
//! ```
//! use alloy_consensus::Header;
//! use alloy_primitives::Bytes;
//! use chain::trust::Anchors;
//! use chain::{Body, Candidate, ChainSpec, Start, Verifier};
//!
//! let empty = |header: &Header| Candidate {
//!     header: alloy_rlp::encode(header).into(),
//!     body: Body { transactions: vec![], ommers: Bytes::from_static(&[0xc0]), withdrawals: None },
//!     receipts: Some(vec![]),
//!     total_difficulty: None,
//! };
//! let spec = ChainSpec::bare("private", Some(1337), None);
//! let prove = |header: &Header| {
//!     Verifier::new(&spec, &Anchors::none(), Start::At(0)).verify(empty(header))
//! };
//! assert_eq!(prove(&Header::default()).unwrap().transactions.len(), 0);
//! let gas_for_nothing = Header { gas_used: 21_000, gas_limit: 30_000, ..Header::default() };
//! assert!(prove(&gas_for_nothing).is_err());
//! ```

pub mod accumulator;
mod body;
mod fees;
mod fields;
mod fork;
mod fork_config;
mod fork_facts;
mod genesis;
mod header;
mod issuance;
mod keccak;
mod networks;
mod number;
mod range;
mod receipt;
mod rlp;
mod rules;
mod signature;
mod spec;
mod split_mix;
mod trie;
pub mod trust;
mod verify;

pub use body::{Body, BodyError};
pub use fees::{BlobPrices, base_fee_after};
pub use fields::{BlobFields, RlpItems, TxFields};
pub use fork::{Activation, Fork};
pub use fork_config::{ForkConfig, ForkConfigs};
pub use genesis::{GenesisError, genesis_header};
pub use header::{HeaderError, decode_header, hash_header};
pub use issuance::Issuance;
pub use keccak::keccak256_each;
pub use number::BlockNumber;
pub use range::BlockRange;
pub use receipt::{
    Receipt, ReceiptError, bloom_each, bloom_of, decode_receipts, encode_receipts, logs_bloom,
};
pub use rlp::whole_list;
pub use rules::{RuleFault, StepFields, check_step};
pub use signature::sign;
pub use spec::ChainSpec;
pub use split_mix::SplitMix64;
pub use trie::OrderedTrie;
pub use verify::{
    Block, BlockPart, Candidate, Fault, Mismatch, Start, Transaction, Verified, Verifier,
};
