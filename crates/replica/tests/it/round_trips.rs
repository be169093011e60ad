//! How many round trips, requests and bytes an answer takes of a bucket with all of mainnet.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use alloy_primitives::{B256, keccak256};
use chain::BlockNumber;
use replica::{
    DiskCacheSettings, Published, RangeCache, RangeCacheSettings, RangeReadSettings, RemoteFiles,
    SealedFile, listed_files, pin_files, read_published,
};
use store::disk::Disk;
use store::read::Inline;
use store::{Limits, LogQuery, PublishedHistory, Reader, RowParts, RunSubject, Store, View};
use testing::disk::faulty::FaultyDisk;
use tokio::runtime::Handle;

use crate::counted_store::{CountedStore, RequestCount};
use crate::large_bucket::LargeBucket;
use crate::true_segment::{LONG_CALL, RARE};

/// 3,071 complete slots are the most below 4,095 that have no two runs of one size: eleven runs, and
/// those of the slot under way.
const SLOT_COUNT: u64 = 3071;
const RUN_COUNT: usize = 12;
/// Three slots, each of another run.
const TRUE_SLOTS: [u64; 3] = [700, 2300, 3070];

const MIB: u64 = 1 << 20;

static LARGE: LazyLock<LargeBucket> = LazyLock::new(|| LargeBucket::new(SLOT_COUNT, &TRUE_SLOTS));
/// A bucket with a single slot: one run of each kind.
static SMALL: LazyLock<LargeBucket> = LazyLock::new(|| LargeBucket::new(1, &[0]));

/// A process that reads a bucket.
struct BucketReader {
    requests: CountedStore,
    files: RemoteFiles,
    store: Store,
    /// The listing and the manifest.
    start: RequestCount,
}

impl BucketReader {
    /// Begins with what the cache folder has.
    async fn start(bucket: &LargeBucket, cache: &Path) -> Self {
        Self::start_within(bucket, cache, Limits::default()).await
    }

    async fn start_within(bucket: &LargeBucket, cache: &Path, limits: Limits) -> Self {
        let requests = CountedStore::new(&bucket.objects);
        let published = read_published(&requests.bucket(), &Published::default()).await.unwrap();
        assert_eq!(published.faults, []);
        let start = requests.take();
        let disk = DiskCacheSettings { folder: cache.to_owned(), bytes_max: 1 << 30 };
        let settings = RangeCacheSettings { disk: Some(disk), ..RangeCacheSettings::default() };
        let cache = RangeCache::open(&settings);
        assert_eq!(cache.disk_fault(), None);
        let settings = RangeReadSettings::default();
        let files =
            RemoteFiles::new(requests.bucket(), Arc::new(cache), Handle::current(), settings);
        let (folder, remote) = (Arc::new(FaultyDisk::new(1)), Arc::new(files.clone()));
        let store = Store::open_beside(folder, Arc::new(Inline), remote, limits).unwrap();
        let manifests = published.manifests.iter();
        let manifests = manifests.map(|it| (it.name.to_string(), Arc::clone(&it.manifest)));
        store.show_published(&PublishedHistory::new(manifests, published.retracted.clone(), []));
        assert_eq!(store.view().missing(), []);
        Self { requests, files, store, start }
    }

    fn view(&self) -> Arc<View> {
        self.store.view()
    }

    /// The transaction with a hash and its receipt.
    async fn transaction(&self, hash: B256, parts: RowParts) -> Option<BlockNumber> {
        let mut reader = Reader::new().unwrap();
        let found = self.view().find_transaction(&mut reader, hash, parts).await.unwrap()?;
        assert_eq!(keccak256(found.row.view().encoded), hash);
        Some(found.block.number)
    }

    /// The number of the whole block with a hash.
    async fn block(&self, hash: B256) -> Option<BlockNumber> {
        let (mut reader, view) = (Reader::new().unwrap(), self.view());
        let number = view.find_block(&mut reader, hash).await.unwrap()?;
        let block = view.read_block(&mut reader, number, RowParts::Receipt).await.unwrap();
        assert_eq!(block.unwrap().header.hash, hash);
        Some(number)
    }

    /// The blocks with logs of an address, over all history.
    async fn blocks_with_logs(&self, query: &LogQuery) -> Vec<BlockNumber> {
        let (mut reader, view) = (Reader::new().unwrap(), self.view());
        let range = view.coverage()[0];
        let mut search = view.search_logs(query, range, 0);
        let mut found = Vec::new();
        while let Some(blocks) = search.next_rows(&mut reader).await.unwrap() {
            found.extend(blocks.iter().map(|it| it.block.number));
        }
        found
    }
}

/// Logs of an address that has one in each of the segments.
fn rare(ordinal: usize) -> LogQuery {
    LogQuery::new(vec![RARE[ordinal]], Vec::new())
}

