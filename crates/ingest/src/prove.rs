//! Proving archives: every block of a file through the one door, over all cores.
//!
//! Knows: how to cut a file into pieces of work, and what only the whole file shows: total
//! difficulties, the accumulator, the name.
//! Never knows: what the blocks are wanted for.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use alloy_primitives::{B256, U256};
use chain::accumulator::{self, EPOCH_BLOCKS};
use chain::trust::{Anchors, Epoch, Run};
use chain::{Block, BlockRange, ChainSpec, Part, Start, Verified, Verifier, hash_header};

use crate::archive::{Archive, ArchiveError, ArchiveName, Content, Fault, Format, ReadAt};
use crate::pool::map_in_order;

/// Blocks in one piece of work: enough that its one extra header read does not matter.
const PIECE_BLOCKS_MAX: u64 = 256;
/// File bytes in one piece of work; bounds memory, since a few pieces are under way at a time.
const PIECE_BYTES_MAX: u64 = 1 << 18;
/// Pieces for each thread at the least, so that the last ones to finish leave no thread idle long.
const PIECES_PER_THREAD: u64 = 64;

/// Hears how far the work is; called from the working threads.
pub trait Progress: Sync {
    /// One more block is proven.
    fn advance(&self, block: BlockDone);
}

/// A proven block, as far as progress is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDone {
    /// Bytes it took in the file.
    pub bytes: u64,
    /// Transactions in it.
    pub transaction_count: u64,
}

/// Progress that nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn advance(&self, _block: BlockDone) {}
}

/// What to prove against, and with how many threads.
#[derive(Clone, Copy)]
pub struct Prover<'a> {
    /// The chain's facts.
    pub spec: &'a ChainSpec,
    /// Hashes that are trusted beforehand.
    pub anchors: &'a Anchors,
    /// How many threads work.
    pub threads: NonZeroUsize,
    /// Who hears of every block.
    pub progress: &'a dyn Progress,
    /// Blocks whose hashes the report shall tell, beside the last: those where this file meets
    /// others ([`chain::trust::meeting_points`]).
    pub points: &'a BTreeSet<u64>,
}

/// For a file that meets no other.
pub const NO_POINTS: &BTreeSet<u64> = &BTreeSet::new();

impl std::fmt::Debug for Prover<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prover")
            .field("spec", &self.spec)
            .field("anchors", &self.anchors)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// An archive whose every block is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which format it is.
    pub format: Format,
    /// Whether receipts were there to be proven.
    pub has_receipts: bool,
    /// Transactions in all blocks.
    pub transaction_count: u64,
    /// The accumulator root over the pre-merge blocks, where the archive holds one.
    pub accumulator: Option<B256>,
    /// Where the first header lies in the file.
    pub first_header_offset: u64,
    /// What trust can rest on: range, ends and anchors inside.
    pub run: Run,
}

/// What the whole-file checks need of a block.
#[derive(Clone, Copy, Debug)]
struct Facts {
    number: u64,
    hash: B256,
    parent_hash: B256,
    difficulty: U256,
    total_difficulty: Option<U256>,
    transaction_count: u64,
}

