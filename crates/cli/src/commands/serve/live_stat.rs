//! `/stat.json`: what is held, as `quipu stat --json` tells it, and how serving goes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chain::{BlockNumber, decode_header};
use rpc::{
    CallTimes, LiveCounts, MakingPage, PageError, Service, StatPage, StatScope, TrafficCounts,
};
use serde_json::{Value, json};
use store::read::block_on;
use store::stat::PartBytesCache;
use store::{Reader, Store, View};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep, timeout};

use crate::Failure;
use crate::commands::stat::{FolderStat, gather_served};
use crate::data_folder::DataFolder;
use crate::trust_text::word;

use super::health::FollowHealth;
use super::kept_page::KeptPage;
use super::source::BucketSource;

/// Between two looks at the counts.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Rates are over so many of them.
const SAMPLES_MAX: usize = 10;
/// What is held is looked at no more often: that lists the folder and writes a line of every segment.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same while the view is the one that was seen: only what lies beside it can have changed.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(10);
/// What stands in the place of errors that name upstreams.
const NEEDS_KEY: &str = "shown to requests with an API key";
/// So long metrics wait for a look: the first one at a large folder takes longer.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// Makes the page.
#[derive(Debug)]
pub(super) struct LiveStat {
    /// The folder, with the store that is served.
    folder: DataFolder,
    health: Option<Arc<FollowHealth>>,
    source: Option<Arc<BucketSource>>,
    begun: Instant,
    samples: Mutex<VecDeque<Sample>>,
    held: KeptPage<HeldPage, PartBytesCache>,
    runtime: Handle,
    /// What was held when it was last looked, also while somebody looks.
    newest_facts: Arc<Mutex<Option<Arc<HeldFacts>>>>,
}

/// What is held, in numbers.
#[derive(Debug)]
pub(super) struct HeldFacts {
    pub(super) seen: Arc<FolderStat>,
    /// How many blocks have which trust status, in a word.
    pub(super) statuses: Vec<(&'static str, u64)>,
    /// The timestamp of the newest block.
    pub(super) tip_timestamp: Option<u64>,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    traffic: TrafficCounts,
    times: CallTimes,
    tip: Option<u64>,
}

/// What was held when it was last looked.
#[derive(Clone, Debug)]
struct HeldPage {
    /// `None` if nothing could be looked at.
    seen: Option<Arc<FolderStat>>,
    /// The page without its last brace.
    page: Arc<str>,
}

impl LiveStat {
    pub(super) fn new(
        folder: DataFolder,
        health: Option<Arc<FollowHealth>>,
        source: Option<Arc<BucketSource>>,
        runtime: Handle,
    ) -> Self {
        let begun = Instant::now();
        let live = Self {
            folder,
            health,
            source,
            begun,
            samples: Mutex::default(),
            held: KeptPage::new(runtime.clone()),
            runtime,
            newest_facts: Arc::default(),
        };
        live.sample(TrafficCounts::default(), CallTimes::default());
        live
    }

    /// Looks at the counts now and then, for as long as the process runs.
    pub(super) async fn keep_sampling(self: Arc<Self>, service: Arc<Service>) {
        loop {
            sleep(SAMPLE_EVERY).await;
            self.sample(service.traffic(), service.call_times());
        }
    }

    fn sample(&self, traffic: TrafficCounts, times: CallTimes) {
        let sample = self.now(traffic, times);
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back(sample);
        while samples.len() > SAMPLES_MAX + 1 {
            samples.pop_front();
        }
    }

    fn now(&self, traffic: TrafficCounts, times: CallTimes) -> Sample {
        let tip = self.folder.store.view().tip().map(BlockNumber::get);
        Sample { at: Instant::now(), traffic, times, tip }
    }

