//! What a manifest says of the log index: whether it is wanted, and which slots have it.

use chain::BlockRange;
use segment::index::{RunSpan, RunSubject};

use super::{Manifest, SegmentEntry};
use crate::layout::{join_ranges, slot_of};

impl Manifest {
    /// Whether new blocks get no log index.
    #[must_use]
    pub fn is_without_log_index(&self) -> bool {
        self.is_without_log_index
    }

    /// The same manifest with another word on the log index of new blocks.
    pub(crate) fn with_log_index(self, is_wanted: bool) -> Self {
        Self { is_without_log_index: !is_wanted, ..self }
    }

    /// The same manifest without these runs of the log index.
    pub(crate) fn without_log_runs(mut self, file_names: &[String]) -> Self {
        self.runs
            .retain(|run| run.subject != RunSubject::Logs || !file_names.contains(&run.file_name));
        self
    }

    /// The slots that hold blocks with receipts and have no log index, lowest first.
    #[must_use]
    pub(crate) fn slots_without_log_index(&self) -> Vec<u64> {
        self.slots_without_log_index_in(|_| true)
    }

    fn slots_without_log_index_in(&self, is_there: impl Fn(&str) -> bool) -> Vec<u64> {
        let with_receipts = self.segments.iter().filter(|entry| entry.has_receipts);
        let mut slots: Vec<u64> = with_receipts.map(|entry| slot_of(entry.range.first())).collect();
        slots.dedup();
        let runs = self.runs_of(RunSubject::Logs).filter(|run| is_there(&run.file_name));
        let indexed: Vec<RunSpan> = runs.map(|run| run.span).collect();
        slots.retain(|slot| {
            let before = indexed.partition_point(|span| span.end_slot() <= *slot);
            indexed.get(before).is_none_or(|span| !span.contains(*slot))
        });
        slots
    }

    /// The sealed blocks of such slots.
    #[must_use]
    pub fn blocks_without_log_index(&self) -> Vec<BlockRange> {
        self.blocks_without_log_index_in(|_| true)
    }

    /// The same for whoever does without some of the listed files.
    pub(crate) fn blocks_without_log_index_in(
        &self,
        is_there: impl Fn(&str) -> bool,
    ) -> Vec<BlockRange> {
        let slots = self.slots_without_log_index_in(&is_there);
        let is_without = |it: &&SegmentEntry| {
            it.has_receipts
                && is_there(&it.file_name)
                && slots.binary_search(&slot_of(it.range.first())).is_ok()
        };
        join_ranges(self.segments.iter().filter(is_without).map(|it| it.range))
    }
}
