//! Reads of published files, which may be far away: what does not depend on each other is asked for at
//! the same time.
//!
//! A round trip to a bucket takes some 50 ms, and reads that wait for each other add up. Whoever reads
//! ahead drops what comes: the source keeps it, and tells a failure again to whoever needs the bytes.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use alloy_primitives::B256;
use chain::{BlockNumber, BlockRange};
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use segment::TxOrdinal;
use segment::index::{IndexKey, Positions, RunSubject};

use super::View;
use super::sealed::LayerIndex;
use crate::disk::CachedRead;
use crate::error::StoreError;
use crate::files::{OpenSegment, SegmentFile};
use crate::layout::slot_of;
use crate::log_query::ValueList;
use crate::reader::{ReadCounts, Reader};

/// Values that each run of the log index is asked for ahead of a search.
const VALUES_MAX: usize = 32;

/// Payloads that are fetched with their page. A transaction has 128 KiB at the most on its way to a block.
const PAYLOADS_BYTES_MAX: u64 = 512 << 10;

/// Has ranges of a file fetched at the same time, those that are not in memory.
async fn fetch_together(open: &OpenSegment, ranges: impl IntoIterator<Item = Range<u64>>) {
    let far = ranges.into_iter().filter(|range| !range.is_empty());
    join_all(far.map(async |range| {
        let mut buffer = Vec::new();
        if let Ok(CachedRead::WouldBlock) = open.bytes.read_now(range.clone(), &mut buffer) {
            let _ = open.bytes.read(range).await;
        }
    }))
    .await;
}

impl View {
    /// Asks all runs of a subject for a hash at the same time; answers come as they arrive.
    pub(super) fn probe_all(
        &self,
        subject: RunSubject,
        hash: B256,
    ) -> FuturesUnordered<impl Future<Output = (LayerIndex, Result<Positions, StoreError>)>> {
        let runs = self.sealed.runs_of(subject);
        let probed = runs.map(|(layer, run)| async move {
            let (mut bucket, mut counts) = (Vec::new(), ReadCounts::default());
            (layer, self.probe_in(run, hash, &mut bucket, &mut counts).await)
        });
        probed.collect()
    }

    /// Has the parts of a block fetched together, where that takes waiting.
    pub(super) async fn fetch_ahead(&self, open: &OpenSegment, number: BlockNumber) {
        if !self.sealed.is_union() {
            return;
        }
        let segment = &open.segment;
        let header = segment.find_header(number).map(|place| place.range);
        let extras = segment.find_extras(number).map(|place| place.range);
        let rows = segment.find_block(number).map(|place| place.range);
        fetch_together(open, [header, extras, rows].into_iter().flatten()).await;
    }

    /// Has the page of a row fetched together with the payloads that may belong to the row, of a segment
    /// that was opened for it: next to the tail they are few bytes, and they save a round trip. Once the
    /// tail is there, only what is needed is fetched.
    pub(super) async fn fetch_row_ahead(&self, open: &OpenSegment, ordinal: TxOrdinal) {
        if !self.sealed.is_union() {
            return;
        }
        let Some(place) = open.segment.find_row(ordinal) else { return };
        let payloads = open.segment.find_page_payloads(&place.page);
        let bytes = payloads.end.saturating_sub(payloads.start);
        if (1..=PAYLOADS_BYTES_MAX).contains(&bytes) {
            fetch_together(open, [place.page.range, payloads]).await;
        }
    }

    /// Has the segments with these blocks opened together, where that takes waiting.
    pub(super) async fn open_ahead(&self, numbers: impl Iterator<Item = BlockNumber>) {
        if !self.sealed.is_union() {
            return;
        }
        let mut files: BTreeMap<&str, &Arc<SegmentFile>> = BTreeMap::new();
        for number in numbers {
            let file = self.sealed.find(number).and_then(|piece| self.sealed.file(piece));
            let closed = file.filter(|file| !file.is_open());
            files.extend(closed.map(|file| (&*file.entry.file_name, file)));
        }
        join_all(files.into_values().map(async |file| {
            let Ok(mut reader) = Reader::new() else { return };
            let _ = self.files.segment(&mut reader, file).await;
        }))
        .await;
    }

    /// Has all runs of the log index that tell of a range asked for values together.
    pub(super) async fn ask_ahead(&self, lists: &[ValueList<'_>], range: BlockRange) {
        if !self.sealed.is_union() {
            return;
        }
        let (first, last) = (slot_of(range.first()), slot_of(range.last()));
        let runs = self.sealed.runs_of(RunSubject::Logs).filter(|(_, run)| {
            let span = run.entry.span;
            span.first_slot() <= last && first < span.end_slot()
        });
        let keys = lists.iter().flat_map(|list| list.keys(0..list.len().min(VALUES_MAX)));
        let keys: Vec<IndexKey> = keys.take(VALUES_MAX).collect();
        let asked = runs.flat_map(|(_, run)| keys.iter().map(move |key| (run, *key)));
        join_all(asked.map(async |(run, key)| {
            let _ = self.ask_value(run, key).await;
        }))
        .await;
    }
}
