//! Taking segments as somebody published them: their files lie here, their blocks were not proven.
//!
//! Knows: that such a segment is listed as digest only, and which of the runs that came with it are the
//! ones that this folder asks for.
//! Never knows: who published them, or how the files came here.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::U256;
use chain::BlockRange;

use super::Writer;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::{Claim, check_length, open_run_on};
use crate::footer::look_at_segment;
use crate::layout::{HeldRange, overlap, plan_unmerged, slot_of};
use crate::lookups::{RunSources, build_runs};
use crate::manifest::{Edit, Manifest, ManifestConflict, Network, RunEntry, SegmentEntry};
use crate::names::{run_name, segment_name};
use crate::view::View;

/// Files that lie in the folder under their own names, with the digests that their names tell, and that
/// nothing lists yet.
#[derive(Clone, Debug, Default)]
pub struct AdoptedSegments {
    /// Which chain they are of, by whoever published them.
    pub network: Network,
    /// The segments. None of their blocks is held.
    pub segments: Vec<SegmentEntry>,
    /// Lookup runs and runs of the log index that were published with them.
    pub runs: Vec<RunEntry>,
    /// Total difficulties before blocks that begin such a segment, by whoever published them: they are
    /// kept aside until an accumulator bears them out.
    pub told_difficulties: Vec<(u64, U256)>,
}

impl Writer {
    /// Makes segments live whose blocks nobody has proven here, with the lookups that they ask for: runs
    /// that were given are listed where they are these, and the others are built from what the segments
    /// hold. Files of runs that are of no use here go.
    ///
    /// Every range that becomes live is digest only until [`Writer::confirm`] hears that it was proven. A
    /// slot that becomes complete stays in its pieces.
    pub fn adopt_segments(&mut self, adopted: AdoptedSegments) -> Result<(), StoreError> {
        let AdoptedSegments { network, segments, runs: given, told_difficulties } = adopted;
        self.look()?;
        let view = self.view();
        let before = view.manifest();
        check_names(&segments, &given)?;
        refuse_held(&view, &segments)?;
        let names: BTreeSet<String> = segments.iter().map(|it| it.file_name.clone()).collect();
        let digest_only = names.clone();
        let listing = Edit { network, segments, digest_only, told_difficulties, ..Edit::default() };
        // Without their lookups: enough to read them, and their files stay meanwhile.
        let listed = before.edited(listing.clone())?;
        let adopted = view.with_manifest(listed);
        check_plan(before, &listing.segments)?;
        check_seams(&adopted, &names)?;
        let disk = &**self.store.disk();
        for entry in &listing.segments {
            look_at_segment(disk, entry)?;
            disk.append(&entry.file_name, &[])?.fsync()?;
        }
        let mut files = self.claim_runs(&given)?;
        let with_receipts = listing.segments.iter().filter(|entry| entry.has_receipts);
        let mut indexed_now: Vec<u64> = with_receipts.map(|it| slot_of(it.range.first())).collect();
        indexed_now.dedup();
        let sources = RunSources {
            before,
            segments: adopted.manifest().segments(),
            keys: &BTreeMap::new(),
            read_hashes: &|subject, range| adopted.read_hash_keys(subject, range),
            read_logs: &|range| adopted.read_log_keys(range),
            indexed_now: &indexed_now,
        };
        let runs = build_runs(self.store.workshop(), sources, &given)?;
        files.extend(runs.files);
        files.retain(|file| runs.built.iter().any(|run| run.file_name == file.file_name()));
        let gone = runs.gone.into_iter().collect();
        let next = before.edited(Edit { runs: runs.built, gone, ..listing })?;
        self.settle_head()?;
        // The segments are not named: a crash leaves them, as it found them.
        self.journal.record(BTreeSet::new(), [before, &next], self.is_settled)?;
        files.iter().for_each(Claim::keep);
        self.replace(next)?;
        self.unaccounted.retain(|name| !names.contains(name));
        drop((view, adopted, files));
        self.settle_journal();
        Ok(())
    }

