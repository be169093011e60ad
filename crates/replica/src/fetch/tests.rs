//! Fetching through stores that are slow, fail, or give other bytes than they should.

#![expect(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

use store::disk::DiskError;

use super::*;
use crate::range_cache::RangeCacheSettings;
use crate::scripted_store::{ScriptedStore, Step};

const FILE: &str = "blocks-0000000000-0000008191-0011223344556677.segment";
const FILE_BYTES: u64 = 1 << 20;

struct Fixture {
    store: Arc<ScriptedStore>,
    fetcher: Arc<Fetcher>,
    object: RemoteObject,
    content: Vec<u8>,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(RangeReadSettings::default()).await
    }

    async fn with(settings: RangeReadSettings) -> Self {
        let content: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
        let store = Arc::<ScriptedStore>::default();
        store.put_file(FILE, &content).await;
        let cache = Arc::new(RangeCache::open(&RangeCacheSettings::default()));
        let runtime = Handle::current();
        let fetcher = Arc::new(Fetcher::new(store.bucket(), cache, runtime, settings));
        let (name, key) = (Arc::from(FILE), FileKey::of(FILE));
        let object = RemoteObject { name, key, file_bytes: FILE_BYTES };
        Self { store, fetcher, object, content }
    }

    fn ask(&self, range: Range<u64>) -> Fetching {
        self.fetcher.fetch(&self.object, range, Some(CacheRank::Page))
    }

    async fn fetch(&self, range: Range<u64>) -> Fetched {
        self.ask(range).await.unwrap()
    }

    #[track_caller]
    fn check(&self, fetched: &Fetched, range: Range<u64>) {
        assert_eq!(fetched.as_ref().unwrap(), &self.content[indices(&range)]);
    }

    /// What failed, as readers of files are told, after so many requests.
    async fn refusal(&self, script: &[Step]) -> (DiskError, usize) {
        self.refusal_of(1000..2000, script).await
    }

    async fn refusal_of(&self, range: Range<u64>, script: &[Step]) -> (DiskError, usize) {
        self.store.script(script);
        let error = self.fetch(range.clone()).await.unwrap_err().to_disk_error();
        assert!(self.cached(range).is_none(), "nothing is kept of what failed");
        (error, self.store.take_ranges().len())
    }

    fn cached(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        let found = self.fetcher.cache.read_now(self.object.key, &range, &mut buffer);
        (found == crate::range_cache::CacheLookup::Ready).then_some(buffer)
    }

    fn counts(&self) -> crate::RemoteCounts {
        self.fetcher.cache.counts()
    }

    /// Lets everything run that can.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

fn indices(range: &Range<u64>) -> Range<usize> {
    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_range_comes_and_is_kept() {
    let fixture = Fixture::new().await;
    fixture.check(&fixture.fetch(1000..2000).await, 1000..2000);
    assert_eq!(fixture.cached(1000..2000).unwrap(), fixture.content[1000..2000]);
    let counts = fixture.counts();
    assert_eq!((counts.requests, counts.bytes_asked, counts.bytes_fetched), (1, 1000, 1000));
    assert!(fixture.fetcher.lock_flights().is_empty());
}

#[tokio::test(start_paused = true)]
async fn concurrent_readers_of_one_range_share_one_fetch() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::After(Duration::from_millis(200))]);
    let readers: Vec<_> = (0..100).map(|_| fixture.ask(1000..2000)).collect();
    Fixture::settle().await;
    let late = fixture.ask(1000..2000);
    for reader in readers {
        fixture.check(&reader.await.unwrap(), 1000..2000);
    }
    fixture.check(&late.await.unwrap(), 1000..2000);
    assert_eq!(fixture.store.take_ranges(), [1000..2000]);
    assert_eq!(fixture.counts().shared_fetches, 100);
}

