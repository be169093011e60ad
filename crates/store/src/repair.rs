//! A manifest that was lost, rebuilt from the segments: each is proven as [`crate::check`] does it.
//!
//! Knows: which of the files that lie in the folder belong together, and that nothing is written until
//! all of them are proven.
//! Never knows: which threads prove, or what the chain is called.
//!
//! Nothing is removed: what is not listed in the end stays where it is. A manifest that can be read,
//! but lists files that are gone or lacks some that are there, is rebuilt too, and what it knows of
//! the chain is kept. Lookup runs are built anew from the segments; files are named by their content, so those
//! that were right are the same.

mod choice;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::trust::{Anchor, Epoch};
use chain::{BlockRange, ChainSpec};
use segment::lookup::HashPrefix;
use segment::{FOOTER_BYTES, Footer};

use crate::check::{Examined, Rebuild, SegmentCheck};
use crate::disk::{Disk, DiskError};
use crate::error::StoreError;
use crate::files::{Files, LocalFiles};
use crate::head::{HeadView, has_log};
use crate::journal::forget as forget_journal;
use crate::journal::unlisted_segments;
use crate::layout::{Held, slot_of};
use crate::limits::Limits;
use crate::lock::WriterLock;
use crate::lookups::{SegmentKeys, build_runs};
use crate::manifest::{
    Edit, MANIFEST_NAME, Manifest, ManifestError, Network, SegmentEntry, TextFault,
};
use crate::names::{GENESIS_NAME, is_lasting_name, is_segment_name, segment_name};
use crate::part::Workshop;
use crate::read::{Inline, block_on};
use crate::reader::Reader;
use crate::view::View;

use choice::choose;

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
    candidates: BTreeMap<String, Candidate>,
    left_out: Vec<LeftOut>,
    /// What is chosen now, without lookups.
    view: Arc<View>,
    /// All files that were there at the beginning.
    present: Vec<String>,
    _lock: WriterLock,
}

/// A segment file.
#[derive(Debug)]
struct Candidate {
    /// Its difficulty is known when it is proven.
    entry: SegmentEntry,
    is_proven: bool,
}

/// A file that is not listed, and stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
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
    pub(crate) difficulty: U256,
    pub(crate) chain_id: Option<u64>,
}