impl Prover<'_> {
    /// Proves every block of an archive, and what the archive says about itself.
    pub fn prove<S: ReadAt>(&self, archive: &Archive<S>) -> Result<Report, ArchiveError> {
        self.prove_each(archive, drop, |()| Ok(()))
    }

    /// Proves an archive and hands on its blocks: each goes through `digest` on a working thread,
    /// and the results reach `consume` in order, which may end the work by an error of its own.
    /// What `consume` was given is true block by block; the file as a whole (total difficulties,
    /// accumulator) only when this returns.
    pub fn prove_each<S: ReadAt, T: Send, E: From<ArchiveError>>(
        &self,
        archive: &Archive<S>,
        digest: impl Fn(Verified<Block>) -> T + Sync,
        mut consume: impl FnMut(T) -> Result<(), E>,
    ) -> Result<Report, E> {
        let mut whole = WholeFile::new(archive, self.anchors, self.points);
        let outcome = map_in_order(
            self.threads,
            cut(archive, self.threads).into_iter(),
            |piece| self.prove_piece(archive, piece, &digest),
            |proven| {
                let taken = proven.map_err(E::from).and_then(|(facts, digests)| {
                    facts.into_iter().try_for_each(|block| whole.add(block))?;
                    digests.into_iter().try_for_each(&mut consume)
                });
                match taken {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                }
            },
        );
        match outcome {
            ControlFlow::Continue(()) => Ok(whole.finish()?),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn prove_piece<S: ReadAt, T>(
        &self,
        archive: &Archive<S>,
        piece: BlockRange,
        digest: &impl Fn(Verified<Block>) -> T,
    ) -> Result<(Vec<Facts>, Vec<T>), ArchiveError> {
        let start = match piece.first().checked_sub(1) {
            Some(number) if archive.range().contains(number) => {
                // The piece before is proven elsewhere at the same time: its last header is read
                // here once more for the link.
                Start::After { number, hash: hash_header(&archive.read_header(number)?) }
            }
            _ => Start::At(piece.first()),
        };
        let mut verifier = Verifier::new(self.spec, self.anchors, start);
        let mut facts = Vec::new();
        let mut digests = Vec::new();
        for number in piece.first()..piece.end() {
            let candidate = archive.read_block(number)?;
            let total_difficulty = match candidate.total_difficulty {
                None => archive.read_total_difficulty(number)?,
                claimed => claimed,
            };
            let block = verifier.verify(candidate).map_err(|mismatch| {
                archive.refuse_part(number, mismatch.fault.part(), Fault::Block(mismatch))
            })?;
            let transaction_count = u64::try_from(block.transactions.len()).unwrap_or(u64::MAX);
            facts.push(Facts {
                number,
                hash: block.hash,
                parent_hash: block.header.parent_hash,
                difficulty: block.header.difficulty,
                total_difficulty,
                transaction_count,
            });
            digests.push(digest(block));
            self.progress
                .advance(BlockDone { bytes: archive.block_bytes(number), transaction_count });
        }
        Ok((facts, digests))
    }
}

/// Holds a file's name against its proven content. A name in no conventional form promises
/// nothing.
pub fn check_name<S: ReadAt>(archive: &Archive<S>, report: &Report) -> Result<(), ArchiveError> {
    let Some(name) = ArchiveName::parse(Path::new(archive.file())) else { return Ok(()) };
    let naming_hash = match report.format {
        Format::Era1 => report.accumulator.unwrap_or_default(),
        Format::Ere => report.run.last_hash,
    };
    let content = Content {
        format: report.format,
        range: report.run.range,
        has_receipts: report.has_receipts,
        has_proofs: archive.has_proofs(),
        hash: naming_hash,
    };
    name.check(content).map_err(|fault| archive.refuse_whole(fault))
}

/// Pieces of work in order: by bytes, so that heavy blocks make short pieces.
fn cut<S: ReadAt>(archive: &Archive<S>, threads: NonZeroUsize) -> Vec<BlockRange> {
    let range = archive.range();
    let pieces_min = u64::try_from(threads.get()).unwrap_or(1).saturating_mul(PIECES_PER_THREAD);
    let bytes_max = (archive.bytes_count() / pieces_min).clamp(1, PIECE_BYTES_MAX);
    let mut pieces = Vec::new();
    let (mut first, mut bytes) = (range.first(), 0);
    for number in range.first()..range.end() {
        bytes += archive.block_bytes(number);
        let is_full = bytes >= bytes_max || number - first + 1 >= PIECE_BLOCKS_MAX;
        if is_full || number == range.last() {
            pieces.extend(BlockRange::from_ends(first, number));
            (first, bytes) = (number + 1, 0);
        }
    }
    pieces
}

/// What only the whole file shows, gathered block by block.
struct WholeFile<'a, S> {
    archive: &'a Archive<S>,
    anchors: &'a Anchors,
    points: &'a BTreeSet<u64>,
    transaction_count: u64,
    parent_hash: Option<B256>,
    last_hash: B256,
    hashes: BTreeMap<u64, B256>,
    /// Total difficulty before the first block and up to the last that was added.
    difficulty: Option<(U256, U256)>,
    /// Hash and total difficulty of the pre-merge blocks.
    records: Vec<(B256, U256)>,
}

