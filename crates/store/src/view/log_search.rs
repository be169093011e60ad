//! Blocks that may have logs which are asked for, in the order of the blocks.
//!
//! A search goes on in steps of a fraction of a millisecond, and holds no more than a step needs but
//! for the places of values, which it counts.

mod run_places;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use segment::index::{BlockParts, RunSubject, transactions_of};
use segment::{SLOT_BLOCKS, TxIndex};

use super::View;
use super::log_rows::{ALL, FetchedRows, LoggedRows, RowsPlace, fetch_places};
use crate::error::StoreError;
use crate::files::RunFile;
use crate::layout::{overlap, slot_of};
use crate::log_query::{BloomQuery, LogQuery, ValueList};
use crate::reader::Reader;

use run_places::{PartsSearch, QuestionStep, RunPlaces, RunQuestion};

/// Blocks without an index that become candidates at a time.
const SCAN_BLOCKS: u64 = 64;
/// Rows are fetched of so many blocks at a time, if they are not too long.
const BATCH_BLOCKS: usize = 32;
/// Bytes of rows that are fetched at a time, unless one block has more.
const BATCH_BYTES_MAX: u64 = 512 * 1024;

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

/// What is known of the run of the log index that has the next block.
#[derive(Debug, Default)]
enum RunState {
    /// None is open.
    #[default]
    None,
    /// It is being asked.
    Asked(RunQuestion),
    /// What it says.
    Known(RunPlaces),
}

impl RunState {
    /// Whether it is about this run.
    fn is_of(&self, run: &Arc<RunFile>) -> bool {
        match self {
            Self::None => false,
            Self::Asked(question) => Arc::ptr_eq(&question.file, run),
            Self::Known(places) => Arc::ptr_eq(&places.file, run),
        }
    }
}

/// A search in progress. What it found comes in the order of blocks.
#[derive(Debug)]
pub struct LogSearch<'a> {
    view: &'a View,
    query: &'a LogQuery,
    /// Made for the first block of the head, in steps.
    for_blooms: BloomQuery,
    is_hashed: bool,
    lists: Vec<ValueList<'a>>,
    /// The first block that has not been looked for.
    next: u64,
    end: u64,
    run: RunState,
    /// The slots of the run that are looked at, and the block before which they end.
    window: Option<(PartsSearch, u64)>,
    candidates: VecDeque<CandidateBlock>,
    /// Rows of candidates, as they are stored.
    fetched: VecDeque<FetchedRows>,
    /// The block before which the search ends, because too many have no index.
    unindexed_end: Option<BlockNumber>,
    read_bytes: u64,
    /// Whether far runs were asked all at once.
    is_asked_ahead: bool,
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
        let lists = query.lists();
        // Without values every block is read, and no index is asked.
        let unindexed_end = if lists.is_empty() {
            None
        } else {
            find_end(self.sealed.unindexed(), range, unindexed_max)
        };
        LogSearch {
            view: self,
            query,
            for_blooms: BloomQuery::default(),
            is_hashed: false,
            lists,
            next: range.first(),
            end: unindexed_end.map_or(range.end(), BlockNumber::get),
            run: RunState::None,
            window: None,
            candidates: VecDeque::new(),
            fetched: VecDeque::new(),
            unindexed_end,
            read_bytes: 0,
            is_asked_ahead: false,
        }
    }
}

