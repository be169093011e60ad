//! `quipu check`: everything that is stored, proven again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chain::accumulator::EpochRoots;
use chain::{BlockRange, ChainSpec};
use ingest::check::{CheckedFolder, check_all, find_facts};
use ingest::pool::threads_default;
use store::journal::unlisted_segments;
use store::layout::subtract;
use store::lock::LockError;
use store::{RunSubject, StoreError, View, Writer};

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::chain_choice;
use crate::commands::at;
use crate::commands::import::to_failure;
use crate::data_folder::{DataFolder, irregular_files};
use crate::folder_text::{lost_blocks, pending_merge, unlisted_segment};
use crate::head_text::{head_faults, head_notes};
use crate::interrupt::on_interrupt;
use crate::output::{counted, note, print_lines, rate};
use crate::progress::Watch;

/// How often a folder that changes under our eyes is checked again.
const TRIES_MAX: u32 = 8;

const COPY_HINT: &str = "\n  hint: bring damaged files back from a copy, or import the blocks again into \
                         another folder";

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(url) = &args.at {
        return at::check_bucket(url);
    }
    let folder = DataFolder::open(&args.data)?;
    on_interrupt("not everything was checked; nothing was changed", || ())?;
    let spec = folder.spec()?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let mut view = folder.store.view();
    let bytes = view.manifest().segments().iter().map(|entry| entry.bytes).sum();
    let watch = Watch::bytes("checking", bytes);
    let (checked, errors) = check_until_still(&folder, &mut view, &spec, threads, &watch)?;
    // That says nothing of the files.
    let is_exhausted =
        |error: &&StoreError| matches!(error, StoreError::Disk(it) if it.is_out_of_descriptors());
    if let Some(error) = errors.iter().find(is_exhausted) {
        return Err(exhausted(error, watch.finish()));
    }
    let mut refused_count = u64::try_from(errors.len()).unwrap_or(u64::MAX);
    for error in &errors {
        watch.say(&format!("error: {error}"));
    }
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).into_iter().chain(irregular_files(&*folder.disk)?) {
        refused_count += 1;
        watch.say(&format!("error: {fault}"));
    }
    let elapsed = watch.finish();
    let unlisted = unlisted_segments(&*folder.disk)?;
    let unlisted = unlisted.iter().map(|name| unlisted_segment(name));
    let missing = view.lost().into_iter().map(|lost| lost_blocks(lost, view.coverage()));
    head_notes(&recovery).into_iter().chain(unlisted).chain(missing).for_each(|said| note(&said));
    let recorded = record_proven(&folder, spec, &view, &checked.proven);
    let proven = recorded.as_ref().ok().and_then(|proven| proven_text(&view, proven));
    if refused_count > 0 {
        let log_index_count = count_log_index_errors(&view, &errors);
        let refused =
            refused_text(refused_count, log_index_count, &folder.path.display().to_string());
        print_lines(&std::iter::once(refused).chain(proven).collect::<Vec<_>>())?;
        return recorded.and(Err(Failure::Told));
    }
    let found = checked.counts;
    // Every block of the head was proven when its log was read, and that the lowest stands on what is
    // sealed.
    let head = view.head().blocks();
    let head_transactions = head.iter().map(|block| block.tx_hashes().len()).sum::<usize>();
    let manifest = view.manifest();
    let sealed = manifest.segments().len() + manifest.runs().len();
    let files = sealed + usize::from(recovery.log.is_some());
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let line = format!(
        "{}: all is as it should be: {}{}, {}, {} with {} bytes in {:.1} s{}",
        folder.path.display(),
        counted(found.block_count + count(head.len()), "block"),
        in_head(&view),
        counted(found.transaction_count + count(head_transactions), "transaction"),
        counted(count(files), "file"),
        found.bytes + store::head::file_bytes(&*folder.disk)?,
        elapsed.as_secs_f64(),
        rate(found.transaction_count, "transaction", elapsed)
    );
    let pending = folder.store.view().manifest().pending_merges();
    let pending = pending.iter().map(|slot| pending_merge(slot.range));
    print_lines(&std::iter::once(line).chain(pending).chain(proven).collect::<Vec<_>>())?;
    recorded.map(drop)
}

