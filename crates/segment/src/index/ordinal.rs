//! Ordinals: where the transaction or block with a hash is.

use alloy_primitives::B256;

use super::bits::Packer;
use super::bucket::{Keys, VerifiedBuckets, seal};
use super::error::{BuildError, CorruptIndex, Side};
use super::file::{Run, Shape};
use super::key::{IndexKey, RunSubject};
use super::span::RunSpan;
use super::writer::{IndexValue, RunWriter};
use crate::bytes::wide;

/// Where something is: the 8192-block slot, and which one it is inside the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// A block's number divided by 8192.
    pub slot: u64,
    /// Counted from 0 at the beginning of the slot.
    pub ordinal: u32,
}

/// Where a hash may be: nearly always nowhere, or at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    first: Option<Position>,
    /// Only keys that are equal by chance need these.
    others: Vec<Position>,
}

impl Positions {
    fn push(&mut self, position: Position) {
        match self.first {
            None => self.first = Some(position),
            Some(_) => self.others.push(position),
        }
    }
}

impl IntoIterator for Positions {
    type Item = Position;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Position>, std::vec::IntoIter<Position>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// What a run holds of one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The beginning of the hash.
    pub key: IndexKey,
    /// Where the hash belongs.
    pub position: Position,
}

impl Run {
    /// Every position whose hash has this key, given the bytes of [`Self::bucket_range`]: none if the
    /// hash is certainly not in the run, and nearly always one if it is. A position proves itself only by
    /// the hash of what it points at.
    pub fn probe(&self, key: IndexKey, bucket_bytes: &[u8]) -> Result<Positions, CorruptIndex> {
        let bucket =
            self.ordinal_bucket(self.shape.bucket_of(key.number()), bucket_bytes, false)?;
        self.find(key, &bucket)
    }

    /// The same for bytes that are always the same: they are checked once.
    pub fn probe_kept(
        &self,
        key: IndexKey,
        bucket_bytes: &[u8],
        verified: &VerifiedBuckets,
    ) -> Result<Positions, CorruptIndex> {
        let number = self.shape.bucket_of(key.number());
        let is_verified = verified.contains(number);
        let bucket = self.ordinal_bucket(number, bucket_bytes, is_verified)?;
        if !is_verified {
            verified.insert(number);
        }
        self.find(key, &bucket)
    }

    /// Everything in one bucket of ordinals, in order.
    pub fn entries(&self, bucket: u64, bucket_bytes: &[u8]) -> Result<Vec<Entry>, CorruptIndex> {
        let mut entries = Vec::new();
        let keys = self.ordinal_bucket(bucket, bucket_bytes, false)?;
        self.for_each_ordinal(bucket, &keys, |key, value| {
            let position = self.position(&keys, value)?;
            entries.push(Entry { key: IndexKey::from_number(key), position });
            Ok(())
        })?;
        Ok(entries)
    }

    /// How many ordinals each slot has.
    pub(super) fn ordinal_counts(&self) -> impl Iterator<Item = u32> {
        let pairs = self.ordinal_bases.iter().zip(self.ordinal_bases.iter().skip(1));
        pairs.map(|(base, end)| u32::try_from(end.saturating_sub(*base)).unwrap_or(u32::MAX))
    }

    pub(super) fn ordinal_end(&self) -> u64 {
        self.ordinal_bases.last().copied().unwrap_or(0)
    }

    #[inline]
    fn find(&self, key: IndexKey, bucket: &Keys<'_>) -> Result<Positions, CorruptIndex> {
        let mut positions = Positions::default();
        for index in bucket.find(key.number())? {
            positions.push(self.position(bucket, self.value(bucket, index)?)?);
        }
        Ok(positions)
    }

    #[inline]
    fn value(&self, bucket: &Keys<'_>, index: u64) -> Result<u64, CorruptIndex> {
        bucket.number_at(bucket.layout.end(), index, self.shape.value_bits)
    }

