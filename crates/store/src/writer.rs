//! The one writer of a data folder: builds segments, keeps the lookups, exchanges the manifest.

mod drafting;
mod head;
mod log_index;
mod rewind;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use chain::trust::{Anchor, Anchors, Epoch};
use chain::{Block, BlockNumber, BlockRange, ChainSpec, Start, Verified, Verifier};
use segment::{count_block, counted_blocks, groups};

use crate::draft::NewSegment;
use crate::error::StoreError;
use crate::files::{Claim, Removal};
use crate::footer::look_at_segment;
use crate::genesis_file::{forget_genesis, genesis_digest, keep_genesis, read_genesis};
use crate::head::Head;
use crate::journal::Journal;
use crate::layout::{HeldRange, overlap, plan_unmerged};
use crate::lock::WriterLock;
use crate::lookups::{RunSources, SegmentKeys, build_runs};
use crate::manifest::{Edit, Manifest, Network, RunEntry, SegmentEntry};
use crate::names::{is_data_name, is_segment_name};
use crate::part::StagedFile;
use crate::read::block_on;
use crate::reader::Reader;
use crate::store::Store;
use crate::view::View;

use drafting::PreparedRun;
pub use drafting::{Drafting, PreparedSegments};
use rewind::cut_above;

/// The right to change a data folder, and the ways to do it.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Store>,
    drafting: Drafting,
    spec: ChainSpec,
    head: Option<Head>,
    /// Whether the manifest that is shown is durable.
    is_settled: bool,
    journal: Journal,
    unaccounted: Vec<String>,
    /// Ends before the lock is given back: fields are dropped in their order.
    _removal: Removal,
    lock: WriterLock,
}

/// What becomes known of the chain together with new segments.
#[derive(Clone, Debug, Default)]
pub struct CommitFacts {
    /// Which chain it is.
    pub network: Network,
    /// Trusted hashes that held blocks have.
    pub anchors: Vec<Anchor>,
    /// Accumulator epochs that held blocks gave.
    pub epochs: Vec<Epoch>,
    /// Total difficulties before the first blocks of segments, where a source tells them.
    pub difficulties: Vec<(u64, U256)>,
}

/// What else a commit does, or can do without.
#[derive(Debug, Default)]
struct CommitExtras {
    /// All that is above this block goes.
    cut: Option<BlockNumber>,
    /// Runs that were built beforehand.
    prepared: Vec<PreparedRun>,
    /// A slot that gets a log index though its blocks do not change.
    indexed_now: Option<u64>,
}

impl Writer {
    /// Takes the folder's lock, begins the manifest of an empty folder, and removes what a crash has
    /// left: unlisted lookup runs, unfinished files, and the unlisted segments that the journal names.
    /// [`Writer::unaccounted`] tells of other unlisted segments: they stay.
    pub fn open(store: Arc<Store>, spec: ChainSpec) -> Result<Self, StoreError> {
        let lock = WriterLock::take(&**store.disk())?;
        // Before we had the lock, another writer may have changed the folder.
        store.refresh()?;
        let disk = Arc::clone(store.disk());
        // A writer that was killed may have left a manifest whose name is not durable: after a crash
        // the one before it would be back, and ask for the files that are removed here.
        disk.fsync_folder()?;
        store.begin_manifest()?;
        let mut journal = Journal::open(Arc::clone(&disk))?;
        let view = store.view();
        let claims = view.files().claims();
        let removal = claims.begin_removal(Arc::clone(&disk));
        let listed = listed(view.manifest());
        let mut unaccounted = Vec::new();
        for name in disk.list()? {
            if !is_data_name(&name) || listed.contains(&name) {
                continue;
            }
            if is_segment_name(&name) && !journal.accounts_for(&name, view.manifest()) {
                unaccounted.push(name);
            } else {
                claims.remove(&name)?;
            }
        }
        journal.settle(view.manifest())?;
        let drafting = Drafting::new(Arc::clone(&store));
        Ok(Self {
            store,
            drafting,
            spec,
            head: None,
            is_settled: true,
            journal,
            unaccounted,
            _removal: removal,
            lock,
        })
    }

