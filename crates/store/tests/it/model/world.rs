//! One run: a real store on a disk that fails, and beside it what it should hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::{Context as _, Result, ensure};
use chain::BlockRange;
use chain::trust::Anchors;
use store::disk::Disk as _;
use store::head::{HeadLimits, Recovery};
use store::lock::LockError;
use store::names::is_data_name;
use store::read::Inline;
use store::{BlockId, Limits, Store, StoreError, View, Writer};
use testing::blocks::spec;
use testing::disk::faulty::{Crash, DiskFailure, FaultyDisk};

use super::act::{Act, Situation, Truth};
use super::blocks::{Place, branch, first_place};
use super::compare::{Questions, compare, compare_lied, heads, lists};
use super::dice::Dice;
use super::shelf::{Image, files};
use super::state::{Durable, HeadState, Node, Sealed};

/// More operations than any change takes after its first failure.
const DEAD_OPERATIONS: u64 = 300;
/// Fewer than any folder of a run has segments: tails are closed and opened again.
const TAIL_BYTES_SHORT: u64 = 20_000;
/// Memory for a few runs.
const RUN_BYTES_SHORT: u64 = 2_000;

/// Which blocks a run is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    pub(super) window: BlockRange,
    /// Where the head begins; `None` if there is none.
    pub(super) head_from: Option<u64>,
}

/// What goes wrong during a change, after so many operations of the disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Nothing,
    /// One operation fails.
    Fail(u64, DiskFailure),
    /// The power is cut.
    Cut(u64, Crash),
    /// The process is killed, the machine goes on.
    Kill(u64),
}

/// The folder, open: what a process has. The second store is another process that only reads.
struct Process {
    store: Arc<Store>,
    writer: Writer,
    reader: Store,
}

/// A view that was taken, and what it showed.
struct Kept {
    view: Arc<View>,
    sealed: Sealed,
    head: HeadState,
}

/// One run.
pub(super) struct World {
    pub(super) dice: Dice,
    disk: FaultyDisk,
    scene: Scene,
    limits: Limits,
    process: Option<Process>,
    pub(super) sealed: Durable<Sealed>,
    head: Durable<HeadState>,
    /// Every state that could be seen.
    sealed_before: Vec<Sealed>,
    heads_before: Vec<HeadState>,
    truth: Truth,
    questions: Questions,
    kept: Vec<Kept>,
    /// Whether something failed since the folder was opened: files may then be left over.
    has_failed: bool,
    /// How many operations the last change of each kind took.
    operation_counts: BTreeMap<&'static str, u64>,
    /// What was done, for whoever looks for the reason.
    pub(super) told: Vec<String>,
}