    #[inline]
    fn position(&self, bucket: &Keys<'_>, value: u64) -> Result<Position, CorruptIndex> {
        let outside = || bucket.fault("a value is past the last ordinal");
        // Slots without ordinals begin where the next one does: the last that begins is meant.
        let bases = &self.ordinal_bases;
        let slot = bases.partition_point(|base| *base <= value).saturating_sub(1);
        let base = bases.get(slot).filter(|_| value < self.ordinal_end()).ok_or_else(outside)?;
        let ordinal = u32::try_from(value.saturating_sub(*base)).map_err(|_| outside())?;
        Ok(Position { slot: self.span().first_slot().saturating_add(wide(slot)), ordinal })
    }

    /// Gives every key of a bucket with its value, and checks that they come in a writer's order.
    fn for_each_ordinal(
        &self,
        bucket: u64,
        keys: &Keys<'_>,
        mut take: impl FnMut(u64, u64) -> Result<(), CorruptIndex>,
    ) -> Result<(), CorruptIndex> {
        let mut previous = None;
        keys.for_each(self.shape.key_min(bucket.saturating_add(1)), |index, key| {
            let value = self.value(keys, index)?;
            if previous >= Some((key, value)) {
                return Err(keys.fault("a key does not come after the one before"));
            }
            previous = Some((key, value));
            take(key, value)
        })
    }
}

/// An ordinal: those of all slots of a run are laid end to end.
impl IndexValue for u64 {
    const IS_UNIQUE: bool = false;

    fn rank(&self) -> u64 {
        *self
    }

    fn item_count(&self) -> u64 {
        1
    }

    fn encode(
        shape: &Shape,
        bucket: u64,
        entries: &[(u64, Self)],
        out: &mut Vec<u8>,
    ) -> (u64, u64) {
        let begin = out.len();
        let layout = shape.ordinal_keys(wide(entries.len()));
        let mut packer = Packer::new(out);
        layout.put(shape.key_min(bucket), entries.iter().map(|(key, _)| *key), &mut packer);
        for (_, value) in entries {
            packer.push(*value, shape.value_bits);
        }
        packer.finish();
        seal(bucket, begin, out);
        (0, wide(out.len().saturating_sub(begin)))
    }

    fn decode(
        run: &Run,
        bucket: u64,
        bytes: &[u8],
        entries: &mut Vec<(u64, Self)>,
    ) -> Result<(), CorruptIndex> {
        let keys = run.ordinal_bucket(bucket, bytes, false)?;
        run.for_each_ordinal(bucket, &keys, |key, value| {
            if value >= run.ordinal_end() {
                return Err(keys.fault("a value is past the last ordinal"));
            }
            entries.push((key, value));
            Ok(())
        })
    }

    fn merged(
        _: &Shape,
        left_end: u64,
        left: Option<Self>,
        right: Option<Self>,
    ) -> Result<Self, (Side, CorruptIndex)> {
        let right = right.unwrap_or_default().saturating_add(left_end);
        Ok(left.unwrap_or(right))
    }
}

/// Writes a run of ordinals from entries that come in order, holding one bucket at a time. Finished
/// bytes are appended to a buffer that the caller may empty at any time.
#[derive(Debug)]
pub struct OrdinalsWriter {
    span: RunSpan,
    /// For each slot, how many ordinals come before it, and how many it has.
    slots: Vec<(u64, u32)>,
    writer: RunWriter<u64>,
}

