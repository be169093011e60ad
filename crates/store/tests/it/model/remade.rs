//! Files that are superseded and made anew under the same name, since a name tells the content: whoever
//! held the old one removes nothing of the new one.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use chain::BlockNumber;
use chain::trust::Anchors;
use store::disk::{DataFile, Disk, DiskError, FileVersion, LockGuard, WritableFile};
use store::head::HeadLimits;
use store::manifest::MANIFEST_NAME;
use store::names::is_data_name;
use store::read::Inline;
use store::{CommitFacts, Limits, Store, View, Writer};
use testing::blocks::spec;
use testing::disk::faulty::FaultyDisk;

use super::act::import;
use super::shelf::{Shelf, range, truth, whole};
use super::world::listed;

/// A disk that drops a view before a manifest is put in its place: when new files have their names, and
/// nothing lists them yet.
#[derive(Debug)]
struct DroppingDisk {
    inner: FaultyDisk,
    dropped: Mutex<Option<Arc<View>>>,
}

impl Disk for DroppingDisk {
    fn place(&self) -> String {
        self.inner.place()
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.inner.list()
    }

    fn file_bytes(&self, name: &str) -> Result<u64, DiskError> {
        self.inner.file_bytes(name)
    }

    fn version(&self, name: &str) -> Result<FileVersion, DiskError> {
        self.inner.version(name)
    }

    fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.inner.read(name, bytes_max)
    }

    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, DiskError> {
        self.inner.read_range(name, range)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError> {
        self.inner.open(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.inner.write(name, bytes)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.inner.append(name, bytes)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        if to == MANIFEST_NAME {
            let dropped = self.dropped.lock().unwrap().take();
            drop(dropped);
        }
        self.inner.rename(from, to)
    }

    fn fsync_folder(&self) -> Result<(), DiskError> {
        self.inner.fsync_folder()
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.inner.remove(name)
    }

    fn lock(&self, name: &str) -> Result<LockGuard, DiskError> {
        self.inner.lock(name)
    }
}

/// Seen: the last view that held a superseded file removed it by name, also when a commit had just made
/// it anew: the manifest then listed a file that was not there.
#[test]
fn a_file_that_is_made_anew_outlives_the_view_that_held_the_old_one() {
    let truth = truth(range(0, 300), b'a');
    let inner = FaultyDisk::new(1);
    let disk = Arc::new(DroppingDisk { inner: inner.clone(), dropped: Mutex::default() });
    let shared: Arc<dyn Disk> = Arc::<DroppingDisk>::clone(&disk);
    let store = Arc::new(Store::open(shared, Arc::new(Inline), Limits::default()).unwrap());
    let mut writer = Writer::open(Arc::clone(&store), spec()).unwrap();
    import(&mut writer, &[whole(0, 300)], &truth, CommitFacts::default()).unwrap();
    let names = || -> Vec<String> {
        inner.list().unwrap().into_iter().filter(|name| is_data_name(name)).collect()
    };
    let before = names();
    let old = store.view();
    writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    writer.rewind_to(BlockNumber(280), truth[&280]).unwrap();
    assert_ne!(names(), before);
    *disk.dropped.lock().unwrap() = Some(old);
    import(&mut writer, &[whole(281, 300)], &truth, CommitFacts::default()).unwrap();
    assert!(disk.dropped.lock().unwrap().is_none(), "the old view is gone");
    assert_eq!(names(), before);
    let mut found: Vec<String> = listed(&store.view()).collect();
    found.sort_unstable();
    assert_eq!(found, before);
}

/// Seen: a view that outlived its writer removed what it held by name, from a folder that another
/// process wrote to by then.
#[test]
fn a_view_that_outlives_its_writer_removes_nothing() {
    let mut shelf = Shelf::new(range(0, 300));
    shelf.bring(&[whole(0, 50)]).unwrap();
    let old = shelf.view();
    shelf.bring(&[whole(51, 100)]).unwrap();
    let Shelf { disk, writer, store, truth, .. } = shelf;
    drop((writer, store));
    // Another process drops what was brought last, and so makes the first files again.
    let mut other = Shelf::open(disk, truth, Limits::default()).unwrap();
    other.writer.open_head(&Anchors::none(), HeadLimits::default()).unwrap();
    other.writer.rewind_to(BlockNumber(50), other.truth[&50]).unwrap();
    other.sealed.blocks.retain(|number, _| *number <= 50);
    other.check();
    drop(old);
    other.check();
}