    /// What is held, as it was seen a short while ago.
    async fn held(&self) -> Result<HeldPage, JoinError> {
        let view = self.folder.store.view();
        let is_good = move |held: &HeldPage, age: Duration| {
            let is_same = held.seen.as_ref().is_some_and(|seen| {
                Arc::ptr_eq(&seen.view, &view) && seen.stat.unreadable.is_empty()
            });
            age < if is_same { LOOK_AGAIN_EVERY } else { LOOK_EVERY }
        };
        let (folder, newest_facts) = (self.folder.clone(), Arc::clone(&self.newest_facts));
        let making = std::future::ready(move |cache: &mut PartBytesCache| {
            let looked = look(&folder, cache);
            let (held, facts) = looked.unwrap_or_else(|error| {
                (HeldPage { seen: None, page: open_object(&json!({ "error": error })) }, None)
            });
            // After a look that failed nobody knows what is held.
            *newest_facts.lock().unwrap_or_else(PoisonError::into_inner) = facts.map(Arc::new);
            held
        });
        let held = self.held.get(is_good, making).await;
        if held.is_err() {
            *self.newest_facts.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        held
    }

    /// What is held, in numbers: as it is now, unless to look takes long, or else as it was seen last.
    pub(super) async fn newest_facts(&self) -> Option<Arc<HeldFacts>> {
        // Whoever looks does so to the end, and the next one who asks is told.
        let _ = timeout(LOOK_PATIENCE, self.held()).await;
        self.newest_facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Room that is left for the folder, which can be told also while the folder cannot be looked at.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.folder.disk.free_bytes().ok()?
    }

    /// The store that is served.
    pub(super) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.folder.store)
    }

    fn live(&self, live: &LiveCounts, scope: StatScope) -> Value {
        let troubles = match live.troubles.as_slice() {
            [_, ..] if scope.hides_upstreams => &[NEEDS_KEY.to_owned()],
            troubles => troubles,
        };
        let now = self.now(live.traffic, live.times);
        let before = self.samples.lock().unwrap_or_else(PoisonError::into_inner).front().copied();
        let before = before.unwrap_or(now);
        json!({
            "uptime_seconds": self.begun.elapsed().as_secs(),
            "requests": live.traffic.requests,
            "calls": live.traffic.calls,
            "answer_bytes": live.traffic.answer_bytes,
            "bytes_under_way": live.bytes_under_way,
            "ready": live.troubles.is_empty(),
            "troubles": troubles,
            "rates": rates(&before, &now),
            "latency": latency(&before, &now),
        })
    }
}

/// Looks at what is held. Numbers are not known of a folder that cannot be read.
fn look(
    folder: &DataFolder,
    cache: &mut PartBytesCache,
) -> Result<(HeldPage, Option<HeldFacts>), String> {
    let seen = Arc::new(gather_served(folder, cache).map_err(|error| error.to_string())?);
    let page = seen.page(folder, true).map_err(|failure| match failure {
        Failure::Work(error) | Failure::Usage(error) => format!("{error:#}"),
        Failure::Told | Failure::Stopped(_) => "the data folder could not be looked at".to_owned(),
    })?;
    let page = open_object(&Value::Object(page));
    let facts = seen.is_folder_read().then(|| HeldFacts {
        statuses: seen.stat.statuses.iter().map(|(range, it)| (word(it), range.count())).collect(),
        tip_timestamp: read_tip_timestamp(&seen.view),
        seen: Arc::clone(&seen),
    });
    Ok((HeldPage { seen: Some(seen), page }, facts))
}

/// The text of an object without its last brace.
fn open_object(object: &Value) -> Arc<str> {
    let text = object.to_string();
    text.strip_suffix('}').unwrap_or(&text).into()
}

/// The lists of files, as members that go behind others.
fn lists(seen: &FolderStat) -> String {
    open_object(&Value::Object(seen.files())).replacen('{', ",", 1)
}

/// The timestamp of the newest block, if it can be read.
pub(super) fn read_tip_timestamp(view: &View) -> Option<u64> {
    let mut reader = Reader::new().ok()?;
    let header = block_on(view.read_header(&mut reader, view.tip()?)).ok()??;
    Some(decode_header(&header.rlp).ok()?.timestamp)
}

/// How much there was a second between two moments.
fn rates(before: &Sample, now: &Sample) -> Value {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let rate = |before: u64, now: u64| {
        let count = float(now.saturating_sub(before));
        let rate = if seconds > 0.0 { count / seconds } else { 0.0 };
        (rate * 10.0).round() / 10.0
    };
    let blocks = before.tip.zip(now.tip).map_or(0.0, |(before, now)| rate(before, now));
    json!({
        "seconds": (seconds * 10.0).round() / 10.0,
        "requests_per_second": rate(before.traffic.requests, now.traffic.requests),
        "calls_per_second": rate(before.traffic.calls, now.traffic.calls),
        "answer_bytes_per_second": rate(before.traffic.answer_bytes, now.traffic.answer_bytes),
        "blocks_per_second": blocks,
    })
}

