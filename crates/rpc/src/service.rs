//! A body in, a body out: one request or a batch, answered from one view.

mod batch;
mod feed;
#[cfg(test)]
mod live_log_tests;
#[cfg(test)]
mod live_tests;
mod new_heads;
mod new_logs;
mod readers;
mod under_way;
#[cfg(test)]
mod under_way_tests;
mod unserved;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use chain::ChainSpec;
use store::{CurrentView, Store, StoreError, View, Watcher};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, error};

use crate::absence::UnknownHash;
use crate::admission::{Caller, ClientId};
use crate::answer::{CallFailure, Context, NULL};
use crate::answered_range::AnsweredRange;
use crate::budget::{Budget, OutOfBudget};
use crate::cache::AnswerCache;
use crate::call_counts::{CallOutcome, CallRecord, CallSubject, CallTimes};
use crate::envelope::{Batch, Call, Id, Item, RequestBody, parse};
use crate::epoch_trees::EpochTrees;
use crate::filters::{FilterLimits, FilterPolls, Filters};
use crate::health::Health;
use crate::in_time::in_time;
use crate::log_limits::LogLimits;
use crate::methods::{MethodRow, find};
use crate::metrics_page::{MetricsPage, ServerCounts};
use crate::openrpc;
use crate::pass_through::{Forwarding, PassThrough, PassThroughMethod, PassedAnswer};
use crate::refusal::Refusal;
use crate::reply::{CachedResult, Reply, ReplyStatus, overload_refusal, put_envelope, put_refusal};
use crate::request_log::{RequestId, RequestLog};
use crate::shared_logs::SharedLogs;
use crate::spare;
use crate::stat_page::StatPage;
use crate::subscription::{Channel, SubscriptionIds};
use crate::suggested_tip::SuggestedTip;
use crate::traffic::{Traffic, TrafficCounts};
use crate::work_slice::WorkSlice;

use batch::{
    BatchAnswer, overloaded, overloaded_batch, put_batch_refused, rate_limited,
    rate_limited_without_id,
};
use new_heads::EncodedHeads;
use readers::LentReader;
use under_way::{CallUnderWay, ForwardedAnswer, ForwardedCalls, RequestUnderWay};

pub(crate) use feed::{FeedEnd, feed_notification};

/// How often a call is asked again of a newer view, after a file could not be read: one that was open may
/// turn out to have been replaced, and then not to be opened.
const NEWER_VIEWS_MAX: u32 = 2;
/// Calls of a batch that are on their way to a node at the same time.
const FORWARDS_MAX: usize = 8;

/// The code of what failed here, or at a node.
const INTERNAL_CODE: i32 = -32603;

/// How calls are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// What an unknown hash gets where it may exist and not be held.
    pub unknown_hash: UnknownHash,
    /// Whether the store follows a tip.
    pub is_following: bool,
    /// Calls in a batch.
    pub batch_items_max: usize,
    /// Bytes of answers in a batch, after which the rest is refused.
    pub batch_bytes_max: usize,
    /// Bytes of results that are kept because they are asked for again and again.
    pub cache_bytes_max: usize,
    /// How much an answer with logs may be.
    pub log_limits: LogLimits,
    /// How many filters may be polled, and for how long one is kept.
    pub filter_limits: FilterLimits,
    /// Bytes of logs that a subscriber is sent before calls are answered, unless one block has more.
    pub feed_bytes_max: usize,
    /// A request that takes so long is logged; none is, without such a time.
    pub slow_request: Option<Duration>,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            unknown_hash: UnknownHash::default(),
            is_following: false,
            batch_items_max: 1000,
            batch_bytes_max: 25_000_000,
            cache_bytes_max: 32 << 20,
            log_limits: LogLimits::default(),
            filter_limits: FilterLimits::default(),
            feed_bytes_max: 256 * 1024,
            slow_request: Some(Duration::from_secs(1)),
        }
    }
}

