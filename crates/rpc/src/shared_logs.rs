//! Logs of the newest blocks as JSON, each written once for all subscriptions and filters.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use alloy_primitives::B256;
use hyper::body::Bytes;
use store::head::HeadBlock;
use store::{BlockFacts, LogQuery, LogView, TxIndex};

use crate::json::log::put_log;
use crate::json::transaction::TransactionLocation;

/// Blocks whose logs are kept: more than a reorg of usual depth takes away and brings. Subscribers hear
/// of the same blocks at about the same time.
const BLOCKS_MAX: usize = 16;
/// Memory of all of them: what is beyond it is written for each who asks. A new block finds half of it.
const BYTES_MAX: usize = 16 << 20;

/// The newest blocks with logs that somebody subscribed to.
#[derive(Debug, Default)]
pub(crate) struct SharedLogs {
    list: Mutex<VecDeque<SharedBlock>>,
    bytes: Arc<AtomicUsize>,
}

#[derive(Clone, Debug)]
struct SharedBlock {
    hash: B256,
    is_removed: bool,
    logs: Arc<BlockSlots>,
}

/// The logs of a block, by their index: those that were asked for. None if there is no room for so many.
#[derive(Debug)]
struct BlockSlots {
    slots: Box<[OnceLock<Bytes>]>,
    bytes: AtomicUsize,
    bytes_of_all: Arc<AtomicUsize>,
}

impl BlockSlots {
    fn new(count: usize, bytes_of_all: &Arc<AtomicUsize>) -> Self {
        let bytes_of_all = Arc::clone(bytes_of_all);
        let mut slots = Self { slots: Box::default(), bytes: AtomicUsize::new(0), bytes_of_all };
        if slots.take(count.saturating_mul(size_of::<OnceLock<Bytes>>())) {
            slots.slots = (0..count).map(|_| OnceLock::new()).collect();
        }
        slots
    }

    /// Counts memory if there is room for it.
    fn take(&self, bytes: usize) -> bool {
        let fitting = |sum: usize| sum.checked_add(bytes).filter(|sum| *sum <= BYTES_MAX);
        let order = Ordering::Relaxed;
        let is_taken = self.bytes_of_all.fetch_update(order, order, fitting).is_ok();
        if is_taken {
            self.bytes.fetch_add(bytes, order);
        }
        is_taken
    }

    /// A log, as it is kept or else as it is made now.
    fn get_or_make(&self, index: u64, make: impl FnOnce() -> Bytes) -> Bytes {
        let slot = usize::try_from(index).ok().and_then(|index| self.slots.get(index));
        if let Some(kept) = slot.and_then(OnceLock::get) {
            return kept.clone();
        }
        let log = make();
        match slot {
            Some(slot) if self.take(log.len()) => slot.get_or_init(|| log).clone(),
            _ => log,
        }
    }
}

impl Drop for BlockSlots {
    fn drop(&mut self) {
        self.bytes_of_all.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl SharedLogs {
    /// Those of a block's logs that a query asks for, in order.
    pub(crate) fn find(&self, block: &HeadBlock, query: &LogQuery, is_removed: bool) -> Vec<Bytes> {
        let receipts = block.block().receipts.as_deref().unwrap_or_default();
        let logs = receipts.iter().zip(block.tx_hashes()).zip(0_u64..);
        let logs = logs.flat_map(|((receipt, hash), at)| {
            receipt.fields.logs.iter().map(move |log| (log, *hash, TxIndex(at)))
        });
        let matching = logs.zip(0_u64..).filter(|((log, ..), _)| {
            query.matches_values(&log.address, log.topics().iter().map(|topic| &topic.0))
        });
        let mut kept = None;
        let found = matching.map(|((log, hash, index), log_index)| {
            let encode = || {
                let topics: Vec<[u8; 32]> = log.topics().iter().map(|topic| topic.0).collect();
                let log = LogView { address: log.address, topics: &topics, data: &log.data.data };
                let facts = BlockFacts::of_head(block);
                let place = TransactionLocation { block: &facts, index, hash };
                let mut out = Vec::new();
                put_log(&mut out, log, place, log_index, is_removed);
                // Without room to grow, which is not counted.
                Bytes::from(out.into_boxed_slice())
            };
            let kept = kept.get_or_insert_with(|| self.of_block(block, is_removed));
            kept.get_or_make(log_index, encode)
        });
        found.collect()
    }

    fn of_block(&self, block: &HeadBlock, is_removed: bool) -> Arc<BlockSlots> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&SharedBlock| it.hash == block.hash() && it.is_removed == is_removed;
        if let Some(found) = list.iter().rev().find(is_it) {
            return Arc::clone(&found.logs);
        }
        let receipts = block.block().receipts.iter().flatten();
        let count = receipts.map(|receipt| receipt.fields.logs.len()).sum();
        let is_full = || self.bytes.load(Ordering::Relaxed) > BYTES_MAX / 2;
        while list.len() >= BLOCKS_MAX || (is_full() && !list.is_empty()) {
            list.pop_front();
        }
        let logs = Arc::new(BlockSlots::new(count, &self.bytes));
        list.push_back(SharedBlock { hash: block.hash(), is_removed, logs: Arc::clone(&logs) });
        logs
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
