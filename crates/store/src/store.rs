//! A data folder, open for reading: one current view, exchanged whole.

mod faulty_files;

pub use faulty_files::FileFault;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use chain::ChainSpec;
use segment::Corrupt;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::files::{FileSource, Files, LocalFiles, LocalFirst};
use crate::finality::Finality;
use crate::footer::look_at_segment;
use crate::genesis_file::read_recorded_genesis;
use crate::head::{HeadView, Recovery, has_log};
use crate::head_reader::HeadReader;
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::part::StagingArea;
use crate::presence::Presence;
use crate::published::PublishedHistory;
use crate::read::Blocking;
use crate::view::View;

/// How often a folder is looked at anew that changes while it is looked at.
const TRIES_MAX: u32 = 16;

/// Told of every change of what a store shows. It is called by whoever makes the change, and must
/// not wait: it wakes others, who ask for the view themselves.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// Another view is shown.
    fn view_changed(&self);
}

/// A view that is held while something is answered.
pub type CurrentView = arc_swap::Guard<Arc<View>>;

/// A data folder, open for reading. Any number of them, in any number of processes, read beside one
/// writer.
#[derive(Debug)]
pub struct Store {
    disk: Arc<dyn Disk>,
    view: ArcSwap<View>,
    /// For whoever writes: all writers of this store one after the other have the same, so that none
    /// gives an unfinished file the name of another's.
    workshop: StagingArea,
    /// Reads the head that another process writes; `None` if nobody asked for it, or a writer has it.
    head_reader: Mutex<Option<HeadReader>>,
    watchers: Mutex<Vec<Arc<dyn Watcher>>>,
    presence: Presence,
    /// The segments that were not as the manifest says when the folder was opened, and why.
    unlike: Mutex<Vec<(String, StoreError)>>,
    /// Held by who acts on files that could not be read.
    fault_turn: Mutex<()>,
}

impl Store {
    /// Opens a folder; an empty one holds nothing yet, and one that lost its manifest is refused. So is
    /// one of a development build, whose segments no build reads any more.
    pub fn open(
        disk: Arc<dyn Disk>,
        blocking: Arc<dyn Blocking>,
        limits: Limits,
    ) -> Result<Self, StoreError> {
        Self::open_with(disk, blocking, None, limits)
    }

    /// The same beside published history, whose files `remote` opens: [`Store::show_published`] tells
    /// which there are.
    pub fn open_beside(
        disk: Arc<dyn Disk>,
        blocking: Arc<dyn Blocking>,
        remote: Arc<dyn FileSource>,
        limits: Limits,
    ) -> Result<Self, StoreError> {
        Self::open_with(disk, blocking, Some(remote), limits)
    }

    fn open_with(
        disk: Arc<dyn Disk>,
        blocking: Arc<dyn Blocking>,
        remote: Option<Arc<dyn FileSource>>,
        limits: Limits,
    ) -> Result<Self, StoreError> {
        let presence = Presence::default();
        let manifest = presence.load(&*disk)?;
        let unlike = look_at_segments(&*disk, &manifest)?;
        let local = LocalFiles::new(Arc::clone(&disk), blocking);
        let source: Arc<dyn FileSource> = match remote {
            Some(remote) => Arc::new(LocalFirst::new(local, remote)),
            None => Arc::new(local),
        };
        let files = Arc::new(Files::new(source, limits));
        let workshop = StagingArea::new(Arc::clone(&disk), Arc::clone(files.claims()));
        let head = Arc::new(HeadView::default());
        let view = View::new(files, manifest, Arc::default(), head, Finality::default());
        let _ = view.finalized(); // as for every view that is shown
        let (view, head_reader) = (ArcSwap::from_pointee(view), Mutex::default());
        let (watchers, unlike) = (Mutex::default(), Mutex::new(unlike));
        let fault_turn = Mutex::default();
        Ok(Self { disk, view, workshop, head_reader, watchers, presence, unlike, fault_turn })
    }

