//! A manifest that was lost, rebuilt from the segments: each is proven as [`crate::check`] does it.
//!
//! Nothing is removed: what is not listed in the end stays where it is. A manifest that can be read,
//! but lists files that are gone or lacks some that are there, is rebuilt too, and what it knows of
//! the chain is kept. Lookup runs are built anew from the segments; files are named by their content, so those
//! that were right are the same. Blocks that were held and are in no segment any more are recorded as
//! lost: nobody is told that they do not exist.

mod choice;
mod claims;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::trust::{Anchor, Epoch, TrustStatus};
use chain::{BlockNumber, BlockRange, ChainSpec};
use segment::index::RunSubject;

use crate::check::{CheckedGroup, Rebuild, SegmentCheck};
use crate::disk::{Disk, DiskError};
use crate::error::StoreError;
use crate::files::{Claim, FileClaims, Files, LocalFiles};
use crate::finality::Finality;
use crate::footer::{look_at_segment, read_entry};
use crate::genesis_file::{genesis_digest, keep_genesis, read_genesis, read_recorded_genesis};
use crate::head::{HeadView, Recovery, has_log};
use crate::head_reader::survey_head;
use crate::journal::forget as forget_journal;
use crate::journal::unlisted_segments;
use crate::layout::{overlap, slot_of};
use crate::limits::Limits;
use crate::lock::WriterLock;
use crate::lookups::{RunSources, SegmentKeys, build_runs};
use crate::manifest::{
    Edit, MANIFEST_NAME, Manifest, ManifestConflict, ManifestError, Network, RunEntry,
    SegmentEntry, TextFault,
};
use crate::names::{GENESIS_NAME, is_lasting_name, is_segment_name, segment_range};
use crate::part::StagingArea;
use crate::read::{Inline, block_on};
use crate::reader::Reader;
use crate::view::View;

use choice::choose;
use claims::{find_claims, known_hashes};

/// Where a manifest that cannot be read is put.
pub const DAMAGED_NAME: &str = "manifest.damaged";

/// A data folder whose manifest was lost, locked against other writers.
#[derive(Debug)]
pub struct Repair {
    disk: Arc<dyn Disk>,
    files: Arc<Files>,
    network: Network,
    /// The manifest that is there, if it can be read.
    before: Option<Manifest>,
    /// Every segment file that may be listed, by name.
    candidates: BTreeMap<String, FoundSegment>,
    left_out: Vec<UnlistedFile>,
    /// Blocks that something says were held: the manifest, the journal, the names of files.
    claimed: Vec<BlockRange>,
    /// What is chosen now, without lookups.
    view: Arc<View>,
    /// All files that were there at the beginning.
    present: Vec<String>,
    lock: WriterLock,
}

/// A segment file.
#[derive(Debug)]
struct FoundSegment {
    /// Its difficulty is known when it is proven.
    entry: SegmentEntry,
    is_proven: bool,
}

/// A file that is not listed, and stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedFile {
    /// The file.
    pub file_name: String,
    /// Why.
    pub reason: String,
    /// Its blocks are in another file, as they are after a crash: nothing is missing.
    pub is_superseded: bool,
}

/// What a segment gave that was proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProvenSegment {
    /// The sum of its blocks' difficulties.
    pub difficulty: U256,
    /// The chain id that its transactions name.
    pub chain_id: Option<u64>,
}

/// What is known of the chain, beside what segments tell.
#[derive(Clone, Debug, Default)]
pub struct ChainFacts {
    /// Trusted hashes; those of blocks that are not held are passed over.
    pub anchors: Vec<Anchor>,
    /// Accumulator epochs that held blocks gave.
    pub epochs: Vec<Epoch>,
    /// The genesis.json to keep, in place of the one that is there.
    pub genesis: Option<Vec<u8>>,
    /// Whether ranges that nothing links to the chain are listed beside others.
    pub is_unanchored_allowed: bool,
}

