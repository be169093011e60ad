//! What a whole era would take, from a few blocks of it: a projection, not a measurement.
//!
//! The tables of a short segment are counted over all of its blocks, so its rows are shorter than
//! an era's, where one block of 32 is counted; and its tables weigh more for each row. The first
//! error is bounded from both sides. The low end takes the rows as they are. The high end takes each
//! half of the blocks written with the tables of the other half: tables of few blocks, while an era
//! counts 256.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use archive::{Archive, ArchiveError};
use chain::trust::Anchors;
use chain::{Block, BlockRange, Verified};
use ingest::prove::{NO_POINTS, NoProgress, Prover};
use pool::threads_default;
use segment::{Census, Encoder, SegmentWriter, Tables, count_block, groups};

use crate::anatomy::Anatomy;
use crate::archives::{ArchiveFile, ERA_BLOCKS};
use crate::figure::{count, ratio};

/// The tables of an era at their limit: 16,384 addresses, 8,192 words and 255 selectors, none of
/// which compress.
const TABLES_BYTES: u64 = 16_384 * 20 + 8_192 * 32 + 255 * 4;

/// Bytes of a whole era of such blocks as a share of its archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// With rows as dense as under tables of their own.
    pub low: f64,
    /// With rows as dense as under tables of a few other blocks.
    pub high: f64,
}

/// Projects the folder of a short archive to an era of such blocks.
pub fn project(file: &ArchiveFile, archive_bytes: u64, folder: &Anatomy) -> Result<Projection> {
    let blocks = read_proven(file)?;
    let directory = write_segment(&blocks, Tables::default())?.tails;
    // The same with every row or block; footer and manifest come once.
    let repeated = [
        folder.rows,
        folder.payloads,
        folder.headers,
        folder.others,
        directory,
        folder.transaction_lookups,
        folder.block_lookups,
        folder.log_index,
    ];
    let repeated: u64 = repeated.iter().sum();
    let once = TABLES_BYTES + folder.footers + folder.rest;
    let scale = |bytes: u64| bytes * ERA_BLOCKS / count(&blocks).max(1);
    let share = |repeated: u64| ratio(scale(repeated) + once, scale(archive_bytes));
    let extra = foreign_tables_bytes(&blocks)?;
    Ok(Projection { low: share(repeated), high: share(repeated + extra) })
}

/// Bytes that are added when each half of the blocks is written with the tables of the other half.
/// Blocks are encoded one by one here; what that costs is in both sums.
fn foreign_tables_bytes(blocks: &[Verified<Block>]) -> Result<u64> {
    let tables = |is_counted: &dyn Fn(usize) -> bool| {
        let mut census = Census::default();
        let counted = blocks.iter().enumerate().filter(|(place, _)| is_counted(*place));
        counted.for_each(|(_, block)| count_block(&mut census, block));
        Encoder::new(Arc::new(census.into_tables()), true)
    };
    let own = tables(&|_| true);
    let (even, odd) = (tables(&|place| place % 2 == 0), tables(&|place| place % 2 == 1));
    let mut extra = 0_u64;
    for (place, block) in blocks.iter().enumerate() {
        let foreign = if place % 2 == 0 { &odd } else { &even };
        let bytes = |encoder: &Encoder| -> Result<usize> {
            Ok(encoder.encode_group(std::slice::from_ref(block))?.bytes_count())
        };
        let longer = bytes(foreign)?.saturating_sub(bytes(&own)?);
        extra += u64::try_from(longer).unwrap_or(u64::MAX);
    }
    Ok(extra)
}

/// The parts of a segment of these blocks with other tables than its own.
fn write_segment(blocks: &[Verified<Block>], tables: Tables) -> Result<Anatomy> {
    let first = blocks.first().context("an archive has a block")?.header.number;
    let range = BlockRange::from_count(first, count(blocks)).context("a range of blocks")?;
    let encoder = Encoder::new(Arc::new(tables), true);
    let mut writer = SegmentWriter::new(range, &encoder)?;
    let mut bytes = Vec::new();
    let mut rest = blocks;
    for group in groups(range) {
        let own = usize::try_from(group.count())?;
        let (own, after) = rest.split_at_checked(own).context("a group of blocks")?;
        rest = after;
        bytes.extend(writer.push(encoder.encode_group(own)?)?);
    }
    bytes.extend(writer.finish()?.0);
    Anatomy::of_segment(&bytes)
}

/// All blocks of an archive, proven with all cores.
pub fn read_proven(file: &ArchiveFile) -> Result<Vec<Verified<Block>>> {
    let (anchors, threads) = (Anchors::of(&file.spec), threads_default());
    let (spec, progress, points) = (&file.spec, &NoProgress, NO_POINTS);
    let mut blocks = Vec::new();
    Prover { spec, anchors: &anchors, threads, progress, points }.prove_each(
        &Archive::open(&file.path)?,
        |block| block,
        |block| -> Result<(), ArchiveError> {
            blocks.push(block);
            Ok(())
        },
    )?;
    Ok(blocks)
}
