//! Proving archives: every block of a file through the one door, over all cores.

mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use alloy_primitives::{B256, Bytes};
use archive::{Archive, ArchiveError, ArchiveFault, ArchiveName, Content, Format, ReadAt};
use chain::trust::{Anchors, ProvenRun};
use chain::{
    Block, BlockRange, Candidate, ChainSpec, Mismatch, Start, StepFields, Verified, Verifier,
    decode_header, hash_header,
};
use pool::map_in_order;

pub(crate) use whole::{Facts, WholeFile};

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
pub struct NoProgress;

impl Progress for NoProgress {
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
pub struct ProofReport {
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
    pub run: ProvenRun,
}

/// Where the blocks of a range are read.
pub(crate) trait Blocks: Sync {
    /// Why a block cannot be had, or is false.
    type Error: Send;

    /// What is claimed to be the block of this number, with its total difficulty if that is told.
    fn read_block(&self, number: u64) -> Result<Candidate, Self::Error>;

    /// The raw header of a block; `None` if it is not here, or not yet: then whoever joins the pieces
    /// holds it against its child.
    fn find_header(&self, number: u64) -> Result<Option<Bytes>, Self::Error>;

    /// Bytes that the block takes.
    fn block_bytes(&self, number: u64) -> u64;

    /// Says where the block is that proved false.
    fn refuse(&self, mismatch: Mismatch) -> Self::Error;
}

impl<S: ReadAt> Blocks for Archive<S> {
    type Error = ArchiveError;

    fn read_block(&self, number: u64) -> Result<Candidate, ArchiveError> {
        let candidate = Self::read_block(self, number)?;
        let total_difficulty = match candidate.total_difficulty {
            None => self.read_total_difficulty(number)?,
            claimed => claimed,
        };
        Ok(Candidate { total_difficulty, ..candidate })
    }

    fn find_header(&self, number: u64) -> Result<Option<Bytes>, ArchiveError> {
        if !self.range().contains(number) {
            return Ok(None);
        }
        Ok(Some(self.read_header(number)?.into()))
    }

    fn block_bytes(&self, number: u64) -> u64 {
        Self::block_bytes(self, number)
    }

    fn refuse(&self, mismatch: Mismatch) -> ArchiveError {
        self.refuse_part(mismatch.number, mismatch.fault.part(), ArchiveFault::Block(mismatch))
    }
}

/// Proven blocks in order, and what is to be known of each beside it.
pub(crate) type Piece = Vec<(Verified<Block>, Facts)>;

impl Prover<'_> {
    /// Proves every block of an archive, and what the archive says about itself.
    pub fn prove<S: ReadAt>(&self, archive: &Archive<S>) -> Result<ProofReport, ArchiveError> {
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
    ) -> Result<ProofReport, E> {
        let mut whole = WholeFile::new(archive, archive.range(), self.anchors, self.points);
        let outcome = map_in_order(
            self.threads,
            cut(archive, self.threads).into_iter(),
            |piece| {
                let proven = self.prove_piece(archive, piece, &BTreeMap::new())?;
                let digest = |(block, facts)| (digest(block), facts);
                Ok(proven.into_iter().map(digest).collect::<Vec<(T, Facts)>>())
            },
            |proven: Result<_, ArchiveError>| {
                let taken = proven.map_err(E::from).and_then(|piece| {
                    piece.into_iter().try_for_each(|(digest, facts)| {
                        whole.add(facts)?;
                        consume(digest)
                    })
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

    /// Proves consecutive blocks, those in `kept` by their place alone: they were proven before.
    pub(crate) fn prove_piece<B: Blocks>(
        &self,
        source: &B,
        piece: BlockRange,
        kept: &BTreeMap<u64, (Verified<Block>, Facts)>,
    ) -> Result<Piece, B::Error> {
        // The piece before is proven elsewhere at the same time: its last header is read here once
        // more for the link.
        let before = piece.first().checked_sub(1);
        let header = before.map_or(Ok(None), |number| source.find_header(number))?;
        let mut verifier = match before.zip(header.as_deref()) {
            Some((number, rlp)) => {
                let start = Start::After { number, hash: hash_header(rlp) };
                let verifier = Verifier::new(self.spec, self.anchors, start);
                match decode_header(rlp) {
                    Ok(header) => verifier.with_parent(StepFields::of(&header, rlp)),
                    // Whoever proves that block refuses it.
                    Err(_) => verifier,
                }
            }
            None => Verifier::new(self.spec, self.anchors, Start::At(piece.first())),
        };
        let mut proven = Vec::new();
        for number in piece.first()..piece.end() {
            if let Some((block, facts)) = kept.get(&number) {
                verifier.follow(block).map_err(|mismatch| source.refuse(mismatch))?;
                proven.push((block.clone(), *facts));
                continue;
            }
            let candidate = source.read_block(number)?;
            let total_difficulty = candidate.total_difficulty;
            let block = verifier.verify(candidate).map_err(|mismatch| source.refuse(mismatch))?;
            let transaction_count = u64::try_from(block.transactions.len()).unwrap_or(u64::MAX);
            let facts = Facts {
                number,
                hash: block.hash,
                parent_hash: block.header.parent_hash,
                difficulty: block.header.difficulty,
                total_difficulty,
                transaction_count,
                step: StepFields::of(&block.header, &block.header_rlp),
            };
            proven.push((block, facts));
            self.progress
                .advance(BlockDone { bytes: source.block_bytes(number), transaction_count });
        }
        Ok(proven)
    }
}

/// Holds a file's name against its proven content. A name in no conventional form promises
/// nothing.
pub fn check_name<S: ReadAt>(
    archive: &Archive<S>,
    report: &ProofReport,
) -> Result<(), ArchiveError> {
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

/// Holds what a file's name says of its blocks against its index, of which nothing is proven: for a file
/// of which not all blocks are read.
pub fn check_named_blocks<S: ReadAt>(archive: &Archive<S>) -> Result<(), ArchiveError> {
    let Some(name) = ArchiveName::parse(Path::new(archive.file())) else { return Ok(()) };
    name.check_range(archive.range()).map_err(|fault| archive.refuse_whole(fault))
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
