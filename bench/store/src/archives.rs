//! The archives that are measured: real ones where they are at hand, and sample chains.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use archive::{ArchiveName, ArchiveWriter, Format, WriteError};
use chain::ChainSpec;
use pool::threads_default;
use sample::{self, NETWORK_NAME, Payload, SampleSettings};

/// Real mainnet blocks, rollup batches included.
pub const RELINKED: &str = "relinked-02560";
/// The same with transactions up to 8 KiB only.
pub const RELINKED_8K: &str = "relinked8k-02562";
/// Blocks in mainnet's shape, with fresh signatures.
pub const SYNTH: &str = "synth-02560";

/// Blocks of a whole era.
pub const ERA_BLOCKS: u64 = 8192;
/// Transactions of a block of the sample chains, on average.
const TXS_PER_BLOCK: u32 = 200;
/// Blocks of the chain that is searched for logs, and their transactions.
const LOGS_BLOCKS: u64 = 10_500;
const LOGS_TXS_PER_BLOCK: u32 = 95;

/// An archive file, and the chain that it is of.
#[derive(Clone, Debug)]
pub struct ArchiveFile {
    /// What the table calls it.
    pub title: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its chain.
    pub spec: ChainSpec,
    /// Whether it begins with a block that links to nothing known.
    pub is_unanchored: bool,
}

/// The real archive whose name begins like this, in the folder `ere` of `data`.
#[must_use]
pub fn find_real(data: &Path, prefix: &str) -> Option<ArchiveFile> {
    let entries = fs::read_dir(data.join("ere")).ok()?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort_unstable();
    let path = paths.into_iter().find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.strip_prefix(prefix).is_some_and(|it| it.starts_with('-')))
    })?;
    let network = ArchiveName::parse(&path)?.network;
    let spec = ChainSpec::known(&network).unwrap_or_else(|| ChainSpec::bare(&network, None, None));
    Some(ArchiveFile { title: prefix.to_owned(), path, spec, is_unanchored: true })
}

/// Makes an archive of a sample chain with mainnet's payload sizes. `folder` must be empty.
pub fn make_sample(folder: &Path, block_count: u64) -> Result<ArchiveFile> {
    let files = write_sample(folder, &settings(block_count))?;
    files.into_iter().next().context("a sample chain has a block")
}

/// Makes the archives of a chain of a million transactions in 10,500 blocks. `folder` must be empty.
pub fn make_logs_sample(folder: &Path) -> Result<Vec<ArchiveFile>> {
    let settings = SampleSettings { txs_per_block: LOGS_TXS_PER_BLOCK, ..settings(LOGS_BLOCKS) };
    write_sample(folder, &settings)
}

/// Writes a sample chain as archives. `folder` must be empty.
pub fn write_sample(folder: &Path, settings: &SampleSettings) -> Result<Vec<ArchiveFile>> {
    let mut writer = ArchiveWriter::create(folder, NETWORK_NAME, Format::Ere)?;
    let made: Result<(), WriteError> =
        sample::generate(settings, threads_default(), |block| writer.push(&block));
    made?;
    let spec = ChainSpec::from_genesis(NETWORK_NAME, &sample::genesis(settings))?;
    let file = |path: PathBuf| ArchiveFile {
        title: "sample chain".to_owned(),
        path,
        spec: spec.clone(),
        is_unanchored: false,
    };
    Ok(writer.finish()?.into_iter().map(|written| file(written.path)).collect())
}

/// An archive that [`make_sample`] made.
pub fn sample_file(path: &Path) -> Result<ArchiveFile> {
    let genesis = sample::genesis(&settings(1));
    let spec = ChainSpec::from_genesis(NETWORK_NAME, &genesis)?;
    let (title, path) = ("sample chain".to_owned(), path.to_owned());
    Ok(ArchiveFile { title, path, spec, is_unanchored: false })
}

/// A longer chain begins with the shorter one, and all have the same genesis.
fn settings(block_count: u64) -> SampleSettings {
    SampleSettings {
        seed: 1,
        block_count,
        txs_per_block: TXS_PER_BLOCK,
        payload: Payload::Mainnet,
        ..SampleSettings::default()
    }
}
