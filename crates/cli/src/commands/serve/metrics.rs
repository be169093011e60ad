//! `/metrics`: all that is counted, for Prometheus.
//!
//! What needs the disk is looked at elsewhere, as for `/stat.json`, and shown as it was seen last.

mod exposition;
mod process;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use chain::BlockRange;
use ingest::follow::FollowStatus;
use node::{MemberHealth, UpstreamStatus};
use replica::RemoteCounts;
use rpc::{CallOutcome, CountServer, MakingPage, MetricsPage, PageError, ServerCounts};
use store::View;
use store::read::ReadPool;
use tokio::runtime::Handle;

use super::health::FollowHealth;
use super::kept_page::KeptPage;
use super::last_reload::LastReload;
use super::live_stat::{HeldFacts, LiveStat, float};
use super::source::BucketSource;
use crate::unix_time::since_1970;

use exposition::Exposition;
use table::Metric;

/// Methods by these names are shown also before anybody called one: they stand for all others.
const ALWAYS_SHOWN: [&str; 3] = ["forwarded", "unknown", "invalid"];
/// A page is shown for so long: whoever asks more often costs next to nothing.
const PAGE_AGE_MAX: Duration = Duration::from_secs(1);
/// The commit that this was built from; empty if that is not known.
const COMMIT: &str = env!("BUILT_COMMIT");

/// Makes the page.
#[derive(Debug)]
pub(super) struct Metrics {
    parts: MetricsParts,
    page: KeptPage<Arc<[u8]>, ()>,
}

/// What counts.
#[derive(Debug)]
pub(super) struct MetricsParts {
    pub(super) live: Arc<LiveStat>,
    pub(super) health: Option<Arc<FollowHealth>>,
    pub(super) source: Option<Arc<BucketSource>>,
    pub(super) pool: Arc<ReadPool>,
    pub(super) last_reload: Arc<LastReload>,
    /// When serving began, since 1970.
    pub(super) begun: Duration,
}

impl Metrics {
    pub(super) fn new(parts: MetricsParts, runtime: Handle) -> Self {
        Self { parts, page: KeptPage::new(runtime) }
    }
}

impl MetricsPage for Metrics {
    fn make<'a>(&'a self, count: CountServer<'a>) -> MakingPage<'a> {
        Box::pin(async move {
            // The system is asked, and a long text is written: on no thread that serves.
            let making = async {
                let (facts, live) = (self.look(count).await, Arc::clone(&self.parts.live));
                move |&mut (): &mut ()| Arc::from(facts.page(live.free_bytes()))
            };
            let is_good = |_: &Arc<[u8]>, age| age < PAGE_AGE_MAX;
            let page = self.page.get(is_good, making).await;
            page.map(|page| page.to_vec()).map_err(|error| PageError(error.to_string()))
        })
    }
}

impl Metrics {
    async fn look(&self, count: CountServer<'_>) -> PageFacts {
        let MetricsParts { live, health, source, pool, last_reload, begun } = &self.parts;
        let store = live.store();
        let held = live.newest_facts().await;
        PageFacts {
            counts: count(),
            view: store.view(),
            faulty_files: store.faulty_files().len(),
            held,
            follow: health.as_ref().and_then(|health| health.status()),
            source: source.as_ref().map(|it| (it.counts(), it.listing())),
            disk_reads: pool.read_count(),
            disk_queue: pool.queued_reads(),
            is_reload_successful: last_reload.is_successful(),
            reload_success_seconds: last_reload.success_seconds(),
            begun: *begun,
        }
    }
}

/// Everything that is on the page, at one moment.
#[derive(Debug)]
struct PageFacts {
    counts: ServerCounts,
    view: Arc<View>,
    faulty_files: usize,
    held: Option<Arc<HeldFacts>>,
    follow: Option<FollowStatus>,
    /// Counts, how many manifests there are, and since when they have not been listed.
    source: Option<(RemoteCounts, (usize, Duration))>,
    disk_reads: u64,
    disk_queue: usize,
    is_reload_successful: bool,
    reload_success_seconds: u64,
    begun: Duration,
}

impl PageFacts {
    fn page(&self, free_bytes: Option<u64>) -> Vec<u8> {
        let mut page = Exposition::new();
        self.add_calls(&mut page);
        self.add_http(&mut page);
        self.add_reads(&mut page);
        self.add_chain(&mut page);
        if let Some(held) = &self.held {
            add_held(&mut page, held);
        }
        if let Some(bytes) = free_bytes {
            page.gauge(Metric::StoreFreeBytes, &[], bytes);
        }
        if let Some(status) = &self.follow {
            add_follow(&mut page, status);
        }
        if let Some((counts, (manifests, silence))) = &self.source {
            add_source(&mut page, counts);
            page.gauge(Metric::SourceManifests, &[], number(*manifests));
            page.gauge_parts(Metric::SourceListed, &[], silence.as_secs_f64());
        }
        let commit = if COMMIT.is_empty() { "unknown" } else { COMMIT };
        let build = [("version", env!("CARGO_PKG_VERSION")), ("commit", commit)];
        page.gauge(Metric::BuildInfo, &build, 1);
        page.gauge(Metric::ReloadSuccessful, &[], self.is_reload_successful.into());
        page.gauge(Metric::ReloadSuccess, &[], self.reload_success_seconds);
        page.gauge_parts(Metric::ProcessStart, &[], self.begun.as_secs_f64());
        process::add(&mut page);
        page.encode()
    }

