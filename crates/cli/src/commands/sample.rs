//! `quipu sample`: the sample chain as archives, with the genesis.json that goes with it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use archive::unfinished::remove_own;
use archive::{ArchiveName, ArchiveWriter, Format, WriteError, WrittenArchive, shown};
use pool::threads_default;
use sample::{self, NETWORK_NAME, SampleSettings};

use store::names::GENESIS_NAME;

use crate::Failure;
use crate::args::sample::{SampleArgs, SampleChainArgs};
use crate::interrupt::on_interrupt;
use crate::output::{counted, print_lines, rate};
use crate::progress::Watch;

pub(crate) fn run(args: &SampleArgs) -> Result<(), Failure> {
    refuse_other_files(&args.to)?;
    let folder = args.to.clone();
    on_interrupt("archives that were finished stay, and no other has a name", move || {
        remove_own(&folder)
    })?;
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

/// A folder that has archives or a genesis.json already is left as it is: files of two chains beside each
/// other would be taken for one.
fn refuse_other_files(folder: &Path) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let is_other = |path: &PathBuf| ArchiveName::is_archive(path) || path.ends_with(GENESIS_NAME);
    let found = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_other).min();
    found.map_or(Ok(()), |found| {
        Err(Failure::Work(anyhow!(
            "{}: is there already, and is not replaced\n  hint: remove it, or give another folder",
            found.display()
        )))
    })
}

fn written_line(written: &WrittenArchive) -> String {
    let WrittenArchive { path, range, bytes_count, .. } = written;
    format!("{}  blocks {range}  {bytes_count} bytes", shown(path))
}

/// A sample chain on disk.
#[derive(Debug)]
pub(crate) struct MadeSample {
    pub(crate) written: Vec<WrittenArchive>,
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
    let genesis_path = folder.join(GENESIS_NAME);
    let genesis = serde_json::to_vec_pretty(&sample::genesis(&settings))?;
    fs::write(&genesis_path, genesis).with_context(|| genesis_path.display().to_string())?;
    let summary = format!(
        "made {}, {} in {:.1} s{}",
        counted(block_count, "block"),
        counted(transaction_count, "transaction"),
        elapsed.as_secs_f64(),
        rate(transaction_count, "transaction", elapsed)
    );
    Ok(MadeSample { written, genesis_path, summary, merge_block })
}

fn settings(args: &SampleChainArgs) -> SampleSettings {
    SampleSettings {
        seed: args.seed,
        chain_id: sample::chain_id_of_seed(args.seed),
        block_count: args.block_count,
        txs_per_block: args.txs_per_block,
        payload: args.payload.into(),
    }
}
