//! What can go wrong with a data folder.

use alloy_primitives::B256;
use chain::{BlockNumber, BlockRange, Mismatch};
use segment::index::{BuildError, CorruptIndex, MergeError};
use segment::{PageFault, WriteFault};
use thiserror::Error;

use crate::disk::DiskError;
use crate::head::HeadError;
use crate::lock::LockError;
use crate::manifest::{ManifestConflict, ManifestError};
use crate::names::GENESIS_NAME;

impl StoreError {
    /// Whether a file could not be read: the store has noted which, until it is well again.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        if let Self::Disk(error) = self {
            return !matches!(error, DiskError::PoolClosed { .. });
        }
        matches!(
            self,
            Self::Segment { .. }
                | Self::Index { .. }
                | Self::NotListed { .. }
                | Self::Differs { .. }
        )
    }
}

/// Why a data folder could not be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The manifest could not be loaded or replaced.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Another process writes.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A segment cannot be believed.
    #[error("{file}: {cause}")]
    Segment {
        /// Its file.
        file: String,
        /// What is wrong, and where.
        cause: segment::Corrupt,
    },
    /// An index file is damaged, or of another format.
    #[error("{file}: {cause}")]
    Index {
        /// The file.
        file: String,
        /// What is wrong, and where.
        cause: CorruptIndex,
    },
    /// A file is not the one that the manifest lists.
    #[error("{file}: {what} is {found}, the manifest says {expected}")]
    NotListed {
        /// The file.
        file: String,
        /// What differs.
        what: &'static str,
        /// What the file has.
        found: String,
        /// What the manifest has.
        expected: String,
    },
    /// What is stored is not what its blocks give.
    #[error("{file}: {what} is {found}, expected {expected}")]
    Differs {
        /// The file.
        file: String,
        /// What differs.
        what: String,
        /// What is stored.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A stored block does not prove itself.
    #[error("{file}: {mismatch}")]
    Block {
        /// The segment's file.
        file: String,
        /// Which block, and why.
        mismatch: Mismatch,
    },
    /// Nothing can be decompressed.
    #[error("zstd: {0}")]
    Reader(PageFault),
    /// No segment of a folder proves itself, so that nothing could be listed.
    #[error("no segment proves itself; the first is {file}: {reason}")]
    NothingProven {
        /// A segment.
        file: String,
        /// Why it is false.
        reason: String,
    },
    /// A folder in which there is nothing that could be listed.
    #[error(
        "{folder}: no segment and no head's log is here, so there is nothing to rebuild a manifest from"
    )]
    NoSegment {
        /// The folder.
        folder: String,
    },
    /// A block that is needed is not held.
    #[error("block {number} is not held")]
    NotHeld {
        /// Which block.
        number: BlockNumber,
    },
    /// Blocks could not be encoded.
    #[error("blocks {range}: {cause}")]
    Write {
        /// Of which segment.
        range: BlockRange,
        /// Why.
        cause: WriteFault,
    },
    /// An index file could not be built.
    #[error("index: {0}")]
    Build(#[from] BuildError),
    /// Two index files could not be merged.
    #[error("{left} and {right}: {cause}")]
    Merge {
        /// The one with the lower slots.
        left: String,
        /// The one with the higher slots.
        right: String,
        /// Why.
        cause: MergeError,
    },
    /// A log index with holes would be made.
    #[error(
        "{folder} has a log index, which blocks without one would leave incomplete: import without \
         --without-log-index, or into another folder"
    )]
    HasLogIndex {
        /// The folder.
        folder: String,
    },
    /// The head or its log.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// A folder that others change faster than it can be read.
    #[error("the data folder has changed while it was read: try again")]
    Changing,
    /// The head was not opened.
    #[error("this writer has no head")]
    NoHead,
    /// The head and a sealed segment hold different blocks of one number.
    #[error("block {number} is {found} in the head, but {sealed} was sealed")]
    Seam {
        /// The number.
        number: BlockNumber,
        /// The head's hash.
        found: B256,
        /// The segment's.
        sealed: B256,
    },
    /// A head that holds blocks cannot go on elsewhere.
    #[error("the head holds blocks: they must be dropped before it can stand elsewhere")]
    HeadInUse,
    /// Nobody can commit any more.
    #[error("the writer that was to commit is gone")]
    WriterGone,
    /// Nobody wants it any more.
    #[error("told to stop")]
    Stopped,
    /// Segments that were planned before the folder changed.
    #[error("the data folder has changed: blocks {range} are to be one segment now")]
    Outdated {
        /// The segment that is missing.
        range: BlockRange,
    },
    /// A manifest that was lost: a writer writes it before any other file.
    #[error(
        "{folder}: the manifest is missing, but {found} are there: the data folder is damaged; \
         `quipu repair` rebuilds the manifest from the segments"
    )]
    ManifestMissing {
        /// The data folder.
        folder: String,
        /// What is there.
        found: String,
    },
    /// A head's log that was removed or cut: the manifest says that there was more.
    #[error(
        "{folder}: the head's log is gone or lost its end: {recorded}, {found}; bring head-*.log back \
         from a copy, or run `quipu repair`, which accepts the loss, and `quipu serve --upstream` \
         fetches the blocks again"
    )]
    HeadLost {
        /// The data folder.
        folder: String,
        /// What the manifest says.
        recorded: String,
        /// What is there.
        found: String,
    },
    /// Another genesis.json than the one that the folder kept, or none.
    #[error(
        "{folder}/{GENESIS_NAME}: {found}, the manifest records SHA-256 {recorded}: bring the file back \
         from a copy, or put the right one in its place with `quipu repair --genesis FILE`"
    )]
    GenesisFile {
        /// The data folder.
        folder: String,
        /// What is there.
        found: String,
        /// The digest of the one that was kept.
        recorded: B256,
    },
    /// Ranges that may be of different chains: nothing that is known links one of them to it.
    #[error(
        "blocks {range} ({file}) are linked to nothing that is known, and blocks {other} \
         ({other_file}) are here too: they may be of different chains"
    )]
    Unlinked {
        /// The blocks that nothing says are of the chain.
        range: BlockRange,
        /// Their first file.
        file: String,
        /// Others.
        other: BlockRange,
        /// Their first file.
        other_file: String,
    },
    /// A folder that was open, and has no file of ours any more.
    #[error(
        "{folder}: the data folder is not there any more: was it moved or removed, or its disk \
         unmounted?"
    )]
    FolderGone {
        /// The data folder.
        folder: String,
    },
    /// A change that the manifest refuses.
    #[error(transparent)]
    Conflict(#[from] ManifestConflict),
}
