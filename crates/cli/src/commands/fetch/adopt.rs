//! `--digest-only`: published files into the data folder as they are, on the word of their publisher.
//!
//! Knows: which published segments fit beside what is held, and which runs come with them.
//! Never knows: how a folder lists what nobody has proven; the store does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::U256;
use anyhow::Context as _;
use chain::{BlockNumber, BlockRange};
use ingest::import::{ImportSettings, network_of};
use replica::{SealedFile, copy_ahead, has_listed_file};
use store::disk::Folder;
use store::layout::{HeldRange, join_ranges, overlap};
use store::manifest::{RunEntry, SegmentEntry};
use store::read::block_on;
use store::{AdoptedSegments, Drafting, Reader, RunSubject, SLOT_BLOCKS, StoreError, Writer};
use tokio::runtime::Runtime;

use super::from_bucket::{AdoptingFolder, BucketHistory, TakenUnits};
use super::progress::FetchProgress;
use super::stop::FetchStopSignal;
use crate::Failure;
use crate::commands::import::report::is_of_folder;
use crate::commands::import::{to_failure, warn_of_unaccounted};
use crate::output::counted;
use crate::priority::give_way;

/// Segments that become live together, because one run of each lookup is of all of them.
#[derive(Clone, Debug, Default)]
struct AdoptionBatch {
    segments: Vec<SegmentEntry>,
    runs: Vec<RunEntry>,
}

impl AdoptionBatch {
    fn file_names(&self) -> impl Iterator<Item = &str> {
        let segments = self.segments.iter().map(|it| it.file_name.as_str());
        segments.chain(self.runs.iter().map(|it| it.file_name.as_str()))
    }

    fn block_count(&self) -> u64 {
        self.segments.iter().map(|it| it.range.count()).fold(0, u64::saturating_add)
    }

    /// With runs of all of it as it is; else one batch for each slot.
    fn in_parts(self) -> Vec<Self> {
        if !self.runs.is_empty() {
            return vec![self];
        }
        let by_slot = self.segments.chunk_by(|one, next| first_slot(one) == first_slot(next));
        by_slot.map(|segments| Self { segments: segments.to_vec(), runs: Vec::new() }).collect()
    }

    /// The same without files that could not be had. A run is of no use if one of its segments is not
    /// there.
    fn without(mut self, faulty: &BTreeSet<&str>) -> Self {
        let before = self.segments.len();
        self.segments.retain(|it| !faulty.contains(it.file_name.as_str()));
        let are_whole = before == self.segments.len();
        self.runs.retain(|it| are_whole && !faulty.contains(it.file_name.as_str()));
        self
    }
}

