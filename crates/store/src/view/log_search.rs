//! Blocks that may have logs which are asked for, in the order of the blocks.
//!
//! Knows: which runs of the log index cover which blocks, how to combine what they say, and that
//! blocks without an index are all candidates.
//! Never knows: whether a candidate has such a log; whoever reads it finds out.
//!
//! A run is asked once for each value. Values with few places tell all of them at once, and are combined
//! first; long lists are read for the slots that are left of some slots at a time, so that neither
//! memory nor the time between two pauses grows with the range.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use futures_util::future::try_join_all;
use segment::postings::{
    BlockParts, FoundPostings, LongListTable, PostingKey, SlotParts, transactions_of,
};
use segment::{SLOT_BLOCKS, TxIndex};

use super::View;
use super::log_rows::{ALL, LoggedRows, RowsPlace};
use crate::error::StoreError;
use crate::files::RunFile;
use crate::layout::slot_of;
use crate::log_query::LogQuery;
use crate::read::fetch;
use crate::reader::Reader;
use crate::run_subject::RunSubject;

/// Slots of long lists that are read at a time, those of all lists added up.
const WINDOW_SLOTS: u64 = 32;
/// Values that are asked for at a time.
const ASKED_AT_ONCE: usize = 64;
/// Blocks without an index that become candidates at a time.
const SCAN_BLOCKS: u64 = 64;
/// Rows are read of so many blocks at a time, if they are not too long.
const BATCH_BLOCKS: usize = 32;
/// Bytes of rows that are read at a time, unless one block has more.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// Which transactions of a block may have such logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateRows {
    /// Those of these parts.
    Parts(BlockParts),
    /// No index says which.
    All,
}

/// A block that may have such logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CandidateBlock {
    number: BlockNumber,
    rows: CandidateRows,
}

/// Where one of a list of values is.
#[derive(Debug, Default)]
struct ListPlaces {
    /// Of values with few places, by slot, counted from the run's first.
    short: BTreeMap<u64, SlotParts>,
    /// Of values with many.
    long: Vec<LongListTable>,
}

impl ListPlaces {
    fn is_nowhere(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }
}

/// What a run says of all values: a log has one of each list.
#[derive(Debug)]
struct RunPlaces {
    file: Arc<RunFile>,
    /// Those without long lists first: they tell what of the others is to be read.
    lists: Vec<ListPlaces>,
}

impl RunPlaces {
    /// How many slots are looked at together.
    fn window_slots(&self) -> u64 {
        let long: usize = self.lists.iter().map(|list| list.long.len()).sum();
        let long = u64::try_from(long).unwrap_or(u64::MAX);
        WINDOW_SLOTS.checked_div(long).unwrap_or(WINDOW_SLOTS).max(1)
    }
}

/// A search in progress. What it found comes in the order of blocks.
#[derive(Debug)]
pub struct LogSearch<'a> {
    view: &'a View,
    query: &'a LogQuery,
    keys: Vec<Vec<PostingKey>>,
    /// The first block that has not been looked for.
    next: u64,
    end: u64,
    run: Option<RunPlaces>,
    candidates: VecDeque<CandidateBlock>,
    /// Blocks that may still become candidates because no index tells of them.
    unindexed_left: u64,
    /// The block at which there were too many of them.
    unindexed_end: Option<BlockNumber>,
    read_bytes: u64,
}

impl View {
    /// Looks for blocks of a range that may have logs which are asked for. All blocks of the range must be
    /// held with their receipts. The search ends before it has read more than `unindexed_max` blocks only
    /// because they have no index.
    #[must_use]
    pub fn search_logs<'a>(
        &'a self,
        query: &'a LogQuery,
        range: BlockRange,
        unindexed_max: u64,
    ) -> LogSearch<'a> {
        LogSearch {
            view: self,
            query,
            keys: query.keys(),
            next: range.first(),
            end: range.end(),
            run: None,
            candidates: VecDeque::new(),
            unindexed_left: unindexed_max,
            unindexed_end: None,
            read_bytes: 0,
        }
    }
}

