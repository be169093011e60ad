//! Building segments beside the writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use segment::Census;

use super::held;
use crate::draft::{Draft, NewSegment};
use crate::error::StoreError;
use crate::files::Claim;
use crate::layout::{HeldRange, overlap, pending_merges, plan_segments, plan_unmerged};
use crate::lookups::{RunSources, prepare_runs};
use crate::manifest::{RunEntry, SegmentEntry};
use crate::part::StagingArea;
use crate::store::Store;
use crate::view::View;

/// What building segments needs of a writer.
#[derive(Clone, Debug)]
pub struct Drafting {
    store: Arc<Store>,
}

/// Segments to commit, with the lookup runs that take long to build. Dropping it removes the files.
#[derive(Debug)]
pub struct PreparedSegments {
    pub(super) segments: Vec<NewSegment>,
    pub(super) runs: Vec<PreparedRun>,
}

/// A run that nobody lists yet.
#[derive(Debug)]
pub(super) struct PreparedRun {
    pub(super) entry: RunEntry,
    pub(super) file: Claim,
}

impl Drafting {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    pub(crate) fn workshop(&self) -> &StagingArea {
        self.store.workshop()
    }

    /// What is held now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.store.view()
    }

    /// The segments to build when these blocks arrive: some may hold blocks that are here already. A
    /// slot that they complete is one segment.
    #[must_use]
    pub fn plan(&self, arriving: &[HeldRange]) -> Vec<HeldRange> {
        let held = held(&self.view());
        let all: Vec<HeldRange> = held.iter().chain(arriving).copied().collect();
        let pending = pending_merges(&held);
        let is_touched = |wanted: &HeldRange| {
            arriving.iter().any(|it| overlap(it.range, wanted.range).is_some())
        };
        // A merge that is pending elsewhere is work of its own.
        let is_due = |wanted: &HeldRange| !pending.contains(wanted) || is_touched(wanted);
        let wanted = plan_segments(&all).into_iter();
        wanted.filter(|wanted| !held.contains(wanted) && is_due(wanted)).collect()
    }

    /// The same for whoever has no time to merge: a slot that they complete stays in its pieces.
    #[must_use]
    pub fn plan_unmerged(&self, arriving: &[HeldRange]) -> Vec<HeldRange> {
        let held = held(&self.view());
        let all: Vec<HeldRange> = held.iter().chain(arriving).copied().collect();
        let wanted = plan_unmerged(&held, &all).into_iter();
        wanted.filter(|wanted| !held.contains(wanted)).collect()
    }

    /// Builds a segment in two passes. `count` gives every block of
    /// [`counted_blocks`](segment::counted_blocks) to the census,
    /// whose tables the segment is written with; `fill` then pushes every group of [`groups`](segment::groups) in order.
    /// On which threads blocks are proven and groups encoded is the caller's choice.
    pub fn build<E: From<StoreError>>(
        &self,
        target: HeldRange,
        count: impl FnOnce(&mut Census) -> Result<(), E>,
        fill: impl FnOnce(&mut Draft) -> Result<(), E>,
    ) -> Result<NewSegment, E> {
        let mut census = Census::default();
        count(&mut census)?;
        let has_log_index = !self.view().manifest().is_without_log_index();
        let tables = census.into_tables();
        let mut draft = Draft::begin(self.workshop(), target, tables, has_log_index)?;
        fill(&mut draft)?;
        Ok(draft.finish()?)
    }

    /// Builds the large lookup runs that these segments will ask for, so that the commit need not. That
    /// may take long: it ends soon after `is_stopped` says so.
    pub fn prepare(
        &self,
        segments: Vec<NewSegment>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<PreparedSegments, StoreError> {
        let view = self.view();
        let before = view.manifest();
        let listed = held(&view);
        let arriving = segments.iter().map(|segment| segment.entry.held());
        let all: Vec<HeldRange> = listed.iter().copied().chain(arriving).collect();
        let wanted = plan_unmerged(&listed, &all);
        let is_wanted = |entry: &&SegmentEntry| wanted.contains(&entry.held());
        let new = segments.iter().map(|segment| &segment.entry);
        let stay = before.segments().iter().filter(is_wanted);
        let mut after: Vec<SegmentEntry> = stay.chain(new).cloned().collect();
        after.sort_by_key(|entry| entry.range.first());
        after.dedup();
        let keys: BTreeMap<_, _> = segments
            .iter()
            .map(|segment| (segment.entry.file_name.clone(), segment.keys.clone()))
            .collect();
        let read_logs = |range| view.read_log_keys(range);
        let sources = RunSources {
            before,
            segments: &after,
            keys: &keys,
            read_logs: &read_logs,
            indexed_now: &[],
        };
        let change = prepare_runs(self.workshop(), sources, is_stopped)?;
        let built = |file: Claim| {
            let entry = change.built.iter().find(|entry| entry.file_name == file.file_name())?;
            Some(PreparedRun { entry: entry.clone(), file })
        };
        // The others were steps on the way to these: dropped, they go.
        let runs = change.files.into_iter().filter_map(built).collect();
        Ok(PreparedSegments { segments, runs })
    }
}