    fn add_calls(&self, page: &mut Exposition) {
        let traffic = self.counts.traffic;
        for method in &self.counts.methods {
            let count = method.times.count();
            if count == 0 && !ALWAYS_SHOWN.contains(&method.method) {
                continue;
            }
            for outcome in CallOutcome::ALL {
                let labels = [("method", method.method), ("outcome", outcome.label())];
                page.count(Metric::RpcCalls, &labels, method.ended(*outcome));
            }
            let labels = [("method", method.method)];
            let (up_to, all) = (method.times.cumulative(), (count, method.times.seconds));
            page.histogram(Metric::RpcCallDuration, &labels, up_to, all);
        }
        let http_requests = traffic.requests.saturating_sub(traffic.socket_requests);
        page.count(Metric::RpcRequests, &[("transport", "http")], http_requests);
        page.count(Metric::RpcRequests, &[("transport", "websocket")], traffic.socket_requests);
        page.count(Metric::RpcRequestBytes, &[], traffic.body_bytes);
        page.count(Metric::RpcResponseBytes, &[], traffic.answer_bytes);
        page.gauge(Metric::Subscriptions, &[], self.counts.subscriptions);
        page.gauge(Metric::Filters, &[], self.counts.filters);
        page.count(Metric::CacheHits, &[], traffic.cache_hits);
        page.count(Metric::CacheMisses, &[], traffic.cache_misses);
        page.gauge(Metric::CacheEntries, &[], self.counts.cache.entries);
        page.gauge(Metric::CacheBytes, &[], self.counts.cache.bytes);
    }

    fn add_http(&self, page: &mut Exposition) {
        let (http, budget) = (&self.counts.http, self.counts.budget);
        for (protocol, count) in &http.open {
            page.gauge(Metric::Connections, &[("protocol", protocol)], *count);
        }
        page.count(Metric::ConnectionsAccepted, &[], http.accepted);
        for (reason, count) in &http.refused {
            page.count(Metric::ConnectionsRefused, &[("reason", reason)], *count);
        }
        for (code, count) in &http.refusals {
            page.count(Metric::HttpRefusals, &[("code", code)], *count);
        }
        page.gauge(Metric::BudgetBytes, &[], budget.bytes);
        page.gauge(Metric::BudgetBytesPeak, &[], budget.bytes_peak);
        page.gauge(Metric::BudgetBytesMax, &[], budget.bytes_max);
        page.count(Metric::BudgetRefusals, &[], budget.refusals);
        page.count(Metric::WorkPauses, &[], budget.pauses);
    }

    fn add_reads(&self, page: &mut Exposition) {
        let reads = self.counts.traffic.reads;
        page.count(Metric::StoreLookups, &[], reads.lookups);
        page.count(Metric::StorePages, &[], reads.pages);
        page.count(Metric::StoreDiskReads, &[], self.disk_reads);
        page.gauge(Metric::StoreDiskQueue, &[], number(self.disk_queue));
    }

    fn add_chain(&self, page: &mut Exposition) {
        page.gauge(Metric::Ready, &[], self.counts.is_ready.into());
        for (metric, block) in [
            (Metric::TipBlock, self.view.tip()),
            (Metric::SafeBlock, self.view.safe()),
            (Metric::FinalizedBlock, self.view.finalized()),
        ] {
            if let Some(number) = block {
                page.gauge(metric, &[], number.get());
            }
        }
        let newest = self.view.head().tip().map(|tip| tip.block().header.timestamp);
        let seen = || self.held.as_ref().and_then(|held| held.tip_timestamp);
        if let Some(timestamp) = newest.or_else(seen) {
            page.gauge(Metric::TipTimestamp, &[], timestamp);
        }
        let faulty_files = number(self.faulty_files);
        page.gauge(Metric::StoreFaultyFiles, &[], faulty_files);
        page.gauge(Metric::StoreHeadBlocks, &[], number(self.view.head().blocks().len()));
    }
}

