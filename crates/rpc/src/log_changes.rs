//! Logs of blocks that left the chain and of blocks that came: what subscribers to logs are sent, and
//! what filters tell of.
//!
//! Knows: their order, and when logs of a block cannot be known.
//! Never knows: who asked for them, or how many are told at once.
//!
//! Logs that are removed come newest first, so that each undoes what the one behind it left.

use std::collections::VecDeque;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use hyper::body::Bytes;
use store::head::HeadBlock;
use store::{BlockId, LogSearch, LoggedRows, Reader, StoreError, View};

use crate::heads::HeadCursor;
use crate::json::log::EncodedLogs;
use crate::log_filter::LogFilter;
use crate::log_filter::range::first_missing;
use crate::refusal::Refusal;

/// The logs of a change of the chain, block by block.
#[derive(Debug)]
pub(crate) struct LogChanges<'a> {
    filter: &'a LogFilter,
    /// Blocks that left, highest first.
    removed: VecDeque<Arc<HeadBlock>>,
    /// Among the blocks that came.
    search: Option<LogSearch<'a>>,
    /// What it found, lowest block first.
    found: VecDeque<LoggedRows>,
}

/// The logs of one block.
#[derive(Debug)]
pub(crate) struct BlockLogs {
    /// The block.
    pub(crate) block: BlockId,
    /// As JSON, in the order in which they are told; there may be none.
    pub(crate) logs: Vec<Bytes>,
    /// Whether the block left.
    pub(crate) is_removed: bool,
    /// How far the chain is known with them.
    pub(crate) seen: HeadCursor,
}

impl<'a> LogChanges<'a> {
    /// Those that a filter asks for. Logs of blocks whose receipts are not held are not passed over.
    /// Of blocks without a log index at most `unindexed_max` are read: [`Self::unindexed_end`].
    pub(crate) fn new(
        view: &'a View,
        filter: &'a LogFilter,
        removed: Vec<Arc<HeadBlock>>,
        added: Option<BlockRange>,
        unindexed_max: u64,
    ) -> Result<Self, Refusal> {
        let held = view.coverage_receipts();
        let added = added.and_then(|added| filter.among(added));
        if let Some(number) = added.and_then(|added| first_missing(added, held)) {
            return Err(Refusal::ReceiptsNotHeld { number, held: held.to_vec() });
        }
        let mut asked_for = VecDeque::from(removed);
        asked_for.retain(|block| {
            let bloom = &block.block().header.logs_bloom;
            filter.is_of_block(block.number(), block.hash()) && filter.query().may_be_in(bloom)
        });
        if let Some(block) = asked_for.iter().find(|block| block.block().receipts.is_none()) {
            let (number, held) = (block.number().get(), held.to_vec());
            return Err(Refusal::ReceiptsNotHeld { number, held });
        }
        let search = added.map(|added| view.search_logs(filter.query(), added, unindexed_max));
        Ok(Self { filter, removed: asked_for, search, found: VecDeque::new() })
    }

    /// The next block that may have such logs.
    pub(crate) async fn next(
        &mut self,
        reader: &mut Reader,
    ) -> Result<Option<BlockLogs>, StoreError> {
        if let Some(block) = self.removed.pop_front() {
            return Ok(Some(self.of_removed(&block)));
        }
        let Some(search) = &mut self.search else { return Ok(None) };
        while self.found.is_empty() {
            let Some(rows) = search.next_rows(reader).await? else { return Ok(None) };
            self.found.extend(rows);
        }
        Ok(self.of_found())
    }

    /// How many bytes of the blocks that came were read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.search.as_ref().map_or(0, LogSearch::read_bytes)
    }

    /// The block at which too many had no log index: neither it nor those above it were looked at.
    pub(crate) fn unindexed_end(&self) -> Option<BlockNumber> {
        self.search.as_ref().and_then(LogSearch::unindexed_end)
    }

    fn of_removed(&self, block: &HeadBlock) -> BlockLogs {
        let mut logs = EncodedLogs::default();
        logs.push(self.filter.query(), &LoggedRows::of_head(block), true);
        let mut logs = logs.into_items();
        logs.reverse();
        let id = BlockId { number: block.number(), hash: block.hash() };
        BlockLogs { block: id, logs, is_removed: true, seen: HeadCursor::below(block) }
    }

    /// All pieces of the first block that was found.
    fn of_found(&mut self) -> Option<BlockLogs> {
        let mut logs = EncodedLogs::default();
        let first = self.found.front()?;
        let block = BlockId { number: first.block.number, hash: first.block.hash };
        while let Some(piece) = self.found.pop_front_if(|it| it.block.number == block.number) {
            if self.filter.is_of_block(block.number, block.hash) {
                logs.push(self.filter.query(), &piece, false);
            }
        }
        let (logs, seen) = (logs.into_items(), HeadCursor::up_to(block));
        Some(BlockLogs { block, logs, is_removed: false, seen })
    }
}