/// Answers JSON-RPC from a store.
#[derive(Debug)]
pub struct Service {
    store: Arc<Store>,
    chain: KnownChain,
    /// What a node told of the chain since, if it did.
    learned: OnceLock<KnownChain>,
    settings: ArcSwap<ServiceSettings>,
    /// As it was at the start.
    cache_bytes_max: usize,
    /// The `OpenRPC` document.
    document: Vec<u8>,
    suggested_tip: SuggestedTip,
    changes: Arc<Changes>,
    subscription_ids: SubscriptionIds,
    filters: Filters,
    epoch_trees: EpochTrees,
    encoded_heads: EncodedHeads,
    shared_logs: SharedLogs,
    traffic: Traffic,
    request_log: RequestLog,
    forwarding: Option<Forwarding>,
    health: Option<Arc<dyn Health>>,
    stat_page: Option<Arc<dyn StatPage>>,
    metrics_page: Option<Arc<dyn MetricsPage>>,
    /// For whoever answers only itself.
    unbounded: Arc<Budget>,
}

/// What one request may take, and how it is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits<'a> {
    /// The end of the time for all its calls; none for a time past the end of all clocks.
    pub(crate) until: Option<Instant>,
    /// When it had come whole.
    pub(crate) begun: Instant,
    /// Where its bytes and its work are counted.
    pub(crate) budget: &'a Arc<Budget>,
    /// Who asks; none where everybody may, any amount.
    pub(crate) caller: Option<&'a Caller>,
    /// The client that it counts for.
    pub(crate) client: ClientId,
    /// What its client calls it, if it says so.
    pub(crate) request_id: Option<&'a str>,
}

impl<'a> RequestLimits<'a> {
    /// Those of a request that comes now, from anybody, and may take any time.
    pub(crate) fn anybodys(budget: &'a Arc<Budget>) -> Self {
        let (until, caller, request_id) = (None, None, None);
        let (begun, client) = (Instant::now(), ClientId::default());
        Self { until, begun, budget, caller, client, request_id }
    }

    /// Why a call may not be asked; none if it may.
    fn forbids(&self, call: &Call<'_>) -> Option<Refusal> {
        let is_allowed = self.caller.is_none_or(|caller| caller.allows(&call.method));
        (!is_allowed)
            .then(|| Refusal::MethodNotAllowed { method: call.method.clone().into_owned() })
    }
}

/// A chain as it is known, and the results that were made by that knowledge.
#[derive(Debug)]
struct KnownChain {
    spec: ChainSpec,
    is_built_in: bool,
    cache: AnswerCache,
}

impl KnownChain {
    fn new(spec: ChainSpec, cache_bytes_max: usize) -> Self {
        let (is_built_in, cache) = (spec.is_built_in(), AnswerCache::new(cache_bytes_max));
        Self { spec, is_built_in, cache }
    }
}

/// Wakes those that wait for another view.
#[derive(Debug)]
struct Changes(watch::Sender<()>);

impl Watcher for Changes {
    fn view_changed(&self) {
        self.0.send_replace(());
    }
}

/// What was appended for a request.
#[derive(Debug)]
enum Appended {
    /// It is not answered.
    Nothing,
    /// The answer.
    Whole,
    /// All that comes before this result.
    Before(CachedResult),
    /// All that comes before this value of a node's answer.
    BeforePassed(PassedAnswer),
    /// The refusal of what whoever asks may not.
    Forbidden,
    /// There is no room for it.
    NoRoom,
}

/// What the calls of one body share.
#[derive(Debug)]
struct BatchContext<'a> {
    view: CurrentView,
    /// Those in force when it came: others must not change in the midst of a batch.
    settings: ServiceSettings,
    limits: RequestLimits<'a>,
    /// Where notifications can be sent.
    channel: Option<&'a Channel>,
    /// Which blocks the answer is of, where that is told.
    answered_range: OnceLock<AnsweredRange>,
    /// The filters that were polled for the answer.
    filter_polls: FilterPolls<'a>,
    /// Whether the answers so far are admitted beyond the limit of bytes under way.
    is_overdraft: AtomicBool,
    /// What the log calls the request.
    id: RequestId<'a>,
    /// Whether a call was answered with an error that is ours.
    has_failed: AtomicBool,
}

