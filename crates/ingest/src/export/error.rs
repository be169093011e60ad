//! Why blocks were not exported.

use std::io;
use std::path::PathBuf;

use archive::{WriteError, shown};
use chain::{BlockRange, HeaderError};
use store::StoreError;
use thiserror::Error;

/// Why blocks were not exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The data folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An archive cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file cannot be written.
    #[error("{}: {error}", shown(.path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file of the same name is there.
    #[error("{}: is there already and is not replaced", shown(.path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// era1 has no place for blocks without receipts.
    #[error("blocks {range} are held without receipts, and era1 needs them")]
    NoReceipts {
        /// Which blocks.
        range: BlockRange,
    },
    /// Archives of pre-merge blocks tell total difficulty, and no source has told it.
    #[error(
        "total difficulty before block {number} is not known, and archives of pre-merge blocks tell it"
    )]
    NoDifficulty {
        /// The first block of a range.
        number: u64,
    },
    /// A stored header does not decode.
    #[error("block {number}: {source}")]
    Header {
        /// Which block.
        number: u64,
        /// What the decoder met.
        source: HeaderError,
    },
}
