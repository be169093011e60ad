//! Archive files: era1 and ere in, candidates out; candidates in, era1 and ere out.
//!
//! Knows: the layouts of both formats, their file names and checksum lists.
//! Never knows: whether a block is valid. Everything that is read here is unverified.
//!
//! [`Archive::open`] walks every entry's head once, so a file that is cut short, or whose index
//! does not match its content, is refused before a block is read. Blocks can then be read in any
//! order, from many threads.
//!
//! ```
//! use archive::{Archive, ArchiveWriter, Format};
//! use pool::threads_default;
//! use sample::{NETWORK_NAME, SampleSettings};
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

#![warn(clippy::arithmetic_side_effects, reason = "lengths and offsets come from outside")]

mod checksums;
mod e2store;
mod error;
pub mod file_kind;
mod layout;
mod name;
mod slim;
pub mod unfinished;
mod writer;

use std::path::Path;

use alloy_primitives::{B256, Bytes, U256};
use chain::{BlockPart, BlockRange, Body, Candidate, decode_header, decode_receipts};

pub use checksums::{ChecksumList, hash_file};
pub use e2store::{FileBytes, ReadAt};
pub use error::{ArchiveError, ArchiveFault, ChecksumListError, Remedy};
pub use layout::Format;
use layout::{Layout, Misfit};
pub use name::{ArchiveName, Content};
pub use slim::{SlimError, decode_slim, encode_slim};
pub use writer::{ArchiveWriter, EraCuts, WriteError, WrittenArchive};

/// Blocks in a full archive.
pub const ARCHIVE_BLOCKS_MAX: u64 = chain::accumulator::EPOCH_BLOCKS;

/// An open archive whose structure holds together.
#[derive(Debug)]
pub struct Archive<S> {
    file: String,
    source: S,
    layout: Layout,
    accumulator: Option<B256>,
}

impl Archive<FileBytes> {
    /// Opens a file and checks its structure.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let file = shown(path);
        match FileBytes::open(path) {
            Ok(source) => Self::from_source(file, source),
            Err(error) => {
                let fault = Box::new(ArchiveFault::Io(error));
                Err(ArchiveError { file, block: None, offset: 0, fault })
            }
        }
    }
}

impl<S: ReadAt> Archive<S> {
    /// Checks the structure of `source`; `file` names it in errors.
    pub fn from_source(file: String, source: S) -> Result<Self, ArchiveError> {
        let refuse = |misfit: Misfit| ArchiveError {
            file: file.clone(),
            block: misfit.block,
            offset: misfit.offset,
            fault: misfit.fault,
        };
        let layout = Layout::read(&source).map_err(refuse)?;
        let accumulator = match layout.accumulator {
            Some(entry) => Some(
                entry
                    .read_array::<32>(&source)
                    .map_err(|fault| refuse(Misfit::at(entry.offset, fault)))?
                    .into(),
            ),
            None => None,
        };
        Ok(Self { file, source, layout, accumulator })
    }

    /// The file, as the user named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Which of the two formats it is.
    pub fn format(&self) -> Format {
        self.layout.format
    }

    /// The blocks that the index counts.
    pub fn range(&self) -> BlockRange {
        self.layout.range
    }

    /// Whether the archive holds receipts.
    pub fn has_receipts(&self) -> bool {
        self.layout.receipts.is_some()
    }

    /// Whether the archive holds proofs. They are passed over: no check here rests on them.
    pub fn has_proofs(&self) -> bool {
        self.layout.proofs.is_some()
    }

    /// The accumulator root that the archive claims for its pre-merge blocks.
    pub fn accumulator(&self) -> Option<B256> {
        self.accumulator
    }

    /// The size of the file.
    pub fn bytes_count(&self) -> u64 {
        self.source.bytes_count()
    }

    /// Bytes that the entries of one block take; 0 for a block that is not here.
    pub fn block_bytes(&self, number: u64) -> u64 {
        self.layout.block_bytes(number)
    }

    /// The raw RLP of one header.
    pub fn read_header(&self, number: u64) -> Result<Vec<u8>, ArchiveError> {
        let entry = self.layout.entry(&self.layout.headers, number);
        let entry = entry.ok_or_else(|| self.absent(number))?;
        entry.read_inflated(&self.source).map_err(|fault| self.refuse(number, entry.offset, fault))
    }

