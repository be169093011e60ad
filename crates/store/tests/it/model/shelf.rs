//! A folder in memory and its one writer, for tests that say what they do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use chain::BlockRange;
use store::disk::Disk as _;
use store::layout::HeldRange;
use store::names::is_data_name;
use store::read::Inline;
use store::{CommitFacts, Limits, Store, StoreError, View, Writer};
use testing::blocks::spec;
use testing::disk::faulty::{Crash, FaultyDisk};

use super::act::{Truth, import};
use super::blocks::{Place, branch, first_place};
use super::compare::{Questions, compare};
use super::state::{HeadState, Sealed};
use super::world::listed;

/// Files by name.
pub(super) type Image = BTreeMap<String, Vec<u8>>;

/// An open folder. Its chain is one of final blocks.
pub(super) struct Shelf {
    pub(super) disk: FaultyDisk,
    pub(super) store: Arc<Store>,
    pub(super) writer: Writer,
    pub(super) truth: Truth,
    /// What was brought.
    pub(super) sealed: Sealed,
}

pub(super) fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

/// Blocks with receipts.
pub(super) fn whole(first: u64, last: u64) -> HeldRange {
    HeldRange { range: range(first, last), has_receipts: true }
}

/// Blocks without.
pub(super) fn bare(first: u64, last: u64) -> HeldRange {
    HeldRange { range: range(first, last), has_receipts: false }
}

/// A chain of final blocks.
pub(super) fn truth(blocks: BlockRange, letter: u8) -> Truth {
    let hashes = branch(first_place(blocks.first()), letter, blocks.count());
    (blocks.first()..).zip(hashes).collect()
}

pub(super) fn open_store(disk: &FaultyDisk, limits: Limits) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), Arc::new(Inline), limits)
}

impl Shelf {
    /// An empty folder for these blocks.
    pub(super) fn new(blocks: BlockRange) -> Self {
        Self::open(FaultyDisk::new(1), truth(blocks, b'a'), Limits::default()).unwrap()
    }

    pub(super) fn open(disk: FaultyDisk, truth: Truth, limits: Limits) -> Result<Self, StoreError> {
        let store = Arc::new(open_store(&disk, limits)?);
        let writer = Writer::open(Arc::clone(&store), spec())?;
        let mut sealed = Sealed::default();
        for entry in writer.view().manifest().segments() {
            for number in entry.range.first()..entry.range.end() {
                sealed.take(number, truth[&number], entry.has_receipts);
            }
        }
        Ok(Self { disk, store, writer, truth, sealed })
    }

    /// The power is cut, and the folder is opened again.
    pub(super) fn crashed(self, crash: Crash) -> Self {
        let Self { disk, truth, .. } = self; // the rest is dropped, and gives the lock back
        disk.crash(crash);
        Self::open(disk, truth, Limits::default()).unwrap()
    }

    /// Brings blocks as an import does.
    pub(super) fn bring(&mut self, held: &[HeldRange]) -> Result<(), StoreError> {
        import(&mut self.writer, held, &self.truth, CommitFacts::default())?;
        for HeldRange { range, has_receipts } in held {
            for number in range.first()..range.end() {
                self.sealed.take(number, self.truth[&number], *has_receipts);
            }
        }
        Ok(())
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.store.view()
    }

    /// Everything is there, and the files are those of a folder that got it at once.
    pub(super) fn check(&self) {
        self.check_view(&self.view(), &self.sealed).unwrap();
        assert_eq!(self.files(), build_at_once(&self.sealed).unwrap());
        let view = self.view();
        assert_eq!(self.data_names(), listed(&view).collect());
    }

    /// Holds any view against what it should show.
    pub(super) fn check_view(&self, view: &View, sealed: &Sealed) -> Result<()> {
        let (first, last) = (self.truth.keys().next(), self.truth.keys().last());
        let questions = Questions {
            numbers: range(first.unwrap().saturating_sub(2), last.unwrap() + 2),
            hashes: self.truth.values().copied().collect(),
        };
        // A head without blocks may stand anywhere.
        let base = view.head().base().map(|(number, hash)| Place::above(number.get(), hash));
        compare(view, sealed, &HeadState { base, ..HeadState::default() }, &questions)
    }

    /// The listed files.
    pub(super) fn files(&self) -> Image {
        files(&self.disk, &self.view()).unwrap()
    }

    /// The names of all segments, runs and unfinished files.
    pub(super) fn data_names(&self) -> BTreeSet<String> {
        self.disk.list().unwrap().into_iter().filter(|name| is_data_name(name)).collect()
    }
}

/// The files that a view lists.
pub(super) fn files(disk: &FaultyDisk, view: &View) -> Result<Image> {
    listed(view).map(|name| Ok((name.clone(), disk.read(&name, 1 << 30)?))).collect()
}

/// The files of a folder to which all these blocks come at once.
pub(super) fn build_at_once(sealed: &Sealed) -> Result<Image> {
    let truth = sealed.blocks.iter().map(|(number, (hash, _))| (*number, *hash)).collect();
    let mut shelf = Shelf::open(FaultyDisk::new(1), truth, Limits::default())?;
    shelf.bring(&sealed.held())?;
    Ok(shelf.files())
}
