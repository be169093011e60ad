//! What is wrong with a manifest, or with a change of it.

use alloy_primitives::{B256, U256};
use chain::BlockRange;
use chain::trust::Anchor;
use segment::index::{RunSpan, RunSubject, SpanError};
use thiserror::Error;

use super::{MANIFEST_BYTES_MAX, MANIFEST_NAME};
use crate::disk::DiskError;

/// What the first line of a manifest's text says before the version.
pub(super) const TITLE: &str = "quipu manifest ";
/// The highest version that this build writes and reads.
pub(super) const VERSION: u32 = 2;
/// Development builds wrote this for a folder with segments whose blocks were not verified.
pub(super) const VERSION_UNPROVEN: u32 = 3;
/// The version of one that says nothing of a log index either.
pub(super) const VERSION_WITHOUT_LOGS: u32 = 1;

/// What is wrong with a manifest's bytes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TextFault {
    /// Bytes that are not text.
    #[error("byte {byte}: not text")]
    NotText {
        /// The first of them.
        byte: usize,
    },
    /// Not a manifest at all.
    #[error(
        "line 1: {found:?} where a manifest says \"{TITLE}N\", with N from \
         {VERSION_WITHOUT_LOGS} to {VERSION}"
    )]
    Title {
        /// How it begins, at most 40 characters.
        found: String,
    },
    /// Written by another build.
    #[error(
        "line 1: manifest version {found}, this build reads {VERSION_WITHOUT_LOGS} to {VERSION}"
    )]
    Version {
        /// The version.
        found: u32,
    },
    /// Written by a build that was never released.
    #[error("line 1: written by a development build")]
    Development,
    /// Not what was written.
    #[error("checksum {found:08x}, the last line says {expected:?}")]
    Checksum {
        /// Of the lines before.
        found: u32,
        /// The last line, at most 40 characters.
        expected: String,
    },
    /// A word that is missing or that its place does not allow.
    #[error("line {line}: {what}: {found:?}")]
    Word {
        /// Which line, from 1.
        line: usize,
        /// What belongs there.
        what: &'static str,
        /// What is there, at most 40 characters.
        found: String,
    },
    /// Blocks that are no range.
    #[error("line {line}: blocks {first}..{last} are no range")]
    Range {
        /// Which line, from 1.
        line: usize,
        /// The first block.
        first: u64,
        /// The last block.
        last: u64,
    },
    /// Slots that are no run's.
    #[error("line {line}: {fault}")]
    Span {
        /// Which line, from 1.
        line: usize,
        /// Why.
        fault: SpanError,
    },
    /// Files that cannot be live together.
    #[error(transparent)]
    Conflict(#[from] ManifestConflict),
    /// A line that is not where or how a manifest has it.
    #[error("line {line}: {found:?} where a manifest has {expected:?}")]
    Form {
        /// Which line, from 1.
        line: usize,
        /// What is there.
        found: String,
        /// What belongs there.
        expected: String,
    },
}

/// Why files cannot be live together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ManifestConflict {
    /// Two segments share blocks.
    #[error("{file_name} holds blocks {range}, but {held_name} holds {held}")]
    Blocks {
        /// The file that came second.
        file_name: String,
        /// Its blocks.
        range: BlockRange,
        /// The file that came first.
        held_name: String,
        /// Its blocks.
        held: BlockRange,
    },
    /// Blocks or receipts that are held would be gone.
    #[error("blocks {lost} are held {}, and would not be any more", if *.with_receipts { "with receipts" } else { "here" })]
    Lost {
        /// Which blocks.
        lost: BlockRange,
        /// Whether it is their receipts that would be lost.
        with_receipts: bool,
    },
    /// Another block in the place of one that this folder held and lost.
    #[error(
        "{file_name}: block {number} is {found}, but this data folder held {held} before it was lost: \
         it is of another chain; `quipu rewind` takes back what was held"
    )]
    LostBlock {
        /// The file.
        file_name: String,
        /// Which block.
        number: u64,
        /// Its hash there.
        found: B256,
        /// The hash that was held.
        held: B256,
    },
    /// The folder holds another chain.
    #[error("{what} is {found}, but this data folder holds a chain whose {what} is {held}")]
    Network {
        /// What is compared.
        what: &'static str,
        /// What was given.
        found: String,
        /// What the folder has.
        held: String,
    },
    /// Two total difficulties are told for one block.
    #[error(
        "total difficulty before block {number} is told as {found}, but {held} follows from what is held"
    )]
    Difficulty {
        /// Which block.
        number: u64,
        /// What was told.
        found: U256,
        /// What follows from what was told before.
        held: U256,
    },
    /// Two hashes are trusted for one block.
    #[error("anchor {refused} contradicts {trusted}, which this data folder trusts")]
    Anchor {
        /// The one that came second.
        refused: Anchor,
        /// The hash that was trusted before.
        trusted: B256,
    },
    /// Two runs of a subject share slots.
    #[error("{file_name} looks up the {subject} of {span}, but {held_name} those of {held}")]
    Slots {
        /// What the hashes are hashes of.
        subject: RunSubject,
        /// The file that came second.
        file_name: String,
        /// Its slots.
        span: RunSpan,
        /// The file that came first.
        held_name: String,
        /// Its slots.
        held: RunSpan,
    },
    /// One file would be two things.
    #[error("{file_name} is listed twice")]
    Twice {
        /// The file.
        file_name: String,
    },
    /// Not a name that a data file can have.
    #[error("{file_name:?} cannot be the name of a data file")]
    Name {
        /// The name.
        file_name: String,
    },
}

/// Why a manifest could not be loaded or replaced.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not a manifest that this build wrote.
    #[error("{folder}/{MANIFEST_NAME}: {fault}; {}", remedy(.fault))]
    Corrupt {
        /// The data folder.
        folder: String,
        /// What is wrong, and where.
        fault: TextFault,
    },
    /// A manifest that no build would read again.
    #[error("{folder}/{MANIFEST_NAME}: would have {bytes} bytes, at most {MANIFEST_BYTES_MAX}")]
    TooLarge {
        /// The data folder.
        folder: String,
        /// How long it would be.
        bytes: usize,
    },
}

impl ManifestError {
    /// Whether the manifest lost what it had, so that it is to be rebuilt. One of another version did not.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { fault, .. }
            if !matches!(fault, TextFault::Version { .. } | TextFault::Development))
    }
}

/// What to do about a manifest that cannot be read.
fn remedy(fault: &TextFault) -> &'static str {
    if matches!(fault, TextFault::Development) {
        "import the archives again"
    } else if matches!(fault, TextFault::Version { .. }) {
        "use the build that wrote it, or a newer one"
    } else {
        "the file is damaged: bring it back from a copy, or rebuild it from the segments with \
         `quipu repair`"
    }
}