impl OrdinalsWriter {
    /// A run of `key_count` entries. `ordinal_counts` has one more than the highest ordinal of each slot
    /// of the span, or 0.
    pub fn new(
        subject: RunSubject,
        span: RunSpan,
        ordinal_counts: Vec<u32>,
        key_count: u64,
    ) -> Result<Self, BuildError> {
        if wide(ordinal_counts.len()) != span.slot_count() {
            return Err(BuildError::SlotCounts { span, found: ordinal_counts.len() });
        }
        let mut end = 0_u64;
        let slots = ordinal_counts.iter().map(|count| {
            let base = end;
            end = end.saturating_add((*count).into());
            (base, *count)
        });
        let slots = slots.collect();
        let shape = Shape::of_ordinals(subject, span, key_count, end);
        Ok(Self { span, slots, writer: RunWriter::new(shape, ordinal_counts)? })
    }

    /// Adds the next entry: by key, then slot, then ordinal.
    pub fn push(&mut self, entry: Entry, out: &mut Vec<u8>) -> Result<(), BuildError> {
        let Position { slot, ordinal } = entry.position;
        let index = slot_index(self.span, slot)?;
        let (base, ordinal_count) = self.slots.get(index).copied().unwrap_or_default();
        if ordinal >= ordinal_count {
            return Err(BuildError::Ordinal { slot, ordinal, ordinal_count });
        }
        self.writer.push(entry.key.number(), base.saturating_add(ordinal.into()), out)
    }

    /// Writes what is left: the last buckets and the tail.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        self.writer.finish(out)
    }
}

/// Where a slot is in a span.
fn slot_index(span: RunSpan, slot: u64) -> Result<usize, BuildError> {
    let index = slot.checked_sub(span.first_slot()).filter(|_| span.contains(slot));
    let index = index.and_then(|index| usize::try_from(index).ok());
    index.ok_or(BuildError::Slot { slot, span })
}

/// Collects the entries of a run of ordinals in any order.
#[derive(Debug)]
pub struct OrdinalsBuilder {
    subject: RunSubject,
    span: RunSpan,
    ordinal_counts: Vec<u32>,
    /// Keys, and positions in their order: the slot's place in the span above 32 bits of ordinal.
    pairs: Vec<(u64, u64)>,
}

impl OrdinalsBuilder {
    /// Nothing yet.
    #[must_use]
    pub fn new(subject: RunSubject, span: RunSpan) -> Self {
        let slot_count = usize::try_from(span.slot_count()).unwrap_or(usize::MAX);
        Self { subject, span, ordinal_counts: vec![0; slot_count], pairs: Vec::new() }
    }

    /// Adds what is at `position`.
    pub fn push(&mut self, hash: &B256, position: Position) -> Result<(), BuildError> {
        self.push_entry(Entry { key: IndexKey::of_hash(hash), position })
    }

    /// Adds an entry, perhaps of another run.
    pub fn push_entry(&mut self, Entry { key, position }: Entry) -> Result<(), BuildError> {
        let Position { slot, ordinal } = position;
        let index = slot_index(self.span, slot)?;
        let ordinal_count = u32::MAX;
        let end = ordinal.checked_add(1);
        let end = end.ok_or(BuildError::Ordinal { slot, ordinal, ordinal_count })?;
        if let Some(count) = self.ordinal_counts.get_mut(index) {
            *count = end.max(*count);
        }
        self.pairs.push((key.number(), wide(index) << 32 | u64::from(ordinal)));
        Ok(())
    }

    /// The bytes of the run: the same whatever the order in which entries came.
    pub fn finish(mut self) -> Result<Vec<u8>, BuildError> {
        self.pairs.sort_unstable();
        let key_count = wide(self.pairs.len());
        let mut writer =
            OrdinalsWriter::new(self.subject, self.span, self.ordinal_counts, key_count)?;
        let mut out = Vec::new();
        for (key, place) in self.pairs {
            let slot = self.span.first_slot().saturating_add(place >> 32);
            let ordinal = u32::try_from(place & u64::from(u32::MAX)).unwrap_or(u32::MAX);
            let position = Position { slot, ordinal };
            writer.push(Entry { key: IndexKey::from_number(key), position }, &mut out)?;
        }
        writer.finish(&mut out)?;
        Ok(out)
    }
}
