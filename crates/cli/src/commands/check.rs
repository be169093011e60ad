//! `quipu check`: everything that is stored, proven again.

mod held_anchors;
mod refused;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chain::ChainSpec;
use ingest::check::{CheckedFolder, check_all};
use pool::threads_default;
use store::check::CheckCounts;
use store::head::Recovery;
use store::journal::unlisted_segments;
use store::{StoreError, View};

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::chain_choice;
use crate::commands::at;
use crate::data_folder::{DataFolder, irregular_files};
use crate::folder_text::{lost_blocks, pending_merge, unlisted_segment};
use crate::head_text::{head_faults, head_notes};
use crate::interrupt::on_interrupt;
use crate::output::{counted, note, print_lines, rate};
use crate::progress::Watch;

use held_anchors::HeldAnchors;
use refused::RefusedCounts;

/// How often a folder that changes under our eyes is checked again.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(url) = &args.at {
        return at::check_bucket(url);
    }
    let folder = DataFolder::open(&args.data)?;
    on_interrupt(
        "not everything was checked; no block was changed; check again to record anchors",
        || (),
    )?;
    let spec = folder.spec()?;
    // Anchors that contradict the chain, or each other, are an error before hours of work.
    chain_choice::anchors(&spec, &args.anchors, None)?;
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
    let mut refused = RefusedCounts::of(&view, &errors);
    for error in &errors {
        watch.say(&format!("error: {error}"));
    }
    let anchors = HeldAnchors::find(&view, &args.anchors)?;
    for said in anchors.errors() {
        refused.anchors = refused.anchors.saturating_add(1);
        watch.say(&format!("error: {said}"));
    }
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery).into_iter().chain(irregular_files(&*folder.disk)?) {
        refused.add_file();
        watch.say(&format!("error: {fault}"));
    }
    let elapsed = watch.finish();
    tell_notes(&folder, &view, &recovery)?;
    let place = folder.path.display().to_string();
    let done = anchors.record(&folder, &view, &checked.refused, spec);
    let told = anchors.lines(view.manifest(), folder.store.view().manifest(), &place);
    let line = if refused.is_none() {
        whole_text(&folder, &view, &recovery, checked.counts, elapsed)?
    } else {
        refused.text(&place)
    };
    let pending = folder.store.view().manifest().pending_merges();
    let pending = pending.iter().filter(|_| refused.is_none()).map(|it| pending_merge(it.range));
    print_lines(&std::iter::once(line).chain(pending).chain(told).collect::<Vec<_>>())?;
    done.and(if refused.is_none() { Ok(()) } else { Err(Failure::Told) })
}

/// Says what is no fault.
fn tell_notes(folder: &DataFolder, view: &View, recovery: &Recovery) -> Result<(), Failure> {
    let unlisted = unlisted_segments(&*folder.disk)?;
    let unlisted = unlisted.iter().map(|name| unlisted_segment(name));
    let missing = view.lost().into_iter().map(|lost| lost_blocks(lost, view.coverage()));
    head_notes(recovery).into_iter().chain(unlisted).chain(missing).for_each(|said| note(&said));
    Ok(())
}

/// What is said of a folder in which nothing is wrong.
fn whole_text(
    folder: &DataFolder,
    view: &View,
    recovery: &Recovery,
    found: CheckCounts,
    elapsed: Duration,
) -> Result<String, Failure> {
    // Every block of the head was proven when its log was read, and that the lowest stands on what is
    // sealed.
    let head = view.head().blocks();
    let head_transactions = head.iter().map(|block| block.tx_hashes().len()).sum::<usize>();
    let manifest = view.manifest();
    let sealed = manifest.segments().len() + manifest.runs().len();
    let files = sealed + usize::from(recovery.log.is_some());
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Ok(format!(
        "{}: all is as it should be: {}{}, {}, {} with {} bytes in {:.1} s{}",
        folder.path.display(),
        counted(found.block_count + count(head.len()), "block"),
        in_head(view),
        counted(found.transaction_count + count(head_transactions), "transaction"),
        counted(count(files), "file"),
        found.bytes + store::head::file_bytes(&*folder.disk)?,
        elapsed.as_secs_f64(),
        rate(found.transaction_count, "transaction", elapsed)
    ))
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

/// File descriptors ran out before all was checked.
fn exhausted(error: &StoreError, elapsed: Duration) -> Failure {
    Failure::Work(anyhow!(
        "{error}\n  hint: nothing is known to be damaged after {:.1} s; raise the limit of file \
         descriptors (ulimit -n) and check again",
        elapsed.as_secs_f64()
    ))
}
