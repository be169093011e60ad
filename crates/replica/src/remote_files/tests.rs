//! Files of a bucket, read in place.

#![expect(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use store::disk::Folder;
use store::read::{block_on, fetch};

use super::*;
use crate::range_cache::{DiskCacheSettings, RangeCacheSettings};
use crate::scripted_store::{ScriptedStore, Step};

const SEGMENT: &str = "blocks-0000000000-0000008191-0011223344556677.segment";
const RUN: &str = "lookup-transactions-000000-002047-0011223344556677.run";
const LOGS: &str = "lookup-logs-000000-002047-0011223344556677.run";
const SEGMENT_BYTES: u64 = 4 << 20;
const RUN_BYTES: u64 = 8 << 20;

fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at.wrapping_mul(31) % 251).unwrap()).collect()
}

struct Fixture {
    store: Arc<ScriptedStore>,
    cache: Arc<RangeCache>,
    files: RemoteFiles,
}

impl Fixture {
    /// A reader of the same bucket with a cache of its own.
    async fn new(cache: &RangeCacheSettings) -> Self {
        let store = Arc::<ScriptedStore>::default();
        for (name, bytes) in [(SEGMENT, SEGMENT_BYTES), (RUN, RUN_BYTES), (LOGS, 5000)] {
            store.put_file(name, &content(bytes)).await;
        }
        Self::of(store, cache)
    }

    fn of(store: Arc<ScriptedStore>, cache: &RangeCacheSettings) -> Self {
        let cache = Arc::new(RangeCache::open(cache));
        let settings = RangeReadSettings::default();
        let runtime = Handle::current();
        let files = RemoteFiles::new(store.bucket(), Arc::clone(&cache), runtime, settings);
        Self { store, cache, files }
    }

    fn open(&self, name: &str, bytes: u64) -> Arc<dyn SegmentBytes> {
        self.files.open(name, bytes).unwrap()
    }

    /// What store does when it opens a file whose tail begins there.
    async fn open_tail(&self, name: &str, bytes: u64, footer: u64, tail: Range<u64>) {
        let file = self.open(name, bytes);
        read(&*file, bytes - footer..bytes).await;
        read(&*file, tail).await;
    }
}

/// Reads a range as the store does, and holds it against what the file has.
async fn read(file: &dyn SegmentBytes, range: Range<u64>) {
    let mut buffer = Vec::new();
    fetch(file, range.clone(), &mut buffer).await.unwrap();
    let all = content(file.file_bytes());
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    assert!(buffer == all[range.clone()], "other bytes in {range:?}");
}

fn on_disk(folder: &Path) -> RangeCacheSettings {
    let disk = DiskCacheSettings { folder: folder.to_owned(), bytes_max: 64 << 20 };
    RangeCacheSettings { memory_bytes_max: 0, disk: Some(disk) }
}

fn in_memory() -> RangeCacheSettings {
    RangeCacheSettings::default()
}

#[tokio::test(start_paused = true)]
async fn opening_a_segment_takes_one_request() {
    let fixture = Fixture::new(&in_memory()).await;
    let tail = SEGMENT_BYTES - 700_000..SEGMENT_BYTES - 184;
    fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, tail.clone()).await;
    assert_eq!(fixture.store.take_ranges(), [SEGMENT_BYTES - (1 << 20)..SEGMENT_BYTES]);
    // Closed and opened again, it takes none; and no memory is taken by pages before the tail.
    fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, tail).await;
    assert_eq!(fixture.store.take_ranges(), []);
    assert!(fixture.cache.counts().memory_bytes < 701_000);
}

#[tokio::test(start_paused = true)]
async fn opening_a_run_takes_one_request_and_few_bytes() {
    let fixture = Fixture::new(&in_memory()).await;
    let lead = RUN_BYTES / 1024 + (20 << 10);
    let tail = RUN_BYTES - 6400..RUN_BYTES;
    fixture.open_tail(RUN, RUN_BYTES, 56, tail).await;
    assert_eq!(fixture.store.take_ranges(), [RUN_BYTES - lead..RUN_BYTES]);
    let logs = fixture.open(LOGS, 5000);
    read(&*logs, 5000 - 56..5000).await;
    read(&*logs, 4000..5000).await;
    // Small enough to come as a whole, it answers probes too.
    read(&*logs, 100..1400).await;
    assert_eq!(fixture.store.take_ranges(), [0..5000]);
}

