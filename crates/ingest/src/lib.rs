//! Sources of blocks: archive files, mirrors of them and upstream nodes.
//!
//! Knows: how to verify archives over all cores and import them, how to download them, how to backfill
//! from nodes and follow their tip, how to check and export what a data folder holds.
//! Never knows: how blocks are laid out in files, or served.

pub mod backfill;
pub mod check;
pub mod epochs;
pub mod export;
pub mod fetch;
pub mod folder_chain;
pub mod follow;
pub mod import;
pub mod prove;
pub mod repair;
mod stop;
pub mod survey;