impl LogSearch<'_> {
    /// All blocks below this one have been found, read, or have no such log.
    #[must_use]
    pub fn searched_to(&self) -> BlockNumber {
        let first = self.candidates.front().map(|candidate| candidate.number);
        first.unwrap_or(BlockNumber(self.next))
    }

    /// Where the search ended because too many blocks have no index; `None` if it did not.
    #[must_use]
    pub fn unindexed_end(&self) -> Option<BlockNumber> {
        self.unindexed_end
    }

    /// Bytes of blocks and of the index that were read so far.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Reads the next blocks that may have such logs, some at a time, in their order. A block may come in
    /// several pieces, which follow each other. None of them may come after much work: whoever asks can let
    /// others in. `None` at the end.
    pub async fn next_rows(
        &mut self,
        reader: &mut Reader,
    ) -> Result<Option<Vec<LoggedRows>>, StoreError> {
        if self.candidates.is_empty() {
            if self.next >= self.end {
                return Ok(None);
            }
            self.look_further(reader).await?;
        }
        let mut places: Vec<RowsPlace> = Vec::new();
        let (mut bytes, mut count) = (0_u64, 0_usize);
        while let Some(candidate) = self.candidates.front().copied() {
            if bytes > BATCH_BYTES_MAX || count >= BATCH_BLOCKS {
                break;
            }
            if let Some(head) = self.view.unsealed_block(candidate.number) {
                if count > 0 {
                    break;
                }
                self.candidates.pop_front();
                return Ok(Some(vec![LoggedRows::of_head(head)]));
            }
            self.candidates.pop_front();
            count = count.saturating_add(1);
            for indices in candidate.rows.indices() {
                let place = self.view.place_rows(reader, candidate.number, indices).await?;
                bytes = bytes.saturating_add(place.as_ref().map_or(0, RowsPlace::bytes));
                places.extend(place);
            }
        }
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        self.view.read_places(reader, &places).await.map(Some)
    }

    /// Adds the candidates among the next blocks: of some slots, or of some blocks without an index.
    async fn look_further(&mut self, reader: &mut Reader) -> Result<(), StoreError> {
        let number = BlockNumber(self.next);
        if let Some(block) = self.view.unsealed_block(number) {
            self.next = self.next.saturating_add(1);
            if self.query.may_be_in(&block.block().header.logs_bloom) {
                self.candidates.push_back(CandidateBlock { number, rows: CandidateRows::All });
            }
            return Ok(());
        }
        let sealed = self.view.sealed.find_receipts(number);
        let sealed = sealed.ok_or(StoreError::NotHeld { number })?;
        let end = self.end.min(sealed.end());
        if self.keys.is_empty() {
            self.add_all(end.min(self.next.saturating_add(SCAN_BLOCKS)));
            return Ok(());
        }
        let slot = slot_of(number);
        let is_of = |run: &RunPlaces| run.file.entry.span.contains(slot);
        if !self.run.as_ref().is_some_and(is_of) {
            self.run = self.view.ask_run(slot, &self.keys, &mut self.read_bytes).await?;
        }
        let Some(run) = self.run.as_ref() else {
            if self.unindexed_left == 0 {
                self.unindexed_end = Some(number);
                self.end = self.next;
                return Ok(());
            }
            let count = SCAN_BLOCKS.min(self.unindexed_left);
            let end = end.min(self.next.saturating_add(count));
            let end = end.min(slot.saturating_add(1).saturating_mul(SLOT_BLOCKS));
            self.unindexed_left = self.unindexed_left.saturating_sub(end.saturating_sub(self.next));
            self.add_all(end);
            return Ok(());
        };
        let span = run.file.entry.span;
        if run.lists.iter().any(ListPlaces::is_nowhere) {
            // None of the values that a log needs is in the run.
            self.next = end.min(span.end_slot().saturating_mul(SLOT_BLOCKS));
            return Ok(());
        }
        let window_end = span.end_slot().min(slot.saturating_add(run.window_slots()));
        let end = end.min(window_end.saturating_mul(SLOT_BLOCKS));
        let slots = slot..slot_of(end.saturating_sub(1)).saturating_add(1);
        let first_slot = span.first_slot();
        let found = self.view.find_parts(reader, run, slots, &mut self.read_bytes).await?;
        for (slot, parts) in found {
            let first = first_slot.saturating_add(slot).saturating_mul(SLOT_BLOCKS);
            for block in parts.as_slice() {
                let number = first.saturating_add(block.block.into());
                if (self.next..end).contains(&number) {
                    let rows = CandidateRows::Parts(*block);
                    self.candidates.push_back(CandidateBlock { number: BlockNumber(number), rows });
                }
            }
        }
        self.next = end;
        Ok(())
    }

    fn add_all(&mut self, end: u64) {
        let all = (self.next..end)
            .map(|number| CandidateBlock { number: BlockNumber(number), rows: CandidateRows::All });
        self.candidates.extend(all);
        self.next = end;
    }
}

impl CandidateRows {
    /// The transactions, parts that follow each other made one.
    fn indices(self) -> Vec<Range<TxIndex>> {
        let Self::Parts(parts) = self else { return vec![ALL] };
        let mut joined: Vec<Range<TxIndex>> = Vec::new();
        for part in parts.iter() {
            let Range { start, end } = transactions_of(part);
            let (start, end) = (TxIndex(start), TxIndex(end));
            match joined.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => joined.push(start..end),
            }
        }
        joined
    }
}

