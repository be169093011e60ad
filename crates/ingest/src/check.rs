//! A data folder checked over all cores.
//!
//! Knows: which parts of the check can go on at the same time.
//! Never knows: what is checked; `store::check` does.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use chain::accumulator::EPOCH_BLOCKS;
use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, ChainSpec, Fault};
use pool::map_in_order;
use store::check::{CheckCounts, CheckedGroup, CheckedLogs, SegmentCheck, check_layout, check_run};
use store::layout::{join_ranges, overlap, slot_of, subtract};
use store::manifest::{Manifest, RunEntry, SegmentEntry};
use store::read::block_on;
use store::{CommitFacts, Reader, StoreError, View, WriteFault};

use crate::epochs::{EpochProof, ProvenEpoch, epoch_blocks, prove_epoch};
use crate::prove::{BlockDone, Progress};

/// What a check found to be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFolder {
    /// How much of it there is.
    pub counts: CheckCounts,
    /// The files of segments that were digest only: they, and all runs that tell of them, are true.
    pub proven: BTreeSet<String>,
    /// The files of segments, digest only or not, that are false or damaged themselves.
    pub false_segments: BTreeSet<String>,
    /// The files of segments that contradict a hash which the operator trusts, or descend from one
    /// that does: true in themselves, as far as is known, and not proven.
    pub contradicting: BTreeSet<String>,
    /// The files of runs that are false or damaged.
    pub false_runs: BTreeSet<String>,
}

impl CheckedFolder {
    /// Takes out of what is proven the segment of a block that contradicts the operator's anchor,
    /// and what descends from it. It is not false for that: the anchor may be. Returns the blocks
    /// that stay digest only for it.
    pub fn contradict(&mut self, manifest: &Manifest, number: BlockNumber) -> Vec<BlockRange> {
        let mut unproven = Vec::new();
        for entry in standing_on(manifest, number) {
            self.proven.remove(&entry.file_name);
            self.contradicting.insert(entry.file_name.clone());
            unproven.extend(manifest.is_digest_only(&entry.file_name).then_some(entry.range));
        }
        join_ranges(unproven)
    }

    /// The files of runs that are false and tell of blocks that are digest only: they can be built
    /// anew.
    pub fn false_unproven_runs<'a>(
        &'a self,
        manifest: &'a Manifest,
    ) -> impl Iterator<Item = &'a str> {
        let is_unproven = |run: &&RunEntry| {
            let mut slots = manifest.digest_only_segments().map(|it| slot_of(it.range.first()));
            self.false_runs.contains(&run.file_name) && slots.any(|slot| run.span.contains(slot))
        };
        manifest.runs().iter().filter(is_unproven).map(|run| run.file_name.as_str())
    }

    /// The same of blocks that contradict what every folder trusts: what of them was digest only is
    /// false.
    fn refute(&mut self, manifest: &Manifest, blocks: BlockRange) {
        let within = manifest.segments().iter().filter(|it| overlap(it.range, blocks).is_some());
        let above = standing_on(manifest, BlockNumber(blocks.last()));
        for entry in within.chain(above).filter(|it| manifest.is_digest_only(&it.file_name)) {
            self.proven.remove(&entry.file_name);
            self.false_segments.insert(entry.file_name.clone());
        }
    }
}

