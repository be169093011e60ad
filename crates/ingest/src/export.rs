//! A data folder as archives or as lines of JSON: what was imported comes out again.
//!
//! All refusals that can be foreseen come before the first file. A file appears under its name when
//! it is whole, and never in the place of another.

mod error;
mod ndjson;
mod plan;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U256};
use archive::{ARCHIVE_BLOCKS_MAX, ArchiveName, ArchiveWriter, EraCuts, Format, WriteError};
use chain::{BlockNumber, BlockRange, Candidate, accumulator, decode_header};
use pool::map_in_order;
use store::layout::{HeldRange, cut};
use store::read::block_on;
use store::{Reader, RowParts, Store, StoreError, View};

use crate::prove::{BlockDone, Progress};

use ndjson::LinesFile;

pub use error::ExportError;
pub use plan::{Plan, held_by, plan};

/// Blocks that one thread reads at a time; a few such pieces wait to be written.
const PIECE_BLOCKS: u64 = 8;
/// How often a folder that changes under our eyes is looked at again.
const TRIES_MAX: u32 = 8;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Archives.
    Archive(Format),
    /// One JSON object for each block.
    Ndjson,
}

/// Writes blocks of a view into a folder.
pub struct Exporter<'a> {
    /// Where the blocks are.
    pub view: &'a View,
    /// The folder of the view: a file that a writer beside us retires is read from a newer view.
    pub store: &'a Store,
    /// What the files call the chain.
    pub network: &'a str,
    /// What is written.
    pub kind: ExportFormat,
    /// Where to; made if it is not there.
    pub folder: &'a Path,
    /// How many threads read.
    pub threads: NonZeroUsize,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
}

impl std::fmt::Debug for Exporter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter")
            .field("network", &self.network)
            .field("kind", &self.kind)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The blocks in it.
    pub range: BlockRange,
    /// Its size.
    pub bytes: u64,
}

/// What was written, and what era1 has no place for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// The files, lowest block first.
    pub files: Vec<ExportedFile>,
    /// Blocks past the merge, which era1 does not hold.
    pub past_merge: Vec<BlockRange>,
}

/// Blocks that follow each other, and total difficulty before the first if that matters.
#[derive(Clone, Copy, Debug)]
struct ExportRun {
    held: HeldRange,
    difficulty_before: U256,
    /// What is held beyond it.
    cuts: EraCuts,
}

impl ExportRun {
    fn new(held: HeldRange, difficulty_before: U256) -> Self {
        Self { held, difficulty_before, cuts: EraCuts::default() }
    }
}

