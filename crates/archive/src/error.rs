//! What can be wrong with an archive, each with file, byte and both values.

use std::fmt;
use std::io;

use alloy_primitives::{B256, U256, hex};
use chain::{BlockRange, BodyError, Fault, HeaderError, Mismatch, ReceiptError};
use thiserror::Error;

use super::slim::SlimError;
use crate::file_kind::{E2STORE_BEGIN, FileBegin};

/// Why a checksum list cannot be used.
#[derive(Debug, Error)]
pub enum ChecksumListError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Io {
        /// The list.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// A line is in neither style.
    #[error("{file}: line {line}: {found:?}, expected {expected}")]
    Line {
        /// The list.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What it says.
        found: String,
        /// What a line of this style looks like.
        expected: &'static str,
    },
}

/// An archive that was refused: where, and why. Nothing of it was taken as true.
#[derive(Debug)]
pub struct ArchiveError {
    /// The file, as the user named it.
    pub file: String,
    /// The block in whose entries the fault lies, if it lies in one.
    pub block: Option<u64>,
    /// The byte of the file where it was seen.
    pub offset: u64,
    /// What is wrong.
    pub fault: Box<ArchiveFault>,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(number) = self.block {
            write!(f, "block {number}, ")?;
        }
        // What cannot be opened has no bytes.
        if let ArchiveFault::Io(error) = self.fault.as_ref()
            && self.offset == 0
            && self.block.is_none()
        {
            let is_absent = error.kind() == io::ErrorKind::NotFound;
            return if is_absent {
                write!(f, "there is no such file")
            } else {
                write!(f, "{error}")
            };
        }
        write!(f, "byte {}: {}", self.offset, self.fault)
    }
}

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already holds the fault's own: a chain of sources would say it twice.
        None
    }
}

/// What a reader can do about a refused archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The disk or the system failed: the same call may succeed later.
    Retry,
    /// Nothing has this name.
    FixPath,
    /// The file is compressed.
    Unpack,
    /// The file is something else than an archive.
    NameArchive,
    /// The hash that is trusted and the file's block differ: either may be the wrong one.
    CompareTrust,
    /// The file is damaged or false: get it again, best from another source.
    ReplaceFile,
    /// The blocks are proven, but the file is not what its name says.
    Relabel,
    /// The command line asks for something else than the file's name says.
    FixRequest,
    /// The checksum list beside the file cannot be read.
    MendList,
    /// Another file holds the block.
    AskElsewhere,
}

impl ArchiveError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self.fault.as_ref() {
            ArchiveFault::Io(error) if error.kind() == io::ErrorKind::NotFound => Remedy::FixPath,
            ArchiveFault::Io(_) => Remedy::Retry,
            ArchiveFault::NotE2store { begin } if begin.is_compressed() => Remedy::Unpack,
            ArchiveFault::NotE2store { .. } => Remedy::NameArchive,
            ArchiveFault::Block(mismatch) if matches!(*mismatch.fault, Fault::Anchor { .. }) => {
                Remedy::CompareTrust
            }
            ArchiveFault::Label { .. } => Remedy::Relabel,
            ArchiveFault::Network { .. } => Remedy::FixRequest,
            ArchiveFault::ChecksumList(_) => Remedy::MendList,
            ArchiveFault::NotHeld { .. } => Remedy::AskElsewhere,
            ArchiveFault::Truncated { .. }
            | ArchiveFault::Reserved { .. }
            | ArchiveFault::EntryTooLarge { .. }
            | ArchiveFault::DataLength { .. }
            | ArchiveFault::Snappy { .. }
            | ArchiveFault::InflatedTooLarge { .. }
            | ArchiveFault::NoIndex { .. }
            | ArchiveFault::AfterIndex
            | ArchiveFault::IndexLength { .. }
            | ArchiveFault::IndexRange { .. }
            | ArchiveFault::IndexSlots { .. }
            | ArchiveFault::IndexTarget { .. }
            | ArchiveFault::IndexOffset { .. }
            | ArchiveFault::TooManyEntries { .. }
            | ArchiveFault::EntryCount { .. }
            | ArchiveFault::EntryOrder { .. }
            | ArchiveFault::Header(_)
            | ArchiveFault::Body(_)
            | ArchiveFault::Receipts(_)
            | ArchiveFault::SlimReceipts(_)
            | ArchiveFault::Block(_)
            | ArchiveFault::TotalDifficulty { .. }
            | ArchiveFault::Accumulator { .. }
            | ArchiveFault::NoAccumulator { .. }
            | ArchiveFault::TrustedAccumulator { .. }
            | ArchiveFault::Checksum { .. }
            | ArchiveFault::Contradiction(_) => Remedy::ReplaceFile,
        }
    }
}

