//! Posting lists: the places at which an address or topic occurs.
//!
//! After the keys of a bucket comes a code in Elias' gamma for each of them, which says that it has one
//! place, a long list, or how many places. Then come the lists in the order of the keys; of a long one
//! its length, since it lies before the bucket.

use std::ops::Range;

use super::bits::{Packer, WIDTH_MAX, mask, read, width_of};
use super::bucket::{Keys, seal, unseal};
use super::error::{CorruptIndex, Side};
use super::file::{BucketPlace, Run, Shape};
use super::key::IndexKey;
use super::list::ListShape;
use super::long_list::{LongList, LongListEntry, LongListPlace, SlotPiece, is_long_count};
use super::part::{SLOT_PLACE_BITS, SlotParts};
use super::writer::IndexValue;
use crate::bytes::{slice, wide};

const KEY_COUNT_BYTES: usize = 4;
/// What the code of a key says if it is not the count of its places and one.
const CODE_SINGLE: u64 = 1;
const CODE_LONG: u64 = 2;
/// Bits that tell of a long list: the width of its table, its bytes, its places.
const LONG_WIDTH_BITS: u32 = 6;
const LONG_BYTES_BITS: u32 = 40;
const LONG_COUNT_BITS: u32 = 40;
const LONG_BITS: u64 = 6 + 40 + 40;

/// The places of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundPostings {
    /// All of them, slot by slot: slots are counted from the file's first.
    Slots(Vec<(u64, SlotParts)>),
    /// Many: they are to be read where this says.
    Long(LongListPlace),
}

/// A key with all of its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The key.
    pub key: IndexKey,
    /// Its places, slot by slot: slots are counted from the file's first.
    pub slots: Vec<(u64, SlotParts)>,
}

impl Run {
    /// The places of `key`, given the bytes of [`Self::bucket_range`]; `None` if it certainly has none.
    pub fn find_postings(
        &self,
        key: IndexKey,
        bucket_bytes: &[u8],
    ) -> Result<Option<FoundPostings>, CorruptIndex> {
        let number = self.shape.bucket_of(key.number());
        let place = self.expect_bucket(number, bucket_bytes, false)?;
        find_in(self, number, &place, key, bucket_bytes)
    }

    /// Every posting of a bucket, which is given with its long lists.
    pub fn posting_entries(
        &self,
        bucket: u64,
        bytes: &[u8],
    ) -> Result<Vec<KeyEntry>, CorruptIndex> {
        let mut lists = Vec::new();
        PlaceList::decode(self, bucket, bytes, &mut lists)?;
        let entry = |(key, list): (u64, PlaceList)| {
            let slots = match list {
                PlaceList::Short(places) => by_slot(&places),
                PlaceList::Long(list) => {
                    let parts = |it: &SlotPiece| Ok((it.slot, SlotParts::of(&it.places()?)));
                    list.pieces.iter().map(parts).collect::<Result<_, CorruptIndex>>()?
                }
            };
            Ok(KeyEntry { key: IndexKey::from_number(key), slots })
        };
        lists.into_iter().map(entry).collect()
    }
}

/// The places of a key in a bucket of a run.
pub(super) fn find_in(
    run: &Run,
    number: u64,
    place: &BucketPlace,
    key: IndexKey,
    bytes: &[u8],
) -> Result<Option<FoundPostings>, CorruptIndex> {
    let bucket = ListBucket::open(run, number, place, bytes)?;
    let index = bucket.keys.find(key.number())?;
    if index.is_empty() {
        return Ok(None);
    }
    let lists = bucket.list_positions(index.start)?;
    let Some(list) = lists.last() else { return Ok(None) };
    Ok(Some(match bucket.read_list(*list)? {
        ListPlace::Short(places) => FoundPostings::Slots(by_slot(&places)),
        ListPlace::Long(place) => FoundPostings::Long(place),
    }))
}

/// Places slot by slot.
fn by_slot(places: &[u64]) -> Vec<(u64, SlotParts)> {
    let slots = chunks(places).map(|(slot, inside)| (slot, SlotParts::of(&inside)));
    slots.collect()
}