fn add_held(page: &mut Exposition, held: &HeldFacts) {
    let stat = &held.seen.stat;
    for status in ["anchored", "linked", "unanchored"] {
        let of_status = held.statuses.iter().filter(|(word, _)| *word == status);
        let blocks = of_status.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        page.gauge(Metric::StoreBlocks, &[("status", status)], blocks);
    }
    let blocks =
        |ranges: &[BlockRange]| ranges.iter().map(BlockRange::count).fold(0, u64::saturating_add);
    let without_receipts = stat.block_count.saturating_sub(blocks(&stat.coverage_receipts));
    for (metric, value) in [
        (Metric::StoreGapBlocks, blocks(&stat.gaps)),
        (Metric::StoreLostBlocks, blocks(&stat.lost)),
        (Metric::StoreWithoutReceipts, without_receipts),
        (Metric::StoreWithoutLogIndex, blocks(&stat.without_log_index)),
        (Metric::StoreTransactions, stat.transaction_count),
        (Metric::StoreLogs, stat.log_count),
        (Metric::StoreSegments, number(stat.segment_count)),
        (Metric::StoreRuns, number(stat.run_count)),
        (Metric::StorePendingMerges, number(stat.pending_merges.len())),
    ] {
        page.gauge(metric, &[], value);
    }
    let bytes = stat.bytes;
    for (part, bytes) in [
        ("headers", bytes.headers),
        ("transactions", bytes.transactions),
        ("receipts", bytes.receipts),
        ("lookups", bytes.lookups),
        ("log_index", bytes.log_index),
        ("head", bytes.head),
        ("other", bytes.other),
    ] {
        page.gauge(Metric::StoreBytes, &[("part", part)], bytes);
    }
}

fn add_follow(page: &mut Exposition, status: &FollowStatus) {
    if let Some(tip) = status.upstream_tip {
        page.gauge(Metric::FollowUpstreamTip, &[], tip);
    }
    if let Some(lag) = status.lag() {
        page.gauge(Metric::FollowLag, &[], lag);
    }
    if let Some(heard_at) = status.heard_at {
        let heard = since_1970().saturating_sub(heard_at.elapsed());
        page.gauge_parts(Metric::FollowHeard, &[], heard.as_secs_f64());
    }
    page.gauge(Metric::FollowFailing, &[], status.lasting_error().is_some().into());
    page.gauge(Metric::FollowConflict, &[], status.conflict.is_some().into());
    let depths = status.reorg_depths;
    let up_to = depths.cumulative().map(|(bound, count)| (float(bound), count));
    let all = (status.reorg_count, float(depths.blocks));
    page.histogram(Metric::FollowReorgs, &[], up_to, all);
    page.count(Metric::FollowSeals, &[], status.seals.times);
    page.count(Metric::FollowSealedBlocks, &[], status.seals.blocks);
    page.count(Metric::FollowMerges, &[], status.merges.times);
    page.count(Metric::FollowMergedBlocks, &[], status.merges.blocks);
    page.count(Metric::FollowMergeFailures, &[], status.merge_failure_count);
    for (place, upstream) in status.upstreams.iter().enumerate() {
        // One host may be given by two addresses, and a series is there once.
        let before = status.upstreams.iter().take(place);
        match before.filter(|other| other.name == upstream.name).count() {
            0 => add_upstream(page, &upstream.name, upstream),
            count => add_upstream(page, &format!("{}#{}", upstream.name, count + 1), upstream),
        }
    }
}

fn add_source(page: &mut Exposition, counts: &RemoteCounts) {
    page.count(Metric::SourceRequests, &[], counts.requests);
    page.count(Metric::SourceBytesFetched, &[], counts.bytes_fetched);
    page.count(Metric::SourceBytesAsked, &[], counts.bytes_asked);
    for (from, count) in
        [("memory", counts.memory_hits), ("disk", counts.disk_hits), ("bucket", counts.misses)]
    {
        page.count(Metric::SourceReads, &[("from", from)], count);
    }
    page.count(Metric::SourceHedges, &[], counts.hedges);
    page.count(Metric::SourceRetries, &[], counts.retries);
    page.count(Metric::SourceFailures, &[], counts.failures);
    for (place, bytes) in [("memory", counts.memory_bytes), ("disk", counts.disk_bytes)] {
        page.gauge(Metric::SourceCacheBytes, &[("place", place)], bytes);
    }
}

fn add_upstream(page: &mut Exposition, name: &str, status: &UpstreamStatus) {
    let upstream = ("upstream", name);
    for (state, health) in [
        ("healthy", MemberHealth::Healthy),
        ("backing_off", MemberHealth::BackingOff),
        ("quarantined", MemberHealth::Quarantined),
    ] {
        let is_so = u64::from(status.health == health);
        page.gauge(Metric::UpstreamHealth, &[upstream, ("state", state)], is_so);
    }
    page.count(Metric::UpstreamFailures, &[upstream], status.failure_count);
    page.count(Metric::UpstreamInvalidResponses, &[upstream], status.invalid_count);
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