impl BucketHistory<'_> {
    /// Makes published segments live as they are, digest only. What is refused does not keep the others
    /// out.
    pub(super) fn adopt_all(
        &self,
        mut into: AdoptingFolder<'_>,
        settings: &ImportSettings,
        progress: &Arc<FetchProgress>,
        (runtime, stop): (&Runtime, &FetchStopSignal),
    ) -> Result<TakenUnits, Failure> {
        let batches = self.plan_adoption(into.writer, settings);
        give_way(|| self.find_stranded(&mut into, &batches))?;
        warn_of_unaccounted(into.writer, &into.stranded);
        progress.expect(batches.iter().map(AdoptionBatch::block_count).sum());
        let is_to_come = |name: &&str| !into.stranded.contains(*name);
        let files: Vec<Vec<SealedFile>> = batches
            .iter()
            .map(|batch| batch.file_names().filter(is_to_come))
            .map(|names| names.filter_map(|name| self.listed.get(name).cloned()).collect())
            .collect();
        let watch = Arc::<FetchProgress>::clone(progress);
        let mut copied = copy_ahead(self.bucket, files, &self.copies, watch, runtime.handle())?;
        let mut taken = TakenUnits::default();
        let mut reached = 0_u64;
        for batch in batches {
            let block_count = batch.block_count();
            let copied = self.next_copied(&mut copied, runtime, stop)?;
            let faulty = self.tell_faults(&copied.faults, progress);
            let faulty: BTreeSet<&str> = faulty.iter().map(String::as_str).collect();
            let lost = batch.segments.iter().filter(|it| faulty.contains(it.file_name.as_str()));
            taken.refused.extend(lost.map(|it| it.range));
            // Lookups are built of the segments where a run does not fit, of one slot after the other.
            let mut left = VecDeque::from(batch.without(&faulty).in_parts());
            while let Some(batch) = left.pop_front() {
                if *stop.flag.borrow() {
                    return Err(stop.failure());
                }
                match give_way(|| self.adopt(&mut into, &batch))? {
                    Ok(()) => {
                        progress.print(line(&batch))?;
                        taken.add(
                            batch.block_count(),
                            batch.segments.iter().map(|it| it.transaction_count).sum(),
                        );
                    }
                    Err(StoreError::Stopped) => return Err(stop.failure()),
                    Err(error) if is_of_folder(&error) && !is_of_batch(&error) => {
                        return Err(to_failure(&error));
                    }
                    // One slot of them is at fault, or a run.
                    Err(_) if !batch.runs.is_empty() => {
                        left = AdoptionBatch { runs: Vec::new(), ..batch }.in_parts().into();
                    }
                    Err(error) => {
                        progress.say(&format!(
                            "error: {}: {error}\n  hint: fetch these blocks without --digest-only",
                            self.publisher
                        ));
                        taken.refused.extend(batch.segments.iter().map(|it| it.range));
                    }
                }
            }
            reached = reached.saturating_add(block_count);
            progress.reach(reached);
        }
        Ok(taken)
    }

    /// Finds what a killed run had moved and not listed, if it is wanted and the published file to
    /// the byte: that need not be copied again. It stays where it is, and so does every other file.
    fn find_stranded(
        &self,
        into: &mut AdoptingFolder<'_>,
        batches: &[AdoptionBatch],
    ) -> Result<(), Failure> {
        let folder = Folder::open(into.path)?;
        let unaccounted: BTreeSet<&String> = into.writer.unaccounted().iter().collect();
        let wanted = batches.iter().flat_map(|batch| &batch.segments);
        // The block that tells the chain is read where copies lie.
        let wanted =
            wanted.filter(|it| it.range.first() > 0 && unaccounted.contains(&it.file_name));
        let listed = wanted.filter_map(|it| self.listed.get(&it.file_name));
        let whole = listed.filter(|file| has_listed_file(&folder, file));
        into.stranded = whole.map(|file| file.name.clone()).collect();
        Ok(())
    }

    fn adopt(
        &self,
        into: &mut AdoptingFolder<'_>,
        batch: &AdoptionBatch,
    ) -> Result<Result<(), StoreError>, Failure> {
        if batch.segments.is_empty() {
            return Ok(Ok(()));
        }
        if let Err(error) = self.check_genesis(into, batch) {
            return Ok(Err(error));
        }
        let mut moved = MovedFiles { from: &self.copies_path, to: into.path, names: Vec::new() };
        let copied = batch.file_names().filter(|name| !into.stranded.contains(*name));
        if let Err(error) = moved.move_all(copied) {
            moved.move_back(into);
            return Err(error.into());
        }
        let told_difficulties = self.told_difficulties(&batch.segments)?;
        let AdoptionBatch { segments, runs } = batch.clone();
        // Of the chain that is wanted, whatever the publisher calls it: that is what a check holds it against.
        let network = network_of(into.spec);
        let adopted = {
            let adopted = AdoptedSegments { network, segments, runs, told_difficulties };
            into.writer.adopt_segments(adopted)
        };
        if adopted.is_err() {
            moved.move_back(into);
        }
        Ok(adopted)
    }

    /// The total difficulties before accumulator epochs that begin with one of these segments, as published:
    /// the roots of the epochs decide about them.
    fn told_difficulties(&self, segments: &[SegmentEntry]) -> Result<Vec<(u64, U256)>, Failure> {
        let mut reader = Reader::new()?;
        let mut told = Vec::new();
        for entry in segments {
            let first = entry.range.first();
            if entry.difficulty.is_zero() || !first.is_multiple_of(SLOT_BLOCKS) {
                continue;
            }
            let before = block_on(self.view.difficulty_before(&mut reader, BlockNumber(first)));
            let before = before.map_err(|error| to_failure(&error))?;
            told.extend(before.map(|before| (first, before)));
        }
        Ok(told)
    }

    /// A folder is of the chain whose genesis it has: that block is not taken on anybody's word.
    fn check_genesis(
        &self,
        into: &AdoptingFolder<'_>,
        batch: &AdoptionBatch,
    ) -> Result<(), StoreError> {
        let Some(expected) = into.spec.genesis_hash() else { return Ok(()) };
        let lowest = batch.segments.iter().find(|it| it.range.first() == 0);
        // What lies in the folder already passed here before it was moved there.
        let lowest = lowest.filter(|it| !into.stranded.contains(&it.file_name));
        let Some(lowest) = lowest else { return Ok(()) };
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let found = block_on(self.view.read_hash(&mut reader, BlockNumber(0)))?;
        match found.filter(|found| *found != expected) {
            None => Ok(()),
            Some(found) => Err(StoreError::Differs {
                file: lowest.file_name.clone(),
                what: "hash of block 0".to_owned(),
                found: found.to_string(),
                expected: format!("{expected}, the genesis of the wanted chain"),
            }),
        }
    }

    /// What is wanted, fits beside what is held, and comes as whole segments.
    fn plan_adoption(&self, writer: &Writer, settings: &ImportSettings) -> Vec<AdoptionBatch> {
        let chosen = self.choose_segments(&writer.drafting(), settings);
        let mut by_slot: BTreeMap<u64, Vec<SegmentEntry>> = BTreeMap::new();
        for entry in chosen {
            by_slot.entry(first_slot(&entry)).or_default().push(entry);
        }
        let is_logged = !writer.view().manifest().is_without_log_index();
        let mut batches = Vec::new();
        for run in self.view.runs().filter(|it| it.subject == RunSubject::Transactions) {
            let slots = run.span.first_slot()..run.span.end_slot();
            let chosen: usize = by_slot.range(slots.clone()).map(|(_, own)| own.len()).sum();
            let all = self.view.segments().filter(|it| slots.contains(&first_slot(it))).count();
            // Only then it is a run of exactly these. The others come one slot after the other.
            if chosen == 0 || chosen != all {
                continue;
            }
            let own: Vec<u64> = by_slot.range(slots).map(|(slot, _)| *slot).collect();
            let segments = own.iter().filter_map(|slot| by_slot.remove(slot)).flatten().collect();
            let same = self.view.runs().filter(|it| it.span == run.span);
            let same = same.filter(|it| is_logged || it.subject != RunSubject::Logs);
            batches.push(AdoptionBatch { segments, runs: same.cloned().collect() });
        }
        let rest = by_slot.into_values();
        batches.extend(rest.map(|segments| AdoptionBatch { segments, runs: Vec::new() }));
        batches.sort_by_key(|batch| batch.segments.first().map(|it| it.range.first()));
        batches
    }

    /// Segments of which nothing is held, no two with the same block, such as this folder would have them.
    fn choose_segments(&self, drafting: &Drafting, settings: &ImportSettings) -> Vec<SegmentEntry> {
        let view = drafting.view();
        let is_wanted = |entry: &&SegmentEntry| {
            let is_inside = settings.blocks.is_none_or(|wanted| {
                wanted.contains(entry.range.first()) && wanted.contains(entry.range.last())
            });
            let is_enough = entry.has_receipts || settings.is_without_receipts_allowed;
            let is_held = view.coverage().iter().any(|it| overlap(*it, entry.range).is_some());
            is_inside && is_enough && !is_held
        };
        let mut wanted: Vec<&SegmentEntry> = self.view.segments().filter(is_wanted).collect();
        // Of two with the same block the longer one: it is what the shorter ones become.
        wanted.sort_by_key(|it| (std::cmp::Reverse(it.range.count()), it.range.first()));
        let mut chosen: Vec<SegmentEntry> = Vec::new();
        let mut taken: BTreeMap<u64, BlockRange> = BTreeMap::new();
        for entry in wanted {
            let before = taken.range(..entry.range.end()).next_back();
            if before.is_none_or(|(_, it)| overlap(*it, entry.range).is_none()) {
                taken.insert(entry.range.first(), entry.range);
                chosen.push(entry.clone());
            }
        }
        chosen.sort_by_key(|it| it.range.first());
        let arriving: Vec<HeldRange> = chosen.iter().map(SegmentEntry::held).collect();
        let others: Vec<BlockRange> = drafting
            .plan_unmerged(&arriving)
            .into_iter()
            .filter(|wanted| !arriving.contains(wanted))
            .map(|it| it.range)
            .collect();
        chosen.retain(|it| others.iter().all(|other| overlap(*other, it.range).is_none()));
        chosen
    }
}