/// The slots of places, each with the places inside it.
fn chunks(places: &[u64]) -> impl Iterator<Item = (u64, Vec<u64>)> {
    let slot_of = |place: &u64| place >> SLOT_PLACE_BITS;
    let slots = places.chunk_by(move |one, other| slot_of(one) == slot_of(other));
    slots.map(move |places| {
        let inside = places.iter().map(|place| place & mask(SLOT_PLACE_BITS));
        (places.first().map_or(0, slot_of), inside.collect())
    })
}

/// The places of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaceList {
    /// All of them, counted from the first of the file, in order.
    Short(Vec<u64>),
    Long(LongList),
}

impl PlaceList {
    /// The list of places that come in order, in a file of `slot_count` slots.
    pub(super) fn new(places: Vec<u64>, slot_count: u64) -> Self {
        if is_long_count(wide(places.len()), slot_count) {
            Self::Long(LongList { pieces: split(&places, 0) })
        } else {
            Self::Short(places)
        }
    }

    fn into_pieces(self, first_slot: u64) -> Vec<SlotPiece> {
        match self {
            Self::Short(places) => split(&places, first_slot),
            Self::Long(mut list) => {
                for piece in &mut list.pieces {
                    piece.slot = piece.slot.saturating_add(first_slot);
                }
                list.pieces
            }
        }
    }

    fn into_places(self) -> Result<Vec<u64>, CorruptIndex> {
        let list = match self {
            Self::Short(places) => return Ok(places),
            Self::Long(list) => list,
        };
        let mut places = Vec::new();
        for piece in list.pieces {
            let first = piece.slot << SLOT_PLACE_BITS;
            places.extend(piece.places()?.into_iter().map(|place| place.saturating_add(first)));
        }
        Ok(places)
    }
}

fn split(places: &[u64], first_slot: u64) -> Vec<SlotPiece> {
    let piece =
        |(slot, inside): (u64, Vec<u64>)| SlotPiece::new(slot.saturating_add(first_slot), &inside);
    chunks(places).map(piece).collect()
}

impl IndexValue for PlaceList {
    const IS_UNIQUE: bool = true;

    fn rank(&self) -> u64 {
        0
    }

    fn item_count(&self) -> u64 {
        match self {
            Self::Short(places) => wide(places.len()),
            Self::Long(list) => list.count(),
        }
    }

    fn encode(
        shape: &Shape,
        bucket: u64,
        entries: &[(u64, Self)],
        out: &mut Vec<u8>,
    ) -> (u64, u64) {
        let begin = out.len();
        let mut long_entries = Vec::new();
        for (_, list) in entries {
            if let Self::Long(list) = list {
                long_entries.push(list.put(shape.span.slot_count(), out));
            }
        }
        let bucket_at = out.len();
        out.extend(u32::try_from(entries.len()).unwrap_or(u32::MAX).to_le_bytes());
        let mut packer = Packer::new(out);
        let keys = entries.iter().map(|(key, _)| *key);
        shape.list_keys(wide(entries.len())).put(shape.key_min(bucket), keys, &mut packer);
        for (_, list) in entries {
            let code = match list {
                Self::Long(_) => CODE_LONG,
                Self::Short(places) if places.len() == 1 => CODE_SINGLE,
                Self::Short(places) => wide(places.len()).saturating_add(1),
            };
            put_gamma(code, &mut packer);
        }
        let mut long_entries = long_entries.into_iter();
        for (_, list) in entries {
            match list {
                Self::Short(places) => {
                    ListShape::new(wide(places.len()), shape.value_bits).put(places, &mut packer);
                }
                Self::Long(_) => {
                    let Some(entry) = long_entries.next() else { continue };
                    packer.push(entry.width.into(), LONG_WIDTH_BITS);
                    packer.push(entry.bytes, LONG_BYTES_BITS);
                    packer.push(entry.count, LONG_COUNT_BITS);
                }
            }
        }
        packer.finish();
        seal(bucket, bucket_at, out);
        let bucket_bytes = wide(out.len().saturating_sub(bucket_at));
        (wide(bucket_at.saturating_sub(begin)), bucket_bytes)
    }

