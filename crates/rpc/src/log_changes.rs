//! Logs of blocks that left the chain and of blocks that came: what subscribers to logs are sent, and
//! what filters tell of, as much as is told at once.
//!
//! Logs that are removed come newest first, so that each undoes what the one behind it left. A block is
//! told whole: whoever asks again goes on behind it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use hyper::body::Bytes;
use store::head::HeadBlock;
use store::{BlockId, LogSearch, LoggedRows, Reader, StoreError, View};
use tokio::time::Instant;

use crate::budget::Budget;
use crate::heads::{ChainChange, ChainCursor};
use crate::json::log::EncodedLogs;
use crate::kept_filter::KeptFilter;
use crate::log_filter::range::first_missing;
use crate::log_limits::LogLimits;
use crate::refusal::Refusal;
use crate::shared_logs::SharedLogs;
use crate::work_slice::WorkSlice;

const REMOVED_WITHOUT_RECEIPTS: &str = "a block left whose receipts are not held";

/// How much is told at once. The first block with such logs is told whatever it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPortionLimits {
    /// Blocks that came.
    pub(crate) blocks_max: u64,
    /// Their logs, and what is read for them.
    pub(crate) logs: LogLimits,
    /// Then whoever waits is told what was found until then.
    pub(crate) until: Option<Instant>,
}

/// The logs of a change of the chain, block by block, as far as they are told at once.
#[derive(Debug)]
pub(crate) struct LogPortion<'a> {
    view: &'a View,
    kept: &'a KeptFilter,
    shared: &'a SharedLogs,
    limits: LogPortionLimits,
    /// Blocks that left, highest first.
    removed: VecDeque<Arc<HeadBlock>>,
    /// All blocks that came, and those that are looked at.
    added: Option<BlockRange>,
    looked_at: Option<BlockRange>,
    /// Among the sealed ones of these.
    search: Option<LogSearch<'a>>,
    /// What it found, lowest block first.
    found: VecDeque<LoggedRows>,
    /// Those above, which are in memory.
    head: Range<u64>,
    /// The last of them that may have such logs.
    found_head: Option<&'a HeadBlock>,
    /// How many logs were told, and their bytes.
    logs: usize,
    bytes: usize,
    /// Where the blocks that left end, before any that came is told.
    fork: ChainCursor,
    /// So far what was told leads.
    told: ChainCursor,
    stop: Option<PortionStop>,
}

/// Why there is more than is told at once.
#[derive(Clone, Copy, Debug)]
enum PortionStop {
    /// The next block has too many logs beside those that were told.
    Full,
    /// Too much was read, or for too long: neither this block nor those above it were looked at.
    Before(BlockNumber),
}

/// The logs of one block.
#[derive(Debug)]
struct BlockLogs {
    /// As JSON, in the order in which they are told; there may be none.
    logs: Vec<Bytes>,
    /// How far the chain is known with them.
    seen: ChainCursor,
}

impl<'a> LogPortion<'a> {
    /// What a filter asks for of the change that leads from what was seen to a view. Logs of blocks
    /// whose receipts are not held are not passed over.
    pub(crate) fn begin(
        view: &'a View,
        kept: &'a KeptFilter,
        shared: &'a SharedLogs,
        seen: ChainCursor,
        change: ChainChange,
        limits: LogPortionLimits,
    ) -> Result<Self, Refusal> {
        let (removed, added) = change.linked()?;
        let filter = kept.filter();
        let fork = seen.without(&removed);
        let looked_at = added.and_then(|all| {
            BlockRange::from_count(all.first(), all.count().min(limits.blocks_max.max(1)))
        });
        let mut removed = VecDeque::from(removed);
        removed.retain(|block| may_have_logs(kept, block));
        // Those of a block that left do not come any more.
        if removed.iter().any(|block| block.block().receipts.is_none()) {
            return Err(Refusal::FilterDropped { reason: REMOVED_WITHOUT_RECEIPTS });
        }
        let held = view.coverage_receipts();
        let mut looked_at = looked_at;
        let mut searched = looked_at.and_then(|blocks| filter.clip(blocks));
        if let Some(number) = searched.and_then(|blocks| first_missing(blocks, held)) {
            // What comes before it is told first.
            let below = |blocks: BlockRange| {
                let last = number.checked_sub(1)?;
                BlockRange::from_ends(blocks.first(), last)
            };
            (looked_at, searched) = (looked_at.and_then(below), searched.and_then(below));
            if looked_at.is_none() && removed.is_empty() {
                return Err(Refusal::ReceiptsNotHeld { number, held: held.to_vec() });
            }
        }
        let unindexed_max = limits.logs.unindexed_blocks_max.max(1);
        let in_memory = searched.map_or(0..0, |blocks| unsealed_end_of(view, blocks));
        let sealed = if in_memory.is_empty() {
            searched
        } else {
            let last = in_memory.start.checked_sub(1);
            searched.zip(last).and_then(|(all, last)| BlockRange::from_ends(all.first(), last))
        };
        let search = sealed.map(|blocks| view.search_logs(filter.query(), blocks, unindexed_max));
        let (found, found_head, told) = (VecDeque::new(), None, seen);
        let (logs, bytes, stop) = (0, 0, None);
        Ok(Self {
            view,
            kept,
            shared,
            limits,
            removed,
            added,
            looked_at,
            search,
            found,
            head: in_memory,
            found_head,
            logs,
            bytes,
            fork,
            told,
            stop,
        })
    }

