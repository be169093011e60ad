//! Filters that clients poll over HTTP: `eth_newFilter` and what follows it.
//!
//! Knows: what a poll answers, and that it is all changes or none.
//! Never knows: how filters are kept, or how logs are found.

use std::borrow::Cow;

use chain::BlockRange;
use store::View;

use super::{Answering, CallFailure, CallResult, Context};
use crate::filters::FilterKind;
use crate::heads::{ChainChange, HeadCursor};
use crate::json::{put_data, put_text};
use crate::log_changes::LogChanges;
use crate::log_filter::LogFilter;
use crate::refusal::{ExceededLogLimit, Refusal};
use crate::work_slice::WorkSlice;

use super::logs::{LogList, refusal};

const TOO_MANY_REMOVED: &str = "a reorg took away more logs than one answer has";

impl Context<'_> {
    pub(super) async fn new_filter(&self, on: &mut Answering<'_>, filter: LogFilter) -> CallResult {
        filter.check_for_new_blocks()?;
        self.add_filter(on, FilterKind::Logs(self.filters.room().keep(filter)?)).await
    }

    pub(super) async fn new_block_filter(&self, on: &mut Answering<'_>) -> CallResult {
        self.add_filter(on, FilterKind::Blocks).await
    }

    async fn add_filter(&self, on: &mut Answering<'_>, kind: FilterKind) -> CallResult {
        let seen = HeadCursor::at_tip(on.reader, self.view).await?;
        let id = self.subscription_ids.next();
        self.filters.add(id.clone(), kind, seen)?;
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
            let Some((kind, seen)) = self.filters.poll(&id) else {
                return Err(self.unknown(Refusal::FilterNotFound));
            };
            // Looked at after the filter, the chain is not older than what its client knows.
            let view = self.store.view();
            let now = HeadCursor::at_tip(on.reader, &view).await?;
            let put = self.put_changes(on, &view, &kind, seen).await;
            if let Err(CallFailure::Refused(Refusal::FilterDropped { .. })) = put {
                self.filters.remove(&id);
            }
            put?;
            if self.filters.advance(self.filter_polls, &id, seen, now) {
                return Ok(None);
            }
            on.out.truncate(begin);
        }
    }

    pub(super) async fn filter_logs(&self, on: &mut Answering<'_>, id: Cow<'_, str>) -> CallResult {
        match self.filters.poll(&id) {
            Some((FilterKind::Logs(kept), _)) => self.logs(on, kept.filter().clone()).await,
            Some((FilterKind::Blocks, _)) => Err(Refusal::FilterNotFound.into()),
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

    /// Appends what leads from what was seen to a view.
    async fn put_changes(
        &self,
        on: &mut Answering<'_>,
        view: &View,
        kind: &FilterKind,
        seen: HeadCursor,
    ) -> Result<(), CallFailure> {
        let (removed, added) = match seen.change_to(on.reader, view).await? {
            ChainChange::Linked { removed, added } => (removed, added),
            ChainChange::Unlinked(link) => {
                return Err(Refusal::FilterDropped { reason: link.reason() }.into());
            }
        };
        match kind {
            FilterKind::Blocks => self.put_new_hashes(on, view, added).await,
            FilterKind::Logs(kept) => {
                let is_one_block = removed.is_empty() && added.is_none_or(|it| it.count() == 1);
                let unindexed_max = self.log_limits.unindexed_blocks_max;
                let changes = LogChanges::new(view, kept.filter(), removed, added, unindexed_max)?;
                self.put_log_changes(on, changes, added, !is_one_block).await
            }
        }
    }

    /// Appends the hashes of new blocks.
    async fn put_new_hashes(
        &self,
        on: &mut Answering<'_>,
        view: &View,
        added: Option<BlockRange>,
    ) -> Result<(), CallFailure> {
        let count = u64::try_from(self.log_limits.count_max).unwrap_or(u64::MAX);
        if let Some(added) = added.filter(|added| added.count() > count.max(1)) {
            let fits = BlockRange::from_count(added.first(), count).unwrap_or(added);
            return Err(Refusal::LogLimit { exceeded: ExceededLogLimit::Logs(count), fits }.into());
        }
        on.out.push(b'[');
        for number in added.iter().flat_map(BlockRange::numbers) {
            let hash = view.read_hash(on.reader, number).await?.ok_or(CallFailure::NotABlock)?;
            if on.out.last() != Some(&b'[') {
                on.out.push(b',');
            }
            put_data(on.out, hash.as_slice());
        }
        on.out.push(b']');
        Ok(())
    }

    /// Appends logs of blocks that left and of blocks that came: all of them, or none.
    async fn put_log_changes(
        &self,
        on: &mut Answering<'_>,
        mut changes: LogChanges<'_>,
        added: Option<BlockRange>,
        is_limited: bool,
    ) -> Result<(), CallFailure> {
        let (limits, mut slice) = (self.log_limits, WorkSlice::default());
        let mut list = LogList::begin(on.out);
        while let Some(block) = changes.next(on.reader).await? {
            let before = on.out.len();
            list.append(on.out, &block);
            let exceeded = list.exceeded(on.out, &limits).or_else(|| {
                let is_too_much = changes.read_bytes() > limits.read_bytes_max;
                is_too_much.then_some(ExceededLogLimit::Reading)
            });
            if let Some(exceeded) = exceeded.filter(|_| is_limited) {
                let refused = match added {
                    Some(added) if !block.is_removed => {
                        refusal(exceeded, added, block.block.number)
                    }
                    _ => Refusal::FilterDropped { reason: TOO_MANY_REMOVED },
                };
                return Err(refused.into());
            }
            slice.count_request(on.out.len().saturating_sub(before));
            slice.go_on(self.budget).await;
        }
        if let (Some(end), Some(added)) = (changes.unindexed_end(), added) {
            let exceeded = ExceededLogLimit::UnindexedBlocks(limits.unindexed_blocks_max);
            return Err(refusal(exceeded, added, end).into());
        }
        on.out.push(b']');
        Ok(())
    }
}