/// What is known of the chain, beside what segments tell.
#[derive(Clone, Debug, Default)]
pub struct ChainFacts {
    /// Trusted hashes; those of blocks that are not held are passed over.
    pub anchors: Vec<Anchor>,
    /// Accumulator epochs that held blocks gave.
    pub epochs: Vec<Epoch>,
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
        let mut repair = Self {
            disk,
            files,
            network,
            before,
            candidates: BTreeMap::new(),
            left_out: Vec::new(),
            view,
            present,
            _lock: lock,
        };
        for name in repair.present.clone().iter().filter(|name| is_segment_name(name)) {
            match read_entry(&*repair.disk, name) {
                Ok(entry) => {
                    let candidate = Candidate { entry, is_proven: false };
                    repair.candidates.insert(name.clone(), candidate);
                }
                Err(StoreError::Disk(error)) if !is_of_content(&error) => return Err(error.into()),
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
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What is known of the chain.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Says which chain it is; segments of another are refused when they are proven.
    pub fn learn(&mut self, network: Network) -> Result<(), StoreError> {
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
                    self.leave_out(&name, &reason, false);
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
            Err(StoreError::Disk(error)) if !is_of_content(&error) => Err(error.into()),
            Err(error) => {
                self.candidates.remove(name);
                self.leave_out(name, &error, false);
                self.choose()
            }
        }
    }

    fn leave_out(&mut self, name: &str, reason: &dyn ToString, is_superseded: bool) {
        let (file_name, reason) = (name.to_owned(), reason.to_string());
        self.left_out.push(LeftOut { file_name, reason, is_superseded });
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
    /// folder holds then.
    pub fn finish(mut self, facts: ChainFacts) -> Result<Repaired, StoreError> {
        let entries: Vec<&SegmentEntry> = self.candidates.values().map(|it| &it.entry).collect();
        let choice = choose(&entries)?;
        let chosen: Vec<SegmentEntry> = choice.chosen.into_iter().cloned().collect();
        // Whoever named another chain than the files' would have an empty folder made of them.
        if let (true, Some(false_one)) = (chosen.is_empty(), self.left_out.first()) {
            let (file, reason) = (false_one.file_name.clone(), false_one.reason.clone());
            return Err(StoreError::NothingProven { file, reason });
        }
        for passed in choice.passed_over {
            self.leave_out(&passed.file_name, &passed.reason, passed.is_superseded);
        }
        let network = self.network.clone();
        let mut anchors = Vec::new();
        let known = self.before.iter().flat_map(Manifest::anchors);
        for anchor in facts.anchors.into_iter().chain(known) {
            match self.hash_of(anchor.number)? {
                Some(held) if held == anchor.hash => anchors.push(anchor),
                Some(held) => {
                    return Err(crate::manifest::Conflict::Anchor {
                        refused: anchor,
                        trusted: held,
                    }
                    .into());
                }
                None => {}
            }
        }
        let manifest = self.build_lookups(&chosen)?;
        let is_held = |number| manifest.find_segment(number).is_some();
        let known = self.before.iter().flat_map(Manifest::epochs);
        let known = known.filter(|epoch| is_held(epoch.last)).collect::<Vec<_>>();
        let epochs = facts.epochs.into_iter().chain(known).collect();
        let difficulties = self.before.iter().flat_map(Manifest::difficulties).collect();
        let edit = Edit { network, anchors, epochs, difficulties, ..Edit::default() };
        let head = self.before.as_ref().and_then(Manifest::head);
        let manifest = manifest.edited(edit)?.with_head(head);
        self.disk.fsync_folder()?; // the names of the runs, before a manifest lists them
        self.set_damaged_aside()?;
        manifest.replace(&*self.disk)?;
        // A commit that it tells of was another manifest's.
        forget_journal(&*self.disk)?;
        Ok(Repaired { manifest, left_out: self.left_out })
    }

    fn hash_of(&self, number: u64) -> Result<Option<B256>, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        block_on(self.view.read_hash(&mut reader, number))
    }

    /// A manifest with these segments and their lookups, slot after slot: no more than the keys of one
    /// slot are in memory.
    fn build_lookups(&self, chosen: &[SegmentEntry]) -> Result<Manifest, StoreError> {
        let workshop = Workshop::new(Arc::clone(&self.disk));
        let mut manifest = Manifest::new(Network::default());
        let is_same_slot = |one: &SegmentEntry, next: &SegmentEntry| {
            slot_of(one.range.first()) == slot_of(next.range.first())
        };
        for slot in chosen.chunk_by(is_same_slot) {
            let mut keys = BTreeMap::new();
            for entry in slot {
                keys.insert(entry.file_name.clone(), self.read_keys(entry.range)?);
            }
            let after: Vec<SegmentEntry> =
                manifest.segments().iter().chain(slot).cloned().collect();
            let change = build_runs(&workshop, &manifest, &after, &keys, &[])?;
            // Steps on the way that were not there before; all others stay.
            let steps = change.gone.iter().chain(&change.passing);
            for name in steps.filter(|name| !self.present.contains(name)) {
                self.disk.remove(name)?;
            }
            let gone = change.gone.into_iter().collect();
            let edit =
                Edit { segments: slot.to_vec(), runs: change.built, gone, ..Edit::default() };
            manifest = manifest.edited(edit)?;
        }
        Ok(manifest)
    }

    /// What lookups keep of these blocks, which one segment holds.
    fn read_keys(&self, range: BlockRange) -> Result<SegmentKeys, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut keys = SegmentKeys::default();
        for number in range.first()..range.end() {
            let block = block_on(self.view.read_hashes(&mut reader, number))?;
            let block = block.ok_or(StoreError::NotHeld { number })?;
            keys.blocks.push(HashPrefix::of(&block.header.hash));
            keys.transactions.extend(block.hashes.iter().map(HashPrefix::of));
        }
        Ok(keys)
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
pub struct Repaired {
    /// What it lists.
    pub manifest: Manifest,
    /// What it does not list.
    pub left_out: Vec<LeftOut>,
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
        Ok(begun.map(|(check, rebuild)| (check.without_lookups(), Self { rebuild, proven })))
    }

    /// Takes the next group.
    pub fn take(&mut self, examined: Examined) -> Result<(), StoreError> {
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

/// Whether a manifest lists all segments of a folder, and every file that it lists is there.
fn is_whole(disk: &dyn Disk, manifest: &Manifest) -> Result<bool, StoreError> {
    let present = disk.list()?;
    let is_there = |name: &String| present.binary_search(name).is_ok();
    let segments = manifest.segments().iter().map(|entry| &entry.file_name);
    let mut listed = segments.chain(manifest.runs().iter().map(|entry| &entry.file_name));
    Ok(listed.all(is_there) && unlisted_segments(disk)?.is_empty())
}

/// Whether anything of a data folder is there, be it damaged. Archives have a genesis.json beside them
/// too.
pub fn is_data_folder(disk: &dyn Disk) -> Result<bool, DiskError> {
    let is_ours = |name: &str| is_lasting_name(name) && name != GENESIS_NAME;
    Ok(disk.list()?.iter().any(|name| is_ours(name) || name == MANIFEST_NAME))
}

fn view_of(files: &Arc<Files>, manifest: Manifest) -> Arc<View> {
    Arc::new(View::new(Arc::clone(files), manifest, Arc::new(HeadView::default())))
}

/// What a manifest would say of a segment file, by its footer.
fn read_entry(disk: &dyn Disk, name: &str) -> Result<SegmentEntry, StoreError> {
    let bytes = disk.file_bytes(name)?;
    let footer_bytes = u64::try_from(FOOTER_BYTES).unwrap_or(u64::MAX);
    let footer = disk.read_range(name, bytes.saturating_sub(footer_bytes)..bytes)?;
    let footer = Footer::parse(&footer)
        .map_err(|cause| StoreError::Segment { file: name.to_owned(), cause })?;
    let facts = footer.facts;
    let (digest, has_receipts) = (B256::from(footer.digest), facts.has_receipts);
    let expected = segment_name(Held { range: facts.range, has_receipts }, digest);
    if expected != name {
        let (file, what, found) = (name.to_owned(), "name".to_owned(), name.to_owned());
        return Err(StoreError::Differs { file, what, found, expected });
    }
    Ok(SegmentEntry {
        range: facts.range,
        file_name: expected,
        bytes,
        digest,
        has_receipts,
        parent_hash: facts.parent_hash,
        last_hash: facts.last_hash,
        transaction_count: facts.transaction_count,
        log_count: facts.log_count,
        difficulty: U256::ZERO,
    })
}

/// Whether the bytes are at fault, not the disk.
fn is_of_content(error: &DiskError) -> bool {
    matches!(error, DiskError::Range { .. } | DiskError::Shrunk { .. } | DiskError::TooLarge { .. })
}
