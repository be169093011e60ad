//! What a data folder holds, in numbers: ranges and their trust, counts, bytes by part.
//!
//! The tails of segments are read one after the other, and none is kept: asking costs a server no
//! memory that its readers have warmed. What they said is kept by whoever asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::B256;
use chain::trust::TrustStatus;
use chain::{BlockNumber, BlockRange};
use segment::PartBytes;

use crate::block_id::BlockId;
use crate::error::StoreError;
use crate::files::{FileSource, Files};
use crate::limits::Limits;
use crate::manifest::{Network, SegmentEntry};
use crate::missing_file::MissingFile;
use crate::reader::Reader;
use crate::view::View;
use segment::index::RunSubject;

/// What a data folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Which chain it is.
    pub network: Network,
    /// How far the blocks can be trusted to be canonical, lowest first.
    pub statuses: Vec<(BlockRange, TrustStatus)>,
    /// The ranges whose receipts are held.
    pub coverage_receipts: Vec<BlockRange>,
    /// The ranges between those that are held.
    pub gaps: Vec<BlockRange>,
    /// The ranges that were held once and are not any more.
    pub lost: Vec<BlockRange>,
    /// The highest block.
    pub tip: Option<BlockId>,
    /// The highest block that will not change: the one that was recorded as final or, if that is higher,
    /// the last of the highest sealed range, unless nothing says that this range is canonical.
    pub finalized: Option<BlockId>,
    /// The blocks of the head: they are not sealed yet.
    pub head: Option<BlockRange>,
    /// How many blocks are held.
    pub block_count: u64,
    /// How many transactions.
    pub transaction_count: u64,
    /// How many logs.
    pub log_count: u64,
    /// What the files take.
    pub bytes: BytesByPart,
    /// How many segments the folder lists.
    pub segment_count: usize,
    /// How many lookup runs.
    pub run_count: usize,
    /// The listed files that cannot be read: their bytes are not counted.
    pub unreadable: Vec<MissingFile>,
    /// The slots that are held whole and still in pieces: the next writer merges them.
    pub pending_merges: Vec<BlockRange>,
    /// The blocks whose logs are found by reading them only.
    pub without_log_index: Vec<BlockRange>,
}

/// What the files of a folder take, by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesByPart {
    /// Headers.
    pub headers: u64,
    /// Transactions with signatures and senders.
    pub transactions: u64,
    /// Receipts. They share pages with transactions: this is their share by size before compression.
    pub receipts: u64,
    /// From hash to place.
    pub lookups: u64,
    /// From addresses and topics to logs.
    pub log_index: u64,
    /// The head's log.
    pub head: u64,
    /// Ommers and withdrawals, directories and tables of the segments, and the files that the manifest
    /// does not list: itself, genesis.json, what was left over.
    pub other: u64,
}

/// What the tails of segments said of their bytes, by digest: a segment never changes, so that its
/// tail is read once however often is asked.
#[derive(Debug, Default)]
pub struct PartBytesCache {
    parts: BTreeMap<B256, PartBytes>,
}

impl PartBytesCache {
    /// Reads the tails of segments that are new, and forgets those that are not listed any more. Adds
    /// those that cannot be read to `unreadable`, whose files are not opened.
    async fn refresh(
        &mut self,
        segments: &[SegmentEntry],
        source: Arc<dyn FileSource>,
        reader: &mut Reader,
        unreadable: &mut Vec<MissingFile>,
    ) {
        let known = names_of(unreadable);
        let wanted = segments.iter().filter(|entry| !known.contains(&*entry.file_name));
        let wanted: BTreeSet<B256> = wanted.map(|entry| entry.digest).collect();
        self.parts.retain(|digest, _| wanted.contains(digest));
        let is_new = |entry: &&SegmentEntry| {
            wanted.contains(&entry.digest) && !self.parts.contains_key(&entry.digest)
        };
        let new: Vec<SegmentEntry> = segments.iter().filter(is_new).cloned().collect();
        let files = Files::new(source, Limits::NONE);
        for file in files.listed_segments(&new).iter() {
            match files.segment(reader, file).await {
                Ok(open) => drop(self.parts.insert(file.entry.digest, open.segment.part_bytes())),
                Err(error) => unreadable.push(MissingFile {
                    file_name: file.entry.file_name.clone(),
                    blocks: Some(file.entry.range),
                    reason: error.to_string(),
                }),
            }
        }
    }
}