    fn decode(
        run: &Run,
        bucket: u64,
        bytes: &[u8],
        entries: &mut Vec<(u64, Self)>,
    ) -> Result<(), CorruptIndex> {
        let place = run.expect_bucket(bucket, bytes, true)?;
        let start = place.long_start;
        let inside = |range: &Range<u64>| {
            slice(bytes, &(range.start.saturating_sub(start)..range.end.saturating_sub(start)))
        };
        let opened = ListBucket::open(run, bucket, &place, inside(&place.range))?;
        let mut keys: Vec<u64> = Vec::new();
        opened.keys.for_each(run.shape.key_min(bucket.saturating_add(1)), |_, key| {
            if keys.last().is_some_and(|last| *last >= key) {
                return Err(opened.keys.fault("a key does not come after the one before"));
            }
            keys.push(key);
            Ok(())
        })?;
        let positions = opened.list_positions(opened.keys.layout.key_count)?;
        for (key, position) in keys.into_iter().zip(positions) {
            let list = match opened.read_list(position)? {
                ListPlace::Short(places) => Self::Short(places),
                ListPlace::Long(place) => {
                    let table = place.read_table(inside(&place.table_range()))?;
                    let slots = 0..run.span().slot_count();
                    let range = table.pieces_range(slots.clone());
                    let list = LongList { pieces: table.read_pieces(slots, inside(&range))? };
                    if list.count() != place.entry.count {
                        let (part, at) = ("long list at byte", place.range().start);
                        let reason = "its pieces have other places than its bucket counts";
                        return Err(CorruptIndex::Content { part, at, reason });
                    }
                    Self::Long(list)
                }
            };
            entries.push((key, list));
        }
        Ok(())
    }

    /// Of long lists that stay long the pieces are copied as they are.
    fn merged(
        shape: &Shape,
        _: u64,
        left: Option<Self>,
        right: Option<Self>,
    ) -> Result<Self, (Side, CorruptIndex)> {
        let slot_count = shape.span.slot_count();
        let sides = [(Side::Left, left, 0), (Side::Right, right, slot_count / 2)];
        let lists = sides.iter().filter_map(|(_, list, _)| list.as_ref());
        let count = lists.fold(0_u64, |sum, list| sum.saturating_add(list.item_count()));
        if is_long_count(count, slot_count) {
            let sides = sides.into_iter().filter_map(|(_, list, first)| Some((list?, first)));
            let pieces = sides.flat_map(|(list, first_slot)| list.into_pieces(first_slot));
            return Ok(Self::Long(LongList { pieces: pieces.collect() }));
        }
        let mut places = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for (side, list, first_slot) in sides {
            let first = first_slot << SLOT_PLACE_BITS;
            let own = list.map_or(Ok(Vec::new()), Self::into_places);
            let own = own.map_err(|cause| (side, cause))?;
            places.extend(own.into_iter().map(|place| place.saturating_add(first)));
        }
        Ok(Self::Short(places))
    }
}

fn put_gamma(number: u64, packer: &mut Packer<'_>) {
    let rest_bits = width_of(number).saturating_sub(1);
    packer.push_unary(rest_bits.into());
    packer.push(number, rest_bits);
}

/// The number whose code begins at bit `at`, and where the next one does.
fn read_gamma(bytes: &[u8], at: u64) -> Option<(u64, u64)> {
    let left = wide(bytes.len()).checked_mul(8)?.checked_sub(at)?;
    let width = u32::try_from(left).unwrap_or(u32::MAX).min(WIDTH_MAX);
    let rest_bits = read(bytes, at, width)?.trailing_zeros();
    if rest_bits >= width {
        return None;
    }
    let rest_at = at.checked_add(rest_bits.into())?.checked_add(1)?;
    let rest = read(bytes, rest_at, rest_bits)?;
    let number = 1_u64.checked_shl(rest_bits)? | rest;
    Some((number, rest_at.checked_add(rest_bits.into())?))
}

/// Where the places of a key are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListPlace {
    Short(Vec<u64>),
    Long(LongListPlace),
}

/// Where the list of a key is in the bits of its bucket.
#[derive(Clone, Copy, Debug)]
struct ListPosition {
    /// How many places it has; `None` if the list is long.
    count: Option<u64>,
    at: u64,
    /// Bytes of the long lists before it.
    long_offset: u64,
}

/// A bucket of posting lists whose checksum is right.
#[derive(Debug)]
struct ListBucket<'a> {
    shape: &'a Shape,
    place: &'a BucketPlace,
    keys: Keys<'a>,
}

