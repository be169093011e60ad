//! `quipu check`: everything that is stored, proven again.

mod digest_only;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chain::accumulator::EpochRoots;
use chain::trust::Anchor;
use chain::{BlockNumber, ChainSpec};
use ingest::check::{CheckedFolder, check_all, find_facts};
use ingest::pool::threads_default;
use store::journal::unlisted_segments;
use store::read::block_on;
use store::{CommitFacts, Reader, RunSubject, StoreError, View};

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

use digest_only::DigestOnly;

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
    let (mut checked, errors) = check_until_still(&folder, &mut view, &spec, threads, &watch)?;
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
    let (facts, anchor_count) =
        hold_against_trust(&view, &spec, &args.anchors, &mut checked, &watch)?;
    refused_count += anchor_count;
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
    let marked = DigestOnly { folder: &folder, view: &view, checked: &checked, facts, args };
    let settled = marked.settle(spec);
    let told = settled.as_ref().map_or_else(|_| Vec::new(), |it| it.lines(&view, &folder.path));
    if refused_count > 0 {
        let refused = RefusedCounts {
            all: refused_count,
            anchors: anchor_count,
            ..RefusedCounts::of(&view, &checked, &errors)
        };
        let refused = refused.text(&folder.path.display().to_string());
        print_lines(&std::iter::once(refused).chain(told).collect::<Vec<_>>())?;
        return settled.and(Err(Failure::Told));
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
    print_lines(&std::iter::once(line).chain(pending).chain(told).collect::<Vec<_>>())?;
    settled.map(drop)
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

/// Says which blocks contradict what is trusted here, and how many times; what becomes known of the chain.
fn hold_against_trust(
    view: &View,
    spec: &ChainSpec,
    anchors: &[Anchor],
    checked: &mut CheckedFolder,
    watch: &Watch,
) -> Result<(CommitFacts, u64), Failure> {
    let mut refused_count = 0;
    for said in hold_anchors(view, anchors, checked)? {
        refused_count += 1;
        watch.say(&format!("error: {said}\n  hint: see which of the two is false"));
    }
    let trusted = chain_choice::anchors(spec, anchors, Some(EpochRoots::mainnet()))?;
    let facts = find_facts(view, &trusted, checked, |said| {
        refused_count += 1;
        watch.say(&format!("error: {said}"));
    });
    Ok((facts.map_err(|error| to_failure(&error))?, refused_count))
}

/// Trusted hashes that held blocks do not have, as errors. What is digest only and has another is false.
fn hold_anchors(
    view: &View,
    anchors: &[Anchor],
    checked: &mut CheckedFolder,
) -> Result<Vec<String>, Failure> {
    let mut reader = Reader::new()?;
    let mut errors = Vec::new();
    for anchor in anchors {
        let number = BlockNumber(anchor.number);
        // A segment that cannot be read was told.
        let Some(held) = block_on(view.read_hash(&mut reader, number)).ok().flatten() else {
            note(&format!(
                "anchor {anchor}: block {number} is not here, nothing was held against it"
            ));
            continue;
        };
        if held == anchor.hash {
            continue;
        }
        let Some((_, entry)) = view.manifest().find_segment(number) else {
            errors.push(format!("anchor {anchor}: block {number} is {held} in the head"));
            continue;
        };
        errors.push(format!("anchor {anchor}: block {number} is {held} by {}", entry.file_name));
        checked.proven.remove(&entry.file_name);
        checked.false_segments.insert(entry.file_name.clone());
    }
    Ok(errors)
}

/// How much is refused, and how much of that can be had again, and how.
#[derive(Debug, Default)]
struct RefusedCounts {
    all: u64,
    /// Trusted hashes, not files.
    anchors: u64,
    /// `quipu index` builds them again.
    log_index: u64,
    /// They can be dropped and fetched.
    digest_only: u64,
}

impl RefusedCounts {
    fn of(view: &View, checked: &CheckedFolder, errors: &[StoreError]) -> Self {
        let manifest = view.manifest();
        let is_of_log_index = |error: &&StoreError| {
            names_one(error, manifest.runs_of(RunSubject::Logs).map(|run| run.file_name.as_str()))
        };
        let is_digest_only = |error: &&StoreError| {
            let segments = checked.false_segments.iter().map(String::as_str);
            names_one(error, segments.filter(|name| manifest.is_digest_only(name)))
        };
        let count = |is_counted: &dyn Fn(&&StoreError) -> bool| {
            u64::try_from(errors.iter().filter(is_counted).count()).unwrap_or(u64::MAX)
        };
        let (log_index, digest_only) = (count(&is_of_log_index), count(&is_digest_only));
        Self { log_index, digest_only, ..Self::default() }
    }

    /// What is said of them.
    fn text(&self, place: &str) -> String {
        let are = match self.all {
            1 => "is not what it should be",
            _ => "are not what they should be",
        };
        let mut text = format!("{place}: {} of its files {are}", self.all);
        let known = self.log_index.saturating_add(self.digest_only).saturating_add(self.anchors);
        if known < self.all {
            text.push_str(COPY_HINT);
        }
        if self.log_index > 0 {
            let _ =
                write!(text, "\n  hint: quipu index --data-dir {place} builds the log index again");
        }
        text
    }
}

/// Whether an error names one of these files.
fn names_one<'a>(error: &StoreError, mut names: impl Iterator<Item = &'a str>) -> bool {
    let text = error.to_string();
    names.any(|name| text.contains(name))
}

/// File descriptors ran out before all was checked.
fn exhausted(error: &StoreError, elapsed: Duration) -> Failure {
    Failure::Work(anyhow!(
        "{error}\n  hint: nothing is known to be damaged after {:.1} s; raise the limit of file \
         descriptors (ulimit -n) and check again",
        elapsed.as_secs_f64()
    ))
}
