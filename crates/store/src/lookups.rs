//! Keeping the runs: after every change they are the ones that the coverage asks for.
//!
//! A slot whose blocks did not change keeps its keys, so every run of such slots stays true. Only
//! slots that are not complete change, and those have runs of their own: no large run is built anew.
//! Large runs are merged when a complete slot is gathered with others, which takes as long as reading
//! and writing them: whoever has little time is given runs that were prepared beside.

mod slot;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use segment::index::{Merge, MergeStep, RunSpan, RunSubject, Side};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::{Claim, open_run_on};
use crate::layout::plan_lookups;
use crate::manifest::{Manifest, Network, RunEntry};
use crate::names::run_name;
use crate::part::{StagedFile, StagingArea};

use slot::build_slot;

pub(crate) use sources::RunSources;
pub use sources::SegmentKeys;

/// A change of runs.
#[derive(Debug, Default)]
pub(crate) struct RunChange {
    pub(crate) built: Vec<RunEntry>,
    pub(crate) gone: Vec<String>,
    /// All files that were made: those that are built, and steps on the way to a larger run. They go with
    /// these, unless they are kept.
    pub(crate) files: Vec<Claim>,
}

/// Builds the runs that a change of segments asks for; `prepared` are runs that were built already.
pub(crate) fn build_runs(
    workshop: &StagingArea,
    sources: RunSources<'_>,
    prepared: &[RunEntry],
) -> Result<RunChange, StoreError> {
    // What is to be committed now is wanted.
    let task = Task { workshop, sources, prepared, is_stopped: &|| false, files: Vec::new() };
    task.build_all(|_, _| true)
}

/// Builds those of the runs that gather complete slots and are not there yet: what
/// [`build_runs`] can be given. Slots that are not complete may change until then. Ends with an error soon
/// after `is_stopped` says so.
pub(crate) fn prepare_runs(
    workshop: &StagingArea,
    sources: RunSources<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<RunChange, StoreError> {
    let task = Task { workshop, sources, prepared: &[], is_stopped, files: Vec::new() };
    task.build_all(|subject, span| sources.is_complete(subject, span))
}

/// Merges two neighbouring runs into that of `span`, which is both of theirs, as a commit does it. All three
/// lie in a folder that nobody else uses; the new one has its name when its bytes are durable. Ends with
/// an error soon after `is_stopped` says so.
pub fn merge_run_files(
    disk: &Arc<dyn Disk>,
    span: RunSpan,
    (left, right): (&RunEntry, &RunEntry),
    is_stopped: &dyn Fn() -> bool,
) -> Result<RunEntry, StoreError> {
    let workshop = StagingArea::new(Arc::clone(disk), Arc::default());
    // What is there already is merged: no segment is asked.
    let (before, keys) = (Manifest::new(Network::default()), BTreeMap::new());
    let read_logs =
        |range: BlockRange| Err(StoreError::NotHeld { number: BlockNumber(range.first()) });
    let sources = RunSources {
        before: &before,
        segments: &[],
        keys: &keys,
        read_logs: &read_logs,
        indexed_now: &[],
    };
    let files = Vec::new();
    let mut task = Task { workshop: &workshop, sources, prepared: &[], is_stopped, files };
    let merged = task.merge(span, left, right)?;
    task.files.iter().for_each(Claim::keep);
    Ok(merged)
}

/// Runs in the making.
struct Task<'a> {
    workshop: &'a StagingArea,
    sources: RunSources<'a>,
    prepared: &'a [RunEntry],
    is_stopped: &'a dyn Fn() -> bool,
    /// Runs that were made.
    files: Vec<Claim>,
}

