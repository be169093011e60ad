//! Why something was not published.

use alloy_primitives::B256;
use store::disk::DiskError;
use thiserror::Error;

use crate::bucket::BucketError;
use crate::sealed_file::FileMismatch;

/// Why something was not published. The bucket holds what it held, and perhaps files that nothing lists.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The bucket refused or failed.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The folder could not be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file of the folder is not what its manifest lists.
    #[error("{file} was not published: {mismatch}; run `quipu check`")]
    Damaged {
        /// The folder and the file.
        file: String,
        /// What is wrong with it.
        mismatch: FileMismatch,
    },
    /// There is nothing to publish.
    #[error("{folder} holds no sealed block yet")]
    Empty {
        /// The folder.
        folder: String,
    },
    /// Not the genesis.json that the manifest records.
    #[error("{folder}: genesis.json is to have the SHA-256 {recorded}, but {found}")]
    Genesis {
        /// The folder.
        folder: String,
        /// What was given.
        found: String,
        /// What is recorded.
        recorded: B256,
    },
    /// The bucket holds another chain.
    #[error("the {what} is {found}, that of the bucket is {held}, by manifest {held_by}")]
    OtherChain {
        /// What differs.
        what: &'static str,
        /// The folder's.
        found: String,
        /// The bucket's.
        held: String,
        /// The manifest that says so.
        held_by: String,
    },
    /// The bucket holds another branch of the chain.
    #[error(
        "block {number} is {found}, that of the bucket is {held}, by manifest {held_by}; \
         what a rewind dropped has to be retracted first"
    )]
    OtherBranch {
        /// The block.
        number: u64,
        /// The folder's.
        found: B256,
        /// The bucket's.
        held: B256,
        /// The manifest that says so.
        held_by: String,
    },
    /// A file was sent and is not there.
    #[error("{object}: it was sent, and the bucket has no object of {bytes} bytes there")]
    NotThere {
        /// The bucket and the object.
        object: String,
        /// How long it should be.
        bytes: u64,
    },
    /// A thread that reads files died.
    #[error("{file}: the thread that was reading it has ended")]
    Reading {
        /// The folder and the file.
        file: String,
    },
    /// Somebody asked to stop.
    #[error("stopped; what was sent is there for the next time")]
    Stopped,
}