    /// Keeps a genesis.json in the folder, in place of one that is there, and records it. In between
    /// nothing is recorded of it: so whatever a crash leaves, the manifest does not ask for another file.
    pub fn keep_genesis(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.look()?;
        let digest = Some(genesis_digest(bytes));
        if self.view().manifest().genesis_file() != digest {
            self.record_genesis(None)?;
        }
        keep_genesis(&**self.store.disk(), &self.lock, bytes)?;
        self.record_genesis(digest)
    }

    /// Records the genesis.json that is there, if nothing is recorded of it: of a crash, or by a caller
    /// who has seen that it is of this chain.
    pub fn adopt_genesis(&mut self) -> Result<(), StoreError> {
        if self.view().manifest().genesis_file().is_some() {
            return Ok(());
        }
        let kept = read_genesis(&**self.store.disk())?;
        self.record_genesis(kept.as_deref().map(genesis_digest))
    }

    /// Keeps no genesis.json any more: the folder, which holds no block yet, gets another chain.
    pub fn forget_genesis(&mut self) -> Result<(), StoreError> {
        self.look()?;
        self.record_genesis(None)?;
        Ok(forget_genesis(&**self.store.disk(), &self.lock)?)
    }

    fn record_genesis(&mut self, digest: Option<B256>) -> Result<(), StoreError> {
        let next = self.view().manifest().clone().with_genesis_file(digest);
        self.replace_as_it_is(&next)
    }

    /// The segments that were neither listed nor left by a commit when the folder was opened.
    #[must_use]
    pub fn unaccounted(&self) -> &[String] {
        &self.unaccounted
    }

    /// Whether the segments that hold some of these blocks have the lengths and footers that the manifest
    /// says. Their blocks are not read: [`crate::check`] proves them.
    pub fn look_at_segments(&self, blocks: BlockRange) -> Result<(), StoreError> {
        let view = self.view();
        let listed = view.manifest().segments().iter();
        let mut concerned = listed.filter(|entry| overlap(entry.range, blocks).is_some());
        concerned.try_for_each(|entry| look_at_segment(&**self.store.disk(), entry))
    }

