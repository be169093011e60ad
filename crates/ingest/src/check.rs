//! A data folder checked over all cores.
//!
//! Knows: which parts of the check can go on at the same time.
//! Never knows: what is checked; `store::check` does.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use chain::ChainSpec;
use chain::trust::Anchors;
use store::check::{CheckCounts, CheckedGroup, CheckedLogs, SegmentCheck, check_layout, check_run};
use store::layout::slot_of;
use store::{CommitFacts, StoreError, View};

use crate::epochs::find_epochs_below;
use crate::pool::map_in_order;
use crate::prove::{BlockDone, Progress};

/// What a check found to be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFolder {
    /// How much of it there is.
    pub counts: CheckCounts,
    /// The files of segments that were digest only: they, and all runs that tell of them, are true.
    pub proven: BTreeSet<String>,
}

/// Checks everything that a view lists: layout, every segment, every lookup run. `refused` hears
/// of every part that is not what it should be; the others are checked all the same. Returns what
/// was found to be true.
pub fn check_all(
    view: &View,
    spec: &ChainSpec,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    mut refused: impl FnMut(StoreError),
) -> CheckedFolder {
    let manifest = view.manifest();
    let mut proven: BTreeMap<String, u64> = BTreeMap::new();
    let mut sum = CheckCounts::default();
    let mut logs = Vec::new();
    if let Err(error) = check_layout(view) {
        refused(error);
    }
    for (position, entry) in manifest.segments().iter().enumerate() {
        match check_segment(view, spec, position, threads, progress) {
            Ok(found) => {
                if found.is_some() && manifest.is_digest_only(&entry.file_name) {
                    proven.insert(entry.file_name.clone(), slot_of(entry.range.first()));
                }
                let (counts, own) = found.unzip();
                sum.add(counts.unwrap_or_default());
                logs.extend(own);
            }
            Err(error) => refused(error),
        }
    }
    let runs = 0..manifest.runs().len();
    let mut spans = manifest.runs().iter().map(|run| run.span);
    let _: ControlFlow<()> = map_in_order(
        threads,
        runs,
        |position| check_run(view, position, &logs),
        |checked| {
            // They come in their order.
            let span = spans.next();
            let is_true = match checked {
                Ok(found) => {
                    let found = found.unwrap_or_default();
                    sum.add(found.counts);
                    found.is_compared
                }
                Err(error) => {
                    refused(error);
                    false
                }
            };
            if !is_true {
                proven.retain(|_, slot| !span.is_some_and(|span| span.contains(*slot)));
            }
            ControlFlow::Continue(())
        },
    );
    CheckedFolder { counts: sum, proven: proven.into_keys().collect() }
}

/// What becomes known of the chain when segments that were digest only are proven: the accumulator epochs
/// that they complete, where their roots are trusted.
pub fn find_facts(
    view: &View,
    anchors: &Anchors,
    proven: &BTreeSet<String>,
) -> Result<CommitFacts, StoreError> {
    let marked = view.manifest().digest_only_segments();
    let (new, unproven): (Vec<_>, Vec<_>) = marked.partition(|it| proven.contains(&it.file_name));
    // Of what lies above a block that nobody has proven, no total difficulty is known.
    let end = unproven.first().map_or(u64::MAX, |entry| entry.range.first());
    let first = new.first().map_or(u64::MAX, |entry| entry.range.first());
    let found = if first < end { find_epochs_below(view, anchors, end) } else { Ok(Vec::new()) };
    let mut epochs = match found {
        // The check has told of it, and what is proven is proven.
        Err(error) if error.is_of_file() => Vec::new(),
        found => found?,
    };
    epochs.retain(|epoch| epoch.last >= first);
    Ok(CommitFacts { epochs, ..CommitFacts::default() })
}

fn check_segment(
    view: &View,
    spec: &ChainSpec,
    position: usize,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<Option<(CheckCounts, CheckedLogs)>, StoreError> {
    let Some((check, mut rebuild)) = SegmentCheck::begin(view, spec, position)? else {
        return Ok(None);
    };
    examine_segment(&check, threads, progress, |examined| rebuild.take(examined))?;
    rebuild.finish(&check).map(Some)
}

/// Examines a segment's groups over all cores, and hands them on in their order.
pub(crate) fn examine_segment(
    check: &SegmentCheck<'_>,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    mut take: impl FnMut(CheckedGroup) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let bytes_each = check.bytes() / check.block_count().max(1);
    let outcome = map_in_order(
        threads,
        check.groups().into_iter(),
        |group| check.examine(group),
        |examined| {
            let taken = examined.and_then(|examined| {
                for transaction_count in examined.transaction_counts() {
                    progress.advance(BlockDone { bytes: bytes_each, transaction_count });
                }
                take(examined)
            });
            match taken {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        },
    );
    match outcome {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}
