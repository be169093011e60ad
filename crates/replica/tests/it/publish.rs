//! Publishing: what a bucket has at every moment of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use replica::{
    Bucket, BucketSettings, Publication, PublishError, PublishTask, Published, check, copy_files,
    listed_files, publish, read_published, retract,
};
use store::disk::Disk;
use testing::disk::faulty::FaultyDisk;

use crate::faulty_store::{Faults, FaultyStore};
use crate::history::{Branch, MAIN, MadeFolder, bare, segment, sha, slots, whole};

/// A bucket in a store that fails at will.
pub(crate) fn bucket(store: &FaultyStore) -> Bucket {
    let settings = BucketSettings { retries: 8, ..BucketSettings::default() };
    Bucket::of_store(Arc::new(store.clone()), Path::from("net"), "faulty:///net", settings)
}

/// Publishes a folder, which knows nothing of the bucket yet.
pub(crate) async fn put(bucket: &Bucket, folder: &MadeFolder) -> Result<Publication, PublishError> {
    let task = PublishTask {
        disk: &folder.disk,
        manifest: &folder.manifest,
        genesis: folder.genesis.as_deref(),
        progress: &(),
        stop: &|| false,
    };
    publish(bucket, &Published::default(), task).await
}

/// The names of all files that readers may ask for, each of which must be there whole.
pub(crate) async fn listed(bucket: &Bucket) -> BTreeSet<String> {
    let report = check(bucket, &(), &|| false).await.unwrap();
    assert_eq!(report.faults, []);
    let published = read_published(bucket, &Published::default()).await.unwrap();
    let files = published.manifests.iter().flat_map(|it| listed_files(&it.manifest));
    files.map(|it| it.name).filter(|it| !published.retracted.contains(it)).collect()
}

pub(crate) fn names(folder: &MadeFolder) -> BTreeSet<String> {
    folder.file_names().into_iter().collect()
}

pub(crate) async fn paths(store: &FaultyStore) -> Vec<String> {
    store.contents().await.into_iter().map(|(path, _)| path).collect()
}

#[tokio::test]
async fn a_publication_is_files_then_genesis_then_the_manifest_then_the_index() {
    let store = FaultyStore::new(1);
    let folder = MadeFolder::of(MAIN, &[whole(0, 600)]).with_genesis(b"{}");
    let done = put(&bucket(&store), &folder).await.unwrap();
    assert_eq!((done.files_put, done.files_there, done.is_new), (6, 0, true));
    let requests = store.take_requests();
    let written = requests.iter().filter_map(|it| it.strip_prefix("put net/"));
    let folders: Vec<&str> = written.map(|it| it.rsplit_once('/').unwrap().0).collect();
    assert_eq!(folders, [vec!["files"; 6], vec!["genesis", "manifests", "manifests"]].concat());
    assert_eq!(listed(&bucket(&store)).await, names(&folder));
    assert_eq!(bucket(&store).read_genesis(sha(b"{}")).await.unwrap(), b"{}");
    // Once more, it finds all of it there.
    store.take_requests();
    let again = put(&bucket(&store), &folder).await.unwrap();
    assert_eq!((again.files_put, again.files_there, again.is_new), (0, 6, false));
    assert_eq!(again.manifest, done.manifest);
    assert!(store.take_requests().iter().all(|it| !it.starts_with("put")));
}

#[tokio::test]
async fn two_publishers_of_equal_blocks_write_equal_bytes() {
    let (one, other) = (FaultyStore::new(1), FaultyStore::new(2));
    put(&bucket(&one), &MadeFolder::of(MAIN, &[whole(0, 20_000)])).await.unwrap();
    put(&bucket(&other), &MadeFolder::of(MAIN, &[whole(0, 20_000)])).await.unwrap();
    assert_eq!(one.contents().await, other.contents().await);
    // In one bucket the second writes nothing.
    let again = put(&bucket(&one), &MadeFolder::of(MAIN, &[whole(0, 20_000)])).await.unwrap();
    assert_eq!(again.files_put, 0);
}