/// Within how much time calls ended between two moments; `null` if there were none.
fn latency(before: &Sample, now: &Sample) -> Value {
    let quantile = |share| now.times.quantile_since(&before.times, share);
    let calls = now.times.count().saturating_sub(before.times.count());
    if calls == 0 {
        return Value::Null;
    }
    json!({ "calls": calls, "p50_seconds": quantile(0.5), "p99_seconds": quantile(0.99) })
}

/// The nearest number with a point.
pub(super) fn float(count: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits).unwrap_or(u32::MAX));
    half(count >> 32) * 4_294_967_296.0 + half(count & u64::from(u32::MAX))
}

impl StatPage for LiveStat {
    fn make(&self, live: LiveCounts, scope: StatScope) -> MakingPage<'_> {
        Box::pin(async move {
            let failed = |error: JoinError| PageError(error.to_string());
            let HeldPage { seen, page } = self.held().await.map_err(failed)?;
            let files = match seen.filter(|_| scope.has_files) {
                // A long text is written: on no thread that serves.
                Some(seen) => {
                    self.runtime.spawn_blocking(move || lists(&seen)).await.map_err(failed)?
                }
                None => String::new(),
            };
            let follow = self.health.as_ref().map(|health| health.page()).unwrap_or_default();
            let follow = if scope.hides_upstreams { without_upstreams(follow) } else { follow };
            let live = self.live(&live, scope);
            let source = self.source.as_ref().map(|source| source.page(&self.folder.store));
            let source = source.map_or(String::new(), |page| format!(",\"source\":{page}"));
            let page = format!("{page}{files},\"live\":{live},\"follow\":{follow}{source}}}");
            Ok(page.into_bytes())
        })
    }
}

/// How following goes, without the names of nodes, which errors contain too.
fn without_upstreams(mut follow: Value) -> Value {
    for name in ["upstreams", "error", "backfill_error"] {
        match follow.get_mut(name) {
            Some(Value::Array(names)) => names.clear(),
            Some(error @ Value::String(_)) => *error = NEEDS_KEY.into(),
            _ => {}
        }
    }
    follow
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use store::Limits;
    use store::read::Inline;
    use testing::disk::faulty::{DiskFailure, FaultyDisk};
    use tokio::runtime::Builder;

    use super::*;

    /// Seen: a folder that could not be looked at was shown as it had been, for ever.
    #[test]
    fn what_is_held_is_not_known_after_a_look_that_failed() {
        let disk = FaultyDisk::new(1);
        let files = Arc::new(disk.clone());
        let store = Store::open(files.clone(), Arc::new(Inline), Limits::default()).unwrap();
        let (path, store) = (PathBuf::from("."), Arc::new(store));
        let folder = DataFolder { path, disk: files, store, known_spec: None };
        let (_, facts) = look(&folder, &mut PartBytesCache::default()).unwrap();
        let facts = facts.unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let live = LiveStat::new(folder, None, None, runtime.handle().clone());
        *live.newest_facts.lock().unwrap() = Some(Arc::new(facts));
        disk.fail_after(0, DiskFailure::Io);
        let found = runtime.block_on(live.newest_facts());
        assert!(found.is_none(), "{found:?}");
        let page = runtime.block_on(live.make(LiveCounts::default(), StatScope::default()));
        let page: Value = serde_json::from_slice(&page.unwrap()).unwrap();
        assert_eq!((&page["error"], &page["coverage"]), (&Value::Null, &json!([])), "{page}");
        assert!(page["unreadable"][0]["error"].is_string(), "{page}");
    }

    #[test]
    fn rates_are_counts_over_time_and_none_without_any() {
        let at = Instant::now();
        let sample = |seconds, count, tip| Sample {
            at: at + Duration::from_secs(seconds),
            traffic: TrafficCounts {
                requests: count,
                calls: 2 * count,
                answer_bytes: 100 * count,
                ..TrafficCounts::default()
            },
            times: CallTimes::default(),
            tip,
        };
        let found = rates(&sample(0, 10, Some(100)), &sample(8, 50, Some(104)));
        let expected = json!({
            "seconds": 8.0,
            "requests_per_second": 5.0,
            "calls_per_second": 10.0,
            "answer_bytes_per_second": 500.0,
            "blocks_per_second": 0.5,
        });
        assert_eq!(found, expected);
        let none = rates(&sample(3, 7, None), &sample(3, 9, Some(5)));
        assert_eq!(
            (&none["requests_per_second"], &none["blocks_per_second"]),
            (&json!(0.0), &json!(0.0))
        );
    }
}
