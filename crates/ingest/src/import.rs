//! Archives into a data folder: proven, encoded over all cores, committed file by file.
//!
//! A file is committed as a whole: killed at any moment, an import leaves the folder as it was after
//! the last file, and the next one takes up there.

mod blocks;
mod build;
mod error;
mod gathered;
mod intake;
mod judge;
mod merge;
mod order;
mod published;
mod stoppable;
mod trust;
mod units;
mod view_blocks;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::U256;
use archive::{Archive, ReadAt};
use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, ChainSpec};
use store::layout::{HeldRange, overlap, subtract};
use store::read::block_on;
use store::{CommitFacts, NewSegment, Reader, StoreError, View, Writer};
use tokio::sync::watch;

use crate::prove::{
    Facts, Progress, ProofReport, Prover, WholeFile, check_name, check_named_blocks,
};
use crate::survey::{check_checksum, check_network};

pub(crate) use gathered::{AccountableBlocks, Gathered, Link, hash_below, parent_above};
pub(crate) use intake::Intake;
pub use intake::network_of;
pub(crate) use judge::{Arrival, Judge};
pub(crate) use trust::Trust;

pub use error::ImportError;
pub use judge::{Commit, ImportReport};
pub use merge::{Merger, merge_next};
pub use order::order_files;
pub use published::PublishedImporter;
pub(crate) use units::reading_order;
pub use units::{Unit, plan_units};

use gathered::difficulty_told;
use stoppable::StoppableArchive;

/// Blocks in one piece of work at the most.
const PIECE_BLOCKS_MAX: u64 = 256;
/// File bytes in one piece of work, rounded up to a whole group; bounds memory.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// What may be taken, and how.
#[derive(Clone, Copy, Debug)]
pub struct ImportSettings {
    /// Take a range that links to nothing known.
    pub is_unanchored_allowed: bool,
    /// Take archives that hold no receipts.
    pub is_without_receipts_allowed: bool,
    /// Build no log index, now and later.
    pub is_without_log_index: bool,
    /// Take only these blocks.
    pub blocks: Option<BlockRange>,
    /// How many threads work.
    pub threads: NonZeroUsize,
}

/// Takes archives into one data folder.
pub struct Importer<'a> {
    /// The folder.
    pub writer: &'a mut Writer,
    /// The chain's facts.
    pub spec: &'a ChainSpec,
    /// What is trusted beforehand.
    pub anchors: &'a Anchors,
    /// What may be taken.
    pub settings: ImportSettings,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
}

impl std::fmt::Debug for Importer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Importer")
            .field("writer", &self.writer)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its blocks are held now.
    Imported(ImportReport),
    /// Its blocks were held already.
    Held {
        /// Which ones.
        range: BlockRange,
    },
    /// It has none of the wanted blocks.
    Outside,
}