#[tokio::test]
async fn publishers_of_different_ranges_never_hide_each_others() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let folders = [
        MadeFolder::of(MAIN, &[slots(0, 1)]),
        MadeFolder::of(MAIN, &[slots(2, 4)]),
        MadeFolder::of(MAIN, &[slots(7, 7), whole(100_000, 100_100)]),
    ];
    let publications = folders.iter().map(|folder| put(&bucket, folder));
    for done in futures_util::future::join_all(publications).await {
        assert!(done.unwrap().removed.is_empty());
    }
    let all: BTreeSet<String> = folders.iter().flat_map(names).collect();
    assert_eq!(listed(&bucket).await, all);
    // Whoever cannot list finds the same.
    assert_eq!(listed(&bucket.clone().as_web_server()).await, all);
}

#[tokio::test]
async fn a_manifest_that_another_one_contains_goes_with_the_next_publication() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let first = put(&bucket, &MadeFolder::of(MAIN, &[whole(0, 300)])).await.unwrap();
    let second = put(&bucket, &MadeFolder::of(MAIN, &[whole(0, 600)])).await.unwrap();
    assert!(second.removed.is_empty());
    let third = put(&bucket, &MadeFolder::of(MAIN, &[whole(0, 900)])).await.unwrap();
    assert_eq!(third.removed, [first.manifest]);
    let published = read_published(&bucket, &Published::default()).await.unwrap();
    let names: BTreeSet<_> = published.manifests.iter().map(|it| it.name).collect();
    assert_eq!(names, [second.manifest, third.manifest].into());
    let indexed = bucket.as_web_server();
    let indexed = read_published(&indexed, &Published::default()).await.unwrap();
    assert!(indexed.is_same(&published));
    assert_eq!(indexed.faults, []);
}

#[tokio::test]
async fn what_holds_less_of_anything_does_not_replace_a_manifest() {
    let receipts = MadeFolder::of(MAIN, &[whole(0, 300)]);
    for other in [
        MadeFolder::of(MAIN, &[bare(0, 600)]),
        MadeFolder::of(MAIN, &[whole(1, 600)]),
        MadeFolder::of(MAIN, &[whole(0, 299)]),
    ] {
        let store = FaultyStore::new(1);
        let bucket = bucket(&store);
        put(&bucket, &receipts).await.unwrap();
        put(&bucket, &other).await.unwrap();
        put(&bucket, &other).await.unwrap();
        let all: BTreeSet<String> = [names(&receipts), names(&other)].concat_sets();
        let kept = listed(&bucket).await;
        assert!(kept.is_superset(&names(&receipts)), "{:?}", other.manifest.coverage());
        assert!(kept.is_subset(&all));
    }
}

trait ConcatSets {
    fn concat_sets(self) -> BTreeSet<String>;
}