    /// What is held now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.store.view()
    }

    /// What others need to build segments while this writer does something else.
    #[must_use]
    pub fn drafting(&self) -> Drafting {
        self.drafting.clone()
    }

    /// The segments to build when these blocks arrive: some may hold blocks that are here already.
    #[must_use]
    pub fn plan(&self, arriving: &[HeldRange]) -> Vec<HeldRange> {
        self.drafting.plan(arriving)
    }

    /// Builds a segment on this thread. `block` gives the blocks that arrive; all others are read
    /// from the folder and proven again, and so are those that arrive without receipts where the
    /// folder has them.
    pub fn build(
        &self,
        held: HeldRange,
        block: &dyn Fn(BlockNumber) -> Option<Verified<Block>>,
    ) -> Result<NewSegment, StoreError> {
        let view = self.view();
        let reader = RefCell::new(Reader::new().map_err(StoreError::Reader)?);
        let is_enough = |block: &Verified<Block>| block.receipts.is_some() || !held.has_receipts;
        let get = |number| match block(number).filter(is_enough) {
            Some(block) => Ok(block),
            None => self.read_proven(&view, &mut reader.borrow_mut(), number, held.has_receipts),
        };
        self.drafting.build(
            held,
            |census| {
                counted_blocks(held.range).try_for_each(|number| {
                    let block = get(number)?;
                    count_block(census, &block);
                    Ok(())
                })
            },
            |draft| {
                groups(held.range).try_for_each(|group| {
                    let blocks = group.numbers().map(&get);
                    let group = draft.encoder().encode(&blocks.collect::<Result<Vec<_>, _>>()?)?;
                    draft.push(group)
                })
            },
        )
    }

    /// A block of the folder, proven by itself.
    fn read_proven(
        &self,
        view: &View,
        reader: &mut Reader,
        number: BlockNumber,
        has_receipts: bool,
    ) -> Result<Verified<Block>, StoreError> {
        let mut candidate =
            block_on(view.read_candidate(reader, number))?.ok_or(StoreError::NotHeld { number })?;
        if !has_receipts {
            candidate.receipts = None;
        }
        Verifier::new(&self.spec, &Anchors::none(), Start::At(number.get()))
            .verify(candidate)
            .map_err(|mismatch| StoreError::Block { file: view.file_of(number), mismatch })
    }

    /// Makes new segments live, with the lookups that they change, in one step. Segments that their
    /// blocks make superfluous leave in the same step.
    pub fn commit(&mut self, new: Vec<NewSegment>, facts: CommitFacts) -> Result<(), StoreError> {
        self.commit_with(new, facts, CommitExtras::default())
    }

    /// The same with lookup runs that were built beforehand: little is left to do here.
    pub fn commit_prepared(
        &mut self,
        prepared: PreparedSegments,
        facts: CommitFacts,
    ) -> Result<(), StoreError> {
        let extras = CommitExtras { prepared: prepared.runs, ..CommitExtras::default() };
        self.commit_with(prepared.segments, facts, extras)
    }

    fn commit_with(
        &mut self,
        new: Vec<NewSegment>,
        facts: CommitFacts,
        CommitExtras { cut, prepared, indexed_now }: CommitExtras,
    ) -> Result<(), StoreError> {
        let view = self.view();
        let before = view.manifest();
        let arriving: Vec<HeldRange> = new.iter().map(|segment| segment.entry.held()).collect();
        let held = held(&view);
        let kept = held.iter().filter_map(|it| cut.map_or(Some(*it), |cut| cut_above(*it, cut)));
        let all: Vec<HeldRange> = kept.chain(arriving.iter().copied()).collect();
        let wanted = plan_unmerged(&held, &all);
        // They may have been planned before others became live.
        let there: HashSet<&HeldRange> = held.iter().chain(&arriving).collect();
        let is_missing = |wanted: &&HeldRange| !there.contains(wanted);
        if let Some(missing) = wanted.iter().find(is_missing) {
            return Err(StoreError::Outdated { range: missing.range });
        }
        let wanted: HashSet<HeldRange> = wanted.into_iter().collect();
        let (stay, gone): (Vec<SegmentEntry>, Vec<SegmentEntry>) =
            before.segments().iter().cloned().partition(|entry| wanted.contains(&entry.held()));
        let mut gone: BTreeSet<String> = gone.into_iter().map(|entry| entry.file_name).collect();
        let mut network = facts.network;
        network.chain_id = network.chain_id.or(new.iter().find_map(|segment| segment.chain_id));
        let mut keys: BTreeMap<String, SegmentKeys> = BTreeMap::new();
        let (mut segments, mut parts) = (Vec::new(), Vec::new());
        for segment in new {
            gone.remove(&segment.entry.file_name);
            parts.push((segment.entry.file_name.clone(), segment.part));
            keys.insert(segment.entry.file_name.clone(), segment.keys);
            segments.push(segment.entry);
        }
        let mut after: Vec<SegmentEntry> = stay.into_iter().chain(segments.clone()).collect();
        after.sort_by_key(|entry| entry.range.first());
        after.dedup();
        let given: Vec<RunEntry> = prepared.iter().map(|run| run.entry.clone()).collect();
        let read_logs = |range| view.read_log_keys(range);
        let sources = RunSources {
            before,
            segments: &after,
            keys: &keys,
            read_logs: &read_logs,
            indexed_now: indexed_now.as_slice(),
        };
        let runs = build_runs(self.drafting.workshop(), sources, &given)?;
        let retired = gone.clone();
        gone.extend(runs.gone);
        let mut files: Vec<Claim> = runs.files;
        files.extend(prepared.into_iter().map(|run| run.file));
        // Steps on the way to a larger run, and what was prepared for nothing, go.
        files.retain(|file| runs.built.iter().any(|run| run.file_name == file.file_name()));
        let edit = Edit {
            network,
            anchors: facts.anchors,
            epochs: facts.epochs,
            difficulties: facts.difficulties,
            segments,
            runs: runs.built,
            gone,
            cut,
        };
        let next = before.edited(edit)?;
        self.look()?;
        self.settle_head()?;
        files.extend(self.name_segments(parts, retired, [before, &next])?);
        // Even if the next step fails, its manifest may be there after a crash.
        files.iter().for_each(Claim::keep);
        self.replace(next)?;
        drop((view, files));
        self.settle_journal();
        Ok(())
    }

    /// Records trusted hashes that held blocks have.
    pub fn record_anchors(&mut self, anchors: Vec<Anchor>) -> Result<(), StoreError> {
        self.look()?;
        let next = self.view().manifest().edited(Edit { anchors, ..Edit::default() })?;
        self.settle_head()?;
        self.replace(next)
    }

    /// Whether the folder is still the one that is locked: in another nothing is begun.
    fn look(&self) -> Result<(), StoreError> {
        self.store.look()?;
        if self.lock.is_in_place() {
            return Ok(());
        }
        Err(StoreError::FolderGone { folder: self.store.disk().place() })
    }

    /// Gives new segments their names, when the journal tells of those that a crash may leave unlisted.
    /// A file that has such a name already and is not accounted for has the same content, or is
    /// damaged: what is proven takes its place, and if the commit fails it stays.
    fn name_segments(
        &mut self,
        parts: Vec<(String, StagedFile)>,
        retired: BTreeSet<String>,
        manifests: [&Manifest; 2],
    ) -> Result<Vec<Claim>, StoreError> {
        let mut recorded = retired;
        for (name, _) in &parts {
            match self.store.disk().file_bytes(name) {
                Err(error) if error.is_missing() => drop(recorded.insert(name.clone())),
                found => drop(found?),
            }
        }
        self.journal.record(recorded, manifests, self.is_settled)?;
        let mut files = Vec::new();
        for (name, part) in parts {
            let file = part.rename(&name)?;
            file.keep();
            files.push(file);
        }
        Ok(files)
    }

    /// Forgets what is not left over any more. What fails here is done by the next commit or writer.
    fn settle_journal(&mut self) {
        if self.is_settled && self.lock.is_in_place() {
            let _ = self.journal.settle(self.store.view().manifest());
        }
    }

    /// Puts a manifest in the place of the folder's, with what the head's log has now, and removes what
    /// it no longer lists.
    fn replace(&mut self, next: Manifest) -> Result<(), StoreError> {
        let record = self.head_record().or(next.head());
        self.replace_as_it_is(&next.with_head(record))
    }

    fn replace_as_it_is(&mut self, next: &Manifest) -> Result<(), StoreError> {
        let disk = self.store.disk();
        let view = self.store.view();
        // What failed before may be shown and not be durable: then even staying is to be made so.
        if *next == *view.manifest() && self.is_settled {
            return Ok(());
        }
        disk.fsync_folder()?; // the names of the new files, before a manifest lists them
        self.is_settled = false;
        if let Err(error) = next.replace(&**disk) {
            // Only the disk knows which of the two it holds now.
            self.store.refresh()?;
            return Err(error.into());
        }
        self.is_settled = true;
        self.store.show(|before| {
            let shown = before.with_manifest(next.clone());
            Ok(if self.head.is_some() { shown } else { self.store.with_head_read(shown) })
        })?;
        view.supersede_unlisted(&self.store.view());
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Views that kept retired segments may be gone since the last commit.
        self.settle_journal();
    }
}

fn held(view: &View) -> Vec<HeldRange> {
    view.manifest().held()
}

fn listed(manifest: &Manifest) -> BTreeSet<String> {
    let segments = manifest.segments().iter().map(|entry| entry.file_name.clone());
    segments.chain(manifest.runs().iter().map(|entry| entry.file_name.clone())).collect()
}
