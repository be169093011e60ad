//! Our store, built on one thread from blocks that are proven already, as rivals are from rows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_store::archives::ArchiveFile;
use bench_store::clock::process_cpu;
use bench_store::era::read_proven;
use bench_store::figure::count;
use bench_store::folder::BenchFolder;
use chain::{Block, BlockRange, Verified};
use store::disk::Folder;
use store::layout::HeldRange;
use store::read::Inline;
use store::{CommitFacts, Limits, Store, Writer};

use crate::rival::timed;

/// Proves an archive with all cores, then builds the folder from its blocks. Says what CPU time the
/// building took, with its hashes, its lookups and all that makes it durable; and with a copy of each
/// block, which the writer takes for its own.
pub(crate) fn build(file: &ArchiveFile, folder: &BenchFolder) -> Result<Duration> {
    let blocks = read_proven(file)?;
    timed(process_cpu, || write(file, folder, &blocks))
}

fn write(file: &ArchiveFile, folder: &BenchFolder, blocks: &[Verified<Block>]) -> Result<()> {
    let first = blocks.first().context("an archive has a block")?.header.number;
    let range = BlockRange::from_count(first, count(blocks)).context("a range of blocks")?;
    let block = |number: u64| {
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        blocks.get(place).cloned()
    };
    let disk = Arc::new(Folder::create(folder.path())?);
    let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default())?);
    let mut writer = Writer::open(store, file.spec.clone())?;
    let mut segments = Vec::new();
    for held in writer.plan(&[HeldRange { range, has_receipts: true }]) {
        segments.push(writer.build(held, &block)?);
    }
    Ok(writer.commit(segments, CommitFacts::default())?)
}