/// The requests that an act takes of a reader.
async fn counted<T>(reader: &BucketReader, act: impl Future<Output = T>) -> (T, RequestCount) {
    reader.requests.take();
    let done = act.await;
    (done, reader.requests.take())
}

/// A block of each segment, so many blocks after its first.
fn each_block(bucket: &LargeBucket, after: u64) -> Vec<BlockNumber> {
    let segments = bucket.segments.iter();
    segments.map(|it| BlockNumber(it.entry.range.first() + after)).collect()
}

#[test]
fn the_bucket_has_as_many_segments_and_runs_as_are_promised() {
    assert!(LARGE.manifest.segments().len() > 3000);
    for subject in RunSubject::ALL {
        assert_eq!(LARGE.manifest.runs_of(subject).count(), RUN_COUNT);
        assert_eq!(SMALL.manifest.runs_of(subject).count(), 2);
    }
    let bytes: u64 = LARGE.manifest.runs().iter().map(|it| it.bytes).sum();
    assert!((40_000_000_000..50_000_000_000).contains(&bytes), "{bytes}");
}

/// What the table of docs/scale-out.md says of the first question.
#[tokio::test(start_paused = true)]
async fn a_cold_reader_answers_by_hash_in_four_round_trips() {
    for (segment, number) in LARGE.segments.iter().zip(each_block(&LARGE, 3)) {
        for parts in [RowParts::Transaction, RowParts::Receipt] {
            let cache = tempfile::tempdir().unwrap();
            let reader = BucketReader::start(&LARGE, cache.path()).await;
            reader.start.assert_at_most("listing and manifest", (2, 1, MIB));
            let hash = segment.transaction_hashes[0];
            let (found, count) = counted(&reader, reader.transaction(hash, parts)).await;
            assert_eq!(found, Some(number));
            count.assert_at_most("transaction or receipt, cold", (4, 26, 5 * MIB));
            let bytes = reader.start.bytes() + count.bytes();
            assert!(bytes < 8 * MIB, "{bytes} with the manifest");
        }
        let cache = tempfile::tempdir().unwrap();
        let reader = BucketReader::start(&LARGE, cache.path()).await;
        let (found, count) = counted(&reader, reader.block(segment.block_hashes[3])).await;
        assert_eq!(found, Some(number));
        count.assert_at_most("block by hash, cold", (4, 28, 2 * MIB));
    }
}

/// The page tells which payloads a row has, and would be a round trip of its own.
#[tokio::test(start_paused = true)]
async fn long_call_data_takes_no_further_round_trip_of_a_cold_reader() {
    let cache = tempfile::tempdir().unwrap();
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    let hash = LARGE.segments[0].transaction_hashes[LONG_CALL];
    let (found, count) = counted(&reader, reader.transaction(hash, RowParts::Receipt)).await;
    assert_eq!(found, Some(each_block(&LARGE, 19)[0]));
    count.assert_at_most("long call data, cold", (4, 26, 5 * MIB));
}

#[tokio::test(start_paused = true)]
async fn one_run_takes_four_reads() {
    let cache = tempfile::tempdir().unwrap();
    let reader = BucketReader::start(&SMALL, cache.path()).await;
    reader.start.assert_at_most("listing and manifest of one slot", (2, 1, MIB));
    let hash = SMALL.segments[0].transaction_hashes[0];
    let (found, count) = counted(&reader, reader.transaction(hash, RowParts::Receipt)).await;
    assert_eq!(found, Some(BlockNumber(3)));
    let of_young_run = count.of("lookup-transactions-000001").reads();
    assert_eq!((count.round_trips(), count.reads() - of_young_run), (4, 4), "{count}");
}

#[tokio::test(start_paused = true)]
async fn an_absent_hash_asks_all_runs_at_once() {
    let cache = tempfile::tempdir().unwrap();
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    let absent = |name: &str| keccak256(name);
    let ask = reader.transaction(absent("none"), RowParts::Receipt);
    let (found, count) = counted(&reader, ask).await;
    assert_eq!(found, None);
    count.assert_at_most("absent hash, cold", (2, 24, 5 * MIB));
    let ask = reader.transaction(absent("another"), RowParts::Receipt);
    let (found, count) = counted(&reader, ask).await;
    assert_eq!(found, None);
    count.assert_at_most("absent hash, tails there", (1, 12, 64 << 10));
}

