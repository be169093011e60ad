//! A folder in which nothing is and nothing can be put.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{DataFile, Disk, DiskError, FileVersion, LockGuard, Operation, WritableFile};

/// An empty folder that stays empty: for a store that shows published history and holds nothing itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyDisk;

impl EmptyDisk {
    fn missing<T>(self, name: &str, operation: Operation) -> Result<T, DiskError> {
        Err(DiskError::Missing { place: self.place_of(name), operation })
    }

    fn refused<T>(self, name: &str, operation: Operation) -> Result<T, DiskError> {
        let cause = io::ErrorKind::ReadOnlyFilesystem.into();
        Err(DiskError::Failed { place: self.place_of(name), operation, cause })
    }

    fn place_of(self, name: &str) -> String {
        format!("{}/{name}", self.place())
    }
}

impl Disk for EmptyDisk {
    fn place(&self) -> String {
        "no folder".to_owned()
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(Vec::new())
    }

    fn file_bytes(&self, name: &str) -> Result<u64, DiskError> {
        self.missing(name, Operation::Read)
    }

    fn version(&self, name: &str) -> Result<FileVersion, DiskError> {
        self.missing(name, Operation::Read)
    }

    fn read(&self, name: &str, _bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.missing(name, Operation::Read)
    }

    fn read_range(&self, name: &str, _range: Range<u64>) -> Result<Vec<u8>, DiskError> {
        self.missing(name, Operation::Read)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, DiskError> {
        self.missing(name, Operation::Read)
    }

    fn write(&self, name: &str, _bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.refused(name, Operation::Write)
    }

    fn append(&self, name: &str, _bytes: &[u8]) -> Result<Box<dyn WritableFile>, DiskError> {
        self.missing(name, Operation::Append)
    }

    fn rename(&self, from: &str, _to: &str) -> Result<(), DiskError> {
        self.missing(from, Operation::Rename)
    }

    /// All that is there is durable.
    fn fsync_folder(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.missing(name, Operation::Remove)
    }

    fn lock(&self, name: &str) -> Result<LockGuard, DiskError> {
        self.refused(name, Operation::Lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::lock::WriterLock;
    use crate::read::Inline;
    use crate::store::Store;

    #[test]
    fn a_store_opens_on_it_and_holds_nothing_and_nobody_writes_there() {
        let disk: Arc<dyn Disk> = Arc::new(EmptyDisk);
        let store = Store::open(Arc::clone(&disk), Arc::new(Inline), Limits::default()).unwrap();
        assert_eq!(store.view().coverage(), []);
        store.refresh().unwrap();
        assert!(disk.read("manifest", 10).unwrap_err().is_missing());
        let refused = disk.write("manifest", b"x").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "no folder/manifest: write: read-only filesystem or storage medium"
        );
        assert!(WriterLock::take(&*disk).is_err());
        assert_eq!(disk.list().unwrap(), Vec::<String>::new());
    }
}
