//! What runs are made of: the segments of before and after, and the keys of those that are new.

use std::collections::{BTreeMap, BTreeSet};

use chain::BlockRange;
use segment::index::{IndexKey, PostingsBuilder, RunSpan, RunSubject};

use crate::error::StoreError;
use crate::layout::{HeldRange, join_ranges, overlap, slot_of, slot_range};
use crate::manifest::{Manifest, SegmentEntry};

/// The longest run of a single slot that is read whole: a slot of 2^24 transactions.
pub(super) const SLOT_RUN_BYTES_MAX: u64 = 128 << 20;

/// What lookups keep of a segment, in the order of its blocks and transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentKeys {
    /// Of every transaction's hash.
    pub transactions: Vec<IndexKey>,
    /// Of every block's hash.
    pub blocks: Vec<IndexKey>,
    /// Of the addresses and topics of its logs; `None` if nobody wants a log index.
    pub logs: Option<PostingsBuilder>,
}

impl SegmentKeys {
    pub(super) fn of(&self, subject: RunSubject) -> &[IndexKey] {
        match subject {
            RunSubject::Transactions => &self.transactions,
            RunSubject::Blocks => &self.blocks,
            RunSubject::Logs => &[],
        }
    }

    /// Adds the keys of the blocks that follow.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), StoreError> {
        self.transactions.extend(next.transactions);
        self.blocks.extend(next.blocks);
        if let Some(next) = next.logs {
            match &mut self.logs {
                Some(logs) => logs.append(&next)?,
                logs @ None => *logs = Some(next),
            }
        }
        Ok(())
    }
}

/// A change of segments, as far as runs depend on it.
#[derive(Clone, Copy)]
pub(crate) struct RunSources<'a> {
    /// What is listed now.
    pub(crate) before: &'a Manifest,
    /// The segments that will be listed, lowest block first.
    pub(crate) segments: &'a [SegmentEntry],
    /// Of segments that were built, by file name.
    pub(crate) keys: &'a BTreeMap<String, SegmentKeys>,
    /// Reads what the log index keeps of blocks that one segment holds which was not built.
    pub(crate) read_logs: &'a dyn Fn(BlockRange) -> Result<PostingsBuilder, StoreError>,
    /// Slots that get a log index though nothing is built of them.
    pub(crate) indexed_now: &'a [u64],
}

impl<'a> RunSources<'a> {
    /// The segments of a slot that will be listed.
    pub(super) fn in_slot(&self, slot: u64) -> impl Iterator<Item = &'a SegmentEntry> + use<'a> {
        in_slot(self.segments, slot)
    }

    /// What the runs of a subject are planned for.
    pub(super) fn held(&self, subject: RunSubject) -> Vec<HeldRange> {
        let all = self.segments.iter().map(SegmentEntry::held);
        match subject {
            RunSubject::Transactions | RunSubject::Blocks => all.collect(),
            RunSubject::Logs => {
                // Without receipts there is nothing to say of logs: a slot is gathered with others once
                // it has all of them.
                let slots = self.log_slots();
                let is_told = |held: &HeldRange| {
                    held.has_receipts && slots.contains(&slot_of(held.range.first()))
                };
                all.filter(is_told).collect()
            }
        }
    }

    /// The slots that have a log index, those that are built now included: a slot that changes gets
    /// one, unless nobody wants it.
    fn log_slots(&self) -> BTreeSet<u64> {
        if self.before.is_without_log_index() {
            return BTreeSet::new();
        }
        let listed = self.before.runs_of(RunSubject::Logs);
        let listed = listed.flat_map(|run| run.span.first_slot()..run.span.end_slot());
        let is_new = |entry: &&SegmentEntry| self.keys.contains_key(&entry.file_name);
        let new = self.segments.iter().filter(is_new).map(|entry| slot_of(entry.range.first()));
        listed.chain(new).chain(self.indexed_now.iter().copied()).collect()
    }

    /// Whether a run of these slots that was true before is true after the change.
    pub(super) fn is_unchanged(&self, subject: RunSubject, span: RunSpan) -> bool {
        let is_same = |slot| {
            blocks_in(subject, self.before.segments(), slot)
                == blocks_in(subject, self.segments, slot)
        };
        (span.first_slot()..span.end_slot()).all(is_same)
    }

    /// Whether nothing will be added to these slots any more.
    pub(super) fn is_complete(&self, subject: RunSubject, span: RunSpan) -> bool {
        let is_whole = |slot| {
            slot_range(slot).is_some_and(|all| blocks_in(subject, self.segments, slot) == [all])
        };
        (span.first_slot()..span.end_slot()).all(is_whole)
    }
}

/// The segments of a slot.
pub(super) fn in_slot(segments: &[SegmentEntry], slot: u64) -> impl Iterator<Item = &SegmentEntry> {
    let begins = segments.partition_point(|entry| slot_of(entry.range.last()) < slot);
    let rest = segments.get(begins..).unwrap_or_default();
    rest.iter().take_while(move |entry| slot_of(entry.range.first()) == slot)
}

/// The blocks of a slot that a run tells of: without receipts there is nothing to say of logs.
fn blocks_in(subject: RunSubject, segments: &[SegmentEntry], slot: u64) -> Vec<BlockRange> {
    let Some(blocks) = slot_range(slot) else { return Vec::new() };
    let is_told = |entry: &&SegmentEntry| subject != RunSubject::Logs || entry.has_receipts;
    let told = in_slot(segments, slot).filter(is_told);
    join_ranges(told.filter_map(|entry| overlap(entry.range, blocks)))
}
