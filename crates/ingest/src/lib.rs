//! Where blocks come from: archive files, mirrors of them, upstream nodes and the sample chain.
//!
//! Knows: the archive formats, how to read, write and prove them over all cores, how to download
//! them, how to ask a node for blocks and follow its tip, how to make a chain when there is none at
//! hand.
//! Never knows: how blocks are laid out in files, or served.
//!
//! ```
//! use archive::{Archive, ArchiveWriter, Format};
//! use ingest::pool::threads_default;
//! use ingest::sample::{self, NETWORK_NAME, SampleSettings};
//!
//! let settings =
//!     SampleSettings { block_count: 40, txs_per_block: 2, ..SampleSettings::default() };
//! let folder = tempfile::tempdir().unwrap();
//! let mut writer = ArchiveWriter::create(folder.path(), NETWORK_NAME, Format::Ere).unwrap();
//! sample::generate(&settings, threads_default(), |block| writer.push(&block)).unwrap();
//! let written = writer.finish().unwrap();
//!
//! let archive = Archive::open(&written[0].path).unwrap();
//! assert_eq!(archive.range().count(), 40);
//! ```

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
pub mod pool;
pub mod prove;
pub mod repair;
pub mod sample;
mod stop;
pub mod survey;
pub mod upstream;
