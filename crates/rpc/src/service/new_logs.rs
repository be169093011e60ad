//! New logs for subscribers: those of blocks that left, then those of blocks that came.

use std::sync::Arc;

use store::Reader;

use super::feed::FeedPortion;
use super::{CallFailure, Service};
use crate::budget::{Budget, ByteLease, LeasedFor};
use crate::heads::{ChainCursor, PORTION_BLOCKS_MAX};
use crate::kept_filter::KeptFilter;
use crate::log_changes::{LogPortion, LogPortionLimits};
use crate::log_limits::LogLimits;
use crate::work_slice::WorkSlice;

impl Service {
    /// The logs that lead a subscriber from what it has seen towards the newest view.
    pub(super) async fn read_new_logs(
        &self,
        reader: &mut Reader,
        kept: &KeptFilter,
        seen: &mut ChainCursor,
        budget: &Arc<Budget>,
        slice: &mut WorkSlice,
    ) -> Result<FeedPortion, CallFailure> {
        let view = self.store.view();
        let logs = LogLimits {
            count_max: usize::MAX,
            bytes_max: self.settings().feed_bytes_max,
            unindexed_blocks_max: PORTION_BLOCKS_MAX,
            read_bytes_max: u64::MAX,
        };
        let limits = LogPortionLimits { blocks_max: PORTION_BLOCKS_MAX, logs, until: None };
        let change = seen.change_to(reader, &view).await?;
        let mut logs = LogPortion::begin(&view, kept, &self.shared_logs, *seen, change, limits)?;
        let mut portion = FeedPortion::default();
        let mut lease = ByteLease::default();
        while let Some(block) = logs.next(reader, budget, slice).await? {
            portion.items.extend(block);
            let held = portion.bytes().saturating_add(logs.held_bytes());
            lease.resize(budget, held, LeasedFor::Answer)?;
        }
        (*seen, portion.has_more) = logs.end(reader).await?;
        Ok(portion)
    }
}
