//! The manifest: which segments and lookup runs are live.
//!
//! Knows: names, block ranges, slots, digests, lengths, one generation number.
//! Never knows: what a segment or a run contains, or who is reading it.
//!
//! A manifest is a value. What changes it makes another one, and [`Manifest::replace`] puts that in
//! the place of the old. What it promises: no two segments hold the same block, no two runs of a
//! subject hold the same slot, no file is listed twice, and the same content gives the same bytes.

mod text;

use std::fmt;

use alloy_primitives::B256;
use chain::BlockRange;
use chain::trust::Status;
use segment::lookup::{RunSpan, Subject};
use thiserror::Error;

use crate::disk::{Disk, DiskError, is_file_name};

pub use text::TextFault;

/// The manifest's file.
pub const MANIFEST_NAME: &str = "manifest";
/// Where the next one is written; what a crash leaves there means nothing.
const STAGED_NAME: &str = "manifest.staged";
/// The longest manifest that is read: some 400,000 files. All of mainnet is a few thousand.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// Which chain the folder holds, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// EIP-155's number.
    pub chain_id: Option<u64>,
    /// The hash of block 0.
    pub genesis_hash: Option<B256>,
}

/// [`Status`] in one word, as it is kept and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusWord {
    /// Proven by a trusted hash.
    Anchored,
    /// Canonical on the word of the source.
    Linked,
    /// Proven inside, and that is all.
    Unanchored,
}

impl From<Status> for StatusWord {
    fn from(status: Status) -> Self {
        match status {
            Status::Anchored(_) => Self::Anchored,
            Status::Linked(_) => Self::Linked,
            Status::Unanchored => Self::Unanchored,
        }
    }
}

impl fmt::Display for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anchored => "anchored",
            Self::Linked => "linked",
            Self::Unanchored => "unanchored",
        })
    }
}

/// A live segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its blocks.
    pub range: BlockRange,
    /// Its file.
    pub file_name: String,
    /// The file's length.
    pub bytes: u64,
    /// The digest of its footer.
    pub digest: B256,
    /// Whether receipts are in it.
    pub has_receipts: bool,
    /// How far its blocks can be trusted to be canonical.
    pub status: StatusWord,
}

/// A live lookup run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// What its hashes are hashes of.
    pub subject: Subject,
    /// Its slots.
    pub span: RunSpan,
    /// Its file.
    pub file_name: String,
    /// The file's length.
    pub bytes: u64,
}

impl RunEntry {
    /// Transactions before blocks, then by slot.
    fn order(&self) -> (bool, u64) {
        (self.subject == Subject::Blocks, self.span.first_slot())
    }

    fn shares_slots_with(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.span.first_slot() < other.span.end_slot()
            && other.span.first_slot() < self.span.end_slot()
    }

    fn holds_all_of(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.span.first_slot() <= other.span.first_slot()
            && other.span.end_slot() <= self.span.end_slot()
    }
}

/// Which files are live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    generation: u64,
    network: Network,
    /// By first block.
    segments: Vec<SegmentEntry>,
    /// By subject and first slot.
    runs: Vec<RunEntry>,
}

