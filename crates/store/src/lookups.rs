//! Keeping the lookup runs: after every change they are the ones that the coverage asks for.
//!
//! Knows: which runs stay, which are built from keys, which are merged from their halves.
//! Never knows: the bytes of a run, or what the hashes are hashes of.
//!
//! A slot whose blocks did not change keeps its keys, so every run of such slots stays true. Only
//! slots that are not complete change, and those have runs of their own: no large run is built anew.
//! Large runs are merged when a complete slot is gathered with others, which takes as long as reading
//! and writing them: whoever has little time is given runs that were prepared beside.

use std::collections::BTreeMap;

use chain::BlockNumber;
use segment::lookup::{
    Entry, HashPrefix, Merge, MergeStep, Position, RunBuilder, RunSpan, Side, Subject,
};
use segment::{SLOT_BLOCKS, slice};

use crate::error::StoreError;
use crate::files::{Claim, open_run_on};
use crate::layout::{join_ranges, overlap, plan_lookups, slot_of, slot_range};
use crate::manifest::{Manifest, RunEntry, SegmentEntry};
use crate::names::run_name;
use crate::part::StagingArea;

/// The longest run of a single slot that is read whole: a slot of 2^24 transactions.
const SLOT_RUN_BYTES_MAX: u64 = 128 << 20;

/// What lookups keep of a segment, in the order of its blocks and transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentKeys {
    /// Of every transaction's hash.
    pub transactions: Vec<HashPrefix>,
    /// Of every block's hash.
    pub blocks: Vec<HashPrefix>,
}

impl SegmentKeys {
    fn of(&self, subject: Subject) -> &[HashPrefix] {
        match subject {
            Subject::Transactions => &self.transactions,
            Subject::Blocks => &self.blocks,
        }
    }
}

/// A change of runs.
#[derive(Debug, Default)]
pub(crate) struct RunChange {
    pub(crate) built: Vec<RunEntry>,
    pub(crate) gone: Vec<String>,
    /// All files that were made: those that are built, and steps on the way to a larger run. They go with
    /// these, unless they are kept.
    pub(crate) files: Vec<Claim>,
}

/// Builds the runs for `segments`, which take the place of those of `before`. `keys` has those of
/// every segment that was not there before, by file name; `prepared` are runs that were built already.
pub(crate) fn build_runs(
    workshop: &StagingArea,
    before: &Manifest,
    segments: &[SegmentEntry],
    keys: &BTreeMap<String, SegmentKeys>,
    prepared: &[RunEntry],
) -> Result<RunChange, StoreError> {
    let held: Vec<_> = segments.iter().map(SegmentEntry::held).collect();
    // What is to be committed now is wanted.
    let task = Task::new(workshop, before, segments, keys, &|| false);
    Task { prepared, ..task }.build_spans(&plan_lookups(&held))
}

/// Builds those of the runs for `segments` that gather complete slots and are not there yet: what
/// [`build_runs`] can be given. Slots that are not complete may change until then. Ends with an error soon
/// after `is_stopped` says so.
pub(crate) fn prepare_runs(
    workshop: &StagingArea,
    before: &Manifest,
    segments: &[SegmentEntry],
    keys: &BTreeMap<String, SegmentKeys>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<RunChange, StoreError> {
    let held: Vec<_> = segments.iter().map(SegmentEntry::held).collect();
    let mut wanted = plan_lookups(&held);
    wanted.retain(|span| is_complete(segments, *span));
    Task::new(workshop, before, segments, keys, is_stopped).build_spans(&wanted)
}

/// The runs of one subject.
struct Task<'a> {
    workshop: &'a StagingArea,
    before: &'a Manifest,
    segments: &'a [SegmentEntry],
    keys: &'a BTreeMap<String, SegmentKeys>,
    prepared: &'a [RunEntry],
    is_stopped: &'a dyn Fn() -> bool,
    subject: Subject,
    /// Runs that were made.
    files: Vec<Claim>,
}

