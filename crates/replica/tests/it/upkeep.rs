//! Merging, pruning and retracting: what leaves a bucket, when, and what never does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use replica::{Bucket, Pruning, RunMergeError, merge_runs, prune, retract};
use segment::SLOT_BLOCKS;
use store::disk::Disk;
use store::layout::HeldRange;
use testing::disk::faulty::FaultyDisk;

use crate::faulty_store::{Faults, FaultyStore};
use crate::history::{MAIN, MadeFolder, bare, slots, whole};
use crate::publish::{bucket, listed, names, paths, put};

const DAY: Duration = Duration::from_hours(24);

/// Prunes a bucket so long after what was done last, with a grace period of a day.
async fn prune_after(store: &FaultyStore, bucket: &Bucket, time: Duration) -> Pruning {
    store.pass(time);
    prune(bucket, DAY, store.now()).await.unwrap()
}

async fn merge(bucket: &Bucket) -> Result<Vec<String>, RunMergeError> {
    let scratch: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
    merge_runs(bucket, &scratch, &(), &|| false).await.map(|it| it.built)
}

#[tokio::test]
async fn what_is_superseded_goes_after_the_grace_period_and_nothing_before() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let old = MadeFolder::of(MAIN, &[whole(0, 8000)]);
    let first = put(&bucket, &old).await.unwrap().manifest;
    store.pass(DAY * 9);
    let new = MadeFolder::of(MAIN, &[slots(0, 0)]);
    put(&bucket, &new).await.unwrap();
    let before = paths(&store).await;
    // The old manifest is old; what supersedes it is not.
    assert_eq!(prune_after(&store, &bucket, DAY / 2).await, Pruning::default());
    assert_eq!(paths(&store).await, before);
    let pruned = prune_after(&store, &bucket, DAY / 2).await;
    assert_eq!((pruned.manifests, pruned.files), (vec![first], 0));
    let needless = names(&old).difference(&names(&new)).count() as u64;
    assert_eq!((pruned.files_noted, needless), (32, 32));
    assert_eq!(listed(&bucket).await, names(&new));
    assert!(names(&old).iter().all(|it| before.contains(&format!("net/files/{it}"))));
    // Since when its files are orphans is known only from now on.
    assert_eq!(prune_after(&store, &bucket, DAY / 2).await.files, 0);
    let pruned = prune_after(&store, &bucket, DAY / 2).await;
    assert_eq!((pruned.files, pruned.files_noted), (needless, 0));
    let sent = paths(&store).await.iter().filter(|it| it.starts_with("net/files/")).count();
    assert_eq!(sent, new.file_names().len());
    assert!(!paths(&store).await.iter().any(|it| it.starts_with("net/orphans/")));
    assert_eq!(prune_after(&store, &bucket, DAY).await, Pruning::default());
    assert_eq!(listed(&bucket).await, names(&new));
}

#[tokio::test]
async fn files_that_a_publisher_is_sending_stay_and_are_not_forgotten_to_be_listed() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let folder = MadeFolder::of(MAIN, &[whole(0, 900)]);
    store.stop_after(Some(4));
    put(&bucket, &folder).await.unwrap_err();
    store.stop_after(None);
    let noted = prune_after(&store, &bucket, DAY).await;
    assert_eq!((noted.files, noted.files_noted), (0, 4));
    // It goes on just before they would go: they are orphans no more, and the note is gone.
    store.pass(DAY / 2);
    put(&bucket, &folder).await.unwrap();
    assert_eq!(prune_after(&store, &bucket, DAY).await, Pruning::default());
    assert_eq!(listed(&bucket).await, names(&folder));
}

#[tokio::test]
async fn nothing_is_removed_while_a_manifest_is_damaged() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    put(&bucket, &MadeFolder::of(MAIN, &[whole(0, 600)])).await.unwrap();
    let name = format!("net/manifests/{}", "0".repeat(64));
    store.overwrite(&name, b"?".to_vec()).await;
    store.pass(DAY * 9);
    let refused = prune(&bucket, DAY, store.now()).await.unwrap_err().to_string();
    assert!(refused.contains(&name) && refused.contains("nothing is removed"), "{refused}");
}

