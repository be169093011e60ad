//! Long lists: the places of a key that many blocks have, slot by slot.
//!
//! A table tells how many bytes each slot of the file has; the pieces follow, one a slot, each with a
//! checksum. So a query over few slots reads the table and few pieces, and merging two lists copies
//! their pieces. Where a bit for every place of the slot takes less than the list, there is a bitmap.

use std::ops::Range;

use super::bits::{Packer, WIDTH_MAX, read, width_of, words};
use super::bucket::{CHECKSUM_BYTES, seal, unseal};
use super::error::CorruptIndex;
use super::list::ListShape;
use super::part::{SLOT_PLACE_BITS, SlotParts};
use crate::bytes::{slice, wide};

/// Bytes of all places of a slot, a bit each.
const BITMAP_BYTES: usize = 1 << (SLOT_PLACE_BITS - 3);
const COUNT_BYTES: usize = 3;

/// Whether a list of `count` places in a file of `slot_count` slots is long: an average slot has enough of
/// them to be worth a piece.
pub(super) fn is_long_count(count: u64, slot_count: u64) -> bool {
    count > slot_count.saturating_mul(16).saturating_add(512)
}

/// The places of one slot, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotPiece {
    /// Which slot of the file.
    pub(super) slot: u64,
    pub(super) count: u64,
    pub(super) bytes: Vec<u8>,
}

impl SlotPiece {
    /// The piece of these places of a slot, which come in order.
    pub(super) fn new(slot: u64, places: &[u64]) -> Self {
        let count = wide(places.len());
        let mut bytes: Vec<u8> = count.to_le_bytes().into_iter().take(COUNT_BYTES).collect();
        let shape = ListShape::new(count, SLOT_PLACE_BITS);
        if is_bitmap(shape) {
            let mut bitmap = vec![0_u8; BITMAP_BYTES];
            for place in places {
                let byte = usize::try_from(place / 8).ok();
                if let Some(byte) = byte.and_then(|byte| bitmap.get_mut(byte)) {
                    *byte |= 1 << (place % 8);
                }
            }
            bytes.extend(bitmap);
        } else {
            let mut packer = Packer::new(&mut bytes);
            shape.put(places, &mut packer);
            packer.finish();
        }
        seal(0, 0, &mut bytes);
        Self { slot, count, bytes }
    }

    /// A piece that was read, which begins at byte `at` of its file.
    fn parse(slot: u64, at: u64, bytes: &[u8]) -> Result<Self, CorruptIndex> {
        let fault = |reason| CorruptIndex::Content { part: "piece at byte", at, reason };
        let body = unseal("piece at byte", at, 0, bytes)?;
        let count = body.first_chunk::<COUNT_BYTES>().ok_or_else(|| fault("it has no count"))?;
        let [low, middle, high] = *count;
        let count = u64::from(u32::from_le_bytes([low, middle, high, 0]));
        let expected = ListShape::new(count, SLOT_PLACE_BITS).bits().div_ceil(8);
        let expected = wide(COUNT_BYTES).saturating_add(expected.min(wide(BITMAP_BYTES)));
        if count == 0 || wide(body.len()) != expected {
            return Err(fault("its length is not that of its places"));
        }
        Ok(Self { slot, count, bytes: bytes.to_vec() })
    }

    /// The places, in order.
    pub(super) fn places(&self) -> Result<Vec<u64>, CorruptIndex> {
        let end = self.bytes.len().saturating_sub(CHECKSUM_BYTES);
        let body = self.bytes.get(COUNT_BYTES..end).unwrap_or_default();
        let shape = ListShape::new(self.count, SLOT_PLACE_BITS);
        let places = if is_bitmap(shape) {
            let places = bitmap_places(body);
            (wide(places.len()) == self.count).then_some(places)
        } else {
            shape.read(body, 0)
        };
        places.ok_or(CorruptIndex::Content {
            part: "piece of slot",
            at: self.slot,
            reason: "its places are not those of a writer",
        })
    }
}

/// Whether a list of this shape takes more than a bit for every place of its slot.
fn is_bitmap(shape: ListShape) -> bool {
    shape.bits() > wide(BITMAP_BYTES).saturating_mul(8)
}

fn bitmap_places(bitmap: &[u8]) -> Vec<u64> {
    let mut places = Vec::new();
    for (mut word, first) in words(bitmap).zip((0_u64..).step_by(64)) {
        while word != 0 {
            places.push(first.saturating_add(word.trailing_zeros().into()));
            word &= word.wrapping_sub(1);
        }
    }
    places
}

/// A long list in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LongList {
    /// In the order of their slots.
    pub(super) pieces: Vec<SlotPiece>,
}

