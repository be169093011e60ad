//! How much memory does a process take that imports an era, that holds a store open, or that reads
//! more segments than it may keep open?
//!
//! Each is a process of its own, this very program started again, so that what was measured before
//! does not count. It prints what it found as one line of JSON.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use chain::{BlockNumber, BlockRange, SplitMix64};
use pool::threads_default;
use serde_json::{Value, json};
use store::read::block_on;
use store::{Limits, Reader, RowParts, TxIndex};

use crate::archives::{ArchiveFile, sample_file};
use crate::figure::{Figure, FigureUnit, Goal, ratio};
use crate::folder::BenchFolder;
use crate::machine::memory;

/// The argument that makes the program import a sample chain and tell its memory.
pub const IMPORT: &str = "import-and-tell";
/// The same without a log index.
pub const IMPORT_UNINDEXED: &str = "import-unindexed-and-tell";
/// The argument that makes the program hold a store and tell its memory.
pub const HOLD: &str = "hold-and-tell";

/// The argument that makes the program read from segments at random and tell its memory.
pub const VISIT: &str = "visit-and-tell";

/// Reads of [`VISIT`]: each segment is opened several times, and closed for others.
const VISITS: u64 = 12_000;

const MEBIBYTE: u64 = 1 << 20;
const MEGABYTE: u64 = 1_000_000;

/// Imports a sample chain, or some blocks of it, in a process of its own, and gives the figure.
pub fn memory_of_import(
    file: &ArchiveFile,
    blocks: Option<BlockRange>,
    folder: &BenchFolder,
    of: &str,
) -> Result<Figure> {
    let mut command = this_program(IMPORT)?;
    command.arg(&file.path).arg(folder.path());
    if let Some(blocks) = blocks {
        command.arg(blocks.first().to_string()).arg(blocks.last().to_string());
    }
    let told = run(command)?;
    let number = |key: &str| told.get(key).and_then(Value::as_u64).unwrap_or_default();
    let [must, target] = [2048, 1024].map(|size: u64| ratio(size * MEBIBYTE, MEGABYTE));
    Ok(Figure {
        name: "import_memory_peak",
        question: "peak memory of an import".into(),
        of: of.to_owned(),
        value: ratio(number("peak"), MEGABYTE),
        unit: FigureUnit::Megabytes,
        goal: Goal::at_most(must.floor(), target.floor()),
        note: format!(
            "{} transactions, {} threads, {} s with checksum, proof and fsync",
            number("transactions"),
            threads_default(),
            number("seconds")
        ),
    })
}

/// Imports a sample chain without a log index, in a process of its own, and gives what an import with
/// one takes beyond it.
pub fn memory_of_indexing(
    file: &ArchiveFile,
    folder: &BenchFolder,
    of: &str,
    indexed_megabytes: f64,
) -> Result<Figure> {
    let mut command = this_program(IMPORT_UNINDEXED)?;
    command.arg(&file.path).arg(folder.path());
    let told = run(command)?;
    let peak = ratio(told.get("peak").and_then(Value::as_u64).unwrap_or_default(), MEGABYTE);
    Ok(Figure {
        name: "log_index_memory",
        question: "peak memory of an import beyond that of one without a log index".into(),
        of: of.to_owned(),
        value: indexed_megabytes - peak,
        unit: FigureUnit::Megabytes,
        goal: Goal::at_most(300.0, 150.0),
        note: format!("{indexed_megabytes:.0} MB with it, {peak:.0} MB without"),
    })
}

/// Holds a store open in a process of its own, reads all of it, and gives the figure.
pub fn memory_of_holding(folder: &BenchFolder, of: &str) -> Result<Figure> {
    let mut command = this_program(HOLD)?;
    command.arg(folder.path());
    let told = run(command)?;
    let number = |key: &str| told.get(key).and_then(Value::as_u64).unwrap_or_default();
    Ok(Figure {
        name: "holding_memory",
        question: "memory of a process that holds a store, after reads of all".into(),
        of: of.to_owned(),
        value: ratio(number("resident"), MEGABYTE),
        unit: FigureUnit::Megabytes,
        goal: Goal::at_most(100.0, 50.0),
        note: format!(
            "{} transactions, each read with its block and again by hash; {} segments, tails of \
             all in memory; {:.0} MB at its highest, {:.0} MB before the first read",
            number("transactions"),
            number("segments"),
            ratio(number("peak"), MEGABYTE),
            ratio(number("before"), MEGABYTE)
        ),
    })
}