/// Why files cannot be live together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Conflict {
    /// Two segments share blocks, and neither may take the other's place.
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
    /// A segment without receipts would take the place of one with them.
    #[error("{file_name} (blocks {range}) has no receipts, but {held_name} (blocks {held}) has")]
    Receipts {
        /// The file that came second.
        file_name: String,
        /// Its blocks.
        range: BlockRange,
        /// The file that came first.
        held_name: String,
        /// Its blocks.
        held: BlockRange,
    },
    /// Two runs of a subject share slots, and the second does not hold all of the first.
    #[error("{file_name} looks up the {subject} of {span}, but {held_name} those of {held}")]
    Slots {
        /// What the hashes are hashes of.
        subject: Subject,
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
    #[error("{folder}/{MANIFEST_NAME}: {fault}")]
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

impl Manifest {
    /// The manifest of a folder that holds nothing yet.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { generation: 0, network, segments: Vec::new(), runs: Vec::new() }
    }

    /// The folder's manifest, or `None` if it has none yet.
    pub fn load(disk: &dyn Disk) -> Result<Option<Self>, ManifestError> {
        let bytes = match disk.read(MANIFEST_NAME, MANIFEST_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(DiskError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let decoded = Self::decode(&bytes);
        decoded.map(Some).map_err(|fault| ManifestError::Corrupt { folder: disk.place(), fault })
    }

    /// Puts this manifest in the place of the folder's. The files that it names must be durable.
    ///
    /// After a crash the folder has the old manifest or this one, whole. After an error too, and the
    /// caller loads it to learn which: only the last step can fail with the new one in place.
    pub fn replace(&self, disk: &dyn Disk) -> Result<(), ManifestError> {
        let bytes = self.encode();
        if u64::try_from(bytes.len()).map_or(true, |count| count > MANIFEST_BYTES_MAX) {
            return Err(ManifestError::TooLarge { folder: disk.place(), bytes: bytes.len() });
        }
        disk.write(STAGED_NAME, &bytes)?; //            1. beside the old one, over what a crash left
        disk.fsync_file(STAGED_NAME)?; //               2. the contents are durable
        disk.rename(STAGED_NAME, MANIFEST_NAME)?; //    3. readers see it; a crash before changes nothing
        disk.fsync_folder()?; //                        4. the name is durable
        Ok(())
    }

    /// How many changes led here.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Which chain it is.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network
    }

    /// The live segments, lowest block first.
    #[must_use]
    pub fn segments(&self) -> &[SegmentEntry] {
        &self.segments
    }

    /// The live runs, those of transactions first, each subject's lowest slot first.
    #[must_use]
    pub fn runs(&self) -> &[RunEntry] {
        &self.runs
    }

    /// The ranges of blocks that are held, lowest first. Between two of them is a gap.
    #[must_use]
    pub fn coverage(&self) -> Vec<BlockRange> {
        let mut merged: Vec<BlockRange> = Vec::new();
        for SegmentEntry { range, .. } in &self.segments {
            let joined = merged
                .pop_if(|before| before.end() == range.first())
                .and_then(|before| BlockRange::from_ends(before.first(), range.last()));
            merged.push(joined.unwrap_or(*range));
        }
        merged
    }

    /// This manifest with one more segment. Segments whose blocks all lie in it leave: it supersedes
    /// them, unless they have receipts and it has none.
    pub fn with_segment(&self, entry: SegmentEntry) -> Result<Self, Conflict> {
        if self.segments.contains(&entry) {
            return Ok(self.clone());
        }
        let range = entry.range;
        let mut next = self.next_generation();
        next.segments.retain(|held| {
            let held = held.range;
            !(range.first() <= held.first() && held.end() <= range.end())
        });
        let losing = |held: &&SegmentEntry| share_blocks(held, &entry) && held.has_receipts;
        if let Some(held) = self.segments.iter().find(losing).filter(|_| !entry.has_receipts) {
            return Err(Conflict::Receipts {
                file_name: entry.file_name,
                range,
                held_name: held.file_name.clone(),
                held: held.range,
            });
        }
        next.segments.push(entry);
        next.sorted()
    }

    /// This manifest with one more run. Runs whose slots all lie in it leave: it supersedes them.
    pub fn with_run(&self, entry: RunEntry) -> Result<Self, Conflict> {
        if self.runs.contains(&entry) {
            return Ok(self.clone());
        }
        let mut next = self.next_generation();
        next.runs.retain(|held| !entry.holds_all_of(held));
        next.runs.push(entry);
        next.sorted()
    }

    /// This manifest without the segment or run of that name; itself if there is none.
    #[must_use]
    pub fn without(&self, file_name: &str) -> Self {
        let mut next = self.next_generation();
        next.segments.retain(|held| held.file_name != file_name);
        next.runs.retain(|held| held.file_name != file_name);
        let is_changed =
            (next.segments.len(), next.runs.len()) != (self.segments.len(), self.runs.len());
        if is_changed { next } else { self.clone() }
    }

    fn next_generation(&self) -> Self {
        Self { generation: self.generation.saturating_add(1), ..self.clone() }
    }

    /// The same files in their order, if they can be live together.
    fn sorted(mut self) -> Result<Self, Conflict> {
        self.segments.sort_by_key(|entry| entry.range.first());
        self.runs.sort_by_key(RunEntry::order);
        for (held, entry) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            if share_blocks(held, entry) {
                return Err(Conflict::Blocks {
                    file_name: entry.file_name.clone(),
                    range: entry.range,
                    held_name: held.file_name.clone(),
                    held: held.range,
                });
            }
        }
        for (held, entry) in self.runs.iter().zip(self.runs.iter().skip(1)) {
            if held.shares_slots_with(entry) {
                return Err(Conflict::Slots {
                    subject: entry.subject,
                    file_name: entry.file_name.clone(),
                    span: entry.span,
                    held_name: held.file_name.clone(),
                    held: held.span,
                });
            }
        }
        self.check_names()?;
        Ok(self)
    }

    fn check_names(&self) -> Result<(), Conflict> {
        let mut names: Vec<&str> = self.segments.iter().map(|entry| &*entry.file_name).collect();
        names.extend(self.runs.iter().map(|entry| &*entry.file_name));
        names.sort_unstable();
        let is_ours =
            |name: &str| [MANIFEST_NAME, STAGED_NAME, crate::lock::LOCK_NAME].contains(&name);
        if let Some(name) = names.iter().find(|name| !is_file_name(name) || is_ours(name)) {
            return Err(Conflict::Name { file_name: (*name).to_owned() });
        }
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(name, next)| name == next) {
            Some((name, _)) => Err(Conflict::Twice { file_name: (*name).to_owned() }),
            None => Ok(()),
        }
    }
}

fn share_blocks(left: &SegmentEntry, right: &SegmentEntry) -> bool {
    left.range.first() < right.range.end() && right.range.first() < left.range.end()
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;
