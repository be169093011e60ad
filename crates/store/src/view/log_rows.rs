//! Rows of blocks that may have logs which are asked for, many blocks at a time.

use std::ops::Range;
use std::sync::Arc;

use chain::{BlockNumber, BlockRange};
use futures_util::future::try_join_all;
use segment::index::PostingsBuilder;
use segment::{BlockPlace, RowPosition, RowSet, TxIndex};

use super::{BlockFacts, StoredBlock, View};
use crate::error::StoreError;
use crate::files::{OpenSegment, SegmentFile};
use crate::head::HeadBlock;
use crate::layout::slot_of;
use crate::read::{block_on, fetch};
use crate::reader::Reader;

/// Every transaction of a block.
pub(crate) const ALL: Range<TxIndex> = TxIndex(0)..TxIndex(u64::MAX);

/// Transactions of a block that follow each other, with what was logged in it before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRows {
    /// The block.
    pub block: BlockFacts,
    /// The position of the first of them in the block.
    pub first: TxIndex,
    /// How many logs the block has before the first of them.
    pub logs_before: u64,
    /// The transactions and their receipts, without the senders.
    pub rows: RowSet,
}

/// Rows that are to be read.
#[derive(Debug)]
pub(super) struct RowsPlace {
    number: BlockNumber,
    file: Arc<SegmentFile>,
    open: Arc<OpenSegment>,
    place: BlockPlace,
}

/// Rows as they are stored.
#[derive(Debug)]
pub(super) struct FetchedRows {
    place: RowsPlace,
    bytes: Vec<u8>,
}

impl FetchedRows {
    /// Of which block.
    pub(super) fn number(&self) -> BlockNumber {
        self.place.number
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Reads them.
    pub(super) fn read(self, reader: &mut Reader) -> Result<LoggedRows, StoreError> {
        let RowsPlace { number, file, open, place } = &self.place;
        reader.counts.count_page();
        let read = open.segment.read_block_part(&mut reader.inflater, place, &self.bytes);
        let read = read.map_err(|cause| file.corrupt(cause))?;
        let read = read.and_then(|(position, rows)| LoggedRows::of_position(position, rows));
        read.ok_or(StoreError::NotHeld { number: *number })
    }
}

impl RowsPlace {
    /// How many bytes are read for them.
    pub(super) fn bytes(&self) -> u64 {
        self.place.range.end.saturating_sub(self.place.range.start)
    }
}

impl LoggedRows {
    /// `None` if the receipts are not there.
    fn of_position(position: RowPosition, rows: RowSet) -> Option<Self> {
        let logs_before = position.before?.logs;
        Some(Self {
            block: BlockFacts::of_position(&position),
            first: position.index,
            logs_before,
            rows,
        })
    }

    /// All transactions of a block of the head, canonical or not.
    #[must_use]
    pub fn of_head(head: &HeadBlock) -> Self {
        Self {
            block: BlockFacts::of_head(head),
            first: TxIndex(0),
            logs_before: 0,
            rows: StoredBlock::of_head(head).rows,
        }
    }
}

impl View {
    /// Where some transactions of a sealed block lie; `None` if it has none of them.
    pub(super) async fn place_rows(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        indices: Range<TxIndex>,
    ) -> Result<Option<RowsPlace>, StoreError> {
        let opened = self.open_at(reader, number).await?;
        let (file, open) = opened.ok_or(StoreError::NotHeld { number })?;
        let place = open.segment.find_block_part(number, indices);
        let place = place.ok_or(StoreError::NotHeld { number })?;
        Ok((!place.range.is_empty()).then_some(RowsPlace { number, file, open, place }))
    }

    /// What the log index keeps of blocks that one segment holds.
    pub(crate) fn read_log_keys(&self, range: BlockRange) -> Result<PostingsBuilder, StoreError> {
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut keys = PostingsBuilder::new(slot_of(range.first()));
        for number in range.numbers() {
            let place = block_on(self.place_rows(&mut reader, number, ALL))?;
            for fetched in block_on(fetch_places(place.into_iter().collect()))? {
                keys.push_rows(number, &fetched.read(&mut reader)?.rows)?;
            }
        }
        Ok(keys)
    }
}

/// Fetches rows: all bytes that are not in memory are waited for at the same time.
pub(super) async fn fetch_places(places: Vec<RowsPlace>) -> Result<Vec<FetchedRows>, StoreError> {
    try_join_all(places.into_iter().map(async |place| {
        let mut bytes = Vec::new();
        let fetched = fetch(&*place.open.bytes, place.place.range.clone(), &mut bytes).await;
        fetched.map_err(|error| place.file.unread(error))?;
        Ok(FetchedRows { place, bytes })
    }))
    .await
}
