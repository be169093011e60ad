//! A data folder checked over all cores.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use chain::{BlockRange, ChainSpec};
use pool::map_in_order;
use store::check::{CheckCounts, CheckedGroup, CheckedLogs, SegmentCheck, check_layout, check_run};
use store::{StoreError, View};

use crate::prove::{BlockDone, Progress};

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFolder {
    /// What passed.
    pub counts: CheckCounts,
    /// The blocks of segments that did not.
    pub refused: Vec<BlockRange>,
}

/// Checks everything that a view lists: layout, every segment, every lookup run. `refused` gets the
/// error of every part that fails; the others are checked all the same.
pub fn check_all(
    view: &View,
    spec: &ChainSpec,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    mut refused: impl FnMut(StoreError),
) -> CheckedFolder {
    let manifest = view.manifest();
    let mut found = CheckedFolder::default();
    let mut logs = Vec::new();
    if let Err(error) = check_layout(view) {
        refused(error);
    }
    for (position, entry) in manifest.segments().iter().enumerate() {
        match check_segment(view, spec, position, threads, progress) {
            Ok(checked) => {
                let (counts, own) = checked.unzip();
                found.counts.add(counts.unwrap_or_default());
                logs.extend(own);
            }
            Err(error) => {
                found.refused.push(entry.range);
                refused(error);
            }
        }
    }
    let _: ControlFlow<()> = map_in_order(
        threads,
        0..manifest.runs().len(),
        |position| check_run(view, position, &logs),
        |checked| {
            match checked {
                Ok(counts) => found.counts.add(counts.unwrap_or_default()),
                Err(error) => refused(error),
            }
            ControlFlow::Continue(())
        },
    );
    found
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