    /// The logs of the next block that may have some, as JSON; others are let in before. `None` at the
    /// end of what is told at once.
    pub(crate) async fn next(
        &mut self,
        reader: &mut Reader,
        budget: &Budget,
        slice: &mut WorkSlice,
    ) -> Result<Option<Vec<Bytes>>, StoreError> {
        while self.stop.is_none() {
            slice.go_on(budget).await;
            let removed = self.removed.pop_front();
            let next = removed.map(|block| self.of_head(&block, true)).or_else(|| self.of_found());
            let Some(BlockLogs { logs, seen }) = next else {
                if !self.search_further(reader).await? {
                    break;
                }
                slice.count_request(0);
                continue;
            };
            let bytes = logs.iter().fold(0, |sum: usize, log| sum.saturating_add(log.len()));
            slice.count_request(bytes);
            let logs_after = self.logs.saturating_add(logs.len());
            let bytes_after = self.bytes.saturating_add(bytes);
            let LogLimits { count_max, bytes_max, .. } = self.limits.logs;
            if self.logs > 0 && (logs_after > count_max || bytes_after > bytes_max) {
                self.stop = Some(PortionStop::Full);
                break;
            }
            (self.logs, self.bytes, self.told) = (logs_after, bytes_after, seen);
            return Ok(Some(logs));
        }
        Ok(None)
    }

    /// Bytes of memory that it holds beside what it has told, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.search.as_ref().map_or(0, LogSearch::held_bytes)
    }

    /// How far all that was told leads, and whether there is more already. Only at the end.
    pub(crate) async fn end(self, reader: &mut Reader) -> Result<(ChainCursor, bool), StoreError> {
        let unindexed = self.search.as_ref().and_then(LogSearch::unindexed_end);
        let stop = self.stop.or(unindexed.map(PortionStop::Before));
        let last = match (stop, self.looked_at) {
            (Some(PortionStop::Full), _) => return Ok((self.told, true)),
            // A search goes on by at least one block before it stops.
            (Some(PortionStop::Before(number)), _) => number.saturating_sub(1),
            (None, Some(looked_at)) => BlockNumber(looked_at.last()),
            (None, None) => return Ok((self.fork, false)),
        };
        let has_more = self.added.is_some_and(|added| last.get() < added.last());
        Ok((ChainCursor::at(reader, self.view, last).await?, has_more))
    }

    /// Looks at some more of the blocks that came; false if there are none.
    async fn search_further(&mut self, reader: &mut Reader) -> Result<bool, StoreError> {
        let is_late = self.limits.until.is_some_and(|until| until <= Instant::now());
        let first = self.looked_at.map_or(0, |it| it.first());
        if let Some(search) = &mut self.search {
            let is_enough = is_late || search.read_bytes() > self.limits.logs.read_bytes_max;
            // It goes on by at least one block, however late it is.
            if is_enough && search.searched_to().get() > first {
                self.stop = Some(PortionStop::Before(search.searched_to()));
                return Ok(false);
            }
            if let Some(rows) = search.next_rows(reader).await? {
                self.found.extend(rows);
                return Ok(true);
            }
            if search.unindexed_end().is_some() {
                return Ok(false);
            }
        }
        let Some(number) = self.head.next().map(BlockNumber) else { return Ok(false) };
        if is_late && number.get() > first {
            self.stop = Some(PortionStop::Before(number));
            return Ok(false);
        }
        let block = self.view.unsealed_block(number).map(|block| &**block);
        self.found_head = block.filter(|block| may_have_logs(self.kept, block));
        Ok(true)
    }

    /// The logs of a block in memory, those of one that left newest first.
    fn of_head(&self, block: &HeadBlock, is_removed: bool) -> BlockLogs {
        let mut logs = self.shared.find(block, self.kept.filter().query(), is_removed);
        if is_removed {
            logs.reverse();
            return BlockLogs { logs, seen: ChainCursor::below(block) };
        }
        let (number, hash) = (block.number(), block.hash());
        BlockLogs { logs, seen: ChainCursor::up_to(BlockId { number, hash }) }
    }

    /// All pieces of the first block that was found.
    fn of_found(&mut self) -> Option<BlockLogs> {
        let Some(first) = self.found.front() else {
            let block = self.found_head.take()?;
            return Some(self.of_head(block, false));
        };
        let mut logs = EncodedLogs::default();
        let filter = self.kept.filter();
        let block = BlockId { number: first.block.number, hash: first.block.hash };
        while let Some(piece) = self.found.pop_front_if(|it| it.block.number == block.number) {
            if filter.is_of_block(block.number, block.hash) {
                logs.push(filter.query(), &piece);
            }
        }
        Some(BlockLogs { logs: logs.into_items(), seen: ChainCursor::up_to(block) })
    }
}

/// Whether a block in memory may have logs that a filter asks for.
fn may_have_logs(kept: &KeptFilter, block: &HeadBlock) -> bool {
    kept.filter().is_of_block(block.number(), block.hash())
        && kept.for_blooms().may_be_in(&block.block().header.logs_bloom)
}

/// The last blocks of a range that are in memory and in no segment.
fn unsealed_end_of(view: &View, blocks: BlockRange) -> Range<u64> {
    let is_unsealed = |number: &u64| view.unsealed_block(BlockNumber(*number)).is_some();
    let count = (blocks.first()..blocks.end()).rev().take_while(is_unsealed).count();
    let count = u64::try_from(count).unwrap_or_default();
    blocks.end().saturating_sub(count)..blocks.end()
}
