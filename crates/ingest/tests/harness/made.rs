//! What the tests make: short sample chains, archives of parts of them, proofs.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use alloy_consensus::Header;
use archive::{Archive, ArchiveError, ArchiveWriter, Format, ReadAt};
use chain::trust::Anchors;
use chain::{Block, Candidate, ChainSpec, Verified, decode_header, hash_header};
use ingest::prove::{NO_POINTS, NoProgress, ProofReport, Prover};
use sample::{NETWORK_NAME, SampleSettings, generate, genesis};

pub(crate) fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// The first blocks of a sample chain.
pub(crate) fn blocks(settings: &SampleSettings) -> Vec<Candidate> {
    let mut blocks = Vec::new();
    let made: Result<(), Infallible> = generate(settings, threads(2), |block| {
        blocks.push(block);
        Ok(())
    });
    made.unwrap();
    blocks
}

pub(crate) fn spec(settings: &SampleSettings) -> ChainSpec {
    ChainSpec::from_genesis(NETWORK_NAME, &genesis(settings)).unwrap()
}

/// The same blocks with another header of block `number`, from which all above descend.
pub(crate) fn relinked(
    mut blocks: Vec<Candidate>,
    number: usize,
    change: impl FnOnce(&mut Header),
) -> Vec<Candidate> {
    let mut header = decode_header(&blocks[number].header).unwrap();
    change(&mut header);
    blocks[number].header = alloy_rlp::encode(&header).into();
    for above in number + 1..blocks.len() {
        let parent_hash = hash_header(&blocks[above - 1].header);
        let header = Header { parent_hash, ..decode_header(&blocks[above].header).unwrap() };
        blocks[above].header = alloy_rlp::encode(&header).into();
    }
    blocks
}

/// Writes blocks as archives.
pub(crate) fn write(folder: &Path, format: Format, blocks: &[Candidate]) -> Vec<PathBuf> {
    let mut writer = ArchiveWriter::create(folder, NETWORK_NAME, format).unwrap();
    for block in blocks {
        writer.push(block).unwrap();
    }
    writer.finish().unwrap().into_iter().map(|written| written.path).collect()
}

/// Proves an archive of a sample chain.
pub(crate) fn prove<S: ReadAt>(
    archive: &Archive<S>,
    settings: &SampleSettings,
    thread_count: usize,
) -> Result<ProofReport, ArchiveError> {
    let spec = spec(settings);
    let anchors = Anchors::of(&spec);
    let threads = threads(thread_count);
    let points = NO_POINTS;
    Prover { spec: &spec, anchors: &anchors, threads, progress: &NoProgress, points }.prove(archive)
}

/// Every block of an archive, proven against what is known of its chain.
pub(crate) fn proven_blocks<S: ReadAt>(
    archive: &Archive<S>,
    spec: &ChainSpec,
) -> Vec<Verified<Block>> {
    let anchors = Anchors::of(spec);
    let mut blocks = Vec::new();
    let (threads, progress, points) = (threads(2), &NoProgress, NO_POINTS);
    let report = Prover { spec, anchors: &anchors, threads, progress, points }.prove_each(
        archive,
        |block| block,
        |block| -> Result<(), ArchiveError> {
            blocks.push(block);
            Ok(())
        },
    );
    report.unwrap();
    blocks
}

/// Every block as the archive claims it.
pub(crate) fn read_all<S: ReadAt>(archive: &Archive<S>) -> Result<Vec<Candidate>, ArchiveError> {
    let range = archive.range();
    (range.first()..range.end()).map(|number| archive.read_block(number)).collect()
}
