//! `eth_getLogs`: the logs of a range of blocks, all of them or none.

use chain::{BlockNumber, BlockRange};
use store::LoggedRows;

use super::{Answering, CallFailure, CallResult, Context};
use crate::answered_range::AnsweredRange;
use crate::budget::ByteLease;
use crate::json::log::put_matching_logs;
use crate::log_filter::range::FilterHorizon;
use crate::log_filter::{FilterBlocks, LogFilter};
use crate::log_limits::LogLimits;
use crate::params::BlockRef;
use crate::refusal::{ExceededLogLimit, Refusal};
use crate::work_slice::WorkSlice;

impl Context<'_> {
    pub(super) async fn logs(&self, on: &mut Answering<'_>, filter: LogFilter) -> CallResult {
        let blocks = self.filtered_blocks(on, &filter).await?;
        self.put_logs(on, &filter, blocks).await?;
        let last = BlockNumber(blocks.last());
        if let Some(last_hash) = self.view.read_hash(on.reader, last).await? {
            let _ = self.answered_range.set(AnsweredRange { blocks, last_hash });
        }
        Ok(None)
    }

    /// The blocks that a filter names, if the logs of all of them are held.
    pub(super) async fn filtered_blocks(
        &self,
        on: &mut Answering<'_>,
        filter: &LogFilter,
    ) -> Result<BlockRange, CallFailure> {
        match filter.blocks() {
            FilterBlocks::Range { from, to } => {
                let resolved = self.filter_horizon().resolve(from, to);
                resolved.map_err(|refusal| {
                    // 4444: history that a node may have.
                    let is_not_held = matches!(
                        refusal,
                        Refusal::BlockNotHeld { .. } | Refusal::ReceiptsNotHeld { .. }
                    );
                    if is_not_held { self.unknown(refusal) } else { refusal.into() }
                })
            }
            FilterBlocks::Hash(hash) => {
                let requested = self.requested(on.reader, BlockRef::Hash(hash)).await?;
                let number = requested.found()?.ok_or(Refusal::UnknownBlock)?;
                let asked = BlockRange::from_count(number, 1).ok_or(Refusal::UnknownBlock)?;
                if !self.view.coverage_receipts().iter().any(|range| range.contains(number)) {
                    let held = self.view.coverage_receipts().to_vec();
                    let refusal = Refusal::ReceiptsNotHeld { number: number.get(), held };
                    return Err(self.unknown(refusal));
                }
                Ok(asked)
            }
        }
    }

    /// What ranges of filters are held against.
    fn filter_horizon(&self) -> FilterHorizon<'_> {
        let blocks = self.view.coverage();
        FilterHorizon {
            blocks,
            receipts: self.view.coverage_receipts(),
            tip: self.view.tip(),
            safe: self.view.safe(),
            finalized: self.view.finalized(),
            lost: self.view.lost().last().map(|range| BlockNumber(range.last())),
            above_tip: self.horizon(blocks).above_tip(),
        }
    }

    /// Appends the logs of a range that is held.
    async fn put_logs(
        &self,
        on: &mut Answering<'_>,
        filter: &LogFilter,
        blocks: BlockRange,
    ) -> Result<(), CallFailure> {
        // To read the filter was a slice.
        let mut slice = WorkSlice::default();
        slice.begin_long(filter.query().bytes(), self.budget).await;
        let (limits, is_one_block) = (self.log_limits, blocks.count() == 1);
        let mut search = self.view.search_logs(filter.query(), blocks, limits.unindexed_blocks_max);
        if let Some(end) = search.unindexed_end() {
            let exceeded = ExceededLogLimit::UnindexedBlocks(limits.unindexed_blocks_max);
            return Err(limit_refusal(exceeded, blocks, end).into());
        }
        let mut list = LogList::begin(on.out);
        // Until it is handed over, what is made is counted here.
        let mut lease = ByteLease::default();
        loop {
            let (reached, before) = (search.searched_to(), on.out.len());
            let Some(rows) = search.next_rows(on.reader).await? else { break };
            if search.read_bytes() > limits.read_bytes_max && !is_one_block {
                return Err(limit_refusal(
                    ExceededLogLimit::ReadBytes(limits.read_bytes_max),
                    blocks,
                    reached,
                )
                .into());
            }
            for piece in rows {
                list.put(on.out, filter, &piece);
                // One block is always answered.
                let exceeded = list.exceeded(on.out, &limits).filter(|_| !is_one_block);
                if let Some(exceeded) = exceeded {
                    return Err(limit_refusal(exceeded, blocks, piece.block.number).into());
                }
            }
            let made = on.out.capacity().saturating_sub(list.begin);
            let held = made.saturating_add(search.held_bytes());
            self.count_held(&mut lease, held)?;
            slice.count_request(on.out.len().saturating_sub(before));
            slice.go_on(self.budget).await;
        }
        on.out.push(b']');
        Ok(())
    }
}

/// The list of logs in an answer, as far as it is written.
struct LogList {
    begin: usize,
    count: usize,
}

impl LogList {
    fn begin(out: &mut Vec<u8>) -> Self {
        let begin = out.len();
        out.push(b'[');
        Self { begin, count: 0 }
    }

    /// The limit that is exceeded, if one is.
    fn exceeded(&self, out: &[u8], limits: &LogLimits) -> Option<ExceededLogLimit> {
        let wide = |limit| u64::try_from(limit).unwrap_or(u64::MAX);
        if self.count > limits.count_max {
            Some(ExceededLogLimit::Logs(wide(limits.count_max)))
        } else if out.len().saturating_sub(self.begin) > limits.bytes_max {
            Some(ExceededLogLimit::Bytes(wide(limits.bytes_max)))
        } else {
            None
        }
    }

    /// Appends those of a block's logs that are asked for.
    fn put(&mut self, out: &mut Vec<u8>, filter: &LogFilter, piece: &LoggedRows) {
        put_matching_logs(out, filter.query(), piece, |out| {
            if self.count > 0 {
                out.push(b',');
            }
            self.count = self.count.saturating_add(1);
        });
    }
}

/// Refuses, with the blocks that can be answered: those before the block with which a limit was exceeded.
fn limit_refusal(exceeded: ExceededLogLimit, asked: BlockRange, at: BlockNumber) -> Refusal {
    let last = at.get().saturating_sub(1).max(asked.first());
    let fits = BlockRange::from_ends(asked.first(), last).unwrap_or(asked);
    Refusal::LogLimit { exceeded, fits }
}
