//! The same promises over every kind of store: in memory, a folder, a web server, one that fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use replica::{
    Bucket, BucketSettings, Published, RangeCache, RangeCacheSettings, RangeReadSettings,
    RemoteFiles, check, copy_files, listed_files, merge_runs, read_published, retract,
};
use store::FileSource as _;
use store::disk::Disk;
use testing::disk::faulty::FaultyDisk;
use tokio::runtime::Handle;

use crate::faulty_store::{Faults, FaultyStore};
use crate::history::{MAIN, MadeFolder, slots, whole};
use crate::publish::{bucket, listed, names, put};
use crate::web_server::serve;

/// Publishes by one door and reads by the other, which are the same but for a web server.
async fn check_store(written: &Bucket, read: &Bucket) {
    let low = MadeFolder::of(MAIN, &[slots(0, 0)]).with_genesis(b"{\"config\":{}}");
    let high = MadeFolder::of(MAIN, &[slots(1, 1), whole(16_384, 17_000)])
        .with_genesis(b"{\"config\":{}}");
    let digest = low.manifest.genesis_file().unwrap();
    assert_eq!(put(written, &low).await.unwrap().files_put, 4);
    let known = read_published(read, &Published::default()).await.unwrap();
    put(written, &high).await.unwrap();
    // What is new is found, and all of it is there.
    let published = read_published(read, &known).await.unwrap();
    assert_eq!((known.manifests.len(), published.manifests.len()), (1, 2));
    assert!(!published.is_same(&known));
    let all: BTreeSet<String> = names(&low).union(&names(&high)).cloned().collect();
    assert_eq!(listed(read).await, all);
    assert_eq!(read.read_genesis(digest).await.unwrap(), b"{\"config\":{}}");
    assert!(read.read_genesis(alloy_primitives::B256::ZERO).await.unwrap_err().is_missing());
    check_copy(read, &high).await;
    check_ranges(read, &high).await;
    // Merged, it is what one folder would have.
    let scratch: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
    assert_eq!(merge_runs(written, &scratch, &(), &|| false).await.unwrap().built.len(), 3);
    let whole_folder = MadeFolder::of(MAIN, &[slots(0, 1), whole(16_384, 17_000)]);
    assert!(listed(read).await.is_superset(&names(&whole_folder)));
    // Withdrawn, it is shown no more.
    let dropped: BTreeSet<String> = [high.segment_of(17_000)].into();
    retract(written, &dropped).await.unwrap();
    assert!(!listed(read).await.contains(&high.segment_of(17_000)));
    let report = check(read, &(), &|| false).await.unwrap();
    assert_eq!((report.faults, report.is_partial), (vec![], false));
}

/// Copies a folder, and has what was published.
async fn check_copy(read: &Bucket, folder: &MadeFolder) {
    let dest: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
    let wanted = listed_files(&folder.manifest);
    let copied = copy_files(read, &wanted, &dest, &(), &|| false).await.unwrap();
    assert_eq!(copied.faults, []);
    for name in folder.disk.list().unwrap() {
        assert!(dest.read(&name, 1 << 20).unwrap() == folder.disk.read(&name, 1 << 20).unwrap());
    }
}

/// Reads a folder's files in place, piece by piece.
async fn check_ranges(read: &Bucket, folder: &MadeFolder) {
    let cache = Arc::new(RangeCache::open(&RangeCacheSettings::default()));
    let files =
        RemoteFiles::new(read.clone(), cache, Handle::current(), RangeReadSettings::default());
    for file in listed_files(&folder.manifest) {
        let right = folder.disk.read(&file.name, 1 << 20).unwrap();
        let bytes = files.open(&file.name, file.bytes).unwrap();
        for start in (0..file.bytes).step_by(300) {
            let range = start..(start + 300).min(file.bytes);
            let found = bytes.read(range.clone()).await.unwrap();
            assert_eq!(found, right[range.start as usize..range.end as usize], "{}", file.name);
        }
    }
    let missing = files.open("lookup-blocks-000099-000099-0000000000000000.run", 99).unwrap();
    assert!(missing.read(0..9).await.unwrap_err().is_missing());
}

#[tokio::test]
async fn a_store_in_memory() {
    let store = Arc::new(InMemory::new());
    let settings = BucketSettings::default();
    let bucket = Bucket::of_store(store, Path::from("a/b"), "memory:///a/b", settings);
    check_store(&bucket, &bucket).await;
}

#[tokio::test]
async fn a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}/net", folder.path().display());
    let bucket = Bucket::open(&url, BucketSettings::default()).unwrap();
    check_store(&bucket, &bucket).await;
    // Whoever opens it again finds the same.
    let again = Bucket::open(&url, BucketSettings::default()).unwrap();
    assert_eq!(listed(&again).await, listed(&bucket).await);
}

#[tokio::test]
async fn a_web_server_over_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}/net", folder.path().display());
    let written = Bucket::open(&url, BucketSettings::default()).unwrap();
    let address = serve(folder.path()).await;
    let url = format!("http://{address}/net");
    let read = Bucket::open(&url, BucketSettings::default()).unwrap();
    assert!(!read.is_listable());
    check_store(&written, &read).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_now_and_then() {
    for seed in 0..5 {
        let store = FaultyStore::new(seed);
        store.set(Faults::PASSING);
        let bucket = bucket(&store);
        check_store(&bucket, &bucket).await;
    }
}