/// Checks a folder until it has not changed meanwhile. `view` is what was checked.
fn check_until_still(
    folder: &DataFolder,
    view: &mut Arc<View>,
    spec: &ChainSpec,
    threads: NonZeroUsize,
    watch: &Watch,
) -> Result<(CheckedFolder, Vec<StoreError>), Failure> {
    let mut tries = 1;
    loop {
        let mut errors = Vec::new();
        let checked = check_all(view, spec, threads, watch, |error| errors.push(error));
        let is_missing =
            |error: &StoreError| matches!(error, StoreError::Disk(error) if error.is_missing());
        // A writer beside us may have retired a file: then the folder is another, and we look again.
        let may_retry = tries < TRIES_MAX && errors.iter().any(is_missing);
        if !may_retry || !folder.store.refresh()? {
            return Ok((checked, errors));
        }
        (*view, tries) = (folder.store.view(), tries + 1);
    }
}

fn in_head(view: &View) -> String {
    match view.head().blocks() {
        [] => String::new(),
        [first, .., last] => format!(" ({}..{} in the head)", first.number(), last.number()),
        [only] => format!(" ({} in the head)", only.number()),
    }
}

/// Records that segments were proven which were digest only, and tells their blocks. The folder is locked
/// for no longer than that takes.
fn record_proven(
    folder: &DataFolder,
    spec: ChainSpec,
    view: &View,
    proven: &BTreeSet<String>,
) -> Result<Vec<BlockRange>, Failure> {
    if proven.is_empty() {
        return Ok(Vec::new());
    }
    let anchors = chain_choice::anchors(&spec, &[], Some(EpochRoots::mainnet()))?;
    let facts = find_facts(view, &anchors, proven).map_err(|error| to_failure(&error))?;
    match Writer::open(Arc::clone(&folder.store), spec) {
        Err(StoreError::Lock(error @ LockError::Held { .. })) => Err(Failure::Work(anyhow!(
            "{error}\n  hint: blocks that were digest only are proven, and nothing was recorded: stop the \
             server that writes here and check again"
        ))),
        writer => writer
            .and_then(|mut writer| writer.confirm(proven, facts))
            .map_err(|error| to_failure(&error)),
    }
}

/// What is said of the blocks of a view that were digest only, some of which are proven now.
fn proven_text(view: &View, proven: &[BlockRange]) -> Option<String> {
    let before = view.manifest().digest_only();
    if before.is_empty() {
        return None;
    }
    let count = |ranges: &[BlockRange]| ranges.iter().map(BlockRange::count).sum::<u64>();
    let (proven_count, all_count) = (count(proven), count(&before));
    if proven_count == all_count {
        let are =
            if all_count == 1 { "was digest only and is" } else { "were digest only and are" };
        return Some(format!("{} {are} proven now", counted(all_count, "block")));
    }
    let left: Vec<String> = subtract(&before, proven).iter().map(ToString::to_string).collect();
    Some(format!(
        "{proven_count} of {} that were digest only are proven now; {} stay digest only",
        counted(all_count, "block"),
        left.join(", ")
    ))
}

/// How many of them are of the log index, which `quipu index` builds again.
fn count_log_index_errors(view: &View, errors: &[StoreError]) -> u64 {
    let is_of_log_index = |error: &&StoreError| {
        let text = error.to_string();
        view.manifest().runs_of(RunSubject::Logs).any(|run| text.contains(&run.file_name))
    };
    u64::try_from(errors.iter().filter(is_of_log_index).count()).unwrap_or(u64::MAX)
}

/// What is said of so many files that are refused, so many of the log index among them.
fn refused_text(count: u64, log_index_count: u64, place: &str) -> String {
    let are = match count {
        1 => "is not what it should be",
        _ => "are not what they should be",
    };
    let mut text = format!("{place}: {count} of its files {are}");
    if log_index_count < count {
        text.push_str(COPY_HINT);
    }
    if log_index_count > 0 {
        let _ = write!(text, "\n  hint: quipu index --data-dir {place} builds the log index again");
    }
    text
}

/// File descriptors ran out before all was checked.
fn exhausted(error: &StoreError, elapsed: Duration) -> Failure {
    Failure::Work(anyhow!(
        "{error}\n  hint: nothing is known to be damaged after {:.1} s; raise the limit of file \
         descriptors (ulimit -n) and check again",
        elapsed.as_secs_f64()
    ))
}