impl<'a> ListBucket<'a> {
    fn open(
        run: &'a Run,
        number: u64,
        place: &'a BucketPlace,
        bytes: &'a [u8],
    ) -> Result<Self, CorruptIndex> {
        let shape = &run.shape;
        if !shape.subject.has_lists() {
            let expected = "posting lists";
            return Err(CorruptIndex::OtherValues { expected, found: shape.subject });
        }
        let at = place.range.start;
        let fault = |reason| CorruptIndex::Content { part: "bucket at byte", at, reason };
        let body = unseal("bucket at byte", at, number, bytes)?;
        let (key_count, bits) = body
            .split_first_chunk::<KEY_COUNT_BYTES>()
            .ok_or_else(|| fault("it has no count of keys"))?;
        let key_count = u64::from(u32::from_le_bytes(*key_count));
        let key_min = shape.key_min(number);
        let key_span = shape.key_min(number.saturating_add(1)).saturating_sub(key_min);
        // Otherwise a key would take two bits of a file, and many times that of memory.
        if key_count > key_span.min(run.key_count()) {
            return Err(fault("it has more keys than there can be"));
        }
        let layout = shape.list_keys(key_count);
        if layout.end() > wide(bits.len()).saturating_mul(8) {
            return Err(fault("its keys do not fit into it"));
        }
        Ok(Self { shape, place, keys: Keys { layout, bits, key_min, at } })
    }

    /// Where the lists of the keys up to this one are.
    fn list_positions(&self, last: u64) -> Result<Vec<ListPosition>, CorruptIndex> {
        let cut_short = || self.keys.fault("its lists are cut short");
        let mut at = self.keys.layout.end();
        let mut codes = Vec::new();
        for _ in 0..self.keys.layout.key_count {
            let (code, next) = read_gamma(self.keys.bits, at).ok_or_else(cut_short)?;
            codes.push(code);
            at = next;
        }
        let mut positions = Vec::new();
        let mut long_offset = 0_u64;
        for (code, _) in codes.into_iter().zip(0..=last) {
            let count = match code {
                CODE_LONG => None,
                CODE_SINGLE => Some(1),
                more => Some(more.saturating_sub(1)),
            };
            positions.push(ListPosition { count, at, long_offset });
            let bits = if let Some(count) = count {
                if is_long_count(count, self.shape.span.slot_count()) {
                    return Err(self.keys.fault("a list that should be long lies in it"));
                }
                ListShape::new(count, self.shape.value_bits).bits()
            } else {
                let entry = self.read_long(at).ok_or_else(cut_short)?;
                long_offset = long_offset.saturating_add(entry.bytes);
                LONG_BITS
            };
            at = at.saturating_add(bits);
        }
        Ok(positions)
    }

    fn read_list(&self, position: ListPosition) -> Result<ListPlace, CorruptIndex> {
        let ListPosition { count, at, long_offset } = position;
        let fault = || self.keys.fault("its lists are not those of a writer");
        if let Some(count) = count {
            let places = ListShape::new(count, self.shape.value_bits).read(self.keys.bits, at);
            return places.map(ListPlace::Short).ok_or_else(fault);
        }
        let entry = self.read_long(at).ok_or_else(fault)?;
        let start = self.place.long_start.saturating_add(long_offset);
        if start.saturating_add(entry.bytes) > self.place.range.start {
            return Err(self.keys.fault("its long lists are longer than the directory says"));
        }
        let slot_count = self.shape.span.slot_count();
        Ok(ListPlace::Long(LongListPlace { start, slot_count, entry }))
    }

    fn read_long(&self, at: u64) -> Option<LongListEntry> {
        let bytes_at = at.checked_add(LONG_WIDTH_BITS.into())?;
        let count_at = bytes_at.checked_add(LONG_BYTES_BITS.into())?;
        let entry = LongListEntry {
            width: u32::try_from(read(self.keys.bits, at, LONG_WIDTH_BITS)?).ok()?,
            bytes: read(self.keys.bits, bytes_at, LONG_BYTES_BITS)?,
            count: read(self.keys.bits, count_at, LONG_COUNT_BITS)?,
        };
        is_long_count(entry.count, self.shape.span.slot_count()).then_some(entry)
    }
}