/// What is wrong with an archive.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum ArchiveFault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "not an e2store file: {begin}, expected {} at its beginning",
        hex::encode_prefixed(E2STORE_BEGIN)
    )]
    NotE2store { begin: FileBegin },
    #[error("truncated: {what} of {needed} bytes, {left} left in the file")]
    Truncated { what: &'static str, needed: u64, left: u64 },
    #[error(
        "reserved bytes of the entry head are {}, expected 0x0000",
        hex::encode_prefixed(found)
    )]
    Reserved { found: [u8; 2] },
    #[error("entry of {found} bytes, at most {limit} are allowed")]
    EntryTooLarge { found: u32, limit: u32 },
    #[error("{what} entry of {found} bytes, expected {expected}")]
    DataLength { what: &'static str, found: u64, expected: usize },
    #[error("compressed data is damaged: {reason}")]
    Snappy { reason: String },
    #[error("entry inflates to more than {limit} bytes")]
    InflatedTooLarge { limit: u64 },
    #[error("file ends without a block index; last entry is {last}")]
    NoIndex { last: &'static str },
    #[error("more bytes after the block index, which must be the last entry")]
    AfterIndex,
    #[error("block index of {found} bytes, its counts give {expected}")]
    IndexLength { found: u64, expected: String },
    #[error("block index says {count} blocks from {first}, expected 1 to 8192 below 2^64")]
    IndexRange { first: u64, count: u64 },
    #[error("block index has {found} offsets for each block, expected 2 to {limit}")]
    IndexSlots { found: u64, limit: u64 },
    #[error(
        "block index, offset {slot}: points to byte {found}, where no entry of this block lies"
    )]
    IndexTarget { slot: usize, found: i128 },
    #[error("more than {limit} {what} entries")]
    TooManyEntries { what: &'static str, limit: u64 },
    #[error("block index says {what} at byte {expected}, it is at byte {found}")]
    IndexOffset { what: &'static str, found: u64, expected: i128 },
    #[error("{found} {what} entries, the block index counts {expected}")]
    EntryCount { what: &'static str, found: usize, expected: usize },
    #[error("{found} entry, expected {expected}")]
    EntryOrder { found: &'static str, expected: &'static str },
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Receipts(#[from] ReceiptError),
    #[error(transparent)]
    SlimReceipts(#[from] SlimError),
    #[error("{}", .0.fault)]
    Block(Mismatch),
    #[error(
        "total difficulty is {found}, the blocks before and the header's difficulty give {expected}"
    )]
    TotalDifficulty { found: U256, expected: U256 },
    #[error("accumulator is {found}, the blocks give {expected}")]
    Accumulator { found: B256, expected: B256 },
    #[error("total difficulties without an accumulator; the blocks give {expected}")]
    NoAccumulator { expected: B256 },
    #[error("the blocks give accumulator {found}, the trusted list says {expected}")]
    TrustedAccumulator { found: B256, expected: B256 },
    #[error("file name says {what} {expected}, the content has {found}")]
    Label { what: &'static str, found: String, expected: String },
    #[error(transparent)]
    ChecksumList(#[from] ChecksumListError),
    #[error("SHA-256 is {found}, {list} says {expected}")]
    Checksum { found: B256, expected: B256, list: String },
    #[error("file name says network {expected}, asked for {found}")]
    Network { found: String, expected: String },
    #[error("{0}")]
    Contradiction(String),
    #[error("not in this archive, which holds {range}")]
    NotHeld { range: BlockRange },
}
