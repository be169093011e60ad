//! The complete slots of a bucket, whoever published them, and the runs that tell of them.

use std::collections::{BTreeMap, BTreeSet};

use segment::index::{RunSpan, plan_runs};
use store::RunSubject;
use store::layout::{slot_of, slot_range};
use store::manifest::{Edit, Manifest, ManifestConflict, Network, RunEntry, SegmentEntry};

use crate::published::Published;

/// Complete slots, and their runs.
#[derive(Debug)]
pub(super) struct SlotUnion<'a> {
    published: &'a Published,
    /// The segment of every complete slot; that with receipts, if it is there.
    slots: BTreeMap<u64, &'a SegmentEntry>,
    /// The runs of complete slots alone, by subject, first slot and number of slots.
    runs: BTreeMap<(RunSubject, u64, u64), RunEntry>,
    /// Those that the manifest will list.
    chosen: Vec<RunEntry>,
}

impl<'a> SlotUnion<'a> {
    pub(super) fn of(published: &'a Published) -> Result<Self, ManifestConflict> {
        let mut slots: BTreeMap<u64, &SegmentEntry> = BTreeMap::new();
        for entry in published.manifests.iter().flat_map(|it| it.manifest.segments()) {
            let slot = slot_of(entry.range.first());
            if slot_range(slot) != Some(entry.range) || is_retracted(published, entry) {
                continue;
            }
            match slots.get(&slot) {
                Some(held) if held.last_hash != entry.last_hash => {
                    return Err(ManifestConflict::Blocks {
                        file_name: entry.file_name.clone(),
                        range: entry.range,
                        held_name: held.file_name.clone(),
                        held: held.range,
                    });
                }
                Some(held) if held.has_receipts || !entry.has_receipts => {}
                _ => {
                    slots.insert(slot, entry);
                }
            }
        }
        let mut union = Self { published, slots, runs: BTreeMap::new(), chosen: Vec::new() };
        for published in &published.manifests {
            union.take_runs(&published.manifest);
        }
        Ok(union)
    }

    /// Takes the runs of a manifest that tell of complete slots, each of which it holds as one segment.
    fn take_runs(&mut self, manifest: &Manifest) {
        let whole: BTreeMap<u64, &SegmentEntry> = manifest
            .segments()
            .iter()
            .filter(|it| slot_range(slot_of(it.range.first())) == Some(it.range))
            .map(|it| (slot_of(it.range.first()), it))
            .collect();
        for run in manifest.runs() {
            let span = run.span;
            let is_told = |slot: u64| {
                let held = whole.get(&slot);
                let held = held.filter(|held| {
                    self.slots.get(&slot).is_some_and(|it| {
                        // Without receipts nothing is said of logs; of hashes the same is said.
                        it.last_hash == held.last_hash
                            && (run.subject != RunSubject::Logs || held.has_receipts)
                    })
                });
                held.is_some()
            };
            if (span.first_slot()..span.end_slot()).all(is_told) {
                self.runs.insert(key(run.subject, span), run.clone());
            }
        }
    }

    /// The runs that these slots have when they are in one folder, as far as every slot has one.
    pub(super) fn wanted(&self, subject: RunSubject) -> Vec<RunSpan> {
        let own = self.runs.values().filter(|it| it.subject == subject);
        plan_runs(own.map(|it| it.span.first_slot()..it.span.end_slot()))
    }

    pub(super) fn run(&self, subject: RunSubject, span: RunSpan) -> Option<&RunEntry> {
        self.runs.get(&key(subject, span))
    }

    /// Has a run listed.
    pub(super) fn choose(&mut self, run: RunEntry) {
        self.chosen.push(run);
    }

    /// The manifest of these slots and of the chosen runs. A slot that has no run of hashes is left to the
    /// manifest that lists it.
    pub(super) fn into_manifest(self) -> Result<Manifest, ManifestConflict> {
        let slots_of = |subject: RunSubject| {
            let runs = self.chosen.iter().filter(move |it| it.subject == subject);
            runs.flat_map(|it| it.span.first_slot()..it.span.end_slot()).collect::<BTreeSet<u64>>()
        };
        let by_transaction = slots_of(RunSubject::Transactions);
        let by_block = slots_of(RunSubject::Blocks);
        let is_found = |slot: u64| by_transaction.contains(&slot) && by_block.contains(&slot);
        let slots = self.slots.iter().filter(|(slot, _)| is_found(**slot));
        let segments: Vec<SegmentEntry> = slots.map(|(_, entry)| (*entry).clone()).collect();
        let is_listed = |run: &RunEntry| (run.span.first_slot()..run.span.end_slot()).all(is_found);
        let runs = self.chosen.iter().filter(|it| is_listed(it)).cloned().collect();
        let is_held = |number: u64| segments.iter().any(|it| it.range.contains(number));
        let mut manifest = Manifest::new(Network::default());
        let mut edit = Edit::default();
        let mut genesis_file = None;
        for published in &self.published.manifests {
            let other = &published.manifest;
            let network = Edit { network: other.network().clone(), ..Edit::default() };
            manifest = manifest.edited(network)?;
            genesis_file = genesis_file.or(other.genesis_file());
            edit.anchors.extend(other.anchors().filter(|it| is_held(it.number)));
            edit.epochs.extend(other.epochs().filter(|it| is_held(it.last)));
            edit.difficulties.extend(other.difficulties().filter(|(number, _)| is_held(*number)));
        }
        manifest = manifest.with_genesis_file(genesis_file);
        manifest.edited(Edit { segments, runs, ..edit })
    }
}

fn key(subject: RunSubject, span: RunSpan) -> (RunSubject, u64, u64) {
    (subject, span.first_slot(), span.slot_count())
}

fn is_retracted(published: &Published, entry: &SegmentEntry) -> bool {
    published.retracted.contains(&entry.file_name)
}
