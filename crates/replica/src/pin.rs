//! Filling ahead: whole files of a bucket in a folder of their own, read from there from then on.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::disk::{Disk, DiskError};

use crate::bucket::Bucket;
use crate::copy_files::{CopiedFiles, CopyError, copy_files};
use crate::progress::PublishProgress;
use crate::remote_files::RemoteFiles;
use crate::sealed_file::SealedFile;

/// Reads the files from their copies in `folder`, as far as those are there with the listed lengths.
/// True if all are.
pub fn pin_held(
    files: &RemoteFiles,
    wanted: &[SealedFile],
    folder: &Arc<dyn Disk>,
) -> Result<bool, DiskError> {
    let mut are_all = true;
    for file in wanted {
        match folder.file_bytes(&file.name) {
            Ok(bytes) if bytes == file.bytes => files.pin(&file.name, folder)?,
            Err(error) if !error.is_of_file() => return Err(error),
            Ok(_) | Err(_) => are_all = false,
        }
    }
    Ok(are_all)
}

/// Copies files of the bucket into `folder`, each held against its digest, and reads them from there as
/// soon as each is whole. What an earlier call left there is not copied again.
pub async fn pin_files(
    bucket: &Bucket,
    files: &RemoteFiles,
    wanted: &[SealedFile],
    folder: &Arc<dyn Disk>,
    progress: &dyn PublishProgress,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<CopiedFiles, CopyError> {
    let mut sum = CopiedFiles::default();
    // One after the other: readers have the bucket's attention first.
    for file in wanted {
        let file = std::slice::from_ref(file);
        let copied = copy_files(bucket, file, folder, progress, stop).await?;
        pin_held(files, file, folder)?;
        sum.files = sum.files.saturating_add(copied.files);
        sum.bytes = sum.bytes.saturating_add(copied.bytes);
        sum.files_there = sum.files_there.saturating_add(copied.files_there);
        sum.faults.extend(copied.faults);
    }
    Ok(sum)
}

/// Removes copies that are not wanted any more. Who has one open reads it on.
pub fn unpin_others(wanted: &[SealedFile], folder: &dyn Disk) -> Result<(), DiskError> {
    let wanted: BTreeSet<&str> = wanted.iter().map(|file| &*file.name).collect();
    for name in folder.list()? {
        if !wanted.contains(&*name) {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use sha2::{Digest as _, Sha256};
    use store::FileSource as _;
    use store::disk::Folder;
    use tokio::runtime::Handle;

    use super::*;
    use crate::RangeReadSettings;
    use crate::range_cache::{RangeCache, RangeCacheSettings};
    use crate::scripted_store::ScriptedStore;
    use crate::sealed_file::FileKind;

    fn listed(name: &str, bytes: &[u8]) -> SealedFile {
        let digest = B256::from_slice(&Sha256::digest(bytes));
        let (name, bytes) = (name.to_owned(), u64::try_from(bytes.len()).unwrap());
        SealedFile { name, bytes, digest, kind: FileKind::Run }
    }

    fn reader(store: &Arc<ScriptedStore>) -> RemoteFiles {
        let cache = Arc::new(RangeCache::open(&RangeCacheSettings::default()));
        RemoteFiles::new(store.bucket(), cache, Handle::current(), RangeReadSettings::default())
    }

    async fn read(files: &RemoteFiles, file: &SealedFile) -> Vec<u8> {
        files.open(&file.name, file.bytes).unwrap().read(0..file.bytes).await.unwrap()
    }

    #[tokio::test]
    async fn pinned_files_are_read_locally_and_a_false_one_is_not_pinned() {
        let store = Arc::<ScriptedStore>::default();
        let (good, bad) = (b"the bytes of a run".as_slice(), b"not the listed one".as_slice());
        store.put_file("lookup-good.run", good).await;
        store.put_file("lookup-bad.run", bad).await;
        let wanted = [listed("lookup-good.run", good), listed("lookup-bad.run", good)];
        let path = tempfile::tempdir().unwrap();
        let folder: Arc<dyn Disk> = Arc::new(Folder::create(path.path()).unwrap());
        let (files, go_on) = (reader(&store), || false);
        let open = files.open("lookup-good.run", wanted[0].bytes).unwrap();
        let pinned = pin_files(&store.bucket(), &files, &wanted, &folder, &(), &go_on).await;
        let pinned = pinned.unwrap();
        assert_eq!((pinned.files, pinned.faults.len()), (1, 1));
        assert!(pinned.faults[0].object.contains("lookup-bad.run"), "{:?}", pinned.faults);
        store.take_ranges();
        assert_eq!(open.read(0..wanted[0].bytes).await.unwrap(), good);
        assert_eq!(read(&files, &wanted[0]).await, good);
        assert_eq!(store.take_ranges(), []);

        // A restart takes up what is there, and what is not wanted goes.
        let files = reader(&store);
        assert!(!pin_held(&files, &wanted, &folder).unwrap());
        assert_eq!(read(&files, &wanted[0]).await, good);
        assert_eq!(store.take_ranges(), []);
        unpin_others(&wanted[..1], &*folder).unwrap();
        assert_eq!(folder.list().unwrap(), ["lookup-good.run"]);
        unpin_others(&[], &*folder).unwrap();
        assert_eq!(folder.list().unwrap(), [""; 0]);
        assert_eq!(read(&files, &wanted[0]).await, good, "an open copy is read on");
    }
}