fn first_slot(entry: &SegmentEntry) -> u64 {
    entry.range.first() / SLOT_BLOCKS
}

/// Files on their way into the data folder.
struct MovedFiles<'a> {
    from: &'a PathBuf,
    to: &'a Path,
    names: Vec<String>,
}

impl MovedFiles<'_> {
    fn move_all<'b>(&mut self, names: impl Iterator<Item = &'b str>) -> anyhow::Result<()> {
        for name in names {
            let to = self.to.join(name);
            fs::rename(self.from.join(name), &to).with_context(|| to.display().to_string())?;
            self.names.push(name.to_owned());
        }
        Ok(())
    }

    /// Takes out again what nothing lists, unless a file of that name was there before: nobody
    /// removes it, and what came is that file or a better one.
    fn move_back(&self, into: &mut AdoptingFolder<'_>) {
        let view = into.writer.view();
        for name in self.names.iter().filter(|name| !view.manifest().lists_file(name)) {
            if into.writer.unaccounted().contains(name) {
                into.stranded.insert(name.clone());
            } else {
                // What stays is no segment of this folder: the next writer says so.
                let _ = fs::rename(self.to.join(name), self.from.join(name));
            }
        }
    }
}

/// Whether an error is of what was to be adopted, not of the folder.
fn is_of_batch(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Differs { .. }
            | StoreError::Seam { .. }
            | StoreError::NotOneSegment { .. }
            | StoreError::Conflict(_)
            | StoreError::Segment { .. }
            | StoreError::Index { .. }
    )
}

fn line(batch: &AdoptionBatch) -> String {
    let ranges = join_ranges(batch.segments.iter().map(|it| it.range));
    let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let transactions = batch.segments.iter().map(|it| it.transaction_count).sum();
    let bytes: u64 = batch.segments.iter().map(|it| it.bytes).sum();
    format!(
        "blocks {}  {}  {}, {bytes} bytes  digest only",
        ranges.join(", "),
        counted(transactions, "transaction"),
        counted(u64::try_from(batch.segments.len()).unwrap_or(u64::MAX), "segment"),
    )
}