/// The segment that holds a block, and those above it that descend from it without a gap.
fn standing_on(manifest: &Manifest, number: BlockNumber) -> impl Iterator<Item = &SegmentEntry> {
    let position = manifest.find_segment(number).map(|(position, _)| position);
    let from = position.and_then(|position| manifest.segments().get(position..)).unwrap_or(&[]);
    let is_child = |one: &SegmentEntry, next: &SegmentEntry| {
        one.range.end() == next.range.first() && one.last_hash == next.parent_hash
    };
    from.chunk_by(is_child).next().into_iter().flatten()
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
    let mut found = CheckedFolder::default();
    let mut logs = Vec::new();
    let mut false_end = None;
    if let Err(error) = check_layout(view) {
        refused(error);
    }
    for (position, entry) in manifest.segments().iter().enumerate() {
        match check_segment(view, spec, position, threads, progress) {
            Ok(checked) => {
                if checked.is_some() && manifest.is_digest_only(&entry.file_name) {
                    proven.insert(entry.file_name.clone(), slot_of(entry.range.first()));
                }
                let (counts, own) = checked.unzip();
                found.counts.add(counts.unwrap_or_default());
                logs.extend(own);
            }
            Err(error) => {
                // What does not descend from a false one may be true.
                let is_above_false =
                    false_end == Some(entry.range.first()) && is_of_seam(&error, entry);
                let is_own = is_false(&error, &entry.file_name) || is_unfit(&error);
                if is_own && !is_above_false {
                    found.false_segments.insert(entry.file_name.clone());
                    false_end = Some(entry.range.end());
                }
                // A run may lie of one hash alone, which only its block tells.
                let lying = manifest.runs().iter().filter(|run| is_false(&error, &run.file_name));
                found.false_runs.extend(lying.map(|run| run.file_name.clone()));
                refused(error);
            }
        }
    }
    let runs = 0..manifest.runs().len();
    let mut entries = manifest.runs().iter();
    let _: ControlFlow<()> = map_in_order(
        threads,
        runs,
        |position| check_run(view, position, &logs),
        |checked| {
            // They come in their order.
            let entry = entries.next();
            match checked {
                Ok(checked) => {
                    let checked = checked.unwrap_or_default();
                    found.counts.add(checked.counts);
                    proven.retain(|_, slot| !checked.uncompared.contains(slot));
                }
                Err(error) => {
                    if let Some(entry) = entry {
                        proven.retain(|_, slot| !entry.span.contains(*slot));
                        let is_false = is_false(&error, &entry.file_name);
                        found.false_runs.extend(is_false.then(|| entry.file_name.clone()));
                    }
                    refused(error);
                }
            }
            ControlFlow::Continue(())
        },
    );
    CheckedFolder { proven: proven.into_keys().collect(), ..found }
}

/// Whether an error says that the blocks of the segment that is checked cannot be encoded as it
/// says, and not that this process failed to.
fn is_unfit(error: &StoreError) -> bool {
    let is_ours =
        |cause: &WriteFault| matches!(cause, WriteFault::Page(_) | WriteFault::NotExact { .. });
    matches!(error, StoreError::Write { cause, .. } if !is_ours(cause))
}

/// Whether an error says that this file is not what it should be, and not that a disk fails, or another
/// file.
fn is_false(error: &StoreError, file_name: &str) -> bool {
    if let StoreError::Disk(cause) = error {
        return cause.is_of_file() && error.to_string().contains(file_name);
    }
    let (StoreError::Segment { file, .. }
    | StoreError::Index { file, .. }
    | StoreError::NotListed { file, .. }
    | StoreError::Differs { file, .. }
    | StoreError::Block { file, .. }) = error
    else {
        return false;
    };
    file == file_name
}

/// Whether an error says that a segment does not descend from the block before it.
fn is_of_seam(error: &StoreError, entry: &SegmentEntry) -> bool {
    let StoreError::Block { mismatch, .. } = error else { return false };
    mismatch.number == entry.range.first() && matches!(*mismatch.fault, Fault::ParentHash { .. })
}