impl BytesByPart {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { headers, transactions, receipts, lookups, log_index, head, other } = *self;
        let parts = [headers, transactions, receipts, lookups, log_index, head, other];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Counts one segment of `file_bytes`.
    fn add_segment(&mut self, parts: PartBytes, file_bytes: u64) {
        let transactions = parts.transactions.saturating_add(parts.transaction_payloads);
        let receipts = parts.receipts.saturating_add(parts.receipt_payloads);
        let told = [parts.headers, transactions, receipts].into_iter().fold(0, u64::saturating_add);
        self.headers = self.headers.saturating_add(parts.headers);
        self.transactions = self.transactions.saturating_add(transactions);
        self.receipts = self.receipts.saturating_add(receipts);
        // Whatever else a file of this length holds: no byte is left out of the sum.
        self.other = self.other.saturating_add(file_bytes.saturating_sub(told));
    }
}

impl Stat {
    /// Looks at everything that a view lists. `source` opens its files; `head_bytes` is what the files
    /// of the head take, `beside_bytes` what else lies in the folder, the manifest included. Segments
    /// that `cache` knows are not opened. Ranges and counts are those of the view: a file that cannot be
    /// read takes away its own bytes alone.
    pub async fn gather(
        view: &View,
        source: Arc<dyn FileSource>,
        cache: &mut PartBytesCache,
        head_bytes: u64,
        beside_bytes: u64,
    ) -> Result<Self, StoreError> {
        let manifest = view.manifest();
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut bytes =
            BytesByPart { head: head_bytes, other: beside_bytes, ..BytesByPart::default() };
        let missing = view.missing().iter().filter(|it| view.lists(&it.file_name));
        let mut unreadable: Vec<MissingFile> = missing.cloned().collect();
        cache.refresh(manifest.segments(), source, &mut reader, &mut unreadable).await;
        for entry in manifest.segments() {
            if let Some(parts) = cache.parts.get(&entry.digest) {
                bytes.add_segment(*parts, entry.bytes);
            }
        }
        let names = names_of(&unreadable);
        for entry in manifest.runs().iter().filter(|it| !names.contains(&*it.file_name)) {
            let sum = match entry.subject {
                RunSubject::Logs => &mut bytes.log_index,
                RunSubject::Transactions | RunSubject::Blocks => &mut bytes.lookups,
            };
            *sum = sum.saturating_add(entry.bytes);
        }
        let tip = block_id(view, &mut reader, view.tip(), &mut unreadable).await;
        let finalized = block_id(view, &mut reader, view.finalized(), &mut unreadable).await;
        let coverage = view.coverage();
        // A contradiction says nothing of the numbers.
        let unknown = |_| coverage.iter().map(|it| (*it, TrustStatus::Unanchored)).collect();
        let statuses = readable(&view.statuses().unwrap_or_else(unknown), coverage);
        Ok(Self {
            network: view.network(),
            coverage_receipts: view.coverage_receipts().to_vec(),
            gaps: gaps(coverage),
            lost: view.lost(),
            tip,
            finalized,
            head: view.head_run(BlockNumber::MAX).map(|run| run.range),
            block_count: sum(coverage.iter().map(BlockRange::count)),
            transaction_count: sum(view.segments().map(|it| it.transaction_count))
                .saturating_add(head_transactions(view)),
            log_count: sum(view.segments().map(|it| it.log_count)).saturating_add(head_logs(view)),
            statuses,
            bytes,
            segment_count: manifest.segments().len(),
            run_count: manifest.runs().len(),
            unreadable,
            pending_merges: manifest.pending_merges().iter().map(|it| it.range).collect(),
            without_log_index: manifest.blocks_without_log_index(),
        })
    }
}