impl World {
    /// A folder that nobody has opened yet.
    pub(super) fn new(seed: u64, scene: Scene) -> Self {
        let mut dice = Dice::new(seed);
        let first = scene.window.first();
        // What is below the head is final from the beginning.
        let end = scene.head_from.unwrap_or(scene.window.end());
        let hashes = branch(first_place(first), b'a', end - first);
        let open_segments_max = if dice.one_in(2) { 2 } else { usize::MAX };
        let tail_bytes_max = if dice.one_in(2) { TAIL_BYTES_SHORT } else { u64::MAX };
        // No room for runs, room for a few, room for all.
        let run_bytes_max = *dice.pick(&[0, RUN_BYTES_SHORT, u64::MAX]).unwrap();
        let numbers = BlockRange::from_ends(first.saturating_sub(2), scene.window.last() + 2);
        let disk = FaultyDisk::new(dice.next());
        disk.set_may_block(dice.one_in(2));
        Self {
            disk,
            dice,
            scene,
            limits: Limits { tail_bytes_max, open_segments_max, run_bytes_max },
            process: None,
            sealed: Durable::default(),
            head: Durable::default(),
            sealed_before: vec![Sealed::default()],
            heads_before: vec![HeadState::default()],
            questions: Questions {
                numbers: numbers.unwrap(),
                hashes: hashes.iter().copied().collect(),
            },
            truth: (first..).zip(hashes).collect(),
            kept: Vec::new(),
            has_failed: false,
            operation_counts: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().unwrap()
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.process.as_ref().unwrap().store.view()
    }

    pub(super) fn tell(&mut self, what: &dyn fmt::Display) {
        self.told.push(format!("{:4}. {what}", self.told.len() + 1));
    }

    /// The next change.
    pub(super) fn choose(&mut self) -> Act {
        let situation = Situation {
            sealed: &self.sealed.now,
            head: &self.head.now,
            truth: &self.truth,
            window: self.scene.window,
            head_from: self.scene.head_from,
            count: self.told.len(),
        };
        situation.choose(&mut self.dice)
    }

    /// What may go wrong during a change, often near its end, where it becomes durable.
    pub(super) fn choose_trouble(&mut self, act: &Act) -> Trouble {
        let dice = &mut self.dice;
        let expected = self.operation_counts.get(act.kind()).copied().unwrap_or(20);
        let at = match dice.below(3) {
            0 => dice.below(expected + 3),
            1 => dice.below(8),
            _ => (expected + 2).saturating_sub(dice.below(10)),
        };
        let (may_tear_writes, may_keep_names) = (!dice.one_in(3), !dice.one_in(3));
        let crash = Crash { may_tear_writes, may_keep_names };
        match dice.below(10) {
            0 | 1 => Trouble::Fail(at, DiskFailure::NoSpace),
            2 => Trouble::Fail(at, DiskFailure::Io),
            3 => Trouble::Fail(at, DiskFailure::WriteBack),
            4 | 5 => Trouble::Cut(at, crash),
            6 => Trouble::Kill(at),
            _ => Trouble::Nothing,
        }
    }

    /// Makes a change, and holds what it leads to against what it should. Tells whether it was
    /// acknowledged.
    pub(super) fn act(&mut self, act: &Act, trouble: Trouble) -> Result<bool> {
        self.decide(act);
        let (sealed, head) = self.expected(act);
        let before = self.disk.operation_count();
        let dead_until = self.arm(trouble);
        let (now, truth) = (self.head.now.clone(), self.truth.clone());
        let outcome = act.perform(&mut self.process().writer, &now, &truth);
        self.operation_counts.insert(act.kind(), self.disk.operation_count() - before);
        let said = outcome.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
        self.tell(&format_args!("{act}; {trouble:?}; {said}"));
        if let (Act::Seal { finalized, .. }, Ok(found)) = (act, &outcome) {
            let expected = now.due_range(finalized.get());
            ensure!(*found == expected, "sealed was {found:?}, due was {expected:?}");
        }
        self.sealed_before.push(sealed.clone());
        self.heads_before.push(head.clone());
        let is_done = outcome.is_ok();
        if is_done {
            self.acknowledge(act, sealed, head);
        } else {
            self.has_failed = true;
            self.sealed.doubt(sealed);
            self.head.doubt(head);
        }
        match trouble {
            Trouble::Nothing => drop(outcome.context("nothing was wrong with the disk")?),
            Trouble::Fail(..) => {
                // A file that could not be removed is nobody's failure, and is left.
                self.has_failed |= self.disk.operation_count() >= dead_until;
                self.pass(dead_until);
                if let Err(error) = outcome {
                    self.look_after_failure(act, &error)?;
                }
                // As a follower does between two blocks.
                if self.view().is_head_undecided() {
                    self.process().writer.keep_head_log()?;
                }
            }
            Trouble::Cut(_, crash) => {
                self.die();
                self.disk.crash(crash);
                self.reopen_after_cut()?;
            }
            Trouble::Kill(_) => {
                self.die();
                self.pass(dead_until);
                self.reopen()?;
            }
        }
        Ok(is_done)
    }

    /// What a change should lead to.
    pub(super) fn expected(&self, act: &Act) -> (Sealed, HeadState) {
        act.expected(&self.sealed.now, &self.head.now, &self.truth)
    }

    /// Whether this is what the store shows.
    pub(super) fn is_at(&self, (sealed, head): &(Sealed, HeadState)) -> bool {
        self.sealed.now == *sealed && self.head.now == *head
    }

    /// How many operations of the disk something takes.
    pub(super) fn count_operations(&mut self, act: impl FnOnce(&mut Self)) -> u64 {
        let before = self.disk.operation_count();
        act(self);
        self.disk.operation_count() - before
    }

    /// What is sealed or said to be final is so from now on, and its hashes can be asked for.
    fn decide(&mut self, act: &Act) {
        match act {
            Act::Extend { blocks, .. } | Act::Reorg { blocks, .. } => {
                self.questions.hashes.extend(blocks);
            }
            Act::Seal { finalized, .. }
            | Act::Finalize { block: BlockId { number: finalized, .. } } => {
                let canonical = self.head.now.canonical();
                let due =
                    canonical.range(..=finalized.get()).map(|(number, (hash, _))| (*number, *hash));
                self.truth.extend(due);
            }
            Act::SealAbove { blocks, .. } => {
                self.questions.hashes.extend(blocks);
                let own = self.head.now.canonical().into_iter();
                self.truth.extend(own.map(|(number, (hash, _))| (number, hash)));
                let first = self.head.now.next().unwrap().number;
                self.truth.extend((first..).zip(blocks.iter().copied()));
            }
            Act::Rewind { .. } | Act::RewindTo { .. } | Act::Switch { .. } | Act::Import { .. } => {
            }
        }
    }

    fn acknowledge(&mut self, act: &Act, sealed: Sealed, head: HeadState) {
        let (is_of_segments, is_of_head) = match act {
            Act::Extend { .. }
            | Act::Reorg { .. }
            | Act::Rewind { .. }
            | Act::Switch { .. }
            | Act::Finalize { .. } => (false, true),
            Act::Seal { .. } => [head != self.head.now; 2].into(),
            // What a log holds of changes that failed must not contradict what is sealed.
            Act::Import { .. } | Act::SealAbove { .. } => (true, true),
            Act::RewindTo { block } => {
                let from = self.scene.head_from.unwrap_or(u64::MAX);
                let last = block.number.get();
                self.truth.retain(|number, _| *number < from || *number <= last);
                (true, true)
            }
        };
        if is_of_segments {
            self.sealed.acknowledge(sealed);
        }
        // A head that never had a block has no log that could be written.
        if is_of_head && head.base.is_some() {
            self.head.acknowledge(head);
        }
    }

    /// Sets the trap; tells when it is certain that it has sprung.
    fn arm(&mut self, trouble: Trouble) -> u64 {
        let now = self.disk.operation_count();
        match trouble {
            Trouble::Nothing => now,
            Trouble::Fail(at, failure) => {
                self.disk.fail_after(at, failure);
                now + at + 1
            }
            Trouble::Cut(at, _) => {
                self.disk.stop_after(at);
                now
            }
            Trouble::Kill(at) => {
                (at..at + DEAD_OPERATIONS).for_each(|at| self.disk.fail_after(at, DiskFailure::Io));
                now + at + DEAD_OPERATIONS
            }
        }
    }

    /// Lets a trap spring on nobody.
    fn pass(&self, dead_until: u64) {
        while self.disk.operation_count() < dead_until {
            let _ = self.disk.list();
        }
    }

    /// After an error the store goes on with the state before the change or the one after it.
    fn look_after_failure(&mut self, act: &Act, error: &StoreError) -> Result<()> {
        ensure!(is_of_disk(error), "the disk failed, but the error is {error:?}");
        let view = self.view();
        let sealed = &mut self.sealed;
        ensure!(sealed.find(|sealed| lists(&view, sealed)), "no state that could be");
        let is_at = |head: &HeadState| heads(&view, head);
        // The head goes before the segments do.
        let may_change = matches!(act, Act::RewindTo { .. });
        let is_found = is_at(&self.head.now) || (may_change && self.head.find(is_at));
        ensure!(is_found, "the head has changed");
        let names = self.disk.list()?;
        let part = names.iter().find(|name| is_part(name));
        ensure!(part.is_none(), "{part:?} was left behind");
        Ok(())
    }

    /// Everything that the process has is gone; the disk refuses to hear of it.
    fn die(&mut self) {
        self.kept.clear();
        self.process = None;
    }

    /// The power is cut between two changes.
    pub(super) fn cut(&mut self) -> Result<()> {
        let (may_tear_writes, may_keep_names) = (!self.dice.one_in(3), !self.dice.one_in(3));
        self.cut_with(Crash { may_tear_writes, may_keep_names })
    }

    /// The power is cut in this way.
    pub(super) fn cut_with(&mut self, crash: Crash) -> Result<()> {
        self.tell(&format_args!("{crash:?}"));
        self.disk.stop_after(0);
        self.die();
        self.disk.crash(crash);
        self.reopen_after_cut()
    }

    fn reopen_after_cut(&mut self) -> Result<()> {
        // The power may fail again at once.
        if self.dice.one_in(4) {
            self.disk.stop_after(self.dice.below(30));
            let _ = open(&self.disk, self.limits, self.scene.head_from.is_some());
            self.disk.crash(Crash { may_tear_writes: true, may_keep_names: true });
            self.tell(&"the power was cut again while the folder was opened");
        }
        self.reopen()?;
        // What a crash has left is durable.
        self.sealed.maybe.clear();
        self.head.maybe.clear();
        Ok(())
    }

    /// Opens the folder, and looks at all of it.
    pub(super) fn reopen(&mut self) -> Result<()> {
        self.die();
        if self.dice.one_in(8) {
            self.disk.fail_after(self.dice.below(20), DiskFailure::Io);
            let dead_until = self.disk.operation_count() + 20;
            let _ = open(&self.disk, self.limits, self.scene.head_from.is_some());
            self.pass(dead_until);
        }
        let has_head = self.scene.head_from.is_some();
        let (process, recovery) = open(&self.disk, self.limits, has_head).context("open")?;
        ensure!(!recovery.has_damage(), "{recovery:?}");
        self.process = Some(process);
        self.has_failed = false;
        let view = self.view();
        ensure!(self.sealed.find(|sealed| lists(&view, sealed)), "no manifest that could be");
        self.sealed.maybe.clear();
        let sealed = self.sealed.now.clone();
        let opened = |head: &HeadState| {
            let mut opened = head.clone();
            opened.opened_beside(&sealed);
            opened
        };
        let is_found = self.head.find(|head| heads(&view, &opened(head)));
        ensure!(is_found, "no head that could be: {:?}", view.head());
        let opened = opened(&self.head.now);
        if opened != self.head.now {
            self.head.acknowledge(opened);
        }
        self.forget_doubts();
        self.compare().context("after opening")?;
        self.compare_files()?;
        let second = Writer::open(Arc::new(self.open_store()?), spec());
        let is_refused = matches!(second, Err(StoreError::Lock(LockError::Held { .. })));
        ensure!(is_refused, "a second writer: {second:?}");
        Ok(())
    }

    /// What was final only for a head that the crash took back is not any more.
    fn forget_doubts(&mut self) {
        let Some(from) = self.scene.head_from else { return };
        let (sealed, head) = (&self.sealed.now.blocks, self.head.now.canonical());
        let sealed_end = sealed.keys().last().map_or(from, |last| last + 1).max(from);
        self.truth.retain(|number, hash| {
            let shown = sealed.get(number).or(head.get(number));
            *number < sealed_end || shown.is_some_and(|(found, _)| found == hash)
        });
    }

    fn open_store(&self) -> Result<Store, StoreError> {
        Store::open(Arc::new(self.disk.clone()), Arc::new(Inline), self.limits)
    }

    /// Holds what is shown now against what should be.
    pub(super) fn compare(&self) -> Result<()> {
        compare(&self.view(), &self.sealed.now, &self.head.now, &self.questions)?;
        let writer = &self.process.as_ref().unwrap().writer;
        for hash in self.questions.hashes.iter().filter(|_| self.scene.head_from.is_some()) {
            let is_known = writer.is_known(hash);
            ensure!(is_known == self.head.now.tree.contains_key(hash), "{hash} known: {is_known}");
        }
        Ok(())
    }

    /// The folder has the files that are listed, and those that views which are kept list.
    pub(super) fn compare_files(&self) -> Result<()> {
        let names = self.disk.list()?;
        let found: BTreeSet<String> = names.into_iter().filter(|name| is_data_name(name)).collect();
        let current = self.view();
        let views = self.kept.iter().map(|kept| &kept.view).chain([&current]);
        let listed: BTreeSet<String> = views.flat_map(|view| listed(view)).collect();
        let missing: Vec<_> = listed.difference(&found).collect();
        ensure!(missing.is_empty(), "{missing:?} are listed and gone");
        let left: Vec<_> = found.difference(&listed).collect();
        ensure!(left.is_empty() || self.has_failed, "{left:?} are there and not listed");
        Ok(())
    }

    /// Takes a view, to be held against itself later.
    pub(super) fn keep_view(&mut self) {
        let (sealed, head) = (self.sealed.now.clone(), self.head.now.clone());
        self.tell(&"keep a view");
        self.kept.push(Kept { view: self.view(), sealed, head });
    }

    /// Asks a view that was kept, and lets it go.
    pub(super) fn drop_view(&mut self) -> Result<()> {
        if let Some(Kept { view, sealed, head }) = self.kept.pop() {
            self.tell(&"ask the view that was kept, and drop it");
            compare(&view, &sealed, &head, &self.questions).context("a view that was kept")?;
            drop(view);
        }
        self.compare_files()
    }

    /// The other process looks.
    pub(super) fn look_as_reader(&mut self) -> Result<()> {
        self.tell(&"another process reads");
        let now = self.sealed.now.clone();
        let (before, heads_before) = (self.sealed_before.clone(), self.heads_before.clone());
        // A change that failed may be in the log, whole.
        let heads_now: Vec<HeadState> =
            self.head.maybe.iter().chain([&self.head.now]).cloned().collect();
        let questions = self.questions.clone();
        let Process { reader, store, .. } = self.process();
        let is_current = reader.view().manifest() == store.view().manifest();
        let view = reader.view();
        let shown = before.iter().find(|sealed| lists(&view, sealed)).context("a whole state")?;
        let head = shown_head(&view, shown, &heads_before).context("a head that was")?;
        let outcome = compare(&view, shown, &head, &questions);
        match outcome {
            Err(error) if !is_current && is_missing(&error) => {}
            outcome => outcome.context("in another process")?,
        }
        ensure!(reader.refresh()? || is_current, "there was something new");
        ensure!(!reader.refresh()?, "there is nothing new");
        let recovery = reader.head_recovery();
        ensure!(!recovery.has_damage() && recovery.superseded.is_none(), "{recovery:?}");
        let view = reader.view();
        let head = shown_head(&view, &now, &heads_now).context("a head that is")?;
        compare(&view, &now, &head, &questions).context("in another process that has looked")
    }

    /// All files as they are now.
    pub(super) fn files(&self) -> Result<Image> {
        files(&self.disk, &self.view())
    }

    /// From now on the disk says that it has made things durable, and has not.
    pub(super) fn begin_lies(&mut self) {
        self.tell(&"from now on every fsync is a lie");
        self.disk.set_lying(true);
    }

    /// The power is cut after lies. What is shown, if anything, was shown before, and every answer
    /// is right or an error.
    pub(super) fn cut_after_lies(&mut self) -> Result<()> {
        self.tell(&"the power is cut after lies");
        self.disk.stop_after(0);
        self.die();
        let (may_tear_writes, may_keep_names) = (!self.dice.one_in(4), !self.dice.one_in(4));
        self.disk.crash(Crash { may_tear_writes, may_keep_names });
        self.disk.set_lying(false);
        let has_head = self.scene.head_from.is_some();
        let Ok((process, _)) = open(&self.disk, self.limits, has_head) else { return Ok(()) };
        let view = process.store.view();
        let sealed = self.sealed_before.iter().find(|sealed| lists(&view, sealed));
        let sealed = sealed.context("a manifest that never was")?;
        let whole = view.whole_head();
        let found: Vec<B256> = whole.blocks().iter().map(|block| block.hash()).collect();
        let is_part = |head: &&HeadState| {
            found.is_empty() || head.chain.windows(found.len()).any(|part| part == found)
        };
        let head = self.heads_before.iter().find(is_part).context("a head that never was")?;
        let mut head = head.clone();
        for block in whole.blocks() {
            let has_receipts = block.block().receipts.is_some();
            let place = Place { number: block.number().get(), parent: block.parent_hash() };
            head.tree.insert(block.hash(), Node { place, has_receipts });
        }
        head.chain = found;
        head.finalized = view.finality().finalized;
        head.base = whole.base().map(|(number, hash)| Place::above(number.get(), hash));
        compare_lied(&view, sealed, &head, &self.questions)
    }
}

/// Which of these heads a view shows above what is sealed.
fn shown_head(view: &View, sealed: &Sealed, heads_of: &[HeadState]) -> Option<HeadState> {
    let opened = heads_of.iter().map(|head| {
        let mut opened = head.clone();
        opened.opened_beside(sealed);
        opened
    });
    let mut opened = opened.filter(|head| heads(view, head));
    opened.next()
}

/// Opens the folder, with its head if it has one.
fn open(disk: &FaultyDisk, limits: Limits, has_head: bool) -> Result<(Process, Recovery)> {
    let open = || Store::open(Arc::new(disk.clone()), Arc::new(Inline), limits);
    let (store, reader) = (Arc::new(open()?), open()?);
    reader.read_head(spec())?;
    let mut writer = Writer::open(Arc::clone(&store), spec())?;
    let recovery = if has_head {
        writer.open_head(&Anchors::none(), HeadLimits::default())?
    } else {
        Recovery::default()
    };
    Ok((Process { store, writer, reader }, recovery))
}

/// The files that a view lists.
pub(super) fn listed(view: &View) -> impl Iterator<Item = String> {
    let manifest = view.manifest();
    let segments = manifest.segments().iter().map(|entry| entry.file_name.clone());
    segments.chain(manifest.runs().iter().map(|entry| entry.file_name.clone()))
}

/// Whether a file is an unfinished one.
pub(super) fn is_part(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end == "part")
}

/// Whether it was the disk that refused, not the store.
fn is_of_disk(error: &StoreError) -> bool {
    use store::head::HeadError;
    use store::manifest::ManifestError;
    matches!(
        error,
        StoreError::Disk(_)
            | StoreError::Manifest(ManifestError::Disk(_))
            | StoreError::Head(HeadError::Disk(_))
    )
}

fn is_missing(error: &anyhow::Error) -> bool {
    let store = error.downcast_ref::<StoreError>();
    matches!(store, Some(StoreError::Disk(error)) if error.is_missing())
}