/// What a bucket says of a long list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongListEntry {
    /// Bits of the length of a piece in the table.
    pub(super) width: u32,
    /// Table and pieces.
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl LongList {
    pub(super) fn count(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, piece| piece.count.saturating_add(sum))
    }

    /// Appends the list, for a file of `slot_count` slots.
    pub(super) fn put(&self, slot_count: u64, out: &mut Vec<u8>) -> LongListEntry {
        let begin = out.len();
        let length = |piece: &SlotPiece| wide(piece.bytes.len());
        let width = width_of(self.pieces.iter().map(length).max().unwrap_or(0));
        let mut packer = Packer::new(out);
        let mut pieces = self.pieces.iter().peekable();
        for slot in 0..slot_count {
            let piece = pieces.next_if(|piece| piece.slot == slot);
            packer.push(piece.map_or(0, length), width);
        }
        packer.finish();
        seal(0, begin, out);
        self.pieces.iter().for_each(|piece| out.extend_from_slice(&piece.bytes));
        let bytes = wide(out.len().saturating_sub(begin));
        LongListEntry { width, bytes, count: self.count() }
    }
}

/// Where a long list lies in its file, and how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongListPlace {
    pub(super) start: u64,
    pub(super) slot_count: u64,
    pub(super) entry: LongListEntry,
}

impl LongListPlace {
    /// The whole list in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.entry.bytes)
    }

    /// The bytes of the file that tell where each slot's piece is.
    #[must_use]
    pub fn table_range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.table_bytes())
    }

    fn table_bytes(&self) -> u64 {
        let bits = self.slot_count.saturating_mul(self.entry.width.into());
        bits.div_ceil(8).saturating_add(4)
    }

    /// Reads the table from the bytes of [`Self::table_range`].
    pub fn read_table(&self, bytes: &[u8]) -> Result<LongListTable, CorruptIndex> {
        let fault =
            |reason| CorruptIndex::Content { part: "long list at byte", at: self.start, reason };
        let (expected, found) = (self.table_bytes(), wide(bytes.len()));
        if found != expected || self.entry.width > WIDTH_MAX {
            return Err(CorruptIndex::Length { part: "table of a long list", expected, found });
        }
        let table = unseal("table of the long list at byte", self.start, 0, bytes)?;
        let mut at = self.table_range().end;
        let mut starts = vec![at];
        for slot in 0..self.slot_count {
            let bit = slot.saturating_mul(self.entry.width.into());
            let length = read(table, bit, self.entry.width);
            at = at.saturating_add(length.ok_or_else(|| fault("its table is cut short"))?);
            starts.push(at);
        }
        if at != self.range().end {
            return Err(fault("its pieces do not fill it"));
        }
        Ok(LongListTable { starts })
    }
}

/// Where the piece of each slot lies in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongListTable {
    /// For each slot of the file, and after the last one, the end.
    starts: Vec<u64>,
}

impl LongListTable {
    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(size_of_val(self.starts.as_slice()))
    }

    /// The bytes of the file that have the pieces of these slots, counted from the file's first.
    #[must_use]
    pub fn pieces_range(&self, slots: Range<u64>) -> Range<u64> {
        self.start(slots.start)..self.start(slots.end)
    }

    fn start(&self, slot: u64) -> u64 {
        let last = self.starts.last().copied().unwrap_or(0);
        usize::try_from(slot).ok().and_then(|slot| self.starts.get(slot)).copied().unwrap_or(last)
    }

    /// The parts of the blocks of each of these slots, from the bytes of [`Self::pieces_range`].
    /// Slots without any are left out.
    pub fn read_parts(
        &self,
        slots: Range<u64>,
        bytes: &[u8],
    ) -> Result<Vec<(u64, SlotParts)>, CorruptIndex> {
        let pieces = self.read_pieces(slots, bytes)?;
        pieces.iter().map(|piece| Ok((piece.slot, SlotParts::of(&piece.places()?)))).collect()
    }

    pub(super) fn read_pieces(
        &self,
        slots: Range<u64>,
        bytes: &[u8],
    ) -> Result<Vec<SlotPiece>, CorruptIndex> {
        let range = self.pieces_range(slots.clone());
        let expected = range.end.saturating_sub(range.start);
        let found = wide(bytes.len());
        if expected != found {
            return Err(CorruptIndex::Length { part: "pieces of a long list", expected, found });
        }
        let offset = |slot| self.start(slot).saturating_sub(range.start);
        let mut pieces = Vec::new();
        for slot in slots {
            let piece = offset(slot)..offset(slot.saturating_add(1));
            if !piece.is_empty() {
                pieces.push(SlotPiece::parse(slot, self.start(slot), slice(bytes, &piece))?);
            }
        }
        Ok(pieces)
    }
}
