//! One bucket: sorted keys, how many places each has, and the places of all but long lists.
//!
//! Knows: the bits of a bucket, given which prefixes belong to it.
//! Never knows: where the bucket is in a file, what a place means.
//!
//! A key is stored as its distance from the bucket's lowest prefix, in Elias-Fano form. A code in
//! Elias' gamma tells of each key that it has one place, a long list, or so many places. Then come the
//! lists in the order of the keys; of a long one its length, since it lies before the bucket.

use super::error::CorruptPostings;
use super::list::ListShape;
use super::long_list::{LongList, LongListEntry, SlotPiece, is_long_count};
use super::part::SLOT_PLACE_BITS;
use crate::bytes::wide;
use crate::lookup::Side;
use crate::lookup::bits::{Packer, WIDTH_MAX, find_zero, mask, read, width_of};

const KEY_COUNT_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// What the code of a key says if it is not the count of its places and one.
const CODE_SINGLE: u64 = 1;
const CODE_LONG: u64 = 2;
/// Bits that tell of a long list: the width of its table, its bytes, its places.
const LONG_WIDTH_BITS: u32 = 6;
const LONG_BYTES_BITS: u32 = 40;
const LONG_COUNT_BITS: u32 = 40;
const LONG_BITS: u64 = 6 + 40 + 40;

/// The places of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaceList {
    /// All of them, counted from the first of the file, in order.
    Short(Vec<u64>),
    Long(LongList),
}

impl PlaceList {
    /// The list of places that come in order, in a file of so many slots.
    pub(super) fn new(places: Vec<u64>, slot_count: u64) -> Self {
        if is_long_count(wide(places.len()), slot_count) {
            Self::Long(LongList { pieces: split(&places, 0) })
        } else {
            Self::Short(places)
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Short(places) => wide(places.len()),
            Self::Long(list) => list.count(),
        }
    }

    /// The list of a file of `slot_count` slots, whose left half has the one and whose right half the
    /// other; or which of them is wrong. Of long lists that stay long the pieces are copied as they are.
    pub(super) fn merged(
        left: Option<Self>,
        right: Option<Self>,
        slot_count: u64,
    ) -> Result<Self, (Side, CorruptPostings)> {
        let half = slot_count / 2;
        let sides = [(Side::Left, left, 0), (Side::Right, right, half)];
        let lists = sides.iter().filter_map(|(_, list, _)| list.as_ref());
        let count = lists.fold(0_u64, |sum, list| sum.saturating_add(list.count()));
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

    fn into_places(self) -> Result<Vec<u64>, CorruptPostings> {
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

/// Places slot by slot.
fn split(places: &[u64], first_slot: u64) -> Vec<SlotPiece> {
    let slot_of = |place: &u64| place >> SLOT_PLACE_BITS;
    let slots = places.chunk_by(|one, other| slot_of(one) == slot_of(other));
    let piece = |places: &[u64]| {
        let slot = places.first().map_or(0, slot_of).saturating_add(first_slot);
        let inside: Vec<u64> = places.iter().map(|place| place & mask(SLOT_PLACE_BITS)).collect();
        SlotPiece::new(slot, &inside)
    };
    slots.map(piece).collect()
}

/// A key and its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPlaces {
    pub(super) prefix: u64,
    pub(super) list: PlaceList,
}

/// What is known of a bucket before its bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketFrame {
    pub(super) number: u64,
    /// Its lowest prefix.
    pub(super) prefix_min: u64,
    /// How many prefixes belong to it.
    pub(super) prefix_count: u64,
    /// Slots of the file.
    pub(super) slot_count: u64,
    /// Bits of a place.
    pub(super) place_bits: u32,
}

impl BucketFrame {
    fn low_bits(&self, key_count: u64) -> u32 {
        let prefixes_a_key = self.prefix_count.checked_div(key_count).unwrap_or(self.prefix_count);
        prefixes_a_key.checked_ilog2().unwrap_or(0)
    }

    fn zero_count(&self, low_bits: u32) -> u64 {
        self.prefix_count.saturating_sub(1).checked_shr(low_bits).unwrap_or(0)
    }

    /// The checksum begins with the bucket's number, so that a bucket read from a wrong place is
    /// refused.
    fn checksum(&self, body: &[u8]) -> u32 {
        let mut hasher =
            crc32fast::Hasher::new_with_initial(u32::try_from(self.number).unwrap_or(u32::MAX));
        hasher.update(body);
        hasher.finalize()
    }

