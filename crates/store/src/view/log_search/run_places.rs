//! Where the values that are asked for are in one run of the log index.
//!
//! A run is asked once for each value. Values with few places tell all of them at once, and are combined
//! first; long lists are read for the slots that are left of some slots at a time. All of it is done in
//! steps, each linear in what it reads: whoever asks for a thousand values can let others in between,
//! and neither memory nor the time of a step grows with the range.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::try_join_all;
use segment::index::{FoundPostings, IndexKey, LongListTable, PartsUnion, SlotParts};

use crate::error::StoreError;
use crate::files::RunFile;
use crate::log_query::ValueList;
use crate::read::fetch;
use crate::reader::Reader;
use crate::view::View;

/// Slots of long lists that are read at a time, those of all lists added up.
const WINDOW_SLOTS: u64 = 32;
/// Values that are asked for in a step.
const ASKED_AT_ONCE: usize = 32;
/// Long lists that are read in a step.
const TABLES_AT_ONCE: usize = 32;
/// Blocks of values with few places that are combined in a step, unless one slot has more.
const BLOCKS_AT_ONCE: usize = 8 * 1024;

/// Where one of a list of values is.
#[derive(Debug, Default)]
struct ListPlaces {
    /// Of values with few places, by slot, counted from the run's first: what each value says.
    short: BTreeMap<u64, Vec<SlotParts>>,
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
pub(super) struct RunPlaces {
    pub(super) file: Arc<RunFile>,
    /// Those without long lists first: they tell what of the others is to be read.
    lists: Vec<ListPlaces>,
    /// Bytes of memory that they take, about.
    pub(super) bytes: usize,
}

impl RunPlaces {
    /// Whether none of the values that a log needs is in the run.
    pub(super) fn is_nowhere(&self) -> bool {
        self.lists.iter().any(ListPlaces::is_nowhere)
    }

    /// How many slots are looked at together.
    pub(super) fn window_slots(&self) -> u64 {
        let long: usize = self.lists.iter().map(|list| list.long.len()).sum();
        let long = u64::try_from(long).unwrap_or(u64::MAX);
        WINDOW_SLOTS.checked_div(long).unwrap_or(WINDOW_SLOTS).max(1)
    }
}

/// A run that is being asked.
#[derive(Debug)]
pub(super) struct RunQuestion {
    pub(super) file: Arc<RunFile>,
    /// What it said of lists whose values were all asked for.
    lists: Vec<ListPlaces>,
    /// What it said of the next one, and of how many of its values.
    list: ListPlaces,
    asked: usize,
    pub(super) bytes: usize,
}

/// How far a question has come.
#[derive(Debug)]
pub(super) enum QuestionStep {
    /// There are more values.
    Further(RunQuestion),
    /// All of them were asked for.
    Done(RunPlaces),
}

impl RunQuestion {
    pub(super) fn new(file: &Arc<RunFile>) -> Self {
        let (lists, list) = (Vec::new(), ListPlaces::default());
        Self { file: Arc::clone(file), lists, list, asked: 0, bytes: 0 }
    }

    /// Asks for some more values.
    pub(super) async fn step(
        mut self,
        view: &View,
        lists: &[ValueList<'_>],
        reader: &mut Reader,
        read_bytes: &mut u64,
    ) -> Result<QuestionStep, StoreError> {
        let values = lists.get(self.lists.len());
        let count = values.map_or(0, ValueList::len);
        let end = self.asked.saturating_add(ASKED_AT_ONCE).min(count);
        // Hashed for each run: all of a list at once would be long work.
        let some = values.map_or(Vec::new(), |values| values.keys(self.asked..end));
        let asked = some.into_iter().map(|key| view.ask_value(&self.file, key));
        for (found, bytes) in try_join_all(asked).await? {
            reader.counts.count_lookup();
            *read_bytes = read_bytes.saturating_add(bytes);
            match found {
                None => {}
                Some(ValuePlaces::Long(table)) => {
                    self.bytes = self.bytes.saturating_add(table.memory_bytes());
                    self.list.long.push(table);
                }
                Some(ValuePlaces::Slots(slots)) => {
                    for (slot, parts) in slots {
                        self.bytes = self.bytes.saturating_add(parts.memory_bytes());
                        self.list.short.entry(slot).or_default().push(parts);
                    }
                }
            }
        }
        self.asked = end;
        if end < count {
            return Ok(QuestionStep::Further(self));
        }
        let list = mem::take(&mut self.list);
        let is_nowhere = list.is_nowhere();
        self.lists.push(list);
        self.asked = 0;
        if !is_nowhere && self.lists.len() < lists.len() {
            return Ok(QuestionStep::Further(self));
        }
        let Self { file, mut lists, bytes, .. } = self;
        lists.sort_by_key(|list| !list.long.is_empty());
        Ok(QuestionStep::Done(RunPlaces { file, lists, bytes }))
    }
}

/// The search in some slots of a run for the parts of blocks that have one value of each list. Slots are
/// counted from the run's first.
#[derive(Debug)]
pub(super) struct PartsSearch {
    slots: Range<u64>,
    /// What the lists before have in common.
    held: Option<BTreeMap<u64, SlotParts>>,
    /// The list that is combined now, and how far its values were looked at.
    list: usize,
    next_slot: u64,
    tables_read: usize,
    either: BTreeMap<u64, PartsUnion>,
}

impl PartsSearch {
    pub(super) fn new(slots: Range<u64>) -> Self {
        let next_slot = slots.start;
        let either = BTreeMap::new();
        Self { slots, held: None, list: 0, next_slot, tables_read: 0, either }
    }