/// What becomes known of the chain by a check: the accumulator epochs that segments which were digest only
/// complete, where their roots are trusted, with the total difficulties that these bear out; and the
/// operator's anchors whose blocks are held and true.
///
/// Segments that were digest only and give another root than the trusted one are of another chain,
/// and so are those that descend from them: they become false ones in `checked`, and `refused`
/// hears of their epoch.
pub fn find_facts(
    view: &View,
    anchors: &Anchors,
    checked: &mut CheckedFolder,
    mut refused: impl FnMut(String),
) -> Result<CommitFacts, StoreError> {
    let manifest = view.manifest();
    let is_proven = |it: &&SegmentEntry| checked.proven.contains(&it.file_name);
    let new = manifest.digest_only_segments().filter(is_proven).map(|it| it.range);
    let concerned = new.flat_map(|it| it.first() / EPOCH_BLOCKS..=it.last() / EPOCH_BLOCKS);
    let concerned: BTreeSet<u64> = concerned.collect();
    let mut facts = CommitFacts::default();
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    for number in concerned {
        let proven = true_blocks(view, checked);
        let Some(blocks) = epoch_blocks(number).filter(|it| is_within(*it, &proven)) else {
            continue;
        };
        let found = match prove_epoch(view, anchors, number) {
            // The check has told of it, and what is proven is proven.
            Err(error) if error.is_of_file() => EpochProof::Unknown,
            found => found?,
        };
        match found {
            EpochProof::Proven(ProvenEpoch { epoch, first, before }) => {
                facts.epochs.push(epoch);
                let known = block_on(view.difficulty_before(&mut reader, BlockNumber(first)))?;
                // A range keeps one total, at its beginning, which is reckoned back from this one by what
                // its segments are listed with: that is their publisher's word where they are not proven.
                let is_new = known.is_none() && is_borne_out(view, first, &proven);
                facts.difficulties.extend(is_new.then_some((first, before)));
            }
            EpochProof::OtherRoot { before }
                if is_borne_out(view, blocks.first(), &proven)
                    && is_base_known(view, anchors, number, &proven)? =>
            {
                checked.refute(manifest, blocks);
                refused(format!(
                    "blocks {blocks}: accumulator epoch {number} with the total difficulty {before} before it \
                     has another root than the trusted one: they are of another chain"
                ));
            }
            EpochProof::OtherRoot { .. } | EpochProof::Unknown => {}
        }
    }
    let proven = true_blocks(view, checked);
    for anchor in anchors.operator().filter(|it| proven.iter().any(|on| on.contains(it.number))) {
        if manifest.anchors().any(|known| known == anchor) {
            continue;
        }
        let held = match block_on(view.read_hash(&mut reader, BlockNumber(anchor.number))) {
            Err(error) if error.is_of_file() => None,
            held => held?,
        };
        facts.anchors.extend((held == Some(anchor.hash)).then_some(anchor));
    }
    Ok(facts)
}

/// The blocks that are proven: before, or by this check.
fn true_blocks(view: &View, checked: &CheckedFolder) -> Vec<BlockRange> {
    let manifest = view.manifest();
    let is_true = |entry: &&SegmentEntry| {
        !checked.false_segments.contains(&entry.file_name)
            && !checked.contradicting.contains(&entry.file_name)
            && (checked.proven.contains(&entry.file_name)
                || !manifest.is_digest_only(&entry.file_name))
    };
    join_ranges(manifest.segments().iter().filter(is_true).map(|it| it.range))
}

fn is_within(blocks: BlockRange, proven: &[BlockRange]) -> bool {
    subtract(&[blocks], proven).is_empty()
}

/// Whether all blocks below this one, down to the beginning of its range, are proven.
fn is_borne_out(view: &View, number: u64, proven: &[BlockRange]) -> bool {
    let coverage = view.coverage();
    let range = coverage.iter().find(|range| range.contains(BlockNumber(number)));
    let first = range.map_or(number, BlockRange::first);
    let way = number.checked_sub(1).and_then(|last| BlockRange::from_ends(first, last));
    way.is_none_or(|way| is_within(way, proven))
}

/// Whether the total difficulty before an epoch is more than a source's word: its range begins with
/// block 0, or the epoch before it gives its trusted root by the same reckoning.
fn is_base_known(
    view: &View,
    anchors: &Anchors,
    number: u64,
    proven: &[BlockRange],
) -> Result<bool, StoreError> {
    let blocks = epoch_blocks(number);
    let range =
        blocks.and_then(|it| view.coverage().iter().find(|range| range.contains(it.first())));
    if range.is_some_and(|range| range.first() == 0) {
        return Ok(true);
    }
    let Some(lower) = number.checked_sub(1) else { return Ok(false) };
    if !epoch_blocks(lower).is_some_and(|it| is_within(it, proven)) {
        return Ok(false);
    }
    let found = match prove_epoch(view, anchors, lower) {
        Err(error) if error.is_of_file() => return Ok(false),
        found => found?,
    };
    let EpochProof::Proven(ProvenEpoch { first, before, .. }) = found else { return Ok(false) };
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let known = block_on(view.difficulty_before(&mut reader, BlockNumber(first)))?;
    Ok(known == Some(before))
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