    /// Claims the runs that were given: each goes with its claim, unless it is listed.
    fn claim_runs(&self, given: &[RunEntry]) -> Result<Vec<Claim>, StoreError> {
        let view = self.view();
        let claims = view.files().claims();
        let claimed = given.iter().map(|run| claims.claim_new(&run.file_name, || Ok(())));
        let claimed = claimed.collect::<Result<Vec<Claim>, _>>()?;
        for run in given {
            look_at_run(&**self.store.disk(), run)?;
        }
        Ok(claimed)
    }
}

/// Whether every file is called what its digest says: no other is opened.
fn check_names(segments: &[SegmentEntry], runs: &[RunEntry]) -> Result<(), StoreError> {
    let segments = segments
        .iter()
        .map(|entry| (&entry.file_name, segment_name(entry.held(), entry.digest)))
        .chain(
            runs.iter().map(|run| (&run.file_name, run_name(run.subject, run.span, run.digest))),
        );
    for (name, expected) in segments {
        if *name != expected {
            let (file, what, found) = (name.clone(), "name".to_owned(), name.clone());
            return Err(StoreError::Differs { file, what, found, expected });
        }
    }
    Ok(())
}

/// Refuses blocks that are held, also in the head.
fn refuse_held(view: &View, segments: &[SegmentEntry]) -> Result<(), StoreError> {
    let blocks = view.head().blocks();
    let ends = blocks.first().zip(blocks.last());
    let unsealed = ends.and_then(|(low, high)| BlockRange::from_ends(low.number(), high.number()));
    let sealed = view.manifest().segments().iter().map(|it| (it.file_name.as_str(), it.range));
    let all: Vec<_> = sealed.chain(unsealed.map(|range| ("the head", range))).collect();
    for entry in segments {
        let shared = all.iter().find(|(_, range)| overlap(*range, entry.range).is_some());
        if let Some((held_name, held)) = shared {
            let (file_name, range) = (entry.file_name.clone(), entry.range);
            let (held_name, held) = ((*held_name).to_owned(), *held);
            return Err(ManifestConflict::Blocks { file_name, range, held_name, held }.into());
        }
    }
    Ok(())
}

/// Whether the segments are those that a folder has which holds these blocks: nothing is built here.
fn check_plan(before: &Manifest, segments: &[SegmentEntry]) -> Result<(), StoreError> {
    let held = before.held();
    let all: Vec<HeldRange> =
        held.iter().copied().chain(segments.iter().map(SegmentEntry::held)).collect();
    let there: BTreeSet<HeldRange> = all.iter().copied().collect();
    let wanted = plan_unmerged(&held, &all);
    match wanted.iter().find(|wanted| !there.contains(wanted)) {
        Some(missing) => Err(StoreError::NotOneSegment { range: missing.range }),
        None => Ok(()),
    }
}

/// Whether the segments descend from each other, and from what is held, where they meet.
fn check_seams(adopted: &View, names: &BTreeSet<String>) -> Result<(), StoreError> {
    let segments = adopted.manifest().segments();
    for (below, above) in segments.iter().zip(segments.iter().skip(1)) {
        let is_new = names.contains(&below.file_name) || names.contains(&above.file_name);
        let is_seam = below.range.end() == above.range.first();
        if is_new && is_seam && above.parent_hash != below.last_hash {
            return Err(StoreError::Differs {
                file: above.file_name.clone(),
                what: "parent hash of the first block".to_owned(),
                found: above.parent_hash.to_string(),
                expected: format!("{}, the last hash of {}", below.last_hash, below.file_name),
            });
        }
    }
    let Some((number, found)) = adopted.head().base() else { return Ok(()) };
    match adopted.manifest().find_segment(number) {
        Some((_, entry)) if entry.range.last() == number.get() && entry.last_hash != found => {
            Err(StoreError::Seam { number, found, sealed: entry.last_hash })
        }
        _ => Ok(()),
    }
}

/// Whether a run has the length and the shape that is said of it; its bytes are made durable.
fn look_at_run(disk: &dyn Disk, run: &RunEntry) -> Result<(), StoreError> {
    check_length(&run.file_name, disk.file_bytes(&run.file_name)?, run.bytes)?;
    open_run_on(disk, run)?;
    Ok(disk.append(&run.file_name, &[])?.fsync()?)
}