impl BatchContext<'_> {
    /// Calls of a batch that is answered.
    fn batch_items_max(&self) -> usize {
        let of_caller = self.limits.caller.map_or(usize::MAX, Caller::calls_max);
        self.settings.batch_items_max.min(of_caller)
    }

    /// Whether the time for all calls is over.
    fn is_late(&self) -> bool {
        self.limits.until.is_some_and(|until| until <= Instant::now())
    }

    /// Notes how a call is refused; what is our failure is logged.
    fn note_refusal(&self, refusal: &Refusal, record: &mut CallRecord) {
        record.outcome = CallOutcome::from(refusal);
        if refusal.code() == INTERNAL_CODE {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Service {
    /// A service over a store of this chain.
    #[must_use]
    pub fn new(store: Arc<Store>, spec: ChainSpec, settings: ServiceSettings) -> Self {
        let changes = Arc::new(Changes(watch::Sender::new(())));
        store.watch(Arc::<Changes>::clone(&changes));
        Self {
            store,
            chain: KnownChain::new(spec, settings.cache_bytes_max),
            cache_bytes_max: settings.cache_bytes_max,
            learned: OnceLock::new(),
            settings: ArcSwap::from_pointee(settings),
            document: openrpc::document(),
            suggested_tip: SuggestedTip::default(),
            changes,
            subscription_ids: SubscriptionIds::default(),
            filters: Filters::new(settings.filter_limits),
            epoch_trees: EpochTrees::default(),
            encoded_heads: EncodedHeads::default(),
            shared_logs: SharedLogs::default(),
            traffic: Traffic::default(),
            request_log: RequestLog::new(settings.slow_request),
            forwarding: None,
            health: None,
            stat_page: None,
            metrics_page: None,
            unbounded: Budget::unbounded(),
        }
    }

    /// The same with a node that is asked what these methods ask, where it is not served here.
    #[must_use]
    pub fn with_pass_through(
        mut self,
        methods: Vec<PassThroughMethod>,
        node: Arc<dyn PassThrough>,
    ) -> Self {
        self.forwarding = Some(Forwarding::new(methods, node));
        self
    }

    /// The same with a part that brings new blocks.
    #[must_use]
    pub fn with_health(mut self, health: Arc<dyn Health>) -> Self {
        self.health = Some(health);
        self
    }

    /// The same with a page that tells what is held and how serving goes.
    #[must_use]
    pub fn with_stat_page(mut self, page: Arc<dyn StatPage>) -> Self {
        self.stat_page = Some(page);
        self
    }

    /// The same with a page of metrics.
    #[must_use]
    pub fn with_metrics_page(mut self, page: Arc<dyn MetricsPage>) -> Self {
        self.metrics_page = Some(page);
        self
    }

    pub(crate) fn metrics_page(&self) -> Option<&dyn MetricsPage> {
        self.metrics_page.as_deref()
    }

    pub(crate) fn stat_page(&self) -> Option<&dyn StatPage> {
        self.stat_page.as_deref()
    }

    /// Answers by more that became known of the chain while it is served. Once: a second time
    /// changes nothing.
    pub fn learn_chain(&self, spec: ChainSpec) {
        let _ = self.learned.set(KnownChain::new(spec, self.cache_bytes_max));
    }

    /// Answers requests that come from now on by these settings, also on open connections. Bytes of
    /// cached results stay as they were at the start.
    pub fn set_settings(&self, settings: ServiceSettings) {
        self.filters.set_limits(settings.filter_limits);
        self.request_log.set_slow_after(settings.slow_request);
        self.settings.store(Arc::new(settings));
    }

    fn settings(&self) -> ServiceSettings {
        **self.settings.load()
    }

    /// The chain as far as it is known now.
    fn chain(&self) -> &KnownChain {
        self.learned.get().unwrap_or(&self.chain)
    }

    /// Why what is configured cannot be answered now; none if it can.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> =
            self.health.iter().flat_map(|health| health.troubles()).collect();
        troubles.extend(self.store.trouble());
        troubles.extend(self.store.faulty_files().into_iter().map(|fault| fault.text));
        if self.store.view().tip().is_none() {
            troubles.push("no block is held yet".to_owned());
        }
        troubles
    }

    /// The `OpenRPC` document of all methods.
    #[must_use]
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// The store that is served.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Results that are kept.
    pub(crate) fn cache(&self) -> &AnswerCache {
        &self.chain().cache
    }

    /// Tells when another view is shown.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.0.subscribe()
    }

    /// Answers a body within `time`; calls that take longer are refused. `None` if nothing is to be
    /// said: all it holds are notifications.
    pub async fn respond(&self, body: &[u8], time: Duration) -> Option<Vec<u8>> {
        let limits = RequestLimits::anybodys(&self.unbounded);
        let limits = RequestLimits { until: limits.begun.checked_add(time), ..limits };
        self.reply(None, body, limits).await.map(|reply| reply.into_bytes().0)
    }

    /// The same without copying what is kept for many answers, and for a connection that can
    /// perhaps be told of new heads later. An answer that there is no room for is a refusal.
    pub(crate) async fn reply(
        &self,
        channel: Option<&Channel>,
        body: &[u8],
        limits: RequestLimits<'_>,
    ) -> Option<Reply> {
        let view = self.store.current_view();
        let (answered_range, filter_polls) = (OnceLock::new(), FilterPolls::new(&self.filters));
        let (id, has_failed) = (self.request_log.id(limits.request_id), AtomicBool::new(false));
        let asked = BatchContext {
            view,
            settings: self.settings(),
            limits,
            channel,
            answered_range,
            filter_polls,
            is_overdraft: AtomicBool::new(false),
            id,
            has_failed,
        };
        let mut under_way = RequestUnderWay::new(self, &asked, body);
        // When the last thing that took time was over.
        let mut at = limits.begun;
        let mut out = spare::take();
        let mut id = Id::NULL;
        // All streams of a connection may bring a long body at the same time.
        WorkSlice::default().begin_long(body.len(), limits.budget).await;
        let request = parse(body);
        if let Err(refused) = self.take_calls(&asked, &request).await {
            return under_way.end(Instant::now(), refused);
        }
        let reply = match request {
            Err(refusal) => {
                self.count_call(CallRecord::invalid(&refusal), &mut at);
                put_refusal(&mut out, Id::NULL, &refusal);
                Reply::of(out)
            }
            Ok(RequestBody::Single(item)) => {
                id = item.id();
                let mut call = CallUnderWay::new(&self.traffic, at, limits.until);
                let appended = self.put_item(&asked, &item, &mut out, &mut call.record).await;
                if matches!(appended, Appended::Nothing) {
                    return under_way.end(call.dismiss(), None);
                }
                at = call.end();
                match appended {
                    Appended::Nothing | Appended::Whole => Reply::of(out),
                    Appended::Forbidden => Reply::of(out).with_status(ReplyStatus::Forbidden),
                    Appended::Before(shared) => Reply::shared(out, shared),
                    Appended::BeforePassed(passed) => {
                        Reply::passed(out, passed.value, passed.lease)
                    }
                    Appended::NoRoom => return under_way.end(at, Some(overloaded(id))),
                }
            }
            Ok(RequestBody::Batch(batch)) => {
                under_way.calls = batch.count();
                let reply = if let Ok(made) = self.put_batch(&asked, batch, out).await {
                    asked.filter_polls.settle();
                    made.map(|made| Reply::leased(made.out, made.lease))
                } else {
                    Some(overloaded_batch(limits.budget, batch).await)
                };
                return under_way.end(Instant::now(), reply);
            }
        };
        let reply = reply.with_answered_range(asked.answered_range.get().copied());
        let reply = if let Ok(reply) = reply.admit(limits.budget) {
            asked.filter_polls.settle();
            reply
        } else {
            overloaded(id)
        };
        under_way.end(at, Some(reply))
    }

    /// Counts a call that began at a time, which becomes now.
    fn count_call(&self, record: CallRecord, since: &mut Instant) {
        let now = Instant::now();
        self.traffic.count_call(record, now.saturating_duration_since(*since));
        *since = now;
    }

    /// Counts the calls of a request for whoever asks, or refuses them if those are too many. A batch
    /// that is refused for its length counts as the longest that is not. Over HTTP a request is refused
    /// with a code, whatever it asks; over a socket notifications are answered with nothing.
    async fn take_calls(
        &self,
        asked: &BatchContext<'_>,
        request: &Result<RequestBody<'_>, Refusal>,
    ) -> Result<(), Option<Reply>> {
        let limits = asked.limits;
        let Some(caller) = limits.caller else { return Ok(()) };
        let calls = match request {
            Ok(RequestBody::Batch(batch)) => batch.count().min(asked.batch_items_max()),
            Ok(RequestBody::Single(_)) | Err(_) => 1,
        };
        let Err(exceeded) = caller.take(calls) else { return Ok(()) };
        let subject = match request {
            Ok(RequestBody::Single(Item::Call(call))) => self.subject_of(&call.method),
            Ok(RequestBody::Batch(_) | RequestBody::Single(_)) | Err(_) => CallSubject::Invalid,
        };
        let record = CallRecord { subject, outcome: CallOutcome::RateLimited };
        self.count_call(record, &mut { limits.begun });
        let refused = rate_limited(limits.budget, request.as_ref().ok(), exceeded).await;
        let is_told = refused.is_none() && asked.channel.is_none();
        Err(refused.or_else(|| is_told.then(|| rate_limited_without_id(exceeded))))
    }

    /// Counts a notification of so many bytes.
    pub(crate) fn count_notification(&self, bytes: usize) {
        self.traffic.count_notification(bytes);
    }

    /// What clients have asked since the start.
    #[must_use]
    pub fn traffic(&self) -> TrafficCounts {
        self.traffic.counts()
    }

    /// How long all calls took since the start.
    #[must_use]
    pub fn call_times(&self) -> CallTimes {
        self.traffic.call_times()
    }

    /// What the service has counted; a server adds what it counts itself.
    pub(crate) fn counts(&self) -> ServerCounts {
        ServerCounts {
            traffic: self.traffic(),
            methods: self.traffic.by_method(),
            cache: self.cache().size(),
            subscriptions: self.subscription_ids.open(),
            filters: u64::try_from(self.filters.count()).unwrap_or(u64::MAX),
            is_ready: self.troubles().is_empty(),
            ..ServerCounts::default()
        }
    }

    /// The answers to a batch; `None` if there are none.
    async fn put_batch<'a>(
        &self,
        asked: &BatchContext<'a>,
        batch: Batch<'_>,
        out: Vec<u8>,
    ) -> Result<Option<BatchAnswer<'a>>, OutOfBudget> {
        let mut answer = BatchAnswer::new(out, asked.limits.budget);
        if batch.count() > asked.batch_items_max() {
            let refusal = Refusal::BatchTooLarge;
            self.count_call(CallRecord::invalid(&refusal), &mut { asked.limits.begun });
            return put_batch_refused(answer, batch, &refusal).await;
        }
        // Who asks for much lets others in first, and is not answered at all if it has left by then.
        answer.wait_for_turn().await;
        let mut since = Instant::now();
        // Nodes are far: what goes to one is on its way together, and comes back in order.
        let mut forwarded = ForwardedCalls::new(&self.traffic, asked.limits.until);
        let mut ahead = batch.items();
        answer.out.push(b'[');
        for item in batch.items() {
            let before = answer.begin_item().await;
            if before > 1 {
                answer.out.push(b',');
            }
            let is_too_long = before >= asked.settings.batch_bytes_max;
            let is_answered = match &item {
                // What is refused once is refused to the end.
                Item::Call(call) if is_too_long || asked.is_late() => {
                    if self.is_forwarded(&item) {
                        since = forwarded.refuse_first().unwrap_or(since);
                    }
                    let refusal =
                        if is_too_long { Refusal::ResponseTooLarge } else { Refusal::TimedOut };
                    let record = self.put_skipped(call, &refusal, &mut answer.out);
                    self.count_call(record, &mut since);
                    true
                }
                Item::Call(_) if self.is_forwarded(&item) => {
                    while forwarded.count() < FORWARDS_MAX
                        && let Some(next) = ahead.find(|item| self.is_forwarded(item))
                    {
                        forwarded.push(self.answer_forwarded(asked, next));
                    }
                    if let Some(alone) = forwarded.next().await {
                        answer.out.extend_from_slice(&alone?.out);
                    }
                    // The node's time is not that of the next call.
                    since = Instant::now();
                    true
                }
                Item::Call(_) | Item::Notification | Item::Invalid(..) => {
                    let mut call = CallUnderWay::new(&self.traffic, since, asked.limits.until);
                    let out = &mut answer.out;
                    let appended = self.put_item(asked, &item, out, &mut call.record).await;
                    let is_counted = !matches!(appended, Appended::Nothing);
                    since = if is_counted { call.end() } else { call.dismiss() };
                    put_whole(appended, out)?
                }
            };
            if !is_answered {
                answer.out.truncate(before);
            }
            answer.end_item(before)?;
            asked.is_overdraft.store(answer.lease.is_overdraft(), Ordering::Relaxed);
        }
        answer.end()
    }

    /// Appends the refusal of a call that is not even tried; tells what it is counted as.
    fn put_skipped(&self, call: &Call<'_>, refusal: &Refusal, out: &mut Vec<u8>) -> CallRecord {
        put_refusal(out, call.id, refusal);
        CallRecord { subject: self.subject_of(&call.method), outcome: refusal.into() }
    }

    /// What a method is counted as.
    fn subject_of(&self, method: &str) -> CallSubject {
        let is_forwarded = || self.forwarding.as_ref().is_some_and(|it| it.takes(method));
        match find(method) {
            Some(row) => CallSubject::Served(row.method),
            None if is_forwarded() => CallSubject::Forwarded,
            None => CallSubject::Unknown,
        }
    }

    /// The answer to one call of a batch that goes to a node, by itself.
    async fn answer_forwarded<'a>(
        &self,
        asked: &BatchContext<'a>,
        item: Item<'_>,
    ) -> ForwardedAnswer<'a> {
        let (begun, mut record) = (Instant::now(), CallRecord::begun());
        let mut answer = BatchAnswer::new(Vec::new(), asked.limits.budget);
        let appended = self.put_item(asked, &item, &mut answer.out, &mut record).await;
        let made =
            put_whole(appended, &mut answer.out).and_then(|_| answer.end_item(0)).map(|()| answer);
        ForwardedAnswer { made, record, time: begun.elapsed() }
    }

    /// Appends the answer to one request, or what comes before a result that is kept, and says what it is
    /// counted as.
    async fn put_item(
        &self,
        asked: &BatchContext<'_>,
        item: &Item<'_>,
        out: &mut Vec<u8>,
        record: &mut CallRecord,
    ) -> Appended {
        match item {
            Item::Notification => Appended::Nothing,
            Item::Invalid(id, refusal) => {
                put_refusal(out, *id, refusal);
                *record = CallRecord::invalid(refusal);
                Appended::Whole
            }
            Item::Call(call) => {
                if let Some(refusal) = asked.limits.forbids(call) {
                    *record = self.put_skipped(call, &refusal, out);
                    return Appended::Forbidden;
                }
                let begin = out.len();
                // Pinned here, it is not copied on its way to where it is looked at.
                let answered = {
                    let answering = pin!(self.put_call(asked, call, out, record));
                    in_time(answering, || asked.limits.until).await
                };
                answered.unwrap_or_else(|| {
                    out.truncate(begin);
                    put_refusal(out, call.id, &Refusal::TimedOut);
                    record.outcome = CallOutcome::Timeout;
                    Appended::Whole
                })
            }
        }
    }

    async fn put_call(
        &self,
        asked: &BatchContext<'_>,
        call: &Call<'_>,
        out: &mut Vec<u8>,
        record: &mut CallRecord,
    ) -> Appended {
        let begin = out.len();
        let Some(row) = find(&call.method) else {
            record.subject = self.subject_of(&call.method);
            return self.put_unserved(asked, call, out, record).await;
        };
        record.subject = CallSubject::Served(row.method);
        let (mut newer, mut tries_left) = (None, NEWER_VIEWS_MAX);
        loop {
            let view = newer.as_ref().unwrap_or(&asked.view);
            put_envelope(out, call.id);
            out.extend_from_slice(b",\"result\":");
            let result_begin = out.len();
            let failure = match self.run(view, asked, row, call, out).await {
                Ok(Some(kept)) => {
                    self.traffic.count_cache(true);
                    return Appended::Before(kept);
                }
                Ok(None) => {
                    if out.get(result_begin..) == Some(NULL) {
                        record.outcome = CallOutcome::Null;
                    } else if row.method.is_cached() {
                        self.traffic.count_cache(false);
                    }
                    out.push(b'}');
                    return Appended::Whole;
                }
                Err(failure) => failure,
            };
            out.truncate(begin);
            if matches!(failure, CallFailure::AskNode) {
                return self.put_unserved(asked, call, out, record).await;
            }
            if matches!(failure, CallFailure::NoRoom) {
                record.outcome = CallOutcome::Overloaded;
                return Appended::NoRoom;
            }
            if tries_left > 0 && self.has_newer(view, &failure) {
                tries_left = tries_left.saturating_sub(1);
                newer = Some(self.store.current_view());
                continue;
            }
            let refusal = refusal_of(failure, row.name, &asked.id);
            asked.note_refusal(&refusal, record);
            put_refusal(out, call.id, &refusal);
            return Appended::Whole;
        }
    }

    /// Has another view shown if a file could not be read: of a folder that another process has changed, or
    /// without the file, or with the one that has taken its place. Tells whether it is.
    fn passes_over(&self, failure: &CallFailure) -> bool {
        let CallFailure::Store(error) = failure else { return false };
        let is_missing = matches!(error, StoreError::Disk(cause) if cause.is_missing());
        // Whoever follows has the folder's writer: what it shows is newer than what a disk can tell.
        let may_be_merged = is_missing && !self.settings().is_following;
        let is_merged = may_be_merged && self.store.refresh().unwrap_or(false);
        (error.is_of_file() && self.store.pass_over_faulty()) || is_merged
    }

    /// Whether a file of this view could not be read, and another view is shown by now, for this call or
    /// for another.
    fn has_newer(&self, view: &Arc<View>, failure: &CallFailure) -> bool {
        let is_of_file = matches!(failure, CallFailure::Store(error) if error.is_of_file());
        let is_shown = is_of_file && self.passes_over(failure);
        is_shown || (is_of_file && !Arc::ptr_eq(view, &self.store.current_view()))
    }

    async fn run(
        &self,
        view: &Arc<View>,
        asked: &BatchContext<'_>,
        row: &MethodRow,
        call: &Call<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<CachedResult>, CallFailure> {
        let KnownChain { spec, is_built_in, cache } = self.chain();
        let settings = &asked.settings;
        let context = Context {
            view,
            store: &self.store,
            spec,
            unknown_hash: settings.unknown_hash,
            is_following: settings.is_following,
            is_built_in: *is_built_in,
            node: self.forwarding.as_ref().filter(|it| it.takes(row.name)),
            health: self.health.as_deref(),
            channel: asked.channel,
            subscription_ids: &self.subscription_ids,
            suggested_tip: &self.suggested_tip,
            document: &self.document,
            cache,
            log_limits: settings.log_limits,
            filters: &self.filters,
            client: asked.limits.client,
            shared_logs: &self.shared_logs,
            epoch_trees: &self.epoch_trees,
            filter_polls: &asked.filter_polls,
            until: asked.limits.until,
            budget: asked.limits.budget,
            is_overdraft: asked.is_overdraft.load(Ordering::Relaxed),
            answered_range: &asked.answered_range,
        };
        let mut lent = LentReader::new(asked.limits.caller, &self.traffic);
        let answered = context.answer(row.method, call, lent.take()?, out).await;
        lent.give_back();
        answered
    }
}

