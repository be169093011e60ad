//! `quipu sample`: the sample chain as archives, with the genesis.json that goes with it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ingest::archive::{ArchiveWriter, Format, WriteError, Written, shown};
use ingest::pool::threads_default;
use ingest::sample::{self, NETWORK_NAME, SampleSettings};

use crate::Failure;
use crate::args::sample::{SampleArgs, SampleChainArgs};
use crate::output::print_lines;
use crate::progress::{Watch, per_second};

pub(crate) fn run(args: &SampleArgs) -> Result<(), Failure> {
    let made = make(&args.to, args.format.into(), &args.chain)?;
    let mut lines: Vec<String> = made.written.iter().map(written_line).collect();
    let genesis = made.genesis_path.display();
    lines.push(format!("{}; forks and genesis hash in {genesis}", made.summary));
    lines.extend(made.merge_block.map(|merge| {
        format!("note: era1 ends before block {merge}, the merge; --format ere holds all blocks")
    }));
    print_lines(&lines)?;
    Ok(())
}

fn written_line(written: &Written) -> String {
    let Written { path, range, bytes_count, .. } = written;
    format!("{}  blocks {range}  {bytes_count} bytes", shown(path))
}

/// A sample chain on disk.
#[derive(Debug)]
pub(crate) struct MadeSample {
    pub(crate) written: Vec<Written>,
    pub(crate) genesis_path: PathBuf,
    pub(crate) summary: String,
    /// The block at which era1 had to end before the chain did.
    merge_block: Option<u64>,
}

/// Writes the chain and its genesis.json into `folder`.
pub(crate) fn make(
    folder: &Path,
    format: Format,
    args: &SampleChainArgs,
) -> Result<MadeSample, Failure> {
    let settings = settings(args);
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let mut writer = ArchiveWriter::create(folder, NETWORK_NAME, format)?;
    let watch = Watch::blocks("sampling", settings.block_count);
    let (mut block_count, mut transaction_count) = (0_u64, 0_u64);
    let generated = sample::generate(&settings, threads, |candidate| {
        writer.push(&candidate)?;
        let count = u64::try_from(candidate.body.transactions.len()).unwrap_or(u64::MAX);
        block_count += 1;
        transaction_count += count;
        watch.advance_by(1, count);
        Ok::<(), WriteError>(())
    });
    let merge_block = match generated {
        Ok(()) => None,
        Err(WriteError::PostMerge { number }) => Some(number),
        Err(error) => return Err(error.into()),
    };
    let written = writer.finish()?;
    let elapsed = watch.finish();
    let genesis_path = folder.join("genesis.json");
    let genesis = serde_json::to_vec_pretty(&sample::genesis(&settings))?;
    fs::write(&genesis_path, genesis).with_context(|| genesis_path.display().to_string())?;
    let rate = per_second(transaction_count, elapsed);
    let summary = format!(
        "made {block_count} blocks, {transaction_count} transactions in {:.1} s ({rate} \
         transactions/s)",
        elapsed.as_secs_f64()
    );
    Ok(MadeSample { written, genesis_path, summary, merge_block })
}

fn settings(args: &SampleChainArgs) -> SampleSettings {
    SampleSettings {
        seed: args.seed,
        block_count: args.block_count,
        txs_per_block: args.txs_per_block,
        payload: args.payload.into(),
    }
}
