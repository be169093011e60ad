//! What a look at a folder opens.

use std::mem::take;
use std::sync::{Arc, Mutex};

use store::disk::{Disk as _, DiskError};
use store::read::{Inline, SegmentBytes, block_on};
use store::stat::{PartBytesCache, Stat};
use store::{FileSource, LocalFiles};

use super::shelf::{Shelf, range, whole};

/// Notes which files are opened.
#[derive(Debug)]
struct NotedFiles {
    files: LocalFiles,
    names: Mutex<Vec<String>>,
}

impl FileSource for NotedFiles {
    fn open(&self, file_name: &str, file_bytes: u64) -> Result<Arc<dyn SegmentBytes>, DiskError> {
        self.names.lock().unwrap().push(file_name.to_owned());
        self.files.open(file_name, file_bytes)
    }
}

/// Seen: each look at `/stat.json` opened and decoded the tails of all segments.
#[test]
fn looks_at_a_folder_open_each_segment_once() {
    let mut shelf = Shelf::new(range(0, 700));
    let files = LocalFiles::new(Arc::new(shelf.disk.clone()), Arc::new(Inline));
    let source = Arc::new(NotedFiles { files, names: Mutex::default() });
    let mut kept = PartBytesCache::default();
    let mut look = |shelf: &Shelf| {
        let (view, mut none) = (shelf.view(), PartBytesCache::default());
        let fresh = block_on(Stat::gather(&view, source.clone(), &mut none, 3, 4)).unwrap();
        assert_eq!(
            take(&mut *source.names.lock().unwrap()).len(),
            view.manifest().segments().len()
        );
        let found = block_on(Stat::gather(&view, source.clone(), &mut kept, 3, 4)).unwrap();
        assert_eq!(found, fresh);
        take(&mut *source.names.lock().unwrap())
    };
    let name = |shelf: &Shelf, at: usize| shelf.view().manifest().segments()[at].file_name.clone();
    shelf.bring(&[whole(0, 50), whole(600, 620)]).unwrap();
    assert_eq!(look(&shelf), [name(&shelf, 0), name(&shelf, 1)]);
    assert_eq!(look(&shelf), [""; 0]);
    // The first is another file now.
    shelf.bring(&[whole(51, 60)]).unwrap();
    assert_eq!(look(&shelf), [name(&shelf, 0)]);
    assert_eq!(look(&shelf), [""; 0]);
}

/// Seen: nothing was known of a folder with one segment that cannot be read.
#[test]
fn a_segment_that_cannot_be_read_takes_away_its_own_bytes_alone() {
    let mut shelf = Shelf::new(range(0, 700));
    shelf.bring(&[whole(0, 50), whole(600, 620)]).unwrap();
    let source = Arc::new(LocalFiles::new(Arc::new(shelf.disk.clone()), Arc::new(Inline)));
    let view = shelf.view();
    let look = || {
        let mut none = PartBytesCache::default();
        block_on(Stat::gather(&view, source.clone(), &mut none, 0, 0)).unwrap()
    };
    let before = look();
    assert_eq!(before.unreadable, []);
    let entry = view.manifest().segments()[0].clone();
    shelf.disk.remove(&entry.file_name).unwrap();
    let after = look();
    let [file] = after.unreadable.as_slice() else { panic!("{after:?}") };
    assert_eq!((&file.file_name, file.blocks), (&entry.file_name, Some(entry.range)));
    assert_eq!(after.bytes.total(), before.bytes.total() - entry.bytes);
    assert_eq!(Stat { bytes: before.bytes, unreadable: Vec::new(), ..after }, before);
}