/// Appends the rest of an answer; tells whether there is one.
fn put_whole(appended: Appended, out: &mut Vec<u8>) -> Result<bool, OutOfBudget> {
    match appended {
        Appended::Nothing => return Ok(false),
        Appended::Whole | Appended::Forbidden => {}
        Appended::Before(shared) => {
            out.extend_from_slice(&shared.kept.result);
            out.push(b'}');
        }
        Appended::BeforePassed(passed) => {
            out.extend_from_slice(&passed.value);
            out.push(b'}');
        }
        Appended::NoRoom => return Err(OutOfBudget),
    }
    Ok(true)
}

fn refusal_of(failure: CallFailure, method: &str, request_id: &RequestId<'_>) -> Refusal {
    match failure {
        CallFailure::Refused(refusal) => refusal,
        CallFailure::Store(cause) => {
            if cause.is_of_file() {
                // The store has noted the file: that is told once, and not for every client that asks.
                debug!(method, %request_id, %cause, "cannot read what is stored");
            } else {
                error!(method, %request_id, %cause, "cannot read what is stored");
            }
            Refusal::Internal
        }
        CallFailure::NotABlock => {
            error!(method, %request_id, "stored bytes are no block");
            Refusal::Internal
        }
        // A node that may be asked was asked: nothing is left to refuse.
        CallFailure::AskNode => Refusal::UpstreamFailed,
        CallFailure::NoRoom => overload_refusal(),
    }
}