impl Task<'_> {
    /// The runs of all subjects, as far as they are wanted.
    fn build_all(
        mut self,
        is_wanted: impl Fn(RunSubject, RunSpan) -> bool,
    ) -> Result<RunChange, StoreError> {
        let mut change = RunChange::default();
        for subject in RunSubject::ALL {
            let mut runs = Vec::new();
            for span in plan_lookups(&self.sources.held(subject)) {
                if is_wanted(subject, span) {
                    runs.push(self.build(subject, span)?);
                }
            }
            let held = || self.sources.before.runs_of(subject);
            change.gone.extend(
                held().filter(|entry| !runs.contains(entry)).map(|entry| entry.file_name.clone()),
            );
            runs.retain(|entry| !held().any(|held| held == entry));
            change.built.extend(runs);
        }
        Ok(RunChange { files: self.files, ..change })
    }

    fn check_stop(&self) -> Result<(), StoreError> {
        if (self.is_stopped)() { Err(StoreError::Stopped) } else { Ok(()) }
    }

    fn build(&mut self, subject: RunSubject, span: RunSpan) -> Result<RunEntry, StoreError> {
        self.check_stop()?;
        if let Some(held) = self.held(subject, span).or_else(|| self.prepared(subject, span)) {
            return Ok(held.clone());
        }
        let half = span.slot_count() / 2;
        let halves = (
            RunSpan::new(span.first_slot(), half),
            RunSpan::new(span.first_slot().saturating_add(half), half),
        );
        let (Ok(left), Ok(right)) = halves else { return self.build_slot(subject, span) };
        let (left, right) = (self.build(subject, left)?, self.build(subject, right)?);
        self.merge(span, &left, &right)
    }

    /// The run of exactly these slots, if it is there and still true.
    fn held(&self, subject: RunSubject, span: RunSpan) -> Option<&RunEntry> {
        let held = self.sources.before.runs_of(subject).find(|entry| entry.span == span)?;
        self.sources.is_unchanged(subject, span).then_some(held)
    }

    /// The run of exactly these slots, if somebody has built it. What complete slots hold does not
    /// change.
    fn prepared(&self, subject: RunSubject, span: RunSpan) -> Option<&RunEntry> {
        let mut prepared = self.prepared.iter();
        let found = prepared.find(|entry| entry.subject == subject && entry.span == span)?;
        self.sources.is_complete(subject, span).then_some(found)
    }

    /// Builds the run of one slot.
    fn build_slot(&mut self, subject: RunSubject, span: RunSpan) -> Result<RunEntry, StoreError> {
        let disk = &**self.workshop.disk();
        let bytes = build_slot(&self.sources, disk, subject, span)?;
        let mut part = self.workshop.begin();
        part.append(&bytes)?;
        self.finish(subject, span, part)
    }

    fn merge(
        &mut self,
        span: RunSpan,
        left: &RunEntry,
        right: &RunEntry,
    ) -> Result<RunEntry, StoreError> {
        let disk = &**self.workshop.disk();
        let failed = |cause| {
            let (left, right) = (left.file_name.clone(), right.file_name.clone());
            StoreError::Merge { left, right, cause }
        };
        let mut merge =
            Merge::new(open_run_on(disk, left)?, open_run_on(disk, right)?).map_err(failed)?;
        let mut part = self.workshop.begin();
        let mut bytes = Vec::new();
        loop {
            self.check_stop()?;
            let step = merge.step(&mut bytes).map_err(failed)?;
            part.append(&bytes)?;
            bytes.clear();
            let MergeStep::Need { side, range } = step else { break };
            let from = match side {
                Side::Left => left,
                Side::Right => right,
            };
            let supplied = disk.read_range(&from.file_name, range)?;
            merge.supply(side, &supplied).map_err(failed)?;
        }
        self.finish(left.subject, span, part)
    }

    fn finish(
        &mut self,
        subject: RunSubject,
        span: RunSpan,
        mut part: StagedFile,
    ) -> Result<RunEntry, StoreError> {
        let finished = part.close()?;
        let file_name = run_name(subject, span, finished.digest);
        self.files.push(part.rename(&file_name)?);
        Ok(RunEntry { subject, span, file_name, bytes: finished.bytes, digest: finished.digest })
    }
}