impl Exporter<'_> {
    /// Writes what the plan says. On an error, the files that were finished before it stay.
    pub fn export(&self, plan: &Plan) -> Result<ExportReport, ExportError> {
        let mut exported = ExportReport::default();
        let mut runs = Vec::new();
        for held in &plan.runs {
            match self.prepare(*held)? {
                Some(run) => runs.push(run),
                None => exported.past_merge.push(held.range),
            }
        }
        for run in runs {
            match self.kind {
                ExportFormat::Archive(format) => {
                    let cuts = EraCuts {
                        is_begin_cut: plan.cut_before == Some(run.held.range.first()),
                        is_end_cut: plan.cut_after == Some(run.held.range.last()),
                    };
                    self.write_archives(format, ExportRun { cuts, ..run }, &mut exported)?;
                }
                ExportFormat::Ndjson => self.write_lines(run.held, &mut exported)?,
            }
        }
        Ok(exported)
    }

    /// Refuses what the format cannot hold; `None` if it begins where era1 has ended.
    fn prepare(&self, held: HeldRange) -> Result<Option<ExportRun>, ExportError> {
        let ExportFormat::Archive(format) = self.kind else {
            return Ok(Some(ExportRun::new(held, U256::ZERO)));
        };
        let mut reader = reader()?;
        let first = held.range.first();
        if self.difficulty(&mut reader, first)?.1.is_zero() {
            let is_held = format == Format::Ere;
            return Ok(is_held.then(|| ExportRun::new(held, U256::ZERO)));
        }
        if format == Format::Era1 && !held.has_receipts {
            return Err(ExportError::NoReceipts { range: held.range });
        }
        let difficulty_before = self
            .read(|view| block_on(view.difficulty_before(&mut reader, BlockNumber(first))))?
            .ok_or(ExportError::NoDifficulty { number: first })?;
        Ok(Some(ExportRun::new(held, difficulty_before)))
    }

    /// The hash and the difficulty of a block.
    fn difficulty(&self, reader: &mut Reader, number: u64) -> Result<(B256, U256), ExportError> {
        let header = self.read(|view| block_on(view.read_header(reader, BlockNumber(number))))?;
        let header = header.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?;
        let decoded =
            decode_header(&header.rlp).map_err(|source| ExportError::Header { number, source })?;
        Ok((header.hash, decoded.difficulty))
    }

    fn write_archives(
        &self,
        format: Format,
        run: ExportRun,
        exported: &mut ExportReport,
    ) -> Result<(), ExportError> {
        let writer = ArchiveWriter::create(self.folder, self.network, format)?;
        let mut writer = writer.with_cuts(run.cuts);
        let mut total = run.difficulty_before;
        let mut past_merge = None;
        for part in cut(run.held.range, ARCHIVE_BLOCKS_MAX) {
            self.refuse_existing(&self.archive_name(format, run, part, total)?)?;
            past_merge = self.push_part(&mut writer, part, &mut total)?;
            if past_merge.is_some() {
                break;
            }
        }
        let written = writer.finish()?.into_iter();
        exported.files.extend(written.map(|written| ExportedFile {
            path: written.path,
            range: written.range,
            bytes: written.bytes_count,
        }));
        let last = run.held.range.last();
        let left = past_merge.and_then(|number| BlockRange::from_ends(number, last));
        exported.past_merge.extend(left);
        Ok(())
    }

    /// Appends blocks of one archive; the first block past the merge if era1 ends there. `total` is
    /// the total difficulty so far.
    fn push_part(
        &self,
        writer: &mut ArchiveWriter,
        part: BlockRange,
        total: &mut U256,
    ) -> Result<Option<u64>, ExportError> {
        let outcome = self.read_in_order(
            part,
            |reader, number| {
                let read =
                    self.read(|view| block_on(view.read_candidate(reader, BlockNumber(number))))?;
                Ok(read.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?)
            },
            |number, candidate: Candidate| {
                let header = decode_header(&candidate.header)
                    .map_err(|source| ExportError::Header { number, source })?;
                *total = total.saturating_add(header.difficulty);
                let candidate = Candidate { total_difficulty: Some(*total), ..candidate };
                writer.push(&candidate)?;
                let count = candidate.body.transactions.len();
                Ok((u64::try_from(count).unwrap_or(u64::MAX), 0))
            },
        );
        match outcome {
            Ok(()) => Ok(None),
            Err(ExportError::Write(WriteError::PostMerge { number })) => Ok(Some(number)),
            Err(error) => Err(error),
        }
    }

    /// What the archive of these blocks will be called: it tells a hash of its content.
    fn archive_name(
        &self,
        format: Format,
        run: ExportRun,
        part: BlockRange,
        mut total: U256,
    ) -> Result<String, ExportError> {
        let mut reader = reader()?;
        let mut blocks = part;
        let mut cuts = run.cuts;
        let hash = match format {
            Format::Ere => {
                let number = BlockNumber(part.last());
                let hash = self.read(|view| block_on(view.read_hash(&mut reader, number)))?;
                hash.ok_or(StoreError::NotHeld { number })?
            }
            Format::Era1 => {
                let mut records = Vec::new();
                for number in part.first()..part.end() {
                    let (hash, difficulty) = self.difficulty(&mut reader, number)?;
                    if difficulty.is_zero() {
                        // There era1 ends.
                        blocks = BlockRange::from_ends(part.first(), number - 1).unwrap_or(part);
                        cuts.is_end_cut = false;
                        break;
                    }
                    total = total.saturating_add(difficulty);
                    records.push((hash, total));
                }
                accumulator::epoch_root(&records)
            }
        };
        let [a, b, c, d, ..] = hash.0;
        let name = ArchiveName {
            network: self.network.to_owned(),
            era: part.first() / ARCHIVE_BLOCKS_MAX,
            short_hash: [a, b, c, d],
            format,
            is_without_receipts: !run.held.has_receipts,
            is_without_proofs: format == Format::Ere,
            has_own_era_size: false,
            part: cuts.part(blocks),
        };
        Ok(name.to_string())
    }

    fn write_lines(&self, held: HeldRange, exported: &mut ExportReport) -> Result<(), ExportError> {
        for part in cut(held.range, ARCHIVE_BLOCKS_MAX) {
            let name = ndjson::file_name(self.network, part);
            let path = self.refuse_existing(&name)?;
            let mut file = LinesFile::create(self.folder, path)?;
            self.read_in_order(
                part,
                |reader, number| {
                    let read = |view: &View| {
                        block_on(view.read_block(reader, BlockNumber(number), RowParts::Receipt))
                    };
                    let block = self.read(read)?;
                    let block = block.ok_or(StoreError::NotHeld { number: BlockNumber(number) })?;
                    let count = block.header.transaction_count;
                    Ok((ndjson::line(block, held.has_receipts), count))
                },
                |_, (line, transaction_count): (String, u64)| {
                    file.push(&line)?;
                    let bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
                    Ok((transaction_count, bytes))
                },
            )?;
            let (path, bytes) = file.finish()?;
            exported.files.push(ExportedFile { path, range: part, bytes });
        }
        Ok(())
    }

    /// Reads from the view. Where a file of it is gone, a newer view has the same blocks in another: what
    /// is sealed does not change.
    fn read<T>(
        &self,
        mut read: impl FnMut(&View) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut found = read(self.view);
        for _ in 0..TRIES_MAX {
            if !matches!(&found, Err(StoreError::Disk(error)) if error.is_missing()) {
                break;
            }
            self.store.refresh()?;
            found = read(&self.store.view());
        }
        found
    }

    /// Where a file of this name will be, if none is there.
    fn refuse_existing(&self, name: &str) -> Result<PathBuf, ExportError> {
        let path = self.folder.join(name);
        if path.symlink_metadata().is_ok() { Err(ExportError::Exists { path }) } else { Ok(path) }
    }

    /// Reads blocks over all threads and hands them on in order. `take` tells the transactions of
    /// each block and the bytes that it was written as.
    fn read_in_order<T: Send>(
        &self,
        range: BlockRange,
        read: impl Fn(&mut Reader, u64) -> Result<T, ExportError> + Sync,
        mut take: impl FnMut(u64, T) -> Result<(u64, u64), ExportError>,
    ) -> Result<(), ExportError> {
        let read_piece = |piece: BlockRange| {
            let mut reader = reader()?;
            let numbers = piece.first()..piece.end();
            numbers.map(|it| Ok((it, read(&mut reader, it)?))).collect::<Result<Vec<_>, _>>()
        };
        let mut take_piece = |piece: Vec<(u64, T)>| {
            piece.into_iter().try_for_each(|(number, block)| {
                let (transaction_count, bytes) = take(number, block)?;
                self.progress.advance(BlockDone { bytes, transaction_count });
                Ok(())
            })
        };
        let outcome =
            map_in_order(self.threads, cut(range, PIECE_BLOCKS).into_iter(), read_piece, |piece| {
                match piece.and_then(&mut take_piece) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                }
            });
        match outcome {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

fn reader() -> Result<Reader, ExportError> {
    Ok(Reader::new().map_err(StoreError::Reader)?)
}
