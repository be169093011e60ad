//! Dropping what was taken as somebody published it and proved false.
//!
//! Knows: that only what is digest only may go, and that a run which tells of it is built anew of the
//! segments that stay.
//! Never knows: how somebody found out that it is false.

use std::collections::{BTreeMap, BTreeSet};

use chain::BlockRange;

use super::Writer;
use crate::error::StoreError;
use crate::files::Claim;
use crate::layout::{join_ranges, slot_of};
use crate::lookups::{RunSources, build_runs};
use crate::manifest::{Edit, Manifest, SegmentEntry};
use crate::view::View;

impl Writer {
    /// Drops these segments, as far as they are digest only, so that their blocks can be taken anew, and
    /// builds these runs anew, as far as they tell of blocks that are digest only; others are passed over.
    /// Returns the blocks that are not held any more.
    pub fn drop_unproven(
        &mut self,
        segments: &BTreeSet<String>,
        runs: &BTreeSet<String>,
    ) -> Result<Vec<BlockRange>, StoreError> {
        self.look()?;
        let view = self.view();
        let before = view.manifest();
        let going = before.digest_only_segments().filter(|it| segments.contains(&it.file_name));
        let going: Vec<&SegmentEntry> = going.collect();
        let names: BTreeSet<String> = going.iter().map(|it| it.file_name.clone()).collect();
        let dropped = join_ranges(going.iter().map(|it| it.range));
        let slots = touched_slots(before, &going, runs);
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        refuse_under_head(&view, &dropped)?;
        let stay = before.segments().iter().filter(|it| !names.contains(&it.file_name));
        let stay: Vec<SegmentEntry> = stay.cloned().collect();
        // As if nothing had been there of these slots: no run that may be false is taken over.
        let base = before.without_slots(&slots);
        let sources = RunSources {
            before: &base,
            segments: &stay,
            keys: &BTreeMap::new(),
            read_hashes: &|subject, range| view.read_hash_keys(subject, range),
            read_logs: &|range| view.read_log_keys(range),
            indexed_now: &[],
        };
        let built = build_runs(self.store.workshop(), sources, &[])?;
        let mut files: Vec<Claim> = built.files;
        files.retain(|file| built.built.iter().any(|run| run.file_name == file.file_name()));
        let gone = names.iter().cloned().chain(built.gone).collect();
        let edit = Edit { runs: built.built, gone, dropped: dropped.clone(), ..Edit::default() };
        let next = before.edited(edit)?;
        self.settle_head()?;
        self.journal.record(names, [before, &next], self.is_settled)?;
        files.iter().for_each(Claim::keep);
        self.replace(next)?;
        drop((view, files));
        self.settle_journal();
        Ok(dropped)
    }
}

/// The slots whose runs are to be built anew: those of the segments that go and of the runs that are false,
/// and all that share a run with one of them.
fn touched_slots(
    manifest: &Manifest,
    going: &[&SegmentEntry],
    false_runs: &BTreeSet<String>,
) -> BTreeSet<u64> {
    let unproven = manifest.digest_only_segments().map(|it| slot_of(it.range.first()));
    let unproven: BTreeSet<u64> = unproven.collect();
    let mut slots: BTreeSet<u64> = going.iter().map(|it| slot_of(it.range.first())).collect();
    for run in manifest.runs().iter().filter(|it| false_runs.contains(&it.file_name)) {
        slots.extend(unproven.range(run.span.first_slot()..run.span.end_slot()));
    }
    loop {
        let before = slots.len();
        for run in manifest.runs() {
            let span = run.span.first_slot()..run.span.end_slot();
            if slots.range(span.clone()).next().is_some() {
                slots.extend(span);
            }
        }
        if slots.len() == before {
            return slots;
        }
    }
}

/// Refuses blocks on which the head stands: it would stand on nothing.
fn refuse_under_head(view: &View, dropped: &[BlockRange]) -> Result<(), StoreError> {
    let Some((base, _)) = view.head().base() else { return Ok(()) };
    match dropped.iter().find(|range| range.contains(base)) {
        Some(range) => Err(StoreError::UnderHead { range: *range }),
        None => Ok(()),
    }
}
