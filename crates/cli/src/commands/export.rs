//! `quipu export`: what the data folder holds, as archives or as lines of JSON.

use anyhow::anyhow;
use archive::shown;
use archive::unfinished::remove_own;
use chain::{BlockNumber, BlockRange};
use ingest::export::{ExportError, ExportReport, ExportedFile, Exporter, held_by, plan};
use pool::threads_default;
use store::manifest::Network;

use crate::Failure;
use crate::args::export::ExportArgs;
use crate::data_folder::DataFolder;
use crate::interrupt::on_interrupt;
use crate::output::{counted, note, print_lines};
use crate::progress::{ByBlock, Watch};

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let view = folder.store.view();
    // Whoever names blocks of the head has them; otherwise an archive holds nothing that may change.
    let last = if args.blocks.is_some() { None } else { view.finalized() };
    let plan =
        plan(&held_by(&view, args.blocks.map_or(last, |_| Some(BlockNumber::MAX))), args.blocks);
    let left = view.head_run(BlockNumber::MAX).filter(|_| args.blocks.is_none());
    let left = left.and_then(|run| {
        let first = last.map_or(run.range.first(), |last| run.range.first().max(last.get() + 1));
        BlockRange::from_ends(first, run.range.last())
    });
    let place = folder.path.display();
    if plan.runs.is_empty() {
        let what = match (args.blocks, left) {
            (Some(blocks), _) => format!("any of blocks {blocks}"),
            (None, Some(left)) => {
                format!(
                    "a final block; --blocks {left} exports those that may still be reorganised"
                )
            }
            (None, None) => "a block".to_owned(),
        };
        return Err(Failure::Work(anyhow!("{place}: does not hold {what}")));
    }
    let to = args.to.clone();
    on_interrupt("files that were finished stay, and no other has a name", move || {
        remove_own(&to)
    })?;
    let watch = Watch::blocks("exporting", plan.block_count());
    let network = name_of(view.manifest().network());
    let outcome = Exporter {
        view: &view,
        store: &folder.store,
        network: &network,
        kind: args.format.into(),
        folder: &args.to,
        threads: args.work.threads.unwrap_or_else(threads_default),
        progress: &ByBlock(&watch),
    }
    .export(&plan);
    let elapsed = watch.finish();
    let exported = outcome.map_err(|error| to_failure(&error))?;
    let mut lines: Vec<String> = exported.files.iter().map(line).collect();
    let count: u64 = exported.files.iter().map(|file| file.range.count()).sum();
    lines.push(format!(
        "{} written: {} in {:.1} s",
        counted(u64::try_from(exported.files.len()).unwrap_or(u64::MAX), "file"),
        counted(count, "block"),
        elapsed.as_secs_f64()
    ));
    print_lines(&lines)?;
    let mut notes = notes(&exported, &plan.missing);
    notes.extend(left.map(|range| {
        format!("blocks {range} are not final and were left out; --blocks A..B exports them too")
    }));
    // Whoever names blocks wants them all; whoever does not wants what there is.
    let is_short = args.blocks.is_some() && !notes.is_empty();
    let is_failed = is_short || exported.files.is_empty();
    for said in &notes {
        if is_failed { eprintln!("error: {said}") } else { note(said) }
    }
    if is_failed { Err(Failure::Told) } else { Ok(()) }
}

fn line(file: &ExportedFile) -> String {
    let ExportedFile { path, range, bytes } = file;
    format!("{}  blocks {range}  {bytes} bytes", shown(path))
}

/// What was not written.
fn notes(exported: &ExportReport, missing: &[BlockRange]) -> Vec<String> {
    let missing = missing.iter().map(|range| format!("blocks {range} are not held"));
    let past = exported.past_merge.iter().map(|range| {
        format!("blocks {range} are past the merge, where era1 ends; --format ere holds all blocks")
    });
    missing.chain(past).collect()
}

/// What files call a chain: a word without a slash, as the manifest keeps it.
fn name_of(network: &Network) -> String {
    let by_id = || network.chain_id.map(|chain_id| format!("chain-{chain_id}"));
    network.name.clone().or_else(by_id).unwrap_or_else(|| "unknown".to_owned())
}

fn to_failure(error: &ExportError) -> Failure {
    let hint = match error {
        ExportError::Exists { .. } => {
            "remove it, give another folder, or go on after it with --blocks A..B"
        }
        ExportError::NoReceipts { .. } => "--format ere has a form without receipts",
        ExportError::NoDifficulty { .. } => {
            "import an archive that tells it (era1, or ere with total difficulties), or use \
             --format ndjson"
        }
        ExportError::Write(_) | ExportError::Io { .. } => {
            "files that were finished before stay; no other has a name"
        }
        ExportError::Store(_) | ExportError::Header { .. } => "the data folder could not be read",
    };
    Failure::Work(anyhow!("{error}\n  hint: {hint}"))
}