impl<const N: usize> ConcatSets for [BTreeSet<String>; N] {
    fn concat_sets(self) -> BTreeSet<String> {
        self.into_iter().flatten().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_is_killed_at_any_write_leaves_a_bucket_without_a_false_name() {
    let before = MadeFolder::of(MAIN, &[whole(0, 600)]);
    let folder = MadeFolder::of(MAIN, &[whole(0, 1100)]).with_genesis(b"{}");
    for writes in 0.. {
        let store = FaultyStore::new(writes);
        let bucket = bucket(&store);
        put(&bucket, &before).await.unwrap();
        store.stop_after(Some(writes));
        let killed = put(&bucket, &folder).await;
        store.stop_after(None);
        let kept = listed(&bucket).await;
        assert!(kept.is_superset(&names(&before)), "killed after {writes} writes");
        assert!(listed(&bucket.clone().as_web_server()).await.is_superset(&names(&before)));
        let is_done = killed.is_ok();
        assert!(!is_done || kept.is_superset(&names(&folder)));
        // The next one goes on where it ended, and the bucket is what it would have been.
        let again = put(&bucket, &folder).await.unwrap();
        assert!(again.files_there >= writes.min(folder.file_names().len() as u64));
        assert!(listed(&bucket).await.is_superset(&names(&folder)));
        if is_done {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_now_and_then_gets_all_of_it() {
    for seed in 0..20 {
        let store = FaultyStore::new(seed);
        let bucket = bucket(&store);
        store.set(Faults::PASSING);
        let folder = MadeFolder::of(MAIN, &[slots(0, 1), whole(16_384, 16_900)]);
        put(&bucket, &folder).await.unwrap();
        let report = check(&bucket, &(), &|| false).await.unwrap();
        assert_eq!((report.files, report.faults), (folder.file_names().len() as u64, vec![]));
        store.set(Faults { stale: 40, ..Faults::PASSING });
        let more = MadeFolder::of(MAIN, &[slots(0, 2)]);
        put(&bucket, &more).await.unwrap();
        store.set(Faults::default());
        assert!(listed(&bucket).await.is_superset(&names(&more)), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_an_error_that_names_it() {
    let store = FaultyStore::new(1);
    store.set(Faults { fail: 100, ..Faults::default() });
    let folder = MadeFolder::of(MAIN, &[whole(0, 600)]);
    let said = put(&bucket(&store), &folder).await.unwrap_err().to_string();
    assert!(said.contains("faulty:///net: net/"), "{said}");
    assert!(said.contains("500 Internal Server Error"), "{said}");
    store.set(Faults { slow: 100, ..Faults::default() });
    let settings = BucketSettings { request_timeout: Duration::from_secs(1), ..Default::default() };
    let slow = Bucket::of_store(Arc::new(store), Path::from("net"), "faulty:///net", settings);
    let said = put(&slow, &folder).await.unwrap_err().to_string();
    assert!(said.contains("no answer within 1 s"), "{said}");
}

#[tokio::test]
async fn a_damaged_file_of_the_folder_is_named_and_not_published() {
    let folder = MadeFolder::of(MAIN, &[whole(0, 600)]);
    for name in folder.file_names() {
        let store = FaultyStore::new(1);
        let right = folder.disk.read(&name, 1 << 20).unwrap();
        for place in [0, right.len() / 2, right.len() - 1] {
            let mut wrong = right.clone();
            wrong[place] ^= 1;
            folder.disk.write(&name, &wrong).unwrap();
            let refused = put(&bucket(&store), &folder).await.unwrap_err();
            assert!(matches!(refused, PublishError::Damaged { .. }), "{refused}");
            assert!(refused.to_string().contains(&name), "{refused}");
        }
        folder.disk.write(&name, &right[1..]).unwrap();
        let refused = put(&bucket(&store), &folder).await.unwrap_err().to_string();
        assert!(refused.contains("are listed") && refused.contains(&name), "{refused}");
        folder.disk.write(&name, &right).unwrap();
        let is_seen = |it: &String| it.ends_with(&name) || it.starts_with("net/manifests/");
        assert!(!paths(&store).await.iter().any(is_seen));
        put(&bucket(&store), &folder).await.unwrap();
    }
}

/// A folder with one segment of 20 MiB.
fn large() -> MadeFolder {
    let folder = MadeFolder::of(MAIN, &[]);
    let (entry, bytes) = segment(MAIN, whole(0, 200), 20 << 20);
    folder.disk.write(&entry.file_name, &bytes).unwrap();
    let edit = store::manifest::Edit { segments: vec![entry], ..Default::default() };
    MadeFolder { manifest: folder.manifest.edited(edit).unwrap(), ..folder }
}

#[tokio::test(start_paused = true)]
async fn a_large_file_is_sent_in_parts_and_has_its_name_only_when_it_is_right() {
    let store = FaultyStore::new(1);
    let folder = large();
    let name = folder.segment_of(0);
    put(&bucket(&store), &folder).await.unwrap();
    let requests = store.take_requests();
    let parts = requests.iter().filter(|it| it.starts_with("part ")).count();
    assert_eq!(parts, 3, "20 MiB in parts of 8");
    assert_eq!(listed(&bucket(&store)).await, names(&folder));
    // One wrong bit in the last part, and it never gets its name.
    let store = FaultyStore::new(1);
    let mut wrong = folder.disk.read(&name, 64 << 20).unwrap();
    let place = wrong.len() - 500;
    wrong[place] ^= 1;
    folder.disk.write(&name, &wrong).unwrap();
    let refused = put(&bucket(&store), &folder).await.unwrap_err();
    assert!(matches!(refused, PublishError::Damaged { .. }), "{refused}");
    assert_eq!(paths(&store).await, [] as [String; 0]);
    wrong[place] ^= 1;
    folder.disk.write(&name, &wrong).unwrap();
    // Parts that fail begin the file anew.
    store.set(Faults { fail: 15, lose_answer: 5, ..Faults::default() });
    put(&bucket(&store), &folder).await.unwrap();
    store.set(Faults::default());
    assert_eq!(listed(&bucket(&store)).await, names(&folder));
}

#[tokio::test]
async fn another_chain_or_branch_is_refused_until_the_old_one_is_retracted() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let old = MadeFolder::of(MAIN, &[whole(0, 600)]);
    put(&bucket, &old).await.unwrap();
    let mut other = MadeFolder::of(MAIN, &[whole(0, 300)]);
    let network = store::manifest::Network { chain_id: Some(78), ..Default::default() };
    let edit = store::manifest::Edit { network, ..Default::default() };
    let manifest = store::manifest::Manifest::new(store::manifest::Network::default());
    let manifest = manifest.edited(edit).unwrap();
    let segments = other.manifest.segments().to_vec();
    let edit = store::manifest::Edit { segments, ..Default::default() };
    other.manifest = manifest.edited(edit).unwrap();
    let refused = put(&bucket, &other).await.unwrap_err().to_string();
    assert!(refused.contains("the chain id is 78, that of the bucket is 77"), "{refused}");
    // The last blocks were replaced after a rewind.
    let branch = Branch { letter: b'b', fork: 550 };
    let new = MadeFolder::of(branch, &[whole(0, 600)]);
    let refused = put(&bucket, &new).await.unwrap_err();
    assert!(matches!(refused, PublishError::OtherBranch { number: 600, .. }), "{refused}");
    let dropped: BTreeSet<String> = [old.segment_of(600)].into();
    retract(&bucket, &dropped).await.unwrap().unwrap();
    put(&bucket, &new).await.unwrap();
    for bucket in [bucket.clone(), bucket.clone().as_web_server()] {
        let published = read_published(&bucket, &Published::default()).await.unwrap();
        assert_eq!(published.retracted, dropped);
        let shown = listed(&bucket).await;
        assert!(!shown.contains(&old.segment_of(600)) && shown.is_superset(&names(&new)));
    }
    // Who still has the old blocks is told that nobody sees them.
    let done = put(&bucket, &old).await.unwrap();
    assert_eq!(done.withdrawn, [old.segment_of(600)]);
    assert!(!listed(&bucket).await.contains(&old.segment_of(600)));
}

#[tokio::test]
async fn what_is_damaged_or_gone_is_told_by_name_and_the_rest_is_used() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let (low, high) =
        (MadeFolder::of(MAIN, &[whole(0, 600)]), MadeFolder::of(MAIN, &[whole(10_000, 10_600)]));
    let kept = put(&bucket, &low).await.unwrap().manifest;
    let broken = put(&bucket, &high).await.unwrap().manifest;
    let path = |name: alloy_primitives::B256| {
        format!("net/manifests/{}", alloy_primitives::hex::encode(name))
    };
    // Strangers are passed over.
    for stranger in
        ["net/manifests/README", "net/other/x", "net/manifests/deeper/00", "net2/files/x"]
    {
        store.overwrite(stranger, b"?".to_vec()).await;
    }
    let whole_text = high.manifest.encode();
    for text in [&whole_text[..whole_text.len() - 9], b"", &low.manifest.encode()] {
        store.overwrite(&path(broken), text.to_vec()).await;
        let published = read_published(&bucket, &Published::default()).await.unwrap();
        assert_eq!(published.manifests.iter().map(|it| it.name).collect::<Vec<_>>(), [kept]);
        assert_eq!(published.faults.len(), 1);
        assert_eq!(published.faults[0].object, path(broken));
    }
    store.overwrite(&path(broken), whole_text).await;
    // Files: one is gone, one is cut, one has a wrong bit.
    let files = high.file_names();
    let object = |place: usize| format!("net/files/{}", files[place]);
    store.lose(&object(0)).await;
    let bytes = high.disk.read(&files[1], 1 << 20).unwrap();
    store.overwrite(&object(1), bytes[..bytes.len() - 1].to_vec()).await;
    let mut bytes = high.disk.read(&files[2], 1 << 20).unwrap();
    bytes[100] ^= 1;
    store.overwrite(&object(2), bytes).await;
    let report = check(&bucket, &(), &|| false).await.unwrap();
    let mut wrong: Vec<String> = report.faults.iter().map(|it| it.object.clone()).collect();
    let mut expected: Vec<String> = (0..3).map(object).collect();
    wrong.sort();
    expected.sort();
    assert_eq!(wrong, expected, "{:?}", report.faults);
    // A copy has all that is right, and says what is not.
    let dest: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
    let wanted = listed_files(&high.manifest);
    let copied = copy_files(&bucket, &wanted, &dest, &(), &|| false).await.unwrap();
    assert_eq!(copied.faults, report.faults);
    assert_eq!(dest.list().unwrap().len(), wanted.len() - 3);
    // The publisher that has them puts back what is gone or cut.
    put(&bucket, &high).await.unwrap();
    let report = check(&bucket, &(), &|| false).await.unwrap();
    assert_eq!(report.faults.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_copy_through_a_failing_store_is_the_folder_that_was_published() {
    for seed in 0..10 {
        let store = FaultyStore::new(seed);
        let bucket = bucket(&store);
        let folder = MadeFolder::of(MAIN, &[slots(0, 1), whole(16_384, 16_900)]);
        put(&bucket, &folder).await.unwrap();
        store.set(Faults::PASSING);
        let dest: Arc<dyn Disk> = Arc::new(FaultyDisk::new(seed));
        let wanted = listed_files(&folder.manifest);
        let copied = copy_files(&bucket, &wanted, &dest, &(), &|| false).await.unwrap();
        assert_eq!((copied.files, copied.faults), (wanted.len() as u64, vec![]));
        assert_eq!(dest.list().unwrap(), folder.disk.list().unwrap());
        for name in dest.list().unwrap() {
            let read = |disk: &Arc<dyn Disk>| disk.read(&name, 1 << 20).unwrap();
            assert!(read(&dest) == read(&folder.disk), "{name}");
        }
        let again = copy_files(&bucket, &wanted, &dest, &(), &|| false).await.unwrap();
        assert_eq!(again.files_there, wanted.len() as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_while_manifests_are_replaced_finds_their_successors() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let mut known = Published::default();
    let mut seen = 0;
    for last in (300..6000).step_by(300) {
        let folder = MadeFolder::of(MAIN, &[whole(0, last)]);
        let (done, published) =
            futures_util::join!(put(&bucket, &folder), read_published(&bucket, &known));
        done.unwrap();
        known = published.unwrap();
        assert_eq!(known.faults, []);
        let held = known.manifests.iter().map(|it| it.manifest.coverage()[0].last()).max();
        let held = held.unwrap_or(seen);
        assert!(held >= seen, "{held} after {seen}");
        seen = held;
    }
    assert!(seen > 5000);
}

#[tokio::test]
async fn a_web_server_is_read_and_never_written() {
    let store = FaultyStore::new(1);
    let folder = MadeFolder::of(MAIN, &[whole(0, 300)]);
    put(&bucket(&store), &folder).await.unwrap();
    let server = bucket(&store).as_web_server();
    let refused = put(&server, &folder).await.unwrap_err().to_string();
    assert!(refused.contains("can be read and not written"), "{refused}");
    store.lose("net/manifests/index").await;
    let refused = read_published(&server, &Published::default()).await.unwrap_err().to_string();
    assert!(refused.contains("net/manifests/index"), "{refused}");
}
