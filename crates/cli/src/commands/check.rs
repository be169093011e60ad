//! `quipu check`: everything that is stored, proven again.

use std::time::Duration;

use anyhow::anyhow;
use ingest::check::check_all;
use ingest::pool::threads_default;
use store::StoreError;
use store::journal::unlisted_segments;

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::data_folder::{DataFolder, irregular_files};
use crate::folder_text::{lost_blocks, pending_merge, unlisted_segment};
use crate::head_text::{head_faults, head_notes};
use crate::output::print_lines;
use crate::progress::{Watch, per_second};

/// How often a folder that changes under our eyes is checked again.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let spec = folder.spec()?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let mut view = folder.store.view();
    let bytes = view.manifest().segments().iter().map(|entry| entry.bytes).sum();
    let watch = Watch::bytes("checking", bytes);
    let mut tries = 1;
    let (found, errors) = loop {
        let mut errors = Vec::new();
        let found = check_all(&view, &spec, threads, &watch, |error| errors.push(error));
        let is_missing =
            |error: &StoreError| matches!(error, StoreError::Disk(error) if error.is_missing());
        // A writer beside us may have retired a file: then the folder is another, and we look again.
        let may_retry = tries < TRIES_MAX && errors.iter().any(is_missing);
        if !may_retry || !folder.store.refresh()? {
            break (found, errors);
        }
        (view, tries) = (folder.store.view(), tries + 1);
    };
    // That says nothing of the files.
    let is_exhausted =
        |error: &&StoreError| matches!(error, StoreError::Disk(it) if it.is_out_of_descriptors());
    if let Some(error) = errors.iter().find(is_exhausted) {
        return Err(exhausted(error, watch.finish()));
    }
    let segments = view.manifest().segments();
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
    for note in head_notes(&recovery).into_iter().chain(unlisted).chain(missing) {
        eprintln!("note: {note}");
    }
    let place = folder.path.display();
    if refused_count > 0 {
        let line = format!(
            "{place}: {refused_count} of its files are not what they should be\n  hint: bring them \
             back from a copy, or import the blocks again into another folder"
        );
        print_lines(&[line])?;
        return Err(Failure::Told);
    }
    // Every block of the head was proven when its log was read, and that the lowest stands on what is
    // sealed.
    let head = view.head().blocks();
    let head_transactions = head.iter().map(|block| block.tx_hashes().len()).sum::<usize>();
    let in_head = match head {
        [] => String::new(),
        [first, .., last] => format!(" ({}..{} in the head)", first.number(), last.number()),
        [only] => format!(" ({} in the head)", only.number()),
    };
    let line = format!(
        "{place}: all is as it should be: {} blocks{in_head}, {} transactions, {} files with {} bytes \
         in {:.1} s ({} transactions/s)",
        found.block_count + u64::try_from(head.len()).unwrap_or(u64::MAX),
        found.transaction_count + u64::try_from(head_transactions).unwrap_or(u64::MAX),
        segments.len() + view.manifest().runs().len() + usize::from(recovery.log.is_some()),
        found.bytes + store::head::file_bytes(&*folder.disk)?,
        elapsed.as_secs_f64(),
        per_second(found.transaction_count, elapsed)
    );
    let pending = view.manifest().pending_merges();
    let pending = pending.iter().map(|slot| pending_merge(slot.range));
    Ok(print_lines(&std::iter::once(line).chain(pending).collect::<Vec<_>>())?)
}

/// File descriptors ran out before all was checked.
fn exhausted(error: &StoreError, elapsed: Duration) -> Failure {
    Failure::Work(anyhow!(
        "{error}\n  hint: nothing is known to be damaged after {:.1} s; raise the limit of file \
         descriptors (ulimit -n) and check again",
        elapsed.as_secs_f64()
    ))
}