#[tokio::test(start_paused = true)]
async fn a_reader_with_tails_answers_in_two_round_trips() {
    let cache = tempfile::tempdir().unwrap();
    let [_, segment, _] = &LARGE.segments[..] else { panic!("three segments") };
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    let ask = async |reader: &BucketReader, ordinal: usize| {
        let hash = segment.transaction_hashes[ordinal];
        let (found, count) = counted(reader, reader.transaction(hash, RowParts::Receipt)).await;
        assert!(found.is_some());
        count
    };
    ask(&reader, 0).await;
    let count = ask(&reader, 4).await;
    count.assert_at_most("transaction, tails there", (2, 12, 64 << 10));
    assert_eq!(count.of("blocks-").reads(), 1, "{count}");
    ask(&reader, 0).await.assert_at_most("the same transaction", (0, 0, 0));
    let block = reader.block(segment.block_hashes[4]);
    let (found, _) = counted(&reader, block).await;
    assert!(found.is_some());
    settle().await;
    drop(reader);
    // Another process begins with what the first one left on disk.
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    ask(&reader, 0).await.assert_at_most("the same transaction, next process", (0, 0, 0));
    let count = ask(&reader, 5).await;
    count.assert_at_most("transaction, next process", (2, 12, 64 << 10));
    let (_, count) = counted(&reader, reader.block(segment.block_hashes[0])).await;
    count.assert_at_most("block by hash, next process", (2, 15, 64 << 10));
}

#[tokio::test(start_paused = true)]
async fn pinned_lookups_leave_the_page_to_be_read() {
    let cache = tempfile::tempdir().unwrap();
    let pinned: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
    let reader = BucketReader::start(&SMALL, cache.path()).await;
    let is_wanted = |it: &SealedFile| it.name.starts_with("lookup-transactions-");
    let wanted: Vec<SealedFile> =
        listed_files(&SMALL.manifest).into_iter().filter(is_wanted).collect();
    let bucket = reader.requests.bucket();
    let copied = pin_files(&bucket, &reader.files, &wanted, &pinned, &(), &|| false).await.unwrap();
    assert_eq!((copied.files, copied.faults.len()), (2, 0));
    let hashes = &SMALL.segments[0].transaction_hashes;
    for (what, ordinal, bounds) in [
        ("transaction, lookups pinned, cold", 0, (2, 2, 2 * MIB)),
        ("transaction, lookups pinned, tails there", 4, (1, 1, 16 << 10)),
        ("long call data, lookups pinned, tails there", LONG_CALL, (2, 2, 32 << 10)),
    ] {
        let ask = reader.transaction(hashes[ordinal], RowParts::Receipt);
        let (found, count) = counted(&reader, ask).await;
        assert!(found.is_some());
        count.assert_at_most(what, bounds);
    }
}

#[tokio::test(start_paused = true)]
async fn logs_of_all_history_take_a_read_for_each_run_and_one_for_each_hit() {
    let cache = tempfile::tempdir().unwrap();
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    let (found, count) = counted(&reader, reader.blocks_with_logs(&rare(0))).await;
    assert_eq!(found, each_block(&LARGE, 3));
    // Tails and buckets of the runs, tails and pages of the segments.
    count.assert_at_most("logs of all history, cold", (4, 12 + 12 + 3 + 3, 12 * MIB));
    let (found, count) = counted(&reader, reader.blocks_with_logs(&rare(1))).await;
    assert_eq!(found, each_block(&LARGE, 19));
    count.assert_at_most("logs of all history, tails there", (2, 12 + 3, 256 << 10));
    assert_eq!(count.of("lookup-logs-").reads(), RUN_COUNT, "{count}");
}

/// Directories of segments are closed when memory is short, and opened again from the cache on disk.
#[tokio::test(start_paused = true)]
async fn metadata_in_memory_is_bounded_and_comes_back_without_a_request() {
    let cache = tempfile::tempdir().unwrap();
    let ask_all = async |reader: &BucketReader| {
        for segment in &LARGE.segments {
            let hash = segment.transaction_hashes[0];
            let found = reader.transaction(hash, RowParts::Receipt).await;
            assert!(found.is_some());
        }
    };
    let reader = BucketReader::start(&LARGE, cache.path()).await;
    ask_all(&reader).await;
    let all = reader.view().open_tails();
    assert_eq!(all.segment_count, 3);
    // Beside 26 bytes a page, which are few here.
    let each = all.segment_bytes / 3;
    assert!((1 << 20..1_500_000).contains(&each), "{each}");
    reader.blocks_with_logs(&rare(0)).await;
    reader.block(LARGE.segments[0].block_hashes[0]).await.unwrap();
    let with_logs = reader.view().open_tails();
    assert!(with_logs.run_bytes < 64 * MIB, "{with_logs:?}");
    settle().await;
    drop(reader);
    let limits = Limits { tail_bytes_max: 2 * each + each / 2, ..Limits::default() };
    let reader = BucketReader::start_within(&LARGE, cache.path(), limits).await;
    for _ in 0..3 {
        let ((), count) = counted(&reader, ask_all(&reader)).await;
        count.assert_at_most("tails that were closed", (0, 0, 0));
        let open = reader.view().open_tails();
        assert!(open.segment_bytes <= limits.tail_bytes_max, "{open:?}");
        assert_eq!(open.segment_count, 2);
    }
}

/// The clock goes on when nothing else can: what was cached is on disk then.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}