impl View {
    /// Asks the run of the log index that covers a slot for all values; `None` if there is none.
    async fn ask_run(
        &self,
        slot: u64,
        keys: &[Vec<PostingKey>],
        read_bytes: &mut u64,
    ) -> Result<Option<RunPlaces>, StoreError> {
        let mut runs = self.runs_of(RunSubject::Logs);
        let Some(file) = runs.find(|run| run.entry.span.contains(slot)) else { return Ok(None) };
        let mut lists = Vec::new();
        for alternatives in keys {
            let mut list = ListPlaces::default();
            for some in alternatives.chunks(ASKED_AT_ONCE) {
                let asked = some.iter().map(|key| self.ask_value(file, *key));
                for (found, bytes) in try_join_all(asked).await? {
                    *read_bytes = read_bytes.saturating_add(bytes);
                    match found {
                        None => {}
                        Some(ValuePlaces::Long(table)) => list.long.push(table),
                        Some(ValuePlaces::Slots(slots)) => add_places(&mut list.short, slots),
                    }
                }
            }
            let is_nowhere = list.is_nowhere();
            lists.push(list);
            if is_nowhere {
                break;
            }
        }
        lists.sort_by_key(|list| !list.long.is_empty());
        Ok(Some(RunPlaces { file: Arc::clone(file), lists }))
    }

    /// What a run says of a value, and how many bytes told it.
    async fn ask_value(
        &self,
        file: &RunFile,
        key: PostingKey,
    ) -> Result<(Option<ValuePlaces>, u64), StoreError> {
        let open = file.opened_postings(&self.files).await?;
        let corrupt = |cause| file.corrupt_postings(cause);
        let mut bytes = Vec::new();
        let bucket = open.postings.bucket_range(key);
        fetch(&*open.bytes, bucket, &mut bytes).await.map_err(|error| file.unread(error))?;
        let mut read_bytes = wide(bytes.len());
        let found = match open.postings.probe(key, &bytes).map_err(corrupt)? {
            None => None,
            Some(FoundPostings::Slots(slots)) => Some(ValuePlaces::Slots(slots)),
            Some(FoundPostings::Long(place)) => {
                let fetched = fetch(&*open.bytes, place.table_range(), &mut bytes).await;
                fetched.map_err(|error| file.unread(error))?;
                read_bytes = read_bytes.saturating_add(wide(bytes.len()));
                Some(ValuePlaces::Long(place.read_table(&bytes).map_err(corrupt)?))
            }
        };
        Ok((found, read_bytes))
    }

    /// The parts of blocks of some slots, counted from the first of the chain, that have one value of each
    /// list; by slot, counted from the run's first.
    async fn find_parts(
        &self,
        reader: &mut Reader,
        run: &RunPlaces,
        slots: Range<u64>,
        read_bytes: &mut u64,
    ) -> Result<BTreeMap<u64, SlotParts>, StoreError> {
        let first = run.file.entry.span.first_slot();
        let slots = slots.start.saturating_sub(first)..slots.end.saturating_sub(first);
        let mut all: Option<BTreeMap<u64, SlotParts>> = None;
        for list in &run.lists {
            let short = list.short.range(slots.clone());
            let mut either: BTreeMap<u64, SlotParts> =
                short.map(|(slot, parts)| (*slot, parts.clone())).collect();
            // Only slots that all lists before have are read.
            let wanted: Vec<Range<u64>> = match &all {
                None => vec![slots.clone()],
                Some(held) => held.keys().map(|slot| *slot..slot.saturating_add(1)).collect(),
            };
            for table in &list.long {
                for slots in &wanted {
                    let places = self.read_long(reader, &run.file, table, slots.clone()).await?;
                    *read_bytes = read_bytes.saturating_add(wide(reader.bucket.len()));
                    add_places(&mut either, places);
                }
            }
            let both = match all {
                None => either,
                Some(held) => held
                    .into_iter()
                    .filter_map(|(slot, parts)| {
                        let both = parts.intersection(either.get(&slot)?);
                        (!both.is_empty()).then_some((slot, both))
                    })
                    .collect(),
            };
            if both.is_empty() {
                return Ok(both);
            }
            all = Some(both);
        }
        Ok(all.unwrap_or_default())
    }

    /// Where a value is in some slots, counted from the run's first. The reader's bucket has the bytes that
    /// told it.
    async fn read_long(
        &self,
        reader: &mut Reader,
        file: &RunFile,
        table: &LongListTable,
        slots: Range<u64>,
    ) -> Result<Vec<(u64, SlotParts)>, StoreError> {
        reader.bucket.clear();
        let open = file.opened_postings(&self.files).await?;
        let range = table.pieces_range(slots.clone());
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let fetched = fetch(&*open.bytes, range, &mut reader.bucket).await;
        fetched.map_err(|error| file.unread(error))?;
        table.read_parts(slots, &reader.bucket).map_err(|cause| file.corrupt_postings(cause))
    }
}

/// What a run says of a value.
#[derive(Debug)]
enum ValuePlaces {
    Slots(Vec<(u64, SlotParts)>),
    Long(LongListTable),
}

fn add_places(
    either: &mut BTreeMap<u64, SlotParts>,
    places: impl IntoIterator<Item = (u64, SlotParts)>,
) {
    for (slot, parts) in places {
        let held = either.entry(slot).or_default();
        *held = if held.is_empty() { parts } else { held.union(&parts) };
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
