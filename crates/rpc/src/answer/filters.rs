//! Filters that clients poll over HTTP: `eth_newFilter` and what follows it.

use std::borrow::Cow;

use chain::BlockRange;
use store::{BlockId, BloomQuery, LogQuery, View};
use tokio::time::Instant;

use super::{Answering, CallFailure, CallResult, Context};
use crate::budget::ByteLease;
use crate::heads::ChainCursor;
use crate::json::{put_data, put_text};
use crate::kept_filter::{ChainFeed, KeptFilter};
use crate::log_changes::{LogPortion, LogPortionLimits};
use crate::log_filter::LogFilter;
use crate::refusal::Refusal;
use crate::work_slice::WorkSlice;

/// To hash some hundreds of values is as much work as is done on so many bytes.
const HASHED_COST: usize = 48 * 1024;

impl Context<'_> {
    pub(super) async fn new_filter(&self, on: &mut Answering<'_>, filter: LogFilter) -> CallResult {
        filter.check_for_new_blocks()?;
        self.check_grows()?;
        let for_blooms = self.hash_for_blooms(filter.query()).await;
        let kept = self.filters.keep(self.client, filter, for_blooms)?;
        self.add_filter(on, ChainFeed::Logs(kept)).await
    }

    /// Hashes the values of a query, of which there may be thousands, and lets others in meanwhile.
    pub(super) async fn hash_for_blooms(&self, query: &LogQuery) -> BloomQuery {
        let (mut slice, mut hashed) = (WorkSlice::default(), BloomQuery::default());
        // To read it was a slice.
        slice.begin_long(query.bytes(), self.budget).await;
        while !hashed.hash_some(query) {
            slice.count_request(HASHED_COST);
            slice.go_on(self.budget).await;
        }
        hashed
    }

    pub(super) async fn new_block_filter(&self, on: &mut Answering<'_>) -> CallResult {
        self.check_grows()?;
        self.add_filter(on, ChainFeed::Blocks).await
    }

    /// A store that follows no node may tell of new blocks never, or in one lump: a node that is asked
    /// in our place tells of them in time.
    fn check_grows(&self) -> Result<(), CallFailure> {
        if self.is_told_by_node() { Err(CallFailure::AskNode) } else { Ok(()) }
    }

    async fn add_filter(&self, on: &mut Answering<'_>, feed: ChainFeed) -> CallResult {
        let seen = ChainCursor::at_tip(on.reader, self.view).await?;
        let id = self.subscription_ids.next();
        self.filters.add(self.client, id.clone(), feed, seen)?;
        put_text(on.out, &id);
        Ok(None)
    }

    pub(super) async fn filter_changes(
        &self,
        on: &mut Answering<'_>,
        id: Cow<'_, str>,
    ) -> CallResult {
        let begin = on.out.len();
        loop {
            let Some((feed, seen)) = self.filters.poll(&id) else {
                return Err(self.unknown(Refusal::FilterNotFound));
            };
            // Looked at after the filter, the chain is not older than what its client knows.
            let view = self.store.view();
            let put = match &feed {
                ChainFeed::Blocks => self.put_new_hashes(on, &view, seen).await,
                ChainFeed::Logs(kept) => self.put_new_logs(on, &view, kept, seen).await,
            };
            if let Err(CallFailure::Refused(Refusal::FilterDropped { .. })) = put {
                self.filters.remove_at(&id, seen);
            }
            if self.filters.advance(self.filter_polls, &id, seen, put?) {
                return Ok(None);
            }
            on.out.truncate(begin);
        }
    }

    pub(super) async fn filter_logs(&self, on: &mut Answering<'_>, id: Cow<'_, str>) -> CallResult {
        match self.filters.poll(&id) {
            Some((ChainFeed::Logs(kept), _)) => self.logs(on, kept.filter().clone()).await,
            Some((ChainFeed::Blocks, _)) => Err(Refusal::FilterNotFound.into()),
            None => Err(self.unknown(Refusal::FilterNotFound)),
        }
    }

    #[expect(clippy::unused_async, reason = "the functions of all methods have one form")]
    pub(super) async fn uninstall_filter(
        &self,
        on: &mut Answering<'_>,
        id: Cow<'_, str>,
    ) -> CallResult {
        let is_removed = self.filters.remove(&id);
        if !is_removed && self.node.is_some() {
            return Err(CallFailure::AskNode);
        }
        on.out.extend_from_slice(if is_removed { b"true" } else { b"false" });
        Ok(None)
    }

    /// When half of the time is over: what was found until then is told, and the next poll goes on
    /// there. A poll that ran out of time would begin at the same place again.
    fn half_time(&self) -> Option<Instant> {
        let now = Instant::now();
        self.until.and_then(|until| now.checked_add(until.saturating_duration_since(now) / 2))
    }

    /// Appends the hashes of new blocks, as many as one answer has; tells how far they lead.
    async fn put_new_hashes(
        &self,
        on: &mut Answering<'_>,
        view: &View,
        seen: ChainCursor,
    ) -> Result<ChainCursor, CallFailure> {
        let (removed, added) =
            seen.change_to(on.reader, view).await?.linked().map_err(Refusal::from)?;
        let mut told = seen.without(&removed);
        let (count_max, mut slice) = (self.log_limits.count_max.max(1), WorkSlice::default());
        let until = self.half_time();
        on.out.push(b'[');
        for number in added.iter().flat_map(BlockRange::numbers).take(count_max) {
            let hash = view.read_hash(on.reader, number).await?.ok_or(CallFailure::NotABlock)?;
            if on.out.last() != Some(&b'[') {
                on.out.push(b',');
            }
            put_data(on.out, hash.as_slice());
            told = ChainCursor::up_to(BlockId { number, hash });
            if until.is_some_and(|until| until <= Instant::now()) {
                break;
            }
            slice.count_request(hash.len());
            slice.go_on(self.budget).await;
        }
        on.out.push(b']');
        Ok(told)
    }

    /// Appends logs of blocks that left and of blocks that came, as many as one answer has; tells how
    /// far they lead.
    async fn put_new_logs(
        &self,
        on: &mut Answering<'_>,
        view: &View,
        kept: &KeptFilter,
        seen: ChainCursor,
    ) -> Result<ChainCursor, CallFailure> {
        let until = self.half_time();
        let limits = LogPortionLimits { blocks_max: u64::MAX, logs: self.log_limits, until };
        let (begin, mut slice) = (on.out.len(), WorkSlice::default());
        let change = seen.change_to(on.reader, view).await?;
        let mut portion = LogPortion::begin(view, kept, self.shared_logs, seen, change, limits)?;
        let mut lease = ByteLease::default();
        on.out.push(b'[');
        while let Some(logs) = portion.next(on.reader, self.budget, &mut slice).await? {
            let made = on.out.capacity().saturating_sub(begin);
            let held = made.saturating_add(portion.held_bytes());
            self.count_held(&mut lease, held)?;
            for log in logs {
                if on.out.len().saturating_sub(begin) > 1 {
                    on.out.push(b',');
                }
                on.out.extend_from_slice(&log);
            }
        }
        on.out.push(b']');
        Ok(portion.end(on.reader).await?.0)
    }
}
