//! What Ethereum commits to, and the one door through which a block becomes verified.
//!
//! Knows: headers, bodies, receipts, forks and blob schedules, roots, senders, anchors.
//! Never knows: files, sockets, clocks, threads, JSON.
//!
//! A source hands over a [`Candidate`]: bytes that claim to be a block. [`Verifier::verify`] is
//! the only way to a [`Verified<Block>`], so whoever holds one knows that every root, the bloom,
//! the gas sums and every sender were recomputed from those bytes. Whether the block is *canonical*
//! is a separate question, answered by [`trust`].

pub mod accumulator;
mod body;
mod fees;
mod fields;
mod fork;
mod fork_config;
mod fork_facts;
mod genesis;
mod header;
mod keccak;
mod networks;
mod range;
mod receipt;
mod rlp;
mod rules;
mod spec;
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
pub use keccak::keccak256_each;
pub use range::BlockRange;
pub use receipt::{
    Receipt, ReceiptError, bloom_each, bloom_of, decode_receipts, encode_receipts, logs_bloom,
};
pub use rlp::whole_list;
pub use rules::{RuleFault, StepFields, check_step};
pub use spec::ChainSpec;
pub use verify::{Block, Candidate, Fault, Mismatch, Part, Start, Transaction, Verified, Verifier};