impl Repair {
    /// Takes the lock and looks at every segment file. `None` if the manifest is intact, and lists all
    /// that is there.
    pub fn begin(disk: Arc<dyn Disk>) -> Result<Option<Self>, StoreError> {
        let lock = WriterLock::take(&*disk)?;
        let before = match Manifest::load(&*disk) {
            Ok(Some(manifest)) if is_whole(&*disk, &manifest)? => return Ok(None),
            Ok(Some(manifest)) => Some(manifest),
            // Another build wrote it: it is not damaged.
            Err(ManifestError::Corrupt { fault, folder })
                if matches!(fault, TextFault::Version { .. }) =>
            {
                return Err(ManifestError::Corrupt { folder, fault }.into());
            }
            Ok(None) | Err(ManifestError::Corrupt { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let present = disk.list()?;
        let source = LocalFiles::new(Arc::clone(&disk), Arc::new(Inline));
        let files = Arc::new(Files::new(Arc::new(source), Limits::default()));
        let view = view_of(&files, Manifest::new(Network::default()));
        let network = before.as_ref().map(|it| it.network().clone()).unwrap_or_default();
        let claimed = find_claims(&*disk, before.as_ref(), &present)?;
        let mut repair = Self {
            disk,
            files,
            network,
            before,
            candidates: BTreeMap::new(),
            left_out: Vec::new(),
            claimed,
            view,
            present,
            lock,
        };
        for found in repair.disk.irregular()?.iter().filter(|it| is_segment_name(&it.name)) {
            let reason = format!("it is {}, not a file", found.kind);
            repair.leave_out(&found.name, &reason, false);
        }
        for name in repair.present.clone().iter().filter(|name| is_segment_name(name)) {
            match read_entry(&*repair.disk, name) {
                Ok(entry) => {
                    let candidate = FoundSegment { entry, is_proven: false };
                    repair.candidates.insert(name.clone(), candidate);
                }
                Err(StoreError::Disk(error)) if !error.is_of_content() => return Err(error.into()),
                // What a name says and its footer denies was never held.
                Err(error @ StoreError::Differs { .. }) => {
                    let (file_name, reason) = (name.clone(), error.to_string());
                    repair.left_out.push(UnlistedFile { file_name, reason, is_superseded: false });
                }
                Err(error) => repair.leave_out(name, &error, false),
            }
        }
        if repair.candidates.is_empty() && repair.left_out.is_empty() && !has_log(&*repair.disk)? {
            return Err(StoreError::NoSegment { folder: repair.disk.place() });
        }
        repair.choose()?;
        Ok(Some(repair))
    }

    /// What the chosen segments hold, without lookups by hash.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    /// The files that are not listed, and why.
    #[must_use]
    pub fn left_out(&self) -> &[UnlistedFile] {
        &self.left_out
    }

    /// What is known of the chain.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The genesis.json that the folder keeps, if it is the one that the manifest records.
    pub fn read_genesis(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.before {
            Some(before) => read_recorded_genesis(&*self.disk, before),
            None => Ok(read_genesis(&*self.disk)?),
        }
    }

    /// Says which chain it is; segments of another are refused when they are proven.
    pub fn learn(&mut self, network: Network) -> Result<(), StoreError> {
        if let Some(before) = &self.before {
            before.refuse_other_chain(&network)?;
        }
        let known = Manifest::new(self.network.clone());
        let edit = Edit { network, ..Edit::default() };
        self.network = known.edited(edit)?.network().clone();
        self.choose()
    }

    /// The place in the view of the next segment to prove.
    #[must_use]
    pub fn next_unproven(&self) -> Option<usize> {
        let is_unproven = |entry: &SegmentEntry| {
            self.candidates.get(&entry.file_name).is_none_or(|it| !it.is_proven)
        };
        self.view.manifest().segments().iter().position(is_unproven)
    }

    /// Takes what proving the segment at a place of the view came to. One that is false is left out,
    /// and others that hold its blocks are chosen in its place.
    pub fn take(
        &mut self,
        position: usize,
        outcome: Result<ProvenSegment, StoreError>,
    ) -> Result<(), StoreError> {
        let view = self.view();
        let Some(entry) = view.manifest().segments().get(position) else { return Ok(()) };
        let name = &entry.file_name;
        match outcome {
            Ok(proven) => {
                let known = self.network.chain_id;
                if let Some((known, found)) = known.zip(proven.chain_id).filter(|it| it.0 != it.1) {
                    let name = name.clone();
                    let reason = format!("its chain id is {found}, that of the others is {known}");
                    self.candidates.remove(&name);
                    // Blocks of another chain are none that this folder has lost.
                    self.left_out.push(UnlistedFile {
                        file_name: name,
                        reason,
                        is_superseded: false,
                    });
                    return self.choose();
                }
                self.network.chain_id = known.or(proven.chain_id);
                if let Some(candidate) = self.candidates.get_mut(name) {
                    candidate.entry.difficulty = proven.difficulty;
                    candidate.is_proven = true;
                }
                Ok(())
            }
            // A disk that fails says nothing of the file.
            Err(StoreError::Disk(error)) if !error.is_of_content() => Err(error.into()),
            Err(error) => {
                self.candidates.remove(name);
                self.leave_out(name, &error, false);
                self.choose()
            }
        }
    }

    fn leave_out(&mut self, name: &str, reason: &dyn ToString, is_superseded: bool) {
        self.claimed.extend(segment_range(name));
        let (file_name, reason) = (name.to_owned(), reason.to_string());
        self.left_out.push(UnlistedFile { file_name, reason, is_superseded });
    }

    /// Chooses among the candidates.
    fn choose(&mut self) -> Result<(), StoreError> {
        let entries: Vec<&SegmentEntry> = self.candidates.values().map(|it| &it.entry).collect();
        let segments = choose(&entries)?.chosen.into_iter().cloned().collect();
        let edit = Edit { network: self.network.clone(), segments, ..Edit::default() };
        let manifest = Manifest::new(Network::default()).edited(edit)?;
        self.view = view_of(&self.files, manifest);
        Ok(())
    }

    /// Builds the lookups and writes the manifest, when every chosen segment is proven. Tells what the
    /// folder holds then. The spec proves the blocks of the head.
    pub fn finish(
        mut self,
        spec: &ChainSpec,
        facts: &ChainFacts,
    ) -> Result<RepairReport, StoreError> {
        let entries: Vec<&SegmentEntry> = self.candidates.values().map(|it| &it.entry).collect();
        let choice = choose(&entries)?;
        let chosen: Vec<SegmentEntry> = choice.chosen.into_iter().cloned().collect();
        // Whoever named another chain than the files' would have an empty folder made of them.
        if let (true, Some(false_one)) = (chosen.is_empty(), self.left_out.first()) {
            let (file, reason) = (false_one.file_name.clone(), false_one.reason.clone());
            return Err(StoreError::NothingProven { file, reason });
        }
        for passed in choice.passed_over {
            let reason = self.compare_with_chosen(&passed)?;
            self.leave_out(&passed.file_name, &reason, passed.is_superseded);
        }
        let edit = self.known_facts(facts, &chosen)?;
        let sealed = Edit { segments: chosen.clone(), ..edit.clone() };
        let sealed = Manifest::new(Network::default())
            .edited(sealed)?
            .with_head(self.before.as_ref().and_then(Manifest::head));
        if !facts.is_unanchored_allowed {
            self.refuse_unlinked(&sealed)?;
        }
        let found = survey_head(Arc::clone(&self.disk), spec, &sealed)?;
        if !facts.is_unanchored_allowed && self.before.is_none() {
            refuse_unlinked_head(found.range, found.recovery.log.as_deref(), &sealed)?;
        }
        let manifest = self.build_lookups(&chosen)?.edited(edit)?;
        let manifest = manifest.with_head(found.record);
        let manifest = manifest.with_lost(self.claimed.iter().copied().chain(found.lost));
        let manifest = manifest.with_lost_hashes(self.before.iter().flat_map(known_hashes));
        let digest = self.keep_genesis(facts.genesis.as_deref())?;
        let manifest = manifest.with_genesis_file(digest);
        self.disk.fsync_folder()?; // the names of the runs, before a manifest lists them
        self.set_damaged_aside()?;
        manifest.replace(&*self.disk)?;
        // A commit that it tells of was another manifest's.
        forget_journal(&*self.disk)?;
        let (head_loss, head) = (found.missing, found.recovery);
        let is_manifest_lost = self.before.is_none();
        Ok(RepairReport { manifest, left_out: self.left_out, head_loss, head, is_manifest_lost })
    }

    /// Everything but files that is known of the chosen segments: what is told now, and what the
    /// manifest said that can be read.
    fn known_facts(&self, facts: &ChainFacts, chosen: &[SegmentEntry]) -> Result<Edit, StoreError> {
        let mut anchors = Vec::new();
        let known = self.before.iter().flat_map(Manifest::anchors);
        for anchor in facts.anchors.iter().copied().chain(known) {
            match self.hash_of(BlockNumber(anchor.number))? {
                Some(held) if held == anchor.hash => anchors.push(anchor),
                Some(trusted) => {
                    return Err(ManifestConflict::Anchor { refused: anchor, trusted }.into());
                }
                None => {}
            }
        }
        let is_held = |number| chosen.iter().any(|entry| entry.range.contains(number));
        let known = self.before.iter().flat_map(Manifest::epochs);
        let known = known.filter(|epoch| is_held(epoch.last));
        Ok(Edit {
            network: self.network.clone(),
            anchors,
            epochs: facts.epochs.iter().copied().chain(known).collect(),
            difficulties: self.before.iter().flat_map(Manifest::difficulties).collect(),
            ..Edit::default()
        })
    }

    /// Compares a file that is not listed with those that are, where they share blocks; gives the
    /// reason why it is not listed. One hash stands for all blocks below it. Files that contradict each
    /// other are refused: nobody here can tell which is right.
    fn compare_with_chosen(&self, passed: &UnlistedFile) -> Result<String, StoreError> {
        let Some(candidate) = self.candidates.get(&passed.file_name) else {
            return Ok(passed.reason.clone());
        };
        let entry = &candidate.entry;
        let edit = Edit { segments: vec![entry.clone()], ..Edit::default() };
        let own = view_of(&self.files, Manifest::new(Network::default()).edited(edit)?);
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        for held in self.view.manifest().segments() {
            let Some(shared) = overlap(held.range, entry.range) else { continue };
            let number = BlockNumber(shared.last());
            let found = match block_on(own.read_hash(&mut reader, number)) {
                Err(StoreError::Disk(error)) if !error.is_of_content() => return Err(error.into()),
                Err(error) => return Ok(format!("it cannot be read ({error}); {}", passed.reason)),
                Ok(found) => found.ok_or(StoreError::NotHeld { number })?,
            };
            let expected = self.hash_of(number)?.ok_or(StoreError::NotHeld { number })?;
            if found != expected {
                return Err(StoreError::Differs {
                    file: passed.file_name.clone(),
                    what: format!("hash of block {number}, which {} holds too,", held.file_name),
                    found: found.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        Ok(passed.reason.clone())
    }

    /// Refuses ranges that may be of different chains: with a gap between two of them no hash tells that
    /// they are of one. What the manifest listed together before stays together.
    fn refuse_unlinked(&self, told: &Manifest) -> Result<(), StoreError> {
        let coverage = told.coverage();
        let files = |range: BlockRange| {
            let segments = told.segments().iter();
            segments.filter(move |it| overlap(it.range, range).is_some()).map(|it| &it.file_name)
        };
        let was_listed =
            |name: &String| self.before.as_ref().is_some_and(|before| before.lists_segment(name));
        let statuses = told.statuses()?;
        let is_unlinked = |range: &BlockRange| {
            let mut own = statuses.iter().filter(|(part, _)| overlap(*part, *range).is_some());
            own.all(|(_, status)| *status == TrustStatus::Unanchored)
                && !files(*range).all(was_listed)
        };
        let unlinked = coverage.iter().rfind(|range| is_unlinked(range));
        let other = coverage.iter().find(|range| Some(*range) != unlinked);
        let (Some(range), Some(other)) = (unlinked, other) else { return Ok(()) };
        let first = |range: BlockRange| files(range).next().cloned().unwrap_or_default();
        let (file, other_file) = (first(*range), first(*other));
        Err(StoreError::Unlinked { range: *range, file, other: *other, other_file })
    }

    /// Keeps the genesis.json that is given, if one is; what the manifest is to record of it.
    fn keep_genesis(&self, given: Option<&[u8]>) -> Result<Option<B256>, StoreError> {
        if let Some(bytes) = given {
            keep_genesis(&*self.disk, &self.lock, bytes)?;
            return Ok(Some(genesis_digest(bytes)));
        }
        match self.before.as_ref().and_then(Manifest::genesis_file) {
            Some(recorded) => Ok(Some(recorded)),
            None => Ok(read_genesis(&*self.disk)?.as_deref().map(genesis_digest)),
        }
    }

    fn hash_of(&self, number: BlockNumber) -> Result<Option<B256>, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        block_on(self.view.read_hash(&mut reader, number))
    }

    /// A manifest with these segments and their lookups, slot after slot: no more than the keys of one
    /// slot are in memory.
    fn build_lookups(&self, chosen: &[SegmentEntry]) -> Result<Manifest, StoreError> {
        let claims = Arc::<FileClaims>::default();
        let _removal = claims.begin_removal(Arc::clone(&self.disk));
        let workshop = StagingArea::new(Arc::clone(&self.disk), claims);
        let mut files: Vec<Claim> = Vec::new();
        let is_indexed = self.before.as_ref().is_none_or(|before| !before.is_without_log_index());
        let mut manifest = Manifest::new(Network::default()).with_log_index(is_indexed);
        let is_same_slot = |one: &SegmentEntry, next: &SegmentEntry| {
            slot_of(one.range.first()) == slot_of(next.range.first())
        };
        for slot in chosen.chunk_by(is_same_slot) {
            let mut keys = BTreeMap::new();
            for entry in slot {
                let is_read = is_indexed && entry.has_receipts;
                let logs = is_read.then(|| self.view.read_log_keys(entry.range)).transpose()?;
                let own = SegmentKeys { logs, ..self.read_keys(entry.range)? };
                keys.insert(entry.file_name.clone(), own);
            }
            let after: Vec<SegmentEntry> =
                manifest.segments().iter().chain(slot).cloned().collect();
            let sources = RunSources {
                before: &manifest,
                segments: &after,
                keys: &keys,
                read_logs: &|range| self.view.read_log_keys(range),
                indexed_now: &[],
            };
            let change = build_runs(&workshop, sources, &[])?;
            files.extend(change.files);
            let gone = change.gone.into_iter().collect();
            let edit =
                Edit { segments: slot.to_vec(), runs: change.built, gone, ..Edit::default() };
            manifest = manifest.edited(edit)?;
            // Steps on the way go, unless they were there before.
            let was_there = |file: &&Claim| self.present.iter().any(|it| it == file.file_name());
            files.iter().filter(was_there).for_each(Claim::keep);
            let is_listed = |run: &RunEntry, file: &Claim| run.file_name == file.file_name();
            files.retain(|file| manifest.runs().iter().any(|run| is_listed(run, file)));
        }
        files.iter().for_each(Claim::keep);
        Ok(manifest)
    }

    /// What lookups keep of these blocks, which one segment holds.
    fn read_keys(&self, range: BlockRange) -> Result<SegmentKeys, StoreError> {
        Ok(SegmentKeys {
            transactions: self.view.read_hash_keys(RunSubject::Transactions, range)?,
            blocks: self.view.read_hash_keys(RunSubject::Blocks, range)?,
            logs: None,
        })
    }

    /// Keeps a manifest that cannot be read for whoever wants to look.
    fn set_damaged_aside(&self) -> Result<(), DiskError> {
        if self.before.is_some() || !self.present.iter().any(|name| name == MANIFEST_NAME) {
            return Ok(());
        }
        let mut names = std::iter::once(DAMAGED_NAME.to_owned())
            .chain((2_u64..).map(|number| format!("{DAMAGED_NAME}.{number}")));
        let free = names.find(|name| !self.present.contains(name));
        self.disk.rename(MANIFEST_NAME, free.as_deref().unwrap_or(DAMAGED_NAME))
    }
}

/// A folder whose manifest is there again.
#[derive(Debug)]
pub struct RepairReport {
    /// What it lists.
    pub manifest: Manifest,
    /// What it does not list.
    pub left_out: Vec<UnlistedFile>,
    /// What the head's log lacks of what the manifest recorded: nothing is asked of it any more.
    pub head_loss: Option<StoreError>,
    /// What of the head's log was not taken.
    pub head: Recovery,
    /// Whether no manifest could be read that said what was known of the chain.
    pub is_manifest_lost: bool,
}

/// Refuses a head that stands above a gap, where no manifest says that the folder had it: it may be of
/// another chain than the segments.
fn refuse_unlinked_head(
    head: Option<BlockRange>,
    log: Option<&str>,
    sealed: &Manifest,
) -> Result<(), StoreError> {
    let coverage = sealed.coverage();
    let (Some(range), Some(other)) = (head, coverage.last().copied()) else { return Ok(()) };
    let below = range.first().saturating_sub(1);
    if coverage.iter().any(|held| held.contains(below) || held.contains(range.first())) {
        return Ok(());
    }
    let other_file = sealed.segments().last().map(|it| it.file_name.clone()).unwrap_or_default();
    let file = log.unwrap_or("the head's log").to_owned();
    Err(StoreError::Unlinked { range, file, other, other_file })
}

/// Collects what the groups of one segment give, in order.
#[derive(Debug)]
pub struct SegmentProof {
    rebuild: Rebuild,
    proven: ProvenSegment,
}

impl SegmentProof {
    /// Begins with the segment at a place of a [`Repair::view`]; `None` past the last.
    pub fn begin<'a>(
        view: &'a View,
        spec: &'a ChainSpec,
        position: usize,
    ) -> Result<Option<(SegmentCheck<'a>, Self)>, StoreError> {
        let begun = SegmentCheck::begin(view, spec, position)?;
        let proven = ProvenSegment::default();
        Ok(begun.map(|(check, rebuild)| (check.unlisted(), Self { rebuild, proven })))
    }

    /// Takes the next group.
    pub fn take(&mut self, examined: CheckedGroup) -> Result<(), StoreError> {
        for block in examined.blocks() {
            let ProvenSegment { difficulty, chain_id } = &mut self.proven;
            *difficulty = difficulty.saturating_add(block.header.difficulty);
            let mut transactions = block.transactions.iter();
            *chain_id = chain_id.or_else(|| {
                transactions.find_map(|tx| alloy_consensus::Transaction::chain_id(&tx.envelope))
            });
        }
        self.rebuild.take(examined)
    }

    /// Holds the file against what its blocks give.
    pub fn finish(self, check: &SegmentCheck<'_>) -> Result<ProvenSegment, StoreError> {
        self.rebuild.finish(check)?;
        Ok(self.proven)
    }
}

/// Whether a manifest lists all segments of a folder, and every file that it lists is there with its
/// length, and the segments with their footers.
fn is_whole(disk: &dyn Disk, manifest: &Manifest) -> Result<bool, StoreError> {
    for entry in manifest.segments() {
        match look_at_segment(disk, entry) {
            Ok(()) => {}
            Err(StoreError::Disk(error)) if !error.is_of_content() && !error.is_missing() => {
                return Err(error.into());
            }
            Err(_) => return Ok(false),
        }
    }
    for entry in manifest.runs() {
        match disk.file_bytes(&entry.file_name) {
            Ok(bytes) if bytes == entry.bytes => {}
            Err(error) if !error.is_of_content() && !error.is_missing() => {
                return Err(error.into());
            }
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Ok(unlisted_segments(disk)?.is_empty())
}

/// Whether anything of a data folder is there, be it damaged. Archives have a genesis.json beside them
/// too.
pub fn is_data_folder(disk: &dyn Disk) -> Result<bool, DiskError> {
    let is_ours = |name: &str| is_lasting_name(name) && name != GENESIS_NAME;
    Ok(disk.list()?.iter().any(|name| is_ours(name) || name == MANIFEST_NAME))
}

fn view_of(files: &Arc<Files>, manifest: Manifest) -> Arc<View> {
    let (files, head) = (Arc::clone(files), Arc::new(HeadView::default()));
    Arc::new(View::new(files, manifest, Arc::default(), head, Finality::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::{segment, with_segment};

    #[test]
    fn a_head_above_a_gap_is_refused_where_no_manifest_vouches_for_it() {
        let sealed = with_segment(&Manifest::new(Network::default()), segment(0, 255)).unwrap();
        let judge = |first, last, sealed: &Manifest| {
            let head = BlockRange::from_ends(first, last);
            refuse_unlinked_head(head, Some("head-7.log"), sealed)
        };
        for first in [0, 200, 256] {
            judge(first, 300, &sealed).unwrap();
        }
        let refused = judge(257, 300, &sealed).unwrap_err().to_string();
        let said = ["head-7.log", "257..300", "0..255", "0-255.seg"];
        assert!(said.iter().all(|part| refused.contains(part)), "{refused}");
        // Nothing is sealed that it could contradict.
        judge(257, 300, &Manifest::new(Network::default())).unwrap();
        refuse_unlinked_head(None, None, &sealed).unwrap();
    }
}