    /// Shows the head too, as its log has it: now and at every [`Store::refresh`], until a writer takes
    /// it over. Each of its blocks is proven once. Nothing is changed or repaired; [`Recovery`] tells
    /// what of the log was not taken.
    pub fn read_head(&self, spec: ChainSpec) -> Result<Recovery, StoreError> {
        *self.lock_reader() = Some(HeadReader::new(spec));
        if let Err(error) = self.refresh() {
            self.end_reading_head();
            return Err(error);
        }
        Ok(self.head_recovery())
    }

    /// What of the head's log was not taken at the last look, and why.
    #[must_use]
    pub fn head_recovery(&self) -> Recovery {
        self.lock_reader().as_ref().map(HeadReader::recovery).unwrap_or_default()
    }

    /// What can be read now: it never changes under whoever holds it.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The same for a short while: nothing that other threads share is written to.
    #[must_use]
    pub fn current_view(&self) -> CurrentView {
        self.view.load()
    }

    /// Has someone told whenever another view is shown, for as long as the store is open.
    pub fn watch(&self, watcher: Arc<dyn Watcher>) {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }

    /// Shows published history beside what the folder holds; tells whether another view is shown. What
    /// contradicts the folder, or other published history, is set aside: [`View::missing`] names it.
    pub fn show_published(&self, published: &PublishedHistory) -> bool {
        // What is published is final: of a head only what is final counts beside it.
        let read = self.lock_reader().as_ref().map(HeadReader::final_blocks);
        let is_shown = |view: &View| {
            let own = view.manifest();
            let admitted = if let Some((head, last)) = &read {
                published.admit(own, head, *last)
            } else {
                let last = view.finality().finalized.map(|it| it.number);
                published.admit(own, view.whole_head(), last)
            };
            (*view.published().as_ref() != admitted).then(|| Arc::new(admitted))
        };
        if is_shown(&self.view()).is_none() {
            return false;
        }
        let change = |view: &View| {
            let admitted = is_shown(view).unwrap_or_else(|| Arc::clone(view.published()));
            Ok(self.with_head_read(view.with_published(admitted)))
        };
        self.show(change).is_ok()
    }

    /// Looks whether another process has changed the folder; tells whether it has. If the manifest or
    /// the folder is gone, the view stays as it is.
    pub fn refresh(&self) -> Result<bool, StoreError> {
        let looked = self.refresh_shown();
        if let Err(error) = &looked {
            self.presence.note(Some(error));
        }
        looked
    }

    fn refresh_shown(&self) -> Result<bool, StoreError> {
        let mut reader = self.lock_reader();
        let Some(reader) = reader.as_mut() else { return self.refresh_manifest() };
        let mut tries = 1;
        loop {
            match self.refresh_both(reader) {
                // A file that the manifest listed has been superseded.
                Err(StoreError::Disk(error)) if error.is_missing() && tries < TRIES_MAX => {}
                Err(StoreError::Changing) if tries < TRIES_MAX => {}
                looked => return looked,
            }
            tries += 1;
        }
    }

    /// Looks at the manifest, then at the head. A log that lost what was read before, or what the
    /// manifest records, leaves the view as it is. A seal lists blocks in the manifest before they leave
    /// the head, so nothing is missing from the two unless the manifest has changed in between.
    fn refresh_both(&self, reader: &mut HeadReader) -> Result<bool, StoreError> {
        let manifest = self.presence.load(&*self.disk)?;
        if reader.look(&*self.disk)? && self.presence.load(&*self.disk)? != manifest {
            return Err(StoreError::Changing);
        }
        let view = self.view();
        if manifest == *view.manifest() && reader.is_shown() {
            return Ok(false);
        }
        reader.check_record(&manifest, self.disk.place())?;
        self.show(|view| reader.place_in(&view.with_manifest(manifest.clone())))?;
        Ok(true)
    }

