//! Writing archives: candidates in order become files of at most 8192 blocks.
//!
//! The writer does not verify blocks. A file appears under its name only when it is whole and on disk.

mod era1;
mod ere;
mod sink;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U256, hex};
use chain::{BlockRange, Candidate, HeaderError, decode_header, hash_header};
use thiserror::Error;

use super::checksums::{ChecksumList, NAMED_LIST, NUMBERED_LIST, is_uniform, read_if_there};
use super::layout::Format;
use super::name::ArchiveName;
use super::{ARCHIVE_BLOCKS_MAX, shown};
use crate::unfinished::remove_abandoned;
use era1::Era1File;
use ere::EreFile;

/// What was asked for is a part of what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraCuts {
    /// There are blocks before the first.
    pub is_begin_cut: bool,
    /// There are blocks after the last.
    pub is_end_cut: bool,
}

impl EraCuts {
    /// The blocks of a file, if they are a part of an era of which there is more.
    #[must_use]
    pub fn part(self, range: BlockRange) -> Option<BlockRange> {
        let is_inside = |number: u64| !number.is_multiple_of(ARCHIVE_BLOCKS_MAX);
        let is_part = (self.is_begin_cut && is_inside(range.first()))
            || (self.is_end_cut && is_inside(range.end()));
        is_part.then_some(range)
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenArchive {
    /// Where it is.
    pub path: PathBuf,
    /// The blocks in it.
    pub range: BlockRange,
    /// Its size.
    pub bytes_count: u64,
    /// Its checksum, which the lists beside it repeat.
    pub sha256: B256,
}

/// Why a block cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The disk refused.
    #[error("{}: {error}", shown(.path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Not the block after the one before.
    #[error("block {found} after block {last}: archives hold consecutive blocks")]
    NotNext {
        /// The block that was given.
        found: u64,
        /// The last one written.
        last: u64,
    },
    /// era1 ends with the merge.
    #[error("block {number} is post-merge: era1 holds pre-merge blocks only, use ere")]
    PostMerge {
        /// The block.
        number: u64,
    },
    /// Receipts are in every block of a file or in none, and era1 needs them.
    #[error("block {number} {} receipts, unlike its archive", if *.has_receipts { "has" } else { "has no" })]
    ReceiptsPresence {
        /// The block.
        number: u64,
        /// Whether it has receipts.
        has_receipts: bool,
    },
    /// A pre-merge block without its total difficulty, which the accumulator needs.
    #[error("block {number} is pre-merge and has no total difficulty")]
    NoTotalDifficulty {
        /// The block.
        number: u64,
    },
    /// The header does not decode.
    #[error("block after {last:?}: {source}")]
    Header {
        /// The last block written.
        last: Option<u64>,
        /// What the decoder met.
        source: HeaderError,
    },
    /// The checksum list that is already there cannot be read.
    #[error(transparent)]
    Checksums(#[from] super::ChecksumListError),
}

/// Writes a run of blocks as archives into a folder.
#[derive(Debug)]
pub struct ArchiveWriter {
    folder: PathBuf,
    network: String,
    format: Format,
    open: Option<OpenArchive>,
    last: Option<u64>,
    /// What the first and the last file leave out of their eras.
    cuts: EraCuts,
    written: Vec<WrittenArchive>,
}

/// What a block is beside its bytes.
#[derive(Clone, Copy, Debug)]
struct BlockMeta {
    number: u64,
    hash: B256,
    /// `Some` exactly for pre-merge blocks.
    total_difficulty: Option<U256>,
}

#[derive(Debug)]
struct OpenArchive {
    first: u64,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    Era1(Box<Era1File>),
    Ere(Box<EreFile>),
}

impl ArchiveWriter {
    /// A writer into `folder`, which is made if it is not there.
    pub fn create(folder: &Path, network: &str, format: Format) -> Result<Self, WriteError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        remove_abandoned(folder).map_err(at(folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            network: network.to_owned(),
            format,
            open: None,
            last: None,
            cuts: EraCuts::default(),
            written: Vec::new(),
        })
    }

    /// The same for blocks that are cut out of more: then the file with a cut is named as a part of its
    /// era.
    #[must_use]
    pub fn with_cuts(mut self, cuts: EraCuts) -> Self {
        self.cuts = cuts;
        self
    }

    /// Appends a block. Full files are closed on the way.
    pub fn push(&mut self, candidate: &Candidate) -> Result<(), WriteError> {
        let header = decode_header(&candidate.header)
            .map_err(|source| WriteError::Header { last: self.last, source })?;
        let number = header.number;
        if let Some(last) = self.last
            && last.checked_add(1) != Some(number)
        {
            return Err(WriteError::NotNext { found: number, last });
        }
        let is_pre_merge = !header.difficulty.is_zero();
        let place = BlockMeta {
            number,
            hash: hash_header(&candidate.header),
            total_difficulty: candidate.total_difficulty.filter(|_| is_pre_merge),
        };
        if is_pre_merge && place.total_difficulty.is_none() {
            return Err(WriteError::NoTotalDifficulty { number });
        }
        if number.is_multiple_of(ARCHIVE_BLOCKS_MAX) {
            self.close()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_file(number)?,
        };
        let folder = &self.folder;
        let pushed = match &mut open.kind {
            OpenKind::Era1(file) => file.push(place, candidate, folder),
            OpenKind::Ere(file) => file.push(place, candidate, folder),
        };
        match &pushed {
            Ok(()) => self.last = Some(number),
            // Part of a block may be in the file: it is given up and never gets a name.
            Err(WriteError::Io { .. }) => return pushed,
            // There era1 ends, and what was asked for beyond it does not matter.
            Err(WriteError::PostMerge { .. }) => self.cuts.is_end_cut = false,
            Err(_) => {}
        }
        // A block that was refused left nothing: the file goes on without it. One that was opened
        // for it alone has nothing to go on with.
        if self.last.is_some_and(|last| last >= open.first) {
            self.open = Some(open);
        }
        pushed
    }

    /// Closes the last file, writes the checksum lists and tells what was written.
    pub fn finish(mut self) -> Result<Vec<WrittenArchive>, WriteError> {
        self.close()?;
        self.write_checksums()?;
        Ok(self.written)
    }

    fn open_file(&self, first: u64) -> Result<OpenArchive, WriteError> {
        let kind = match self.format {
            Format::Era1 => OpenKind::Era1(Box::new(Era1File::create(&self.folder)?)),
            Format::Ere => OpenKind::Ere(Box::new(EreFile::create(&self.folder)?)),
        };
        Ok(OpenArchive { first, kind })
    }

    fn close(&mut self) -> Result<(), WriteError> {
        let (Some(open), Some(last)) = (self.open.take(), self.last) else { return Ok(()) };
        let Some(range) = BlockRange::from_ends(open.first, last) else { return Ok(()) };
        let (finished, naming_hash, has_receipts) = match open.kind {
            OpenKind::Era1(file) => file.finish(open.first).map_err(at(&self.folder))?,
            OpenKind::Ere(file) => file.finish(open.first).map_err(at(&self.folder))?,
        };
        let [a, b, c, d, ..] = naming_hash.0;
        let name = ArchiveName {
            network: self.network.clone(),
            era: open.first / ARCHIVE_BLOCKS_MAX,
            short_hash: [a, b, c, d],
            format: self.format,
            is_without_receipts: !has_receipts,
            is_without_proofs: self.format == Format::Ere,
            has_own_era_size: false,
            part: self.cuts.part(range),
        };
        let path = self.folder.join(name.to_string());
        let (bytes_count, sha256) = finished.keep_as(&path).map_err(at(&path))?;
        self.written.push(WrittenArchive { path, range, bytes_count, sha256 });
        Ok(())
    }

    /// Renews the named list, keeping lines for files of other runs that are still there, and
    /// writes the numbered list where its lines start at era 0, as its readers expect.
    fn write_checksums(&self) -> Result<(), WriteError> {
        let mut lines = BTreeMap::new();
        let named_path = self.folder.join(NAMED_LIST);
        if let Some((file, text)) = read_if_there(&named_path)? {
            let list = ChecksumList::parse_named(file, &text)?;
            let there = list.names().filter(|(name, _)| self.folder.join(name).exists());
            lines.extend(there.map(|(name, hash)| (name.to_owned(), hash)));
        }
        for written in &self.written {
            if let Some(name) = written.path.file_name().and_then(|name| name.to_str()) {
                lines.insert(name.to_owned(), written.sha256);
            }
        }
        let text: Vec<String> =
            lines.iter().map(|(name, hash)| format!("{}  {name}\n", hex::encode(hash))).collect();
        fs::write(&named_path, text.concat()).map_err(at(&named_path))?;
        let numbered_path = self.folder.join(NUMBERED_LIST);
        let archive_count = fs::read_dir(&self.folder).map_err(at(&self.folder))?.filter(|entry| {
            entry.as_ref().is_ok_and(|entry| ArchiveName::is_archive(&entry.path()))
        });
        let is_all_ours = archive_count.count() == self.written.len();
        if !is_uniform(&self.folder) || !is_all_ours {
            // Of an earlier run, and its lines now belong to nobody in particular.
            match fs::remove_file(&numbered_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(&numbered_path)(error));
                }
                _ => {}
            }
        } else if self.written.first().is_some_and(|first| first.range.first() == 0) {
            let hashes: Vec<String> =
                self.written.iter().map(|written| written.sha256.to_string()).collect();
            fs::write(&numbered_path, hashes.join("\n")).map_err(at(&numbered_path))?;
        }
        Ok(())
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |error| WriteError::Io { path, error }
}
