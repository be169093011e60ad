//! Where blocks come from: archive files, upstream nodes and the sample chain.
//!
//! Knows: the archive formats, how to read, write and prove them over all cores, how to ask a node
//! for blocks and follow its tip, how to make a chain when there is none at hand.
//! Never knows: how blocks are laid out in files, or served.

#[warn(clippy::arithmetic_side_effects, reason = "lengths and offsets come from outside")]
pub mod archive;
pub mod backfill;
pub mod check;
pub mod export;
pub mod follow;
pub mod import;
mod log_limit;
pub mod pool;
pub mod prove;
pub mod repair;
pub mod sample;
mod stop;
pub mod survey;
pub mod upstream;