impl<'a, S: ReadAt> WholeFile<'a, S> {
    fn new(archive: &'a Archive<S>, anchors: &'a Anchors, points: &'a BTreeSet<u64>) -> Self {
        Self {
            archive,
            anchors,
            points,
            transaction_count: 0,
            parent_hash: None,
            last_hash: B256::ZERO,
            hashes: BTreeMap::new(),
            difficulty: None,
            records: Vec::new(),
        }
    }

    fn add(&mut self, block: Facts) -> Result<(), ArchiveError> {
        self.transaction_count += block.transaction_count;
        if let Some(hash_before) = self.parent_hash.map(|_| self.last_hash)
            && hash_before != block.parent_hash
        {
            // Each piece read the header before it from the file: this can only be seen if the
            // file changed in between.
            let fault =
                chain::Fault::ParentHash { found: block.parent_hash, expected: hash_before };
            let mismatch = chain::Mismatch { number: block.number, fault: Box::new(fault) };
            return Err(self.archive.refuse_part(
                block.number,
                Part::Header,
                Fault::Block(mismatch),
            ));
        }
        self.parent_hash.get_or_insert(block.parent_hash);
        self.last_hash = block.hash;
        if self.points.contains(&block.number) {
            self.hashes.insert(block.number, block.hash);
        }
        let Some(found) = block.total_difficulty else { return Ok(()) };
        // The first sum of a file is its own claim, unless it begins with block 0.
        let before = match self.difficulty {
            Some((_, before)) => before,
            None if block.number == 0 => U256::ZERO,
            None => found.saturating_sub(block.difficulty),
        };
        let expected = before.checked_add(block.difficulty);
        if Some(found) != expected {
            let expected = expected.unwrap_or(U256::MAX);
            let fault = Fault::TotalDifficulty { found, expected };
            return Err(self.archive.refuse_total_difficulty(block.number, fault));
        }
        let (before_first, _) = self.difficulty.unwrap_or((before, before));
        self.difficulty = Some((before_first, found));
        if !block.difficulty.is_zero() {
            self.records.push((block.hash, found));
        }
        Ok(())
    }

    fn finish(self) -> Result<Report, ArchiveError> {
        let range = self.archive.range();
        let computed = accumulator::epoch_root(&self.records);
        let is_accumulated = !self.records.is_empty();
        match self.archive.accumulator() {
            Some(found) if found != computed => {
                let fault = Fault::Accumulator { found, expected: computed };
                return Err(self.archive.refuse_accumulator(fault));
            }
            // Nothing else in the file commits to the sums.
            None if is_accumulated => {
                let fault = Fault::NoAccumulator { expected: computed };
                return Err(self.archive.refuse_accumulator(fault));
            }
            Some(_) | None => {}
        }
        let epoch = range.first() / EPOCH_BLOCKS;
        let record_count = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
        let mut trusted_epoch = None;
        if let Some(expected) = self.anchors.expected_epoch_root(epoch)
            && is_accumulated
        {
            if computed == expected {
                let last = range.first() + record_count - 1;
                trusted_epoch = Some(Epoch { number: epoch, last });
            } else if range.first().is_multiple_of(EPOCH_BLOCKS)
                && record_count == accumulator::mainnet_epoch_blocks(epoch)
            {
                let fault = Fault::TrustedAccumulator { found: computed, expected };
                return Err(self.archive.refuse_accumulator(fault));
            }
        }
        Ok(Report {
            format: self.archive.format(),
            has_receipts: self.archive.has_receipts(),
            transaction_count: self.transaction_count,
            accumulator: self.archive.accumulator(),
            first_header_offset: self.archive.first_header_offset(),
            run: Run {
                range,
                parent_hash: self.parent_hash.unwrap_or_default(),
                last_hash: self.last_hash,
                hashes: self.hashes,
                epoch: trusted_epoch,
                difficulty: self.difficulty,
            },
        })
    }
}
