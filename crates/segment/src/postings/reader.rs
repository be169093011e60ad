//! Reading a posting file: which bytes a query needs, and what they answer.
//!
//! Knows: a file's tail, and how to ask a bucket.
//! Never knows: where the bytes come from, whether a place has what was asked for.

use std::ops::Range;

use super::bucket::{KeyPlaces, ListPlace, PlaceList, PostingBucket};
use super::error::CorruptPostings;
use super::key::PostingKey;
use super::long_list::{LongList, LongListEntry, LongListPlace};
use super::part::{SLOT_PLACE_BITS, SlotParts};
use super::tail::{PostingsFooter, PostingsTail};
use crate::bytes::{slice, wide};
use crate::lookup::RunSpan;
use crate::lookup::bits::mask;

/// A posting file whose tail is in memory and holds together. Buckets are supplied by the caller and
/// believed one by one.
#[derive(Debug)]
pub struct Postings {
    tail: PostingsTail,
}

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
    pub key: PostingKey,
    /// Its places, slot by slot: slots are counted from the file's first.
    pub slots: Vec<(u64, SlotParts)>,
}

impl Postings {
    /// Believes a tail, which [`PostingsFooter::tail`] finds in a file of
    /// `file_bytes`.
    pub fn parse(tail: &[u8], file_bytes: u64) -> Result<Self, CorruptPostings> {
        Ok(Self { tail: PostingsTail::parse(tail, file_bytes)? })
    }

    /// Opens a posting file that is in memory as a whole.
    pub fn from_file(file: &[u8]) -> Result<Self, CorruptPostings> {
        let file_bytes = wide(file.len());
        let footer = PostingsFooter::parse(file, file_bytes)?;
        Self::parse(slice(file, &footer.tail()), file_bytes)
    }

    /// The slots that it covers.
    #[must_use]
    pub fn span(&self) -> RunSpan {
        self.tail.frame.span
    }

    /// About how much memory its tail takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        wide(self.tail.memory_bytes())
    }

    /// How many keys it has.
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.tail.key_count
    }

    /// How many postings it has.
    #[must_use]
    pub fn posting_count(&self) -> u64 {
        self.tail.posting_count
    }

    /// How many buckets it has.
    #[must_use]
    pub fn bucket_count(&self) -> u64 {
        self.tail.frame.bucket_count
    }

    /// The bytes of the file that a probe for `key` needs: one bucket.
    #[must_use]
    pub fn bucket_range(&self, key: PostingKey) -> Range<u64> {
        let bucket = self.tail.frame.bucket_of(key);
        self.tail.bucket_range(bucket).map_or(0..0, |(range, _)| range)
    }

    /// The bytes of whole buckets with their long lists; `None` where there are none.
    #[must_use]
    pub fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        self.tail.buckets_range(buckets)
    }

    /// The places of `key`, given the bytes of [`Self::bucket_range`]; `None` if it surely has none.
    pub fn probe(
        &self,
        key: PostingKey,
        bucket_bytes: &[u8],
    ) -> Result<Option<FoundPostings>, CorruptPostings> {
        let number = self.tail.frame.bucket_of(key);
        let found = self.open(number, bucket_bytes)?.find(key.number())?;
        let found = found.map(|place| match place {
            ListPlace::Short(places) => Ok(FoundPostings::Slots(by_slot(&places))),
            ListPlace::Long { offset, entry } => {
                self.place_long(number, offset, entry).map(FoundPostings::Long)
            }
        });
        found.transpose()
    }

    /// Every posting of a bucket, which is given with its long lists.
    pub fn entries(&self, bucket: u64, bytes: &[u8]) -> Result<Vec<KeyEntry>, CorruptPostings> {
        let mut keys = Vec::new();
        self.decode(bucket, bytes, &mut keys)?;
        let mut entries = Vec::new();
        for KeyPlaces { prefix, list } in keys {
            let slots = match list {
                PlaceList::Short(places) => by_slot(&places),
                PlaceList::Long(list) => {
                    let mut slots = Vec::new();
                    for piece in list.pieces {
                        slots.push((piece.slot, SlotParts::of(&piece.places()?)));
                    }
                    slots
                }
            };
            entries.push(KeyEntry { key: PostingKey::from_number(prefix), slots });
        }
        Ok(entries)
    }

    fn open<'a>(&self, bucket: u64, bytes: &'a [u8]) -> Result<PostingBucket<'a>, CorruptPostings> {
        PostingBucket::open(self.tail.frame.bucket(bucket), self.tail.key_count, bytes)
    }

    /// Where a long list of a bucket is: among the long lists before it.
    fn place_long(
        &self,
        bucket: u64,
        offset: u64,
        entry: LongListEntry,
    ) -> Result<LongListPlace, CorruptPostings> {
        let (own, first) = self.tail.bucket_range(bucket).unwrap_or((0..0, 0));
        let start = first.saturating_add(offset);
        if start.saturating_add(entry.bytes) > own.start {
            let (part, number) = ("bucket", bucket);
            let reason = "its long lists are longer than the directory says";
            return Err(CorruptPostings::Content { part, number, reason });
        }
        Ok(LongListPlace { start, slot_count: self.span().slot_count(), entry })
    }

    /// Appends every key of a bucket, given with its long lists, in order.
    pub(super) fn decode(
        &self,
        bucket: u64,
        bytes: &[u8],
        keys: &mut Vec<KeyPlaces>,
    ) -> Result<(), CorruptPostings> {
        let Some((own, start)) = self.tail.bucket_range(bucket) else {
            let (part, number, reason) = ("bucket", bucket, "there is no such bucket");
            return Err(CorruptPostings::Content { part, number, reason });
        };
        let inside = |range: &Range<u64>| {
            slice(bytes, &(range.start.saturating_sub(start)..range.end.saturating_sub(start)))
        };
        for (prefix, place) in self.open(bucket, inside(&own))?.lists()? {
            let list = match place {
                ListPlace::Short(places) => PlaceList::Short(places),
                ListPlace::Long { offset, entry } => {
                    let place = self.place_long(bucket, offset, entry)?;
                    let table = place.read_table(inside(&place.table_range()))?;
                    let slots = 0..self.span().slot_count();
                    let range = table.pieces_range(slots.clone());
                    let list = LongList { pieces: table.read_pieces(slots, inside(&range))? };
                    if list.count() != entry.count {
                        let (part, number) = ("long list at byte", place.range().start);
                        let reason = "its pieces have other places than its bucket counts";
                        return Err(CorruptPostings::Content { part, number, reason });
                    }
                    PlaceList::Long(list)
                }
            };
            keys.push(KeyPlaces { prefix, list });
        }
        Ok(())
    }
}

/// Places slot by slot.
fn by_slot(places: &[u64]) -> Vec<(u64, SlotParts)> {
    let slot_of = |place: &u64| place >> SLOT_PLACE_BITS;
    let slots = places.chunk_by(|one, other| slot_of(one) == slot_of(other));
    let parts = |places: &[u64]| {
        let inside: Vec<u64> = places.iter().map(|place| place & mask(SLOT_PLACE_BITS)).collect();
        (places.first().map_or(0, slot_of), SlotParts::of(&inside))
    };
    slots.map(parts).collect()
}
