//! Sources of blocks: archive files, mirrors of them and upstream nodes.
//!
//! Knows: how to verify archives over all cores and import them, how to download them, how to ask a
//! node for blocks and follow its tip, how to check and export what a data folder holds.
//! Never knows: how blocks are laid out in files, or served.

pub mod backfill;
mod backoff;
pub mod check;
pub mod epochs;
pub mod export;
pub mod fetch;
pub mod folder_chain;
pub mod follow;
pub mod import;
mod log_limit;
pub mod prove;
pub mod repair;
mod stop;
pub mod survey;
pub mod upstream;