    /// Appends the long lists of the keys, and the bucket. Gives back how many bytes each took.
    pub(super) fn encode(&self, keys: &[KeyPlaces], out: &mut Vec<u8>) -> (u64, u64) {
        let begin = out.len();
        let mut entries = Vec::new();
        for key in keys {
            if let PlaceList::Long(list) = &key.list {
                entries.push(list.put(self.slot_count, out));
            }
        }
        let bucket_at = out.len();
        let key_count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        out.extend(key_count.to_le_bytes());
        self.put_keys(keys, &mut entries.into_iter(), out);
        let sum = self.checksum(out.get(bucket_at..).unwrap_or_default());
        out.extend(sum.to_le_bytes());
        let bucket_bytes = out.len().saturating_sub(bucket_at);
        (wide(bucket_at.saturating_sub(begin)), wide(bucket_bytes))
    }

    fn put_keys(
        &self,
        keys: &[KeyPlaces],
        long_entries: &mut dyn Iterator<Item = LongListEntry>,
        out: &mut Vec<u8>,
    ) {
        let low_bits = self.low_bits(wide(keys.len()));
        let distance = |key: &KeyPlaces| key.prefix.saturating_sub(self.prefix_min);
        let mut packer = Packer::new(out);
        let mut zeros = 0;
        for key in keys {
            let quotient = distance(key).checked_shr(low_bits).unwrap_or(0);
            packer.push_unary(quotient.saturating_sub(zeros));
            zeros = quotient;
        }
        packer.push_zeros(self.zero_count(low_bits).saturating_sub(zeros));
        for key in keys {
            packer.push(distance(key), low_bits);
        }
        for key in keys {
            let code = match &key.list {
                PlaceList::Long(_) => CODE_LONG,
                PlaceList::Short(places) if places.len() == 1 => CODE_SINGLE,
                PlaceList::Short(places) => wide(places.len()).saturating_add(1),
            };
            put_gamma(code, &mut packer);
        }
        for key in keys {
            match &key.list {
                PlaceList::Short(places) => {
                    ListShape::new(wide(places.len()), self.place_bits).put(places, &mut packer);
                }
                PlaceList::Long(_) => {
                    let Some(entry) = long_entries.next() else { continue };
                    packer.push(entry.width.into(), LONG_WIDTH_BITS);
                    packer.push(entry.bytes, LONG_BYTES_BITS);
                    packer.push(entry.count, LONG_COUNT_BITS);
                }
            }
        }
        packer.finish();
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
pub(super) enum ListPlace {
    Short(Vec<u64>),
    /// A long list, so many bytes after the first long list of the bucket.
    Long {
        offset: u64,
        entry: LongListEntry,
    },
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

/// A bucket whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostingBucket<'a> {
    frame: BucketFrame,
    /// Keys, codes and lists.
    bits: &'a [u8],
    key_count: u64,
    low_bits: u32,
    low_at: u64,
    code_at: u64,
}

impl<'a> PostingBucket<'a> {
    /// Believes the bytes of a bucket of a file with so many keys.
    pub(super) fn open(
        frame: BucketFrame,
        file_key_count: u64,
        bytes: &'a [u8],
    ) -> Result<Self, CorruptPostings> {
        let number = frame.number;
        let fault = |reason| CorruptPostings::Content { part: "bucket", number, reason };
        let (body, expected) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or_else(|| fault("it has no checksum"))?;
        let (expected, found) = (u32::from_le_bytes(*expected), frame.checksum(body));
        if expected != found {
            return Err(CorruptPostings::Checksum { part: "bucket", number, expected, found });
        }
        let (key_count, bits) = body
            .split_first_chunk::<KEY_COUNT_BYTES>()
            .ok_or_else(|| fault("it has no count of keys"))?;
        let key_count = u64::from(u32::from_le_bytes(*key_count));
        // Or a key would take two bits of a file, and many times that of memory.
        if key_count > frame.prefix_count.min(file_key_count) {
            return Err(fault("it has more keys than there can be"));
        }
        let low_bits = frame.low_bits(key_count);
        let low_at = key_count.saturating_add(frame.zero_count(low_bits));
        let code_at = low_at.saturating_add(key_count.saturating_mul(low_bits.into()));
        if code_at > wide(bits.len()).saturating_mul(8) {
            return Err(fault("its keys do not fit into it"));
        }
        Ok(Self { frame, bits, key_count, low_bits, low_at, code_at })
    }

    fn fault(&self, reason: &'static str) -> CorruptPostings {
        CorruptPostings::Content { part: "bucket", number: self.frame.number, reason }
    }

    /// Which key has this prefix.
    fn index_of(&self, prefix: u64) -> Result<Option<u64>, CorruptPostings> {
        let distance = prefix.saturating_sub(self.frame.prefix_min);
        let low_sought = distance & mask(self.low_bits);
        let quotient = distance.checked_shr(self.low_bits).unwrap_or(0);
        let mut at = match quotient.checked_sub(1) {
            None => 0,
            Some(rank) => match find_zero(self.bits, rank) {
                Some(zero) if zero < self.low_at => zero.saturating_add(1),
                _ => return Err(self.fault("its keys are not those of a writer")),
            },
        };
        let mut index = at.saturating_sub(quotient);
        while at < self.low_at && read(self.bits, at, 1) == Some(1) {
            let low_at = self.low_at.saturating_add(index.saturating_mul(self.low_bits.into()));
            let low = read(self.bits, low_at, self.low_bits);
            if low == Some(low_sought) && index < self.key_count {
                return Ok(Some(index));
            }
            at = at.saturating_add(1);
            index = index.saturating_add(1);
        }
        Ok(None)
    }

    /// The places of the key with this prefix.
    pub(super) fn find(&self, prefix: u64) -> Result<Option<ListPlace>, CorruptPostings> {
        let Some(index) = self.index_of(prefix)? else { return Ok(None) };
        let places = self.list_positions(index)?;
        places.last().map(|position| self.read_list(*position)).transpose()
    }

    /// Where the lists of the keys up to this one are.
    fn list_positions(&self, last: u64) -> Result<Vec<ListPosition>, CorruptPostings> {
        let cut_short = || self.fault("its lists are cut short");
        let mut at = self.code_at;
        let mut codes = Vec::new();
        for _ in 0..self.key_count {
            let (code, next) = read_gamma(self.bits, at).ok_or_else(cut_short)?;
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
                if is_long_count(count, self.frame.slot_count) {
                    return Err(self.fault("a list that should be long lies in it"));
                }
                ListShape::new(count, self.frame.place_bits).bits()
            } else {
                let entry = self.read_long(at).ok_or_else(cut_short)?;
                long_offset = long_offset.saturating_add(entry.bytes);
                LONG_BITS
            };
            at = at.saturating_add(bits);
        }
        Ok(positions)
    }

    fn read_list(&self, position: ListPosition) -> Result<ListPlace, CorruptPostings> {
        let ListPosition { count, at, long_offset } = position;
        let read = match count {
            None => self.read_long(at).map(|entry| ListPlace::Long { offset: long_offset, entry }),
            Some(count) => {
                let shape = ListShape::new(count, self.frame.place_bits);
                shape.read(self.bits, at).map(ListPlace::Short)
            }
        };
        read.ok_or_else(|| self.fault("its lists are not those of a writer"))
    }

    fn read_long(&self, at: u64) -> Option<LongListEntry> {
        let bytes_at = at.checked_add(LONG_WIDTH_BITS.into())?;
        let count_at = bytes_at.checked_add(LONG_BYTES_BITS.into())?;
        let entry = LongListEntry {
            width: u32::try_from(read(self.bits, at, LONG_WIDTH_BITS)?).ok()?,
            bytes: read(self.bits, bytes_at, LONG_BYTES_BITS)?,
            count: read(self.bits, count_at, LONG_COUNT_BITS)?,
        };
        is_long_count(entry.count, self.frame.slot_count).then_some(entry)
    }

    /// Every key with where its places are, in order.
    pub(super) fn lists(&self) -> Result<Vec<(u64, ListPlace)>, CorruptPostings> {
        let positions = self.list_positions(self.key_count)?;
        let prefixes = self.prefixes()?.into_iter();
        prefixes.zip(positions).map(|(prefix, at)| Ok((prefix, self.read_list(at)?))).collect()
    }

    fn prefixes(&self) -> Result<Vec<u64>, CorruptPostings> {
        let cut_short = || self.fault("its keys are not those of a writer");
        let mut prefixes: Vec<u64> = Vec::new();
        let mut at = 0_u64;
        while at < self.low_at {
            let left = self.low_at.saturating_sub(at);
            let width = u32::try_from(left).unwrap_or(u32::MAX).min(WIDTH_MAX);
            let mut ones = read(self.bits, at, width).ok_or_else(cut_short)?;
            while ones != 0 {
                let index = wide(prefixes.len());
                let one_at = at.saturating_add(ones.trailing_zeros().into());
                ones &= ones.wrapping_sub(1);
                let low_at = self.low_at.saturating_add(index.saturating_mul(self.low_bits.into()));
                let low = read(self.bits, low_at, self.low_bits).ok_or_else(cut_short)?;
                let quotient = one_at.saturating_sub(index);
                let distance = quotient.checked_shl(self.low_bits).unwrap_or(u64::MAX) | low;
                let prefix = self.frame.prefix_min.saturating_add(distance);
                let is_after = prefixes.last().is_none_or(|last| *last < prefix);
                if !is_after || distance >= self.frame.prefix_count || index >= self.key_count {
                    return Err(cut_short());
                }
                prefixes.push(prefix);
            }
            at = at.saturating_add(width.into());
        }
        if wide(prefixes.len()) == self.key_count { Ok(prefixes) } else { Err(cut_short()) }
    }
}