impl LogSearch<'_> {
    /// All blocks below this one have been found, read, or have no such log.
    #[must_use]
    pub fn searched_to(&self) -> BlockNumber {
        let fetched = self.fetched.front().map(FetchedRows::number);
        let first = fetched.or_else(|| self.candidates.front().map(|candidate| candidate.number));
        first.unwrap_or(BlockNumber(self.next))
    }

    /// Bytes of memory that the search holds between two steps, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let places = match &self.run {
            RunState::None => 0,
            RunState::Asked(question) => question.bytes,
            RunState::Known(run) => run.bytes,
        };
        let fetched = self.fetched.iter().map(FetchedRows::len);
        let candidates = size_of::<CandidateBlock>().saturating_mul(self.candidates.len());
        fetched.fold(places.saturating_add(candidates), usize::saturating_add)
    }

    /// Before which block the search ends because too many have no index, which is known before anything
    /// is read; `None` if it goes to the end of its range.
    #[must_use]
    pub fn unindexed_end(&self) -> Option<BlockNumber> {
        self.unindexed_end
    }

    /// Bytes of blocks and of the index that were read so far.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Goes on by a step, and reads the next block that may have such logs, if the step came to one.
    /// Blocks come in their order; one may come in several pieces, which follow each other. Whoever asks
    /// can let others in between two steps. `None` at the end.
    pub async fn next_rows(
        &mut self,
        reader: &mut Reader,
    ) -> Result<Option<Vec<LoggedRows>>, StoreError> {
        if self.fetched.is_empty() && self.candidates.is_empty() {
            if self.next >= self.end {
                return Ok(None);
            }
            self.look_further(reader).await?;
        }
        if self.fetched.is_empty() && self.may_gather() {
            self.look_further(reader).await?;
            return Ok(Some(Vec::new()));
        }
        if self.fetched.is_empty() {
            if let Some(candidate) = self.candidates.front()
                && let Some(head) = self.view.unsealed_block(candidate.number)
            {
                self.candidates.pop_front();
                return Ok(Some(vec![LoggedRows::of_head(head)]));
            }
            self.fetch_some(reader).await?;
        }
        let mut rows = Vec::new();
        let block = self.fetched.front().map(FetchedRows::number);
        while let Some(next) = self.fetched.pop_front_if(|it| Some(it.number()) == block) {
            rows.push(next.read(reader)?);
        }
        Ok(Some(rows))
    }

    /// Whether more candidates are looked for before rows of these are fetched: where files are far away,
    /// a round trip for the hits of each run would add up.
    fn may_gather(&self) -> bool {
        let first = self.candidates.front().map(|candidate| candidate.number);
        self.view.sealed.is_union()
            && self.candidates.len() < BATCH_BLOCKS
            && self.next < self.end
            && first.is_some_and(|number| self.view.unsealed_block(number).is_none())
    }

    /// Fetches the rows of some candidates, which are sealed.
    async fn fetch_some(&mut self, reader: &mut Reader) -> Result<(), StoreError> {
        let next = self.candidates.iter().take(BATCH_BLOCKS).map(|candidate| candidate.number);
        self.view.open_ahead(next).await;
        let mut places: Vec<RowsPlace> = Vec::new();
        let (mut bytes, mut count) = (0_u64, 0_usize);
        while let Some(candidate) = self.candidates.front().copied() {
            let is_head = self.view.unsealed_block(candidate.number).is_some();
            if bytes > BATCH_BYTES_MAX || count >= BATCH_BLOCKS || is_head {
                break;
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
        self.fetched = fetch_places(places).await?.into();
        Ok(())
    }

    /// Adds the candidates among the next blocks: of some slots, or of some blocks without an index.
    async fn look_further(&mut self, reader: &mut Reader) -> Result<(), StoreError> {
        let number = BlockNumber(self.next);
        if let Some(block) = self.view.unsealed_block(number) {
            if !self.is_hashed {
                self.is_hashed = self.for_blooms.hash_some(self.query);
                return Ok(());
            }
            self.next = self.next.saturating_add(1);
            if self.for_blooms.may_be_in(&block.block().header.logs_bloom) {
                self.candidates.push_back(CandidateBlock { number, rows: CandidateRows::All });
            }
            return Ok(());
        }
        let sealed = self.view.sealed.find_receipts(number);
        let sealed = sealed.ok_or(StoreError::NotHeld { number })?;
        let end = self.end.min(sealed.end()).min(self.view.sealed.layer_end(number));
        if self.lists.is_empty() {
            self.add_all(end.min(self.next.saturating_add(SCAN_BLOCKS)));
            return Ok(());
        }
        if !self.is_asked_ahead {
            self.is_asked_ahead = true;
            let range = BlockRange::from_ends(number, BlockNumber(self.end.saturating_sub(1)));
            if let Some(range) = range {
                self.view.ask_ahead(&self.lists, range).await;
            }
        }
        let slot = slot_of(number);
        let piece = self.view.sealed.find(number);
        let run = piece.and_then(|piece| self.view.sealed.run_at(RunSubject::Logs, piece));
        let Some(file) = run else {
            self.add_unindexed(number, end);
            return Ok(());
        };
        if !self.run.is_of(file) {
            self.run = RunState::Asked(RunQuestion::new(file));
        }
        let run = match std::mem::take(&mut self.run) {
            RunState::Asked(question) => {
                let step =
                    question.step(self.view, &self.lists, reader, &mut self.read_bytes).await?;
                self.run = match step {
                    QuestionStep::Further(question) => RunState::Asked(question),
                    QuestionStep::Done(places) => RunState::Known(places),
                };
                return Ok(());
            }
            RunState::Known(places) => places,
            RunState::None => return Ok(()),
        };
        let looked = self.look_in(&run, slot, end, reader).await;
        self.run = RunState::Known(run);
        looked
    }

    /// Adds the candidates among the next blocks of a run, before `end`.
    async fn look_in(
        &mut self,
        run: &RunPlaces,
        slot: u64,
        end: u64,
        reader: &mut Reader,
    ) -> Result<(), StoreError> {
        let span = run.file.entry.span;
        if run.is_nowhere() {
            self.next = end.min(span.end_slot().saturating_mul(SLOT_BLOCKS));
            return Ok(());
        }
        let first_slot = span.first_slot();
        let (search, end) = self.window.get_or_insert_with(|| {
            let window_end = span.end_slot().min(slot.saturating_add(run.window_slots()));
            let end = end.min(window_end.saturating_mul(SLOT_BLOCKS));
            let end_slot = slot_of(BlockNumber(end.saturating_sub(1))).saturating_add(1);
            let slots = slot.saturating_sub(first_slot)..end_slot.saturating_sub(first_slot);
            (PartsSearch::new(slots), end)
        });
        let found = search.step(self.view, reader, run, &mut self.read_bytes).await?;
        let (Some(found), end) = (found, *end) else { return Ok(()) };
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
        (self.next, self.window) = (end, None);
        Ok(())
    }

    /// Adds some blocks that no index tells of, from the next one on and before `end`.
    fn add_unindexed(&mut self, number: BlockNumber, end: u64) {
        let end = end.min(self.next.saturating_add(SCAN_BLOCKS));
        self.add_all(end.min(slot_of(number).saturating_add(1).saturating_mul(SLOT_BLOCKS)));
    }

    fn add_all(&mut self, end: u64) {
        let all = (self.next..end)
            .map(|number| CandidateBlock { number: BlockNumber(number), rows: CandidateRows::All });
        self.candidates.extend(all);
        self.next = end;
    }
}

/// The first block of a range that is more than `count_max` of these.
fn find_end(blocks: &[BlockRange], range: BlockRange, count_max: u64) -> Option<BlockNumber> {
    let mut left = count_max;
    for blocks in blocks.iter().filter_map(|blocks| overlap(*blocks, range)) {
        if blocks.count() > left {
            return Some(BlockNumber(blocks.first().saturating_add(left)));
        }
        left = left.saturating_sub(blocks.count());
    }
    None
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