    /// Combines some more; the parts by slot, once all lists are.
    pub(super) async fn step(
        &mut self,
        view: &View,
        reader: &mut Reader,
        run: &RunPlaces,
        read_bytes: &mut u64,
    ) -> Result<Option<BTreeMap<u64, SlotParts>>, StoreError> {
        let mut blocks_left = BLOCKS_AT_ONCE;
        let mut tables_left = TABLES_AT_ONCE;
        while let Some(list) = run.lists.get(self.list) {
            for (slot, sets) in list.short.range(self.next_slot..self.slots.end) {
                if blocks_left == 0 {
                    self.next_slot = *slot;
                    return Ok(None);
                }
                let either = self.either.entry(*slot).or_default();
                for parts in sets {
                    either.add(parts);
                    blocks_left = blocks_left.saturating_sub(parts.as_slice().len());
                }
            }
            self.next_slot = self.slots.end;
            // Only slots that all lists before have are read.
            let wanted: Vec<Range<u64>> = match &self.held {
                None => vec![self.slots.clone()],
                Some(held) => held.keys().map(|slot| *slot..slot.saturating_add(1)).collect(),
            };
            for table in list.long.iter().skip(self.tables_read) {
                if tables_left == 0 {
                    return Ok(None);
                }
                for slots in &wanted {
                    let places = view.read_long(reader, &run.file, table, slots.clone()).await?;
                    *read_bytes = read_bytes.saturating_add(wide(reader.bucket.len()));
                    for (slot, parts) in places {
                        self.either.entry(slot).or_default().add(&parts);
                    }
                }
                tables_left = tables_left.saturating_sub(1);
                self.tables_read = self.tables_read.saturating_add(1);
            }
            let both = self.combined();
            if both.is_empty() {
                return Ok(Some(both));
            }
            (self.held, self.list) = (Some(both), self.list.saturating_add(1));
            (self.next_slot, self.tables_read) = (self.slots.start, 0);
        }
        Ok(Some(self.held.take().unwrap_or_default()))
    }

    /// What the list has in common with those before it.
    fn combined(&mut self) -> BTreeMap<u64, SlotParts> {
        let either = mem::take(&mut self.either).into_iter();
        let mut either = either.map(|(slot, union)| (slot, union.into_parts()));
        let Some(held) = self.held.take() else { return either.collect() };
        let both = either.by_ref().filter_map(|(slot, parts)| {
            let both = held.get(&slot)?.intersection(&parts);
            (!both.is_empty()).then_some((slot, both))
        });
        both.collect()
    }
}

/// What a run says of a value.
#[derive(Debug)]
pub(in crate::view) enum ValuePlaces {
    Slots(Vec<(u64, SlotParts)>),
    Long(LongListTable),
}

impl View {
    /// What a run says of a value, and how many bytes told it.
    pub(in crate::view) async fn ask_value(
        &self,
        file: &RunFile,
        key: IndexKey,
    ) -> Result<(Option<ValuePlaces>, u64), StoreError> {
        let open = file.opened(&self.files).await?;
        let corrupt = |cause| file.corrupt(cause);
        let mut bytes = Vec::new();
        let bucket = open.run.bucket_range(key);
        fetch(&*open.bytes, bucket, &mut bytes).await.map_err(|error| file.unread(error))?;
        let mut read_bytes = wide(bytes.len());
        let found = match open.run.find_postings(key, &bytes).map_err(corrupt)? {
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
        let open = file.opened(&self.files).await?;
        let range = table.pieces_range(slots.clone());
        if range.is_empty() {
            return Ok(Vec::new());
        }
        reader.counts.count_lookup();
        let fetched = fetch(&*open.bytes, range, &mut reader.bucket).await;
        fetched.map_err(|error| file.unread(error))?;
        table.read_parts(slots, &reader.bucket).map_err(|cause| file.corrupt(cause))
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