    /// The total difficulty that the archive claims at one block, if it holds them.
    pub fn read_total_difficulty(&self, number: u64) -> Result<Option<U256>, ArchiveError> {
        let Some(list) = &self.layout.total_difficulties else { return Ok(None) };
        let entry = self.layout.entry(list, number).ok_or_else(|| self.absent(number))?;
        let bytes = entry
            .read_array::<32>(&self.source)
            .map_err(|fault| self.refuse(number, entry.offset, fault))?;
        Ok(Some(U256::from_le_bytes(bytes)))
    }

    /// One whole block as the archive claims it.
    pub fn read_block(&self, number: u64) -> Result<Candidate, ArchiveError> {
        let header = Bytes::from(self.read_header(number)?);
        let body_entry = self.layout.entry(&self.layout.bodies, number);
        let body_entry = body_entry.ok_or_else(|| self.absent(number))?;
        let body = body_entry
            .read_inflated(&self.source)
            .and_then(|rlp| Ok(Body::decode(&Bytes::from(rlp))?))
            .map_err(|fault| self.refuse(number, body_entry.offset, fault))?;
        let receipts = match &self.layout.receipts {
            None => None,
            Some(list) => {
                let entry = self.layout.entry(list, number).ok_or_else(|| self.absent(number))?;
                let receipts = entry
                    .read_inflated(&self.source)
                    .and_then(|rlp| match self.layout.format {
                        Format::Era1 => Ok(decode_receipts(&rlp)?),
                        Format::Ere => Ok(decode_slim(&rlp, body.transactions.len())?),
                    })
                    .map_err(|fault| self.refuse(number, entry.offset, fault))?;
                Some(receipts)
            }
        };
        // Past the merge an archive only repeats the last sum.
        let total_difficulty = self
            .read_total_difficulty(number)?
            .filter(|_| decode_header(&header).is_ok_and(|header| !header.difficulty.is_zero()));
        Ok(Candidate { header, body, receipts, total_difficulty })
    }

    /// Where the first header lies.
    pub fn first_header_offset(&self) -> u64 {
        self.layout.headers.first().map_or(0, |entry| entry.offset)
    }

    /// An error at the entry of `number` that holds `part`.
    pub fn refuse_part(&self, number: u64, part: BlockPart, fault: ArchiveFault) -> ArchiveError {
        let list = match part {
            BlockPart::Header => Some(&self.layout.headers),
            BlockPart::Body => Some(&self.layout.bodies),
            BlockPart::Receipts => self.layout.receipts.as_ref(),
        };
        let entry = list.and_then(|list| self.layout.entry(list, number));
        self.refuse(number, entry.map_or(0, |entry| entry.offset), fault)
    }

    /// An error at the total difficulty of `number`.
    pub fn refuse_total_difficulty(&self, number: u64, fault: ArchiveFault) -> ArchiveError {
        let list = self.layout.total_difficulties.as_ref();
        let entry = list.and_then(|list| self.layout.entry(list, number));
        self.refuse(number, entry.map_or(0, |entry| entry.offset), fault)
    }

    /// An error at the accumulator, or at the index, before which it should be.
    pub fn refuse_accumulator(&self, fault: ArchiveFault) -> ArchiveError {
        self.refuse_at(self.layout.accumulator.unwrap_or(self.layout.index).offset, None, fault)
    }

    /// An error of the file as a whole.
    pub fn refuse_whole(&self, fault: ArchiveFault) -> ArchiveError {
        self.refuse_at(0, None, fault)
    }

    fn refuse(&self, number: u64, offset: u64, fault: ArchiveFault) -> ArchiveError {
        self.refuse_at(offset, Some(number), fault)
    }

    fn refuse_at(&self, offset: u64, block: Option<u64>, fault: ArchiveFault) -> ArchiveError {
        ArchiveError { file: self.file.clone(), block, offset, fault: Box::new(fault) }
    }

    fn absent(&self, number: u64) -> ArchiveError {
        let range = self.layout.range;
        self.refuse(number, 0, ArchiveFault::NotHeld { range })
    }
}

/// A path for people: what could move a terminal's cursor is left out.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}