    /// A view as a writer without a head shows it: with what was read of the head, where that stands
    /// on what is sealed.
    pub(crate) fn with_head_read(&self, view: View) -> View {
        match self.lock_reader().as_mut().map(|reader| reader.place_in(&view)) {
            None => view,
            Some(placed) => placed.unwrap_or_else(|_| {
                // The next look tells why.
                view.with_head(Arc::new(HeadView::default()), Finality::default())
            }),
        }
    }

    /// Ends reading the head: a writer has it.
    pub(crate) fn end_reading_head(&self) {
        *self.lock_reader() = None;
    }

    fn lock_reader(&self) -> MutexGuard<'_, Option<HeadReader>> {
        self.head_reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh_manifest(&self) -> Result<bool, StoreError> {
        let manifest = self.presence.load(&*self.disk)?;
        let view = self.view();
        if manifest == *view.manifest() {
            return Ok(false);
        }
        self.show(|view| Ok(view.with_manifest(manifest.clone())))?;
        Ok(true)
    }

    /// Where the folder is, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        self.disk.place()
    }

    /// The genesis.json that the folder keeps, if it is the one that its manifest records. A writer
    /// beside us may replace both: then the folder is looked at again.
    pub fn read_genesis(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || read_recorded_genesis(&*self.disk, self.view().manifest());
        match read() {
            Err(StoreError::GenesisFile { .. }) if self.refresh()? => read(),
            found => found,
        }
    }

    /// Whether the folder has a log of a head, also if it shows no block of it.
    pub fn has_head_log(&self) -> Result<bool, StoreError> {
        Ok(has_log(&*self.disk)?)
    }

    /// Looks whether the folder is still there: for whoever has its writer, and knows what it holds.
    pub fn look(&self) -> Result<(), StoreError> {
        self.presence.look(&*self.disk)
    }

    /// Why the folder could not be looked at the last time, so that readers are shown what was
    /// there before, or why they are not shown all of the head.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.presence.trouble().or_else(|| self.view().hidden_head())
    }

    /// Writes the manifest of a folder that has none.
    pub(crate) fn begin_manifest(&self) -> Result<(), StoreError> {
        self.presence.begin(&*self.disk)
    }

    pub(crate) fn workshop(&self) -> &StagingArea {
        &self.workshop
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Shows the head that a writer has now.
    pub(crate) fn show_head(&self, head: &Arc<HeadView>, finality: Finality) {
        let shown = self.show(|view| Ok(view.with_head(Arc::clone(head), finality)));
        debug_assert!(shown.is_ok(), "nothing of it can fail");
    }

    /// Shows another view, which `change` makes of the one that is shown: again if somebody else has
    /// shown another meanwhile, so that neither change is lost.
    pub(crate) fn show(
        &self,
        mut change: impl FnMut(&View) -> Result<View, StoreError>,
    ) -> Result<(), StoreError> {
        loop {
            let before = self.view();
            let next = Arc::new(change(&before)?);
            let _ = next.finalized(); // trust is assessed here, so that no request waits for it
            if Arc::ptr_eq(&*self.view.compare_and_swap(&before, next), &before) {
                break;
            }
        }
        self.tell_watchers();
        Ok(())
    }

    fn tell_watchers(&self) {
        for watcher in self.watchers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            watcher.view_changed();
        }
    }
}

/// Looks at the length and the footer of every listed segment, and refuses a folder that has one of a
/// format that was never released. What else is wrong is told by whoever wants the files.
fn look_at_segments(
    disk: &dyn Disk,
    manifest: &Manifest,
) -> Result<Vec<(String, StoreError)>, StoreError> {
    let mut failed = Vec::new();
    for entry in manifest.segments() {
        match look_at_segment(disk, entry) {
            Ok(()) => {}
            Err(StoreError::Segment { cause: cause @ Corrupt::Unreleased, .. }) => {
                let file = format!("{}/{}", disk.place(), entry.file_name);
                return Err(StoreError::Segment { file, cause });
            }
            Err(error) => failed.push((entry.file_name.clone(), error)),
        }
    }
    Ok(failed)
}
