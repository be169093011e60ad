//! Why blocks were not taken.

use archive::ArchiveError;
use chain::BlockRange;
use node::SourceFault;
use store::StoreError;
use thiserror::Error;

/// Why a file, or a unit of an upstream's blocks, was not taken. Nothing of it is held then.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be read, or is false.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The data folder cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The upstream does not answer, or is false.
    #[error(transparent)]
    Upstream(#[from] SourceFault),
    /// What others published cannot be read, or is false.
    #[error("{publisher}: {cause}")]
    Published {
        /// The bucket.
        publisher: String,
        /// Which file, and what is wrong with it.
        cause: Box<StoreError>,
    },
    /// Proven inside, and linked to nothing known.
    #[error(
        "{file}: blocks {range} are proven inside, but link to nothing known: no trusted genesis, anchor or accumulator below or above them"
    )]
    Unanchored {
        /// The file, or the unit.
        file: String,
        /// Which blocks.
        range: BlockRange,
    },
    /// Receipts are wanted and not there.
    #[error("{file}: holds no receipts")]
    NoReceipts {
        /// The file, or the unit.
        file: String,
    },
    /// What is held says something else.
    #[error("{file}: {said}")]
    Contradiction {
        /// The file, or the unit.
        file: String,
        /// What both say.
        said: String,
    },
}