impl<'a> Task<'a> {
    fn new(
        workshop: &'a StagingArea,
        before: &'a Manifest,
        segments: &'a [SegmentEntry],
        keys: &'a BTreeMap<String, SegmentKeys>,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        let (prepared, subject, files) = (&[][..], Subject::Transactions, Vec::new());
        Self { workshop, before, segments, keys, prepared, is_stopped, subject, files }
    }

    /// The runs of both subjects.
    fn build_spans(mut self, wanted: &[RunSpan]) -> Result<RunChange, StoreError> {
        let mut change = RunChange::default();
        for subject in [Subject::Transactions, Subject::Blocks] {
            self.subject = subject;
            let mut runs = Vec::new();
            for span in wanted {
                runs.push(self.build(*span)?);
            }
            let held = || self.before.runs().iter().filter(|entry| entry.subject == subject);
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

    fn build(&mut self, span: RunSpan) -> Result<RunEntry, StoreError> {
        self.check_stop()?;
        if let Some(held) = self.held(span).or_else(|| self.prepared(span)) {
            return Ok(held.clone());
        }
        let half = span.slot_count() / 2;
        let halves = (
            RunSpan::new(span.first_slot(), half),
            RunSpan::new(span.first_slot().saturating_add(half), half),
        );
        let (Ok(left), Ok(right)) = halves else { return self.build_slot(span) };
        let (left, right) = (self.build(left)?, self.build(right)?);
        self.merge(span, &left, &right)
    }

    /// The run of exactly these slots, if it is there and still true.
    fn held(&self, span: RunSpan) -> Option<&RunEntry> {
        let mut held = self.before.runs().iter();
        let held = held.find(|entry| entry.subject == self.subject && entry.span == span)?;
        let is_same =
            |slot| blocks_in(self.before.segments(), slot) == blocks_in(self.segments, slot);
        (span.first_slot()..span.end_slot()).all(is_same).then_some(held)
    }

    /// The run of exactly these slots, if somebody has built it. What complete slots hold does not
    /// change.
    fn prepared(&self, span: RunSpan) -> Option<&RunEntry> {
        let mut prepared = self.prepared.iter();
        let found = prepared.find(|entry| entry.subject == self.subject && entry.span == span)?;
        is_complete(self.segments, span).then_some(found)
    }

    /// Builds the run of one slot from the keys of its new segments and, for those that stay, from
    /// the run that it had.
    fn build_slot(&mut self, span: RunSpan) -> Result<RunEntry, StoreError> {
        let slot = span.first_slot();
        let mut builder = RunBuilder::new(self.subject, span);
        let mut moves = self.moves_before(slot);
        let mut ordinal = 0_u64;
        for entry in in_slot(self.segments, slot) {
            let first = self.first_ordinal(entry, ordinal);
            if let Some(keys) = self.keys.get(&entry.file_name) {
                for (prefix, ordinal) in keys.of(self.subject).iter().zip(first..) {
                    builder.push_entry(Entry { prefix: *prefix, position: at(slot, ordinal) })?;
                }
            } else {
                let own = moves.iter_mut().find(|(name, ..)| *name == entry.file_name);
                let (.., to) =
                    own.ok_or(StoreError::NotHeld { number: BlockNumber(entry.range.first()) })?;
                *to = Some(first);
            }
            ordinal = ordinal.saturating_add(entry.transaction_count);
        }
        if moves.iter().any(|(.., to)| to.is_some()) {
            self.move_entries(span, &moves, &mut builder)?;
        }
        let bytes = builder.finish()?;
        let mut part = self.workshop.begin();
        part.append(&bytes)?;
        self.finish(span, part)
    }

    /// The segments that the slot had: their names, where their ordinals were, and that nobody
    /// wants them yet.
    fn moves_before(&self, slot: u64) -> Vec<(String, std::ops::Range<u64>, Option<u64>)> {
        let mut ordinal = 0_u64;
        let mut moves = Vec::new();
        for entry in in_slot(self.before.segments(), slot) {
            let first = self.first_ordinal(entry, ordinal);
            let count = match self.subject {
                Subject::Transactions => entry.transaction_count,
                Subject::Blocks => entry.range.count(),
            };
            moves.push((entry.file_name.clone(), first..first.saturating_add(count), None));
            ordinal = ordinal.saturating_add(entry.transaction_count);
        }
        moves
    }

    fn first_ordinal(&self, entry: &SegmentEntry, transactions_before: u64) -> u64 {
        match self.subject {
            Subject::Transactions => transactions_before,
            Subject::Blocks => entry.range.first() % SLOT_BLOCKS,
        }
    }

    /// Takes over the entries of segments that stay, to the ordinals that they have now.
    fn move_entries(
        &self,
        span: RunSpan,
        moves: &[(String, std::ops::Range<u64>, Option<u64>)],
        builder: &mut RunBuilder,
    ) -> Result<(), StoreError> {
        let mut held = self.before.runs().iter();
        let held = held.find(|entry| entry.subject == self.subject && entry.span == span);
        let Some(held) = held else {
            let number = span.first_slot().saturating_mul(SLOT_BLOCKS);
            return Err(StoreError::NotHeld { number: BlockNumber(number) });
        };
        let disk = &**self.workshop.disk();
        let run = open_run_on(disk, held)?;
        let file = disk.read(&held.file_name, SLOT_RUN_BYTES_MAX)?;
        let corrupt = |cause| StoreError::Lookup { file: held.file_name.clone(), cause };
        for bucket in 0..run.bucket_count() {
            let range = run.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
            for Entry { prefix, position } in
                run.entries(bucket, slice(&file, &range)).map_err(corrupt)?
            {
                let ordinal = u64::from(position.ordinal);
                let own = moves.iter().find(|(_, ordinals, _)| ordinals.contains(&ordinal));
                if let Some((_, ordinals, Some(to))) = own {
                    let ordinal = to.saturating_add(ordinal.saturating_sub(ordinals.start));
                    let position = at(position.slot, ordinal);
                    builder.push_entry(Entry { prefix, position })?;
                }
            }
        }
        Ok(())
    }

    fn merge(
        &mut self,
        span: RunSpan,
        left: &RunEntry,
        right: &RunEntry,
    ) -> Result<RunEntry, StoreError> {
        let disk = &**self.workshop.disk();
        let failed = |cause| StoreError::Merge {
            left: left.file_name.clone(),
            right: right.file_name.clone(),
            cause,
        };
        let (left_run, right_run) = (open_run_on(disk, left)?, open_run_on(disk, right)?);
        let mut merge = Merge::new(left_run, right_run).map_err(failed)?;
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
        self.finish(span, part)
    }

    fn finish(
        &mut self,
        span: RunSpan,
        mut part: crate::part::StagedFile,
    ) -> Result<RunEntry, StoreError> {
        let subject = self.subject;
        let finished = part.close()?;
        let file_name = run_name(subject, span, finished.digest);
        self.files.push(part.rename(&file_name)?);
        Ok(RunEntry { subject, span, file_name, bytes: finished.bytes, digest: finished.digest })
    }
}

fn at(slot: u64, ordinal: u64) -> Position {
    // A builder refuses the highest ordinal, so nothing is cut off in silence.
    Position { slot, ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX) }
}

fn in_slot(segments: &[SegmentEntry], slot: u64) -> impl Iterator<Item = &SegmentEntry> {
    let begins = segments.partition_point(|entry| slot_of(entry.range.last()) < slot);
    let rest = segments.get(begins..).unwrap_or_default();
    rest.iter().take_while(move |entry| slot_of(entry.range.first()) == slot)
}

/// Whether all blocks of these slots are held.
fn is_complete(segments: &[SegmentEntry], span: RunSpan) -> bool {
    let is_whole = |slot| slot_range(slot).is_some_and(|all| blocks_in(segments, slot) == [all]);
    (span.first_slot()..span.end_slot()).all(is_whole)
}

fn blocks_in(segments: &[SegmentEntry], slot: u64) -> Vec<chain::BlockRange> {
    let Some(blocks) = slot_range(slot) else { return Vec::new() };
    join_ranges(in_slot(segments, slot).filter_map(|entry| overlap(entry.range, blocks)))
}
