//! `quipu check`: everything that is stored, proven again.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use ingest::check::check_all;
use ingest::pool::threads_default;
use store::journal::unlisted_segments;
use store::{RunSubject, StoreError, View};

use crate::Failure;
use crate::args::check::CheckArgs;
use crate::commands::at;
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
    head_notes(&recovery).into_iter().chain(unlisted).chain(missing).for_each(|said| note(&said));
    let place = folder.path.display();
    if refused_count > 0 {
        let log_index_count = count_log_index_errors(&view, &errors);
        print_lines(&[refused_text(refused_count, log_index_count, &place.to_string())])?;
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
    let files = segments.len() + view.manifest().runs().len() + usize::from(recovery.log.is_some());
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let line = format!(
        "{place}: all is as it should be: {}{in_head}, {}, {} with {} bytes in {:.1} s{}",
        counted(found.block_count + count(head.len()), "block"),
        counted(found.transaction_count + count(head_transactions), "transaction"),
        counted(count(files), "file"),
        found.bytes + store::head::file_bytes(&*folder.disk)?,
        elapsed.as_secs_f64(),
        rate(found.transaction_count, "transaction", elapsed)
    );
    let pending = view.manifest().pending_merges();
    let pending = pending.iter().map(|slot| pending_merge(slot.range));
    Ok(print_lines(&std::iter::once(line).chain(pending).collect::<Vec<_>>())?)
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