impl Importer<'_> {
    /// Proves a file, builds the segments that its blocks make, and commits them.
    pub fn import_file(&mut self, path: &Path) -> Result<Outcome, ImportError> {
        self.import_until(path, None)
    }

    /// The same until `stop` is raised: then nothing of the file is held, and the error is
    /// [`StoreError::Stopped`].
    pub fn import_until(
        &mut self,
        path: &Path,
        stop: Option<&watch::Receiver<bool>>,
    ) -> Result<Outcome, ImportError> {
        let archive = Archive::open(path)?;
        check_network(path, self.spec)?;
        check_checksum(path)?;
        let wanted = self.settings.blocks.unwrap_or_else(|| archive.range());
        if wanted != archive.range() {
            // A file whose name promises other blocks is false, not outside of those that are wanted.
            check_named_blocks(&archive)?;
        }
        let Some(part) = overlap(archive.range(), wanted) else { return Ok(Outcome::Outside) };
        let has_receipts = archive.has_receipts();
        if !has_receipts && !self.settings.is_without_receipts_allowed {
            return Err(ImportError::NoReceipts { file: archive.file().to_owned() });
        }
        let stoppable = StoppableArchive { archive: &archive, stop };
        let view = self.writer.view();
        let manifest = view.manifest();
        let held = if has_receipts { manifest.coverage_receipts() } else { manifest.coverage() };
        if subtract(&[part], &held).is_empty() {
            return self.confirm(&stoppable, part, &view);
        }
        let trust = Trust::gather(archive.file(), &view, part, self.anchors)?;
        let targets = self.writer.plan(&[HeldRange { range: part, has_receipts }]);
        let (report, segments) = self.build_all(&stoppable, part, &targets, &trust.points)?;
        if part == archive.range() {
            check_name(&archive, &report)?;
        }
        let arrival = Arrival {
            difficulty: difficulty_told(&self.writer.view(), &report.run, &segments)?,
            run: report.run,
            transaction_count: report.transaction_count,
            segments,
        };
        let judge = Judge {
            source: archive.file(),
            called: &|_| "this file".to_owned(),
            spec: self.spec,
            anchors: self.anchors,
            trust,
            is_unanchored_allowed: self.settings.is_unanchored_allowed,
        };
        let mut commit = |segments, facts| self.writer.commit(segments, facts);
        judge.commit(arrival, &mut commit).map(Outcome::Imported)
    }

    /// Nothing of the file is missing: its last hash must be the one that is held, and the segments must
    /// have their lengths and footers. To prove what is in them would take as long as to import it.
    fn confirm<S: ReadAt>(
        &mut self,
        stoppable: &StoppableArchive<'_, S>,
        part: BlockRange,
        view: &Arc<View>,
    ) -> Result<Outcome, ImportError> {
        let archive = stoppable.archive;
        self.writer.look_at_segments(part)?;
        let number = part.last();
        let found = chain::hash_header(&archive.read_header(number)?);
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(view.read_hash(&mut reader, BlockNumber(number)))?;
        if let Some(held) = held.filter(|held| *held != found) {
            let said = format!(
                "hash of block {number} is {found} by this file, {held} by the data folder"
            );
            return Err(ImportError::Contradiction { file: archive.file().to_owned(), said });
        }
        // What is trusted now may say more of blocks that were held before.
        let trust = Trust::gather(archive.file(), view, part, self.anchors)?;
        let difficulty = self.difficulty_missing(stoppable, part, &trust.points)?;
        let facts = CommitFacts {
            network: network_of(self.spec),
            anchors: trust.anchors,
            difficulties: difficulty.into_iter().collect(),
            ..CommitFacts::default()
        };
        self.writer.commit(Vec::new(), facts)?;
        Ok(Outcome::Held { range: part })
    }

    /// Total difficulty before blocks of proof of work that are held and do not know it, as after a
    /// repair: the file, proven as a whole, may tell it.
    fn difficulty_missing<S: ReadAt>(
        &self,
        stoppable: &StoppableArchive<'_, S>,
        part: BlockRange,
        points: &BTreeSet<u64>,
    ) -> Result<Option<(u64, U256)>, ImportError> {
        let view = self.writer.view();
        let Some((_, entry)) = view.manifest().find_segment(BlockNumber(part.first())) else {
            return Ok(None);
        };
        let is_known = view.manifest().difficulty_before(entry).is_some();
        let is_told = stoppable.archive.read_total_difficulty(part.first())?.is_some();
        if is_known || entry.difficulty.is_zero() || !is_told {
            return Ok(None);
        }
        let (report, _) = self.build_all(stoppable, part, &[], points)?;
        Ok(difficulty_told(&view, &report.run, &[])?)
    }

    /// Proves the part of the archive and builds the targets, which may reach beyond it on both
    /// sides.
    fn build_all<S: ReadAt>(
        &self,
        stoppable: &StoppableArchive<'_, S>,
        part: BlockRange,
        targets: &[HeldRange],
        points: &BTreeSet<u64>,
    ) -> Result<(ProofReport, Vec<NewSegment>), ImportError> {
        let prover = Prover {
            spec: self.spec,
            anchors: self.anchors,
            threads: self.settings.threads,
            progress: self.progress,
            points,
        };
        let mut whole = WholeFile::new(stoppable.archive, part, self.anchors, points);
        let mut add = |facts: Facts| -> Result<(), ImportError> {
            if part.contains(facts.number) {
                whole.add(facts)?;
            }
            Ok(())
        };
        let drafting = self.writer.drafting();
        let intake = Intake { drafting: &drafting, prover, source: stoppable, part };
        let segments = intake.build_all(targets, &mut add)?;
        Ok((whole.finish()?, segments))
    }
}