/// Reads a transaction of one segment after another, picked at random, in a process of its own, and
/// compares the memory that it comes to take with the limit of open segments.
pub fn memory_of_segments(folder: &BenchFolder, of: &str) -> Result<Figure> {
    let mut command = this_program(VISIT)?;
    command.arg(folder.path());
    let told = run(command)?;
    let number = |key: &str| told.get(key).and_then(Value::as_u64).unwrap_or_default();
    let limit = Limits::default().tail_bytes_max;
    let megabytes = |key: &str| ratio(number(key), MEGABYTE);
    Ok(Figure {
        name: "segments_memory",
        question: "memory of open segments beside its limit, after reads of all".into(),
        of: of.to_owned(),
        value: ratio(number("resident").saturating_sub(number("before")), limit),
        unit: FigureUnit::Ratio,
        goal: Goal::at_most(1.1, 1.0),
        note: format!(
            "{VISITS} reads; {:.0} MB, {:.0} MB at its highest, {:.0} MB before the first read; the \
             limit is {:.0} MB",
            megabytes("resident"),
            megabytes("peak"),
            megabytes("before"),
            ratio(limit, MEGABYTE)
        ),
    })
}

/// What the program does instead when it is started with one of the arguments above; `None`
/// otherwise.
pub fn tell(arguments: &[String]) -> Option<Result<Value>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [IMPORT, file, folder] => Some(import(file.as_ref(), folder.as_ref(), None, false)),
        [IMPORT_UNINDEXED, file, folder] => {
            Some(import(file.as_ref(), folder.as_ref(), None, true))
        }
        [IMPORT, file, folder, first, last] => {
            let ends = (first.parse::<u64>().ok(), last.parse::<u64>().ok());
            let blocks =
                ends.0.zip(ends.1).and_then(|(first, last)| BlockRange::from_ends(first, last));
            Some(import(file.as_ref(), folder.as_ref(), blocks, false))
        }
        [HOLD, folder] => Some(hold(folder.as_ref())),
        [VISIT, folder] => Some(visit(folder.as_ref())),
        _ => None,
    }
}

fn import(
    file: &Path,
    folder: &Path,
    blocks: Option<BlockRange>,
    is_without_log_index: bool,
) -> Result<Value> {
    let begun = std::time::Instant::now();
    let threads: NonZeroUsize = threads_default();
    let (file, folder) = (sample_file(file)?, BenchFolder::at(folder));
    let imported = folder.import_indexed(&file, blocks, threads, is_without_log_index)?;
    Ok(json!({
        "transactions": imported.transaction_count,
        "seconds": begun.elapsed().as_secs(),
        "peak": memory()?.peak,
    }))
}

/// Reads every block, and then each of its transactions by hash.
fn hold(folder: &Path) -> Result<Value> {
    let view = BenchFolder::at(folder).view()?;
    let before = memory()?.resident;
    let mut reader = Reader::new()?;
    let mut transaction_count = 0_u64;
    for range in view.coverage() {
        for number in range.first()..range.end() {
            let block =
                block_on(view.read_block(&mut reader, BlockNumber(number), RowParts::Receipt))?
                    .context("a block")?;
            for hash in block.rows.hashes() {
                let found = block_on(view.find_transaction(&mut reader, hash, RowParts::Receipt))?;
                let found = found.with_context(|| format!("{hash} is not found"))?;
                ensure!(found.block.number == BlockNumber(number), "{hash} is elsewhere");
                transaction_count += 1;
            }
        }
    }
    let after = memory()?;
    Ok(json!({
        "transactions": transaction_count,
        "segments": view.manifest().segments().len(),
        "before": before,
        "resident": after.resident,
        "peak": after.peak,
    }))
}

/// Reads the first transaction of complete segments, in random order.
fn visit(folder: &Path) -> Result<Value> {
    let view = BenchFolder::at(folder).view()?;
    let before = memory()?.resident;
    let segments = view.manifest().segments();
    let mut reader = Reader::new()?;
    for index in 0..VISITS {
        let pick = usize::try_from(SplitMix64::at(index))?.checked_rem(segments.len());
        let entry = segments.get(pick.context("no segment")?).context("a segment")?;
        // The first block of a chain has no transactions.
        for number in (entry.range.first()..).map(BlockNumber) {
            let found =
                view.read_transaction(&mut reader, number, TxIndex(0), RowParts::Transaction);
            if block_on(found).with_context(|| format!("block {number}"))?.is_some() {
                break;
            }
        }
    }
    let after = memory()?;
    Ok(json!({ "before": before, "resident": after.resident, "peak": after.peak }))
}

fn this_program(mode: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("where this program is")?);
    command.arg(mode);
    Ok(command)
}

fn run(mut command: Command) -> Result<Value> {
    let output = command.output().context("cannot start this program again")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}