#[tokio::test(start_paused = true)]
async fn of_a_tail_longer_than_expected_only_the_rest_is_fetched() {
    let fixture = Fixture::new(&in_memory()).await;
    let start = SEGMENT_BYTES - 1_500_000;
    let lead = SEGMENT_BYTES - (1 << 20);
    fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, start..SEGMENT_BYTES - 184).await;
    assert_eq!(fixture.store.take_ranges(), [lead..SEGMENT_BYTES, start..lead]);
    fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, start..SEGMENT_BYTES - 184).await;
    assert_eq!(fixture.store.take_ranges(), []);
}

#[tokio::test(start_paused = true)]
async fn a_cold_answer_by_hash_takes_four_dependent_round_trips() {
    let fixture = Fixture::new(&in_memory()).await;
    let round_trip = Duration::from_millis(40);
    fixture.store.script(&[Step::After(round_trip); 4]);
    let begin = tokio::time::Instant::now();
    let run = fixture.open(RUN, RUN_BYTES);
    read(&*run, RUN_BYTES - 56..RUN_BYTES).await;
    read(&*run, RUN_BYTES - 6400..RUN_BYTES).await;
    read(&*run, 100_000..101_300).await;
    let segment = fixture.open(SEGMENT, SEGMENT_BYTES);
    read(&*segment, SEGMENT_BYTES - 184..SEGMENT_BYTES).await;
    read(&*segment, SEGMENT_BYTES - 700_000..SEGMENT_BYTES - 184).await;
    read(&*segment, 5000..11_000).await;
    assert_eq!(begin.elapsed(), 4 * round_trip);
    let counts = fixture.files.counts();
    assert_eq!((counts.requests, counts.misses, counts.hedges), (4, 4, 0));
    assert!(counts.bytes_fetched < 2 << 20, "{counts:?}");
    // With tails in memory, a further answer takes two.
    fixture.store.take_ranges();
    read(&*run, 200_000..201_300).await;
    read(&*segment, 50_000..56_000).await;
    assert_eq!(fixture.store.take_ranges(), [200_000..201_300, 50_000..56_000]);
    // And the same one again takes none.
    read(&*run, 200_000..201_300).await;
    read(&*segment, 50_000..56_000).await;
    assert_eq!(fixture.store.take_ranges(), []);
    assert_eq!(fixture.files.counts().memory_hits, 2);
}