#[tokio::test(start_paused = true)]
async fn neighbours_come_together_and_each_reader_gets_its_own() {
    let fixture = Fixture::new().await;
    let ranges = [40_000..41_000, 1000..2000, 2000..2500, 10_000..11_000];
    let asked: Vec<_> = ranges.iter().map(|range| fixture.ask(range.clone())).collect();
    for (asked, range) in asked.into_iter().zip(ranges) {
        fixture.check(&asked.await.unwrap(), range.clone());
        assert_eq!(fixture.cached(range.clone()).unwrap(), fixture.content[indices(&range)]);
    }
    assert_eq!(fixture.store.take_ranges(), [1000..11_000, 40_000..41_000]);
    assert_eq!(fixture.counts().joined_ranges, 2);
    assert_eq!(fixture.cached(3000..4000), None, "what lies between was not asked for");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_goes_on_for_those_who_stay_and_ends_with_the_last() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::After(Duration::from_millis(200)), Step::Hang]);
    let (first, second) = (fixture.ask(1000..2000), fixture.ask(1000..2000));
    Fixture::settle().await;
    drop(first);
    fixture.check(&second.await.unwrap(), 1000..2000);

    let (near, far) = (fixture.ask(5000..6000), fixture.ask(7000..8000));
    Fixture::settle().await;
    assert_eq!(fixture.store.under_way(), 1);
    drop(near);
    Fixture::settle().await;
    assert_eq!(fixture.store.under_way(), 1, "a neighbour still waits");
    drop(far);
    Fixture::settle().await;
    assert_eq!(fixture.store.under_way(), 0, "nobody waits any more");
    assert!(fixture.fetcher.lock_flights().is_empty());
    // What was given up can be asked for again.
    fixture.check(&fixture.fetch(5000..6000).await, 5000..6000);
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_given_up_before_it_was_requested_is_not() {
    let fixture = Fixture::new().await;
    drop(fixture.ask(1000..2000));
    Fixture::settle().await;
    assert_eq!(fixture.store.take_ranges(), []);
    assert!(fixture.fetcher.lock_flights().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_gets_a_second_one_beside_it() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::Hang, Step::After(Duration::from_millis(20))]);
    let begin = tokio::time::Instant::now();
    fixture.check(&fixture.fetch(1000..2000).await, 1000..2000);
    assert_eq!(begin.elapsed().as_millis(), 320);
    let counts = fixture.counts();
    assert_eq!((counts.requests, counts.hedges, counts.retries), (2, 1, 0));
    assert_eq!(fixture.store.under_way(), 0, "the slow one is given up");
    // The first may win after all.
    let slow = Duration::from_millis(500);
    fixture.store.script(&[Step::After(slow), Step::Hang]);
    fixture.check(&fixture.fetch(3000..4000).await, 3000..4000);
    // The second may fail: the first is still waited for.
    fixture.store.script(&[Step::After(slow), Step::Fail]);
    fixture.check(&fixture.fetch(5000..6000).await, 5000..6000);
    assert_eq!(fixture.counts().retries, 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_range_is_not_slow_because_it_is_long() {
    let settings =
        RangeReadSettings { hedge_bytes_per_second: 1 << 20, ..RangeReadSettings::default() };
    let fixture = Fixture::with(settings).await;
    fixture.store.script(&[Step::After(Duration::from_millis(1200))]);
    fixture.check(&fixture.fetch(0..FILE_BYTES).await, 0..FILE_BYTES);
    assert_eq!(fixture.counts().hedges, 0);
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_a_while_is_asked_for_again() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::Fail, Step::Short, Step::Elsewhere, Step::Answer]);
    fixture.check(&fixture.fetch(1000..2000).await, 1000..2000);
    let counts = fixture.counts();
    assert_eq!((counts.requests, counts.retries, counts.failures), (4, 3, 0));
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_failing_is_an_error_that_names_object_range_and_cause() {
    let fixture = Fixture::new().await;
    let (error, requests) = fixture.refusal(&[Step::Fail; 4]).await;
    assert_eq!(requests, 4);
    assert!(matches!(error, DiskError::Failed { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["s3://bucket", FILE, "bytes 1000..2000", "status 503", "4 attempts"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(fixture.counts().failures, 1);
    let (error, requests) = fixture.refusal(&[Step::Short; 4]).await;
    assert_eq!(requests, 4);
    assert!(error.to_string().contains("999"), "{error}");
    let (error, _) = fixture.refusal(&[Step::Elsewhere; 4]).await;
    assert!(error.to_string().contains("1001..2001"), "{error}");
    let (error, requests) = fixture.refusal(&[Step::Hang; 6]).await;
    assert_eq!(requests, 6, "three attempts, each with a second request");
    assert!(error.to_string().contains("no answer within 30 s"), "{error}");
    // Whoever may not is not asked again.
    let (error, requests) = fixture.refusal(&[Step::Refuse]).await;
    assert_eq!(requests, 1);
    assert!(error.to_string().contains("status 403"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_attempts_together_take_no_longer_than_they_may() {
    let settings = RangeReadSettings {
        retries: 100,
        total_timeout: Duration::from_secs(25),
        ..Default::default()
    };
    for (script, said) in [
        (vec![Step::Hang; 100], "no answer within 25 s (3 attempts)"),
        (vec![Step::Fail; 200], "status 503"),
        // The last attempt has what is left, not ten seconds.
        ([&[Step::Fail; 5][..], &[Step::Hang; 100]].concat(), "no answer within 25 s"),
    ] {
        let fixture = Fixture::with(settings).await;
        let begun = tokio::time::Instant::now();
        let (error, _) = fixture.refusal(&script).await;
        let text = error.to_string();
        assert!(text.contains(FILE) && text.contains(said), "{text}");
        assert!(begun.elapsed() <= settings.total_timeout, "{:?}: {text}", begun.elapsed());
        assert!(begun.elapsed() > settings.total_timeout / 2, "{:?}: {text}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_listed_object_that_is_not_shown_yet_is_asked_for_twice_more() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::Miss, Step::Miss]);
    fixture.check(&fixture.fetch(1000..2000).await, 1000..2000);
    assert_eq!((fixture.counts().requests, fixture.counts().failures), (3, 0));
    fixture.store.take_ranges();
    let (error, requests) = fixture.refusal_of(3000..4000, &[Step::Miss; 3]).await;
    assert_eq!(requests, 3);
    assert!(error.is_missing() && error.to_string().contains(FILE), "{error}");
    assert_eq!(fixture.counts().failures, 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_length_or_none_is_at_fault_itself() {
    let mut fixture = Fixture::new().await;
    fixture.object.file_bytes = FILE_BYTES + 5;
    let (error, requests) = fixture.refusal(&[]).await;
    assert_eq!(requests, 1);
    assert!(matches!(error, DiskError::Shrunk { found: FILE_BYTES, .. }), "{error:?}");
    // Beyond the end of the object, stores refuse in words of their own.
    let error = fixture.fetch(FILE_BYTES + 1..FILE_BYTES + 5).await.unwrap_err().to_disk_error();
    assert!(matches!(error, DiskError::Shrunk { found: FILE_BYTES, .. }), "{error:?}");
    fixture.object.name = Arc::from("lookup-gone.run");
    let (error, _) = fixture.refusal(&[]).await;
    assert!(error.is_missing(), "{error:?}");
    assert!(error.to_string().contains("s3://bucket: net/files/lookup-gone.run"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn so_many_requests_and_no_more_are_under_way() {
    let fixture = Fixture::with(RangeReadSettings { requests_max: 3, ..Default::default() }).await;
    fixture.store.script(&[Step::After(Duration::from_millis(50)); 30]);
    let ranges = (0..10_u64).map(|number| number * 50_000..number * 50_000 + 1000);
    let asked: Vec<_> = ranges.clone().map(|range| fixture.ask(range)).collect();
    for (asked, range) in asked.into_iter().zip(ranges) {
        fixture.check(&asked.await.unwrap(), range);
    }
    assert_eq!(fixture.store.most_under_way(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_failure_reaches_everybody_who_waits_and_nobody_later() {
    let fixture = Fixture::new().await;
    fixture.store.script(&[Step::Refuse]);
    let (one, other) = (fixture.ask(1000..2000), fixture.ask(1500..2500));
    assert!(one.await.unwrap().is_err());
    assert!(other.await.unwrap().is_err());
    fixture.check(&fixture.fetch(1000..2000).await, 1000..2000);
}