/// Seen: with the retraction gone, a publisher that was away brought the withdrawn blocks back.
#[tokio::test]
async fn withdrawn_segments_go_and_their_retraction_stays() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let old = MadeFolder::of(MAIN, &[whole(0, 600)]);
    put(&bucket, &old).await.unwrap();
    let dropped: BTreeSet<String> = [old.segment_of(600)].into();
    retract(&bucket, &dropped).await.unwrap().unwrap();
    assert_eq!(retract(&bucket, &BTreeSet::new()).await.unwrap(), None);
    let rewound = MadeFolder::of(MAIN, &[whole(0, 511)]);
    put(&bucket, &rewound).await.unwrap();
    prune_after(&store, &bucket, DAY * 2).await;
    let pruned = prune_after(&store, &bucket, DAY * 2).await;
    assert_eq!(pruned.files, 1, "the old runs are equal");
    assert_eq!(prune_after(&store, &bucket, DAY * 2).await, Pruning::default());
    // Somebody who still has the segment publishes again.
    let done = put(&bucket, &old).await.unwrap();
    assert_eq!(done.withdrawn, [old.segment_of(600)]);
    assert_eq!(listed(&bucket).await, names(&rewound));
    let withdrawn = format!("net/files/{}", old.segment_of(600));
    assert!(!paths(&store).await.contains(&withdrawn));
}

#[tokio::test]
async fn runs_that_were_published_apart_become_those_of_one_folder() {
    for parts in [vec![slots(0, 1), slots(2, 3)], vec![slots(1, 2), slots(0, 0), slots(3, 6)]] {
        let store = FaultyStore::new(1);
        let bucket = bucket(&store);
        for part in &parts {
            put(&bucket, &MadeFolder::of(MAIN, &[*part])).await.unwrap();
        }
        let tip = MadeFolder::of(MAIN, &[whole(9 * SLOT_BLOCKS, 9 * SLOT_BLOCKS + 600)]);
        put(&bucket, &tip).await.unwrap();
        assert!(!merge(&bucket).await.unwrap().is_empty());
        assert_eq!(merge(&bucket).await.unwrap(), [] as [String; 0]);
        prune_after(&store, &bucket, DAY).await;
        let whole = MadeFolder::of(MAIN, &parts);
        let expected: BTreeSet<String> = names(&whole).union(&names(&tip)).cloned().collect();
        assert_eq!(listed(&bucket).await, expected, "{parts:?}");
    }
}

#[tokio::test]
async fn slots_without_receipts_have_their_hashes_merged_and_no_logs() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let bare_slot: HeldRange = bare(0, SLOT_BLOCKS - 1);
    put(&bucket, &MadeFolder::of(MAIN, &[bare_slot])).await.unwrap();
    put(&bucket, &MadeFolder::of(MAIN, &[slots(1, 1)])).await.unwrap();
    merge(&bucket).await.unwrap();
    prune_after(&store, &bucket, DAY).await;
    assert_eq!(listed(&bucket).await, names(&MadeFolder::of(MAIN, &[bare_slot, slots(1, 1)])));
}

#[tokio::test]
async fn a_run_that_is_damaged_is_named_and_nothing_is_merged() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let low = MadeFolder::of(MAIN, &[slots(0, 0)]);
    put(&bucket, &low).await.unwrap();
    put(&bucket, &MadeFolder::of(MAIN, &[slots(1, 1)])).await.unwrap();
    let run = low.manifest.runs()[1].file_name.clone();
    let mut bytes = low.disk.read(&run, 1 << 20).unwrap();
    bytes[9] ^= 1;
    store.overwrite(&format!("net/files/{run}"), bytes).await;
    let before = paths(&store).await;
    let refused = merge(&bucket).await.unwrap_err().to_string();
    assert!(refused.contains(&run) && refused.contains("nothing was merged"), "{refused}");
    assert_eq!(paths(&store).await, before);
}

#[tokio::test(start_paused = true)]
async fn merging_and_pruning_over_a_failing_store_lose_nothing() {
    for seed in 0..10 {
        let store = FaultyStore::new(seed);
        let bucket = bucket(&store);
        store.set(Faults::PASSING);
        for slot in 0..4 {
            put(&bucket, &MadeFolder::of(MAIN, &[slots(slot, slot)])).await.unwrap();
        }
        merge(&bucket).await.unwrap();
        for _ in 0..3 {
            prune_after(&store, &bucket, DAY).await;
        }
        store.set(Faults::default());
        assert_eq!(listed(&bucket).await, names(&MadeFolder::of(MAIN, &[slots(0, 3)])));
    }
}