#[tokio::test(start_paused = true)]
async fn concurrent_readers_that_open_a_file_share_its_end() {
    let fixture = Fixture::new(&in_memory()).await;
    let tail = SEGMENT_BYTES - 700_000..SEGMENT_BYTES - 184;
    let open = || fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, tail.clone());
    futures_util::future::join_all((0..10).map(|_| open())).await;
    assert_eq!(fixture.store.take_ranges().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_range_beyond_the_file_is_refused_without_a_request() {
    let fixture = Fixture::new(&in_memory()).await;
    let file = fixture.open(LOGS, 5000);
    let mut buffer = vec![1];
    let range = 10..5001;
    assert!(matches!(file.read_now(range.clone(), &mut buffer), Err(DiskError::Range { .. })));
    assert!(matches!(file.read(range).await, Err(DiskError::Range { end: 5001, .. })));
    assert!(matches!(fixture.files.open("../up", 5), Err(DiskError::Name { .. })));
    assert_eq!(fixture.store.take_ranges(), []);
    read(&*file, 7..7).await;
}

/// Runs a future where nothing but its wakers is known of the runtime that fetches.
fn elsewhere<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> {
    let joined = tokio::task::spawn_blocking(move || block_on(future));
    async move { joined.await.unwrap() }
}

#[tokio::test]
async fn any_thread_may_wait_for_a_read() {
    let fixture = Fixture::new(&in_memory()).await;
    let file = fixture.open(SEGMENT, SEGMENT_BYTES);
    let own = Arc::clone(&file);
    elsewhere(async move { read(&*own, 1000..2000).await }).await;
    elsewhere(async move { read(&*file, SEGMENT_BYTES - 184..SEGMENT_BYTES).await }).await;
    assert_eq!(fixture.store.take_ranges().len(), 2);
}

#[test]
fn a_read_after_the_end_of_the_runtime_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let fixture = runtime.block_on(Fixture::new(&in_memory()));
    let file = fixture.open(LOGS, 5000);
    drop(runtime);
    let error = block_on(file.read(5..6)).unwrap_err();
    assert!(matches!(error, DiskError::PoolClosed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_restarted_reader_is_warm_and_serves_while_the_store_fails() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(&on_disk(folder.path())).await;
    let tail = SEGMENT_BYTES - 700_000..SEGMENT_BYTES - 184;
    let ask = async |fixture: &Fixture| {
        fixture.open_tail(SEGMENT, SEGMENT_BYTES, 184, tail.clone()).await;
        fixture.open_tail(RUN, RUN_BYTES, 56, RUN_BYTES - 6400..RUN_BYTES).await;
        read(&*fixture.open(RUN, RUN_BYTES), 100_000..101_300).await;
        read(&*fixture.open(SEGMENT, SEGMENT_BYTES), 5000..11_000).await;
    };
    ask(&fixture).await;
    assert_eq!(fixture.store.take_ranges().len(), 4);
    let store = Arc::clone(&fixture.store);
    // Writes still queued are written at the end.
    close(fixture).await;
    store.script(&[Step::Refuse; 100]);
    let fixture = Fixture::of(store, &on_disk(folder.path()));
    ask(&fixture).await;
    assert_eq!(fixture.store.take_ranges(), []);
    let counts = fixture.files.counts();
    assert_eq!((counts.requests, counts.disk_hits, counts.misses), (0, 6, 0));
    // What is not cached is an error, and what is cached is served on.
    let error = fixture.open(SEGMENT, SEGMENT_BYTES).read(50_000..51_000).await.unwrap_err();
    assert!(error.to_string().contains("status 403"), "{error}");
    ask(&fixture).await;
}

/// Ends a reader, with the tasks that write what it cached.
async fn close(fixture: Fixture) {
    let cache = Arc::clone(&fixture.cache);
    drop(fixture);
    while Arc::strong_count(&cache) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cache_folder_that_goes_while_it_is_read_costs_requests_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let fixture = Fixture::new(&on_disk(&path)).await;
    let file = fixture.open(SEGMENT, SEGMENT_BYTES);
    for round in 0..3 {
        for number in 0..10 {
            read(&*file, number * 10_000..number * 10_000 + 5000).await;
        }
        if round == 1 {
            std::fs::remove_dir_all(&path).unwrap();
        }
    }
    read(&*file, 500_000..501_000).await;
    fixture.cache.write_queued();
    assert!(path.is_dir());
    read(&*file, 500_000..501_000).await;
}

#[tokio::test]
async fn bytes_that_turned_out_wrong_are_fetched_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = on_disk(folder.path());
    settings.memory_bytes_max = 64 << 20;
    let fixture = Fixture::new(&settings).await;
    let file = fixture.open(SEGMENT, SEGMENT_BYTES);
    read(&*file, 5000..6000).await;
    read(&*file, 5000..6000).await;
    assert_eq!(fixture.store.take_ranges().len(), 1);
    file.discard_copies();
    read(&*file, 5000..6000).await;
    assert_eq!(fixture.store.take_ranges(), [5000..6000]);
}

#[tokio::test]
async fn a_pinned_file_is_read_locally_also_where_it_is_open_already() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(folder.path()).unwrap());
    disk.write(RUN, &content(RUN_BYTES)).unwrap();
    let fixture = Fixture::new(&in_memory()).await;
    let file = fixture.open(RUN, RUN_BYTES);
    read(&*file, 5000..6000).await;
    assert_eq!(fixture.store.take_ranges().len(), 1);
    fixture.files.pin(RUN, &disk).unwrap();
    read(&*file, 7000..8000).await;
    read(&*fixture.open(RUN, RUN_BYTES), RUN_BYTES - 56..RUN_BYTES).await;
    assert_eq!(fixture.store.take_ranges(), []);
    // A copy that is cut or damaged is none.
    std::fs::write(folder.path().join(RUN), b"short").unwrap();
    read(&*file, 7000..8000).await;
    assert_eq!(fixture.store.take_ranges(), [7000..8000]);
}

/// Seen: a damaged copy stayed, was taken up by the next process, and its fault was told of the object.
#[tokio::test]
async fn a_damaged_copy_is_removed_and_says_nothing_of_the_object() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(folder.path()).unwrap());
    disk.write(RUN, &content(RUN_BYTES)).unwrap();
    let fixture = Fixture::new(&in_memory()).await;
    fixture.files.pin(RUN, &disk).unwrap();
    // Both readers have read the copy when one finds it damaged.
    let open = || fixture.open(RUN, RUN_BYTES);
    let (one, other) = (open(), open());
    read(&*one, 5000..6000).await;
    read(&*other, 5000..6000).await;
    assert!(!fixture.files.take_lost_copies());
    assert!(one.discard_copies() && other.discard_copies());
    while !fixture.files.take_lost_copies() {
        tokio::task::yield_now().await;
    }
    assert_eq!(disk.list().unwrap(), [""; 0]);
    // Whoever opens it now reads the object, and what is wrong there is its own fault.
    let next = open();
    read(&*next, 5000..6000).await;
    assert!(!next.discard_copies());
    assert!(!fixture.files.take_lost_copies());
}
