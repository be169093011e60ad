//! What is said of a download while it runs.
//!
//! Knows: the events and their words.
//! Never knows: how they are shown.

use thiserror::Error;

/// Hears how downloads go; called from the threads that download.
pub trait FetchWatch: Send + Sync {
    /// So many more bytes came.
    fn received(&self, bytes: u64);

    /// Something happened that the user should know.
    fn heard(&self, event: &FetchEvent);
}

/// What the user should know.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FetchEvent {
    /// A mirror is asked only if no other has a file.
    #[error("mirror {mirror} is set aside: {why}")]
    SetAside {
        /// The mirror.
        mirror: String,
        /// Why.
        why: String,
    },
    /// A mirror failed, and rests.
    #[error("mirror {mirror}: {file}: {fault}")]
    Failed {
        /// The mirror.
        mirror: String,
        /// The file.
        file: String,
        /// How.
        fault: String,
    },
    /// A mirror's list could not be had: it is left out.
    #[error("mirror {mirror} is left out: {fault}")]
    LeftOut {
        /// The mirror.
        mirror: String,
        /// Why.
        fault: String,
    },
    /// A mirror lists more names than it can have files.
    #[error("mirror {mirror} lists too many names for the same blocks: {count} are passed over")]
    Surplus {
        /// The mirror.
        mirror: String,
        /// How many are passed over.
        count: u64,
    },
    /// A mirror is slow, and nobody else is better asked.
    #[error("mirror {mirror} sends {rate} kB/s, and no other is faster: name more with --from")]
    Slow {
        /// The mirror.
        mirror: String,
        /// Thousands of bytes a second.
        rate: u64,
    },
    /// A mirror's list takes long.
    #[error("mirror {mirror}: waiting for its list")]
    Waiting {
        /// The mirror.
        mirror: String,
    },
    /// What was there of a file is thrown away.
    #[error("{file}: downloaded anew: {why}")]
    Anew {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}
