//! New logs for subscribers: those of blocks that left, then those of blocks that came.
//!
//! Knows: how many are sent at once.
//! Never knows: sockets, or when a subscriber is sent something.

use chain::BlockRange;
use store::Reader;

use super::feed::FeedPortion;
use super::{CallFailure, Service};
use crate::budget::Budget;
use crate::heads::{ChainChange, HEADS_MAX, HeadCursor};
use crate::log_changes::LogChanges;
use crate::log_filter::LogFilter;
use crate::refusal::Refusal;
use crate::work_slice::WorkSlice;

/// Bytes of logs after which no further block is told of at once.
const PORTION_BYTES: usize = 256 * 1024;

impl Service {
    /// The logs that lead a subscriber from what it has seen towards the newest view.
    pub(super) async fn read_new_logs(
        &self,
        reader: &mut Reader,
        filter: &LogFilter,
        seen: &mut HeadCursor,
        budget: &Budget,
    ) -> Result<FeedPortion, CallFailure> {
        let view = self.store.view();
        let (removed, added) = match seen.change_to(reader, &view).await? {
            ChainChange::Linked { removed, added } => (removed, added),
            ChainChange::Unlinked(link) => {
                return Err(Refusal::FilterDropped { reason: link.reason() }.into());
            }
        };
        // The fork point, before any of the new blocks is told.
        let fork = removed.last().map_or(*seen, |block| HeadCursor::below(block));
        let told =
            added.and_then(|all| BlockRange::from_count(all.first(), all.count().min(HEADS_MAX)));
        let mut changes = LogChanges::new(&view, filter, removed, told, HEADS_MAX)?;
        let mut portion = FeedPortion::default();
        let (mut bytes, mut slice) = (0_usize, WorkSlice::default());
        while let Some(block) = changes.next(reader).await? {
            let block_bytes =
                block.logs.iter().fold(0, |sum: usize, log| sum.saturating_add(log.len()));
            bytes = bytes.saturating_add(block_bytes);
            portion.items.extend(block.logs);
            if bytes >= PORTION_BYTES {
                *seen = block.seen;
                portion.has_more = true;
                return Ok(portion);
            }
            slice.count_request(block_bytes);
            slice.go_on(budget).await;
        }
        portion.has_more = told != added;
        *seen = match told {
            Some(told) => HeadCursor::at(reader, &view, told.last().into()).await?,
            None => fork,
        };
        Ok(portion)
    }
}