/// A block of a view by both its names; none, and its file in `unreadable`, if the hash cannot be read.
async fn block_id(
    view: &View,
    reader: &mut Reader,
    number: Option<BlockNumber>,
    unreadable: &mut Vec<MissingFile>,
) -> Option<BlockId> {
    let number = number?;
    match view.read_hash(reader, number).await {
        Ok(hash) => Some(BlockId { number, hash: hash? }),
        Err(error) => {
            let file_name = view.file_of(number);
            if !unreadable.iter().any(|it| it.file_name == file_name) {
                let blocks = view.find_segment(&file_name).map(|entry| entry.range);
                unreadable.push(MissingFile { file_name, blocks, reason: error.to_string() });
            }
            None
        }
    }
}

fn names_of(files: &[MissingFile]) -> BTreeSet<&str> {
    files.iter().map(|it| &*it.file_name).collect()
}

/// The statuses of blocks that can be read: a segment that cannot be read has one nevertheless.
fn readable(
    statuses: &[(BlockRange, TrustStatus)],
    coverage: &[BlockRange],
) -> Vec<(BlockRange, TrustStatus)> {
    let mut shown = Vec::new();
    for (range, status) in statuses {
        for held in coverage {
            let (first, last) = (range.first().max(held.first()), range.last().min(held.last()));
            shown.extend(BlockRange::from_ends(first, last).map(|range| (range, *status)));
        }
    }
    shown
}

/// What lies between ranges that are in their order and do not touch.
fn gaps(coverage: &[BlockRange]) -> Vec<BlockRange> {
    let pairs = coverage.iter().zip(coverage.iter().skip(1));
    let between = |(below, above): (&BlockRange, &BlockRange)| {
        BlockRange::from_ends(below.end(), above.first().checked_sub(1)?)
    };
    pairs.filter_map(between).collect()
}

fn head_transactions(view: &View) -> u64 {
    let blocks = view.head().blocks().iter();
    sum(blocks.map(|it| u64::try_from(it.block().transactions.len()).unwrap_or(u64::MAX)))
}

fn head_logs(view: &View) -> u64 {
    let receipts = view.head().blocks().iter().flat_map(|it| it.block().receipts.iter().flatten());
    sum(receipts.map(|it| u64::try_from(it.fields.logs.len()).unwrap_or(u64::MAX)))
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use chain::trust::LinkedTo;

    use super::*;

    fn range(first: u64, last: u64) -> BlockRange {
        BlockRange::from_ends(first, last).unwrap()
    }

    #[test]
    fn gaps_lie_between_ranges_and_nowhere_else() {
        assert_eq!(gaps(&[]), []);
        assert_eq!(gaps(&[range(5, 9)]), []);
        let held = [range(0, 4), range(6, 6), range(100, 200)];
        assert_eq!(gaps(&held), [range(5, 5), range(7, 99)]);
    }

    #[test]
    fn statuses_are_those_of_blocks_that_can_be_read() {
        let status = TrustStatus::Unanchored;
        let statuses =
            [(range(0, 9), status), (range(10, 99), TrustStatus::Linked(LinkedTo::Genesis))];
        let held = [range(2, 4), range(8, 20), range(50, 99)];
        let found = readable(&statuses, &held);
        let ranges: Vec<BlockRange> = found.iter().map(|(range, _)| *range).collect();
        assert_eq!(ranges, [range(2, 4), range(8, 9), range(10, 20), range(50, 99)]);
        assert_eq!((found[1].1, found[2].1), (status, TrustStatus::Linked(LinkedTo::Genesis)));
    }

    #[test]
    fn no_byte_of_a_file_is_left_out_of_the_sum() {
        let parts = PartBytes {
            transactions: 10,
            transaction_payloads: 20,
            receipts: 30,
            receipt_payloads: 40,
            headers: 50,
            others: 60,
            tail: 70,
        };
        let mut bytes = BytesByPart { lookups: 5, other: 1, ..BytesByPart::default() };
        bytes.add_segment(parts, 1000);
        assert_eq!((bytes.headers, bytes.transactions, bytes.receipts), (50, 30, 70));
        assert_eq!(bytes.total(), 1006);
    }
}
