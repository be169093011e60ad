//! Writing a run: sorted entries in, the bytes of the file out, in one pass.
//!
//! Knows: the order of a file's parts.
//! Never knows: how entries came to be sorted, where the bytes go.

use alloy_primitives::B256;

use super::bucket::{self, Pair};
use super::error::BuildError;
use super::geometry::{Geometry, KEY_COUNT_MAX};
use super::prefix::HashPrefix;
use super::span::RunSpan;
use super::tail::{self, RunHeader};
use super::{Entry, Position, Subject};

/// Writes a run from entries that come in order, holding one bucket at a time. Finished bytes are
/// appended to a buffer that the caller may empty whenever it likes.
#[derive(Debug)]
pub struct RunWriter {
    head: RunHeader,
    value_bases: Vec<u64>,
    geometry: Geometry,
    bucket: Vec<Pair>,
    /// Key counts of the buckets that are written.
    bucket_keys: Vec<u64>,
    key_count: u64,
    keys_written: u64,
    previous: Option<Pair>,
}

impl RunWriter {
    /// A run of `key_count` entries. `ordinal_counts` has one more than the highest ordinal of each
    /// slot of the span, or 0.
    pub fn new(
        subject: Subject,
        span: RunSpan,
        ordinal_counts: Vec<u32>,
        key_count: u64,
    ) -> Result<Self, BuildError> {
        if u64::try_from(ordinal_counts.len()) != Ok(span.slot_count()) {
            return Err(BuildError::SlotCounts { span, found: ordinal_counts.len() });
        }
        if key_count > KEY_COUNT_MAX {
            return Err(BuildError::TooManyKeys { found: key_count });
        }
        let head = RunHeader { subject, span, ordinal_counts };
        let value_bases = head.value_bases();
        let geometry = Geometry::new(key_count, value_bases.last().copied().unwrap_or(0));
        Ok(Self {
            head,
            value_bases,
            geometry,
            bucket: Vec::new(),
            bucket_keys: Vec::new(),
            key_count: 0,
            keys_written: 0,
            previous: None,
        })
    }

    /// Adds the next entry: by prefix, then slot, then ordinal.
    pub fn push(&mut self, entry: Entry, bytes: &mut Vec<u8>) -> Result<(), BuildError> {
        let Position { slot, ordinal } = entry.position;
        let outside = || BuildError::Slot { slot, span: self.head.span };
        let index = slot.checked_sub(self.head.span.first_slot()).ok_or_else(outside)?;
        let index = usize::try_from(index).map_err(|_| outside())?;
        let ordinal_count = *self.head.ordinal_counts.get(index).ok_or_else(outside)?;
        if ordinal >= ordinal_count {
            return Err(BuildError::Ordinal { position: entry.position, ordinal_count });
        }
        let base = self.value_bases.get(index).copied().unwrap_or(0);
        let value = base.saturating_add(ordinal.into());
        self.push_pair(Pair { prefix: entry.prefix.number(), value }, bytes)
    }

    /// Adds the next entry, whose value must be one of the run's.
    #[inline]
    pub(super) fn push_pair(&mut self, pair: Pair, bytes: &mut Vec<u8>) -> Result<(), BuildError> {
        if self.previous.is_some_and(|previous| previous >= pair) {
            return Err(BuildError::Order { index: self.key_count, prefix: pair.prefix });
        }
        self.previous = Some(pair);
        self.key_count = self.key_count.saturating_add(1);
        let expected = self.geometry.key_count();
        if self.key_count > expected {
            return Err(BuildError::EntryCount { expected, found: self.key_count });
        }
        let bucket = self.geometry.bucket_of(HashPrefix::from_number(pair.prefix));
        self.write_buckets_before(bucket, bytes);
        self.bucket.push(pair);
        Ok(())
    }

    /// Writes what is left: the last buckets and the tail.
    pub fn finish(mut self, bytes: &mut Vec<u8>) -> Result<(), BuildError> {
        let (expected, found) = (self.geometry.key_count(), self.key_count);
        if found != expected {
            return Err(BuildError::EntryCount { expected, found });
        }
        self.write_buckets_before(self.geometry.bucket_count(), bytes);
        tail::encode(&self.head, self.key_count, &self.bucket_keys, bytes);
        Ok(())
    }

    #[inline]
    fn write_buckets_before(&mut self, end: u64, bytes: &mut Vec<u8>) {
        loop {
            let number = u64::try_from(self.bucket_keys.len()).unwrap_or(u64::MAX);
            if number >= end {
                return;
            }
            self.write_bucket(number, bytes);
        }
    }

    fn write_bucket(&mut self, number: u64, bytes: &mut Vec<u8>) {
        let key_count = u64::try_from(self.bucket.len()).unwrap_or(u64::MAX);
        let keys_end = self.keys_written.saturating_add(key_count);
        let begin = self.geometry.bucket_offset(number, self.keys_written);
        let end = self.geometry.bucket_offset(number.saturating_add(1), keys_end);
        let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
        bucket::encode(&self.geometry, number, &self.bucket, length, bytes);
        self.bucket.clear();
        self.bucket_keys.push(key_count);
        self.keys_written = keys_end;
    }
}

/// Collects the entries of a run in any order.
#[derive(Debug)]
pub struct RunBuilder {
    subject: Subject,
    span: RunSpan,
    ordinal_counts: Vec<u32>,
    /// Their values order positions: the slot's place in the span above 32 bits of ordinal. What
    /// they become in the file is known when all ordinals are.
    pairs: Vec<Pair>,
}

impl RunBuilder {
    /// Nothing yet.
    #[must_use]
    pub fn new(subject: Subject, span: RunSpan) -> Self {
        let slot_count = usize::try_from(span.slot_count()).unwrap_or(usize::MAX);
        Self { subject, span, ordinal_counts: vec![0; slot_count], pairs: Vec::new() }
    }

    /// Adds what is at `position`.
    pub fn push(&mut self, hash: &B256, position: Position) -> Result<(), BuildError> {
        self.push_entry(Entry { prefix: HashPrefix::of(hash), position })
    }

    /// Adds an entry, of another run perhaps.
    pub fn push_entry(&mut self, Entry { prefix, position }: Entry) -> Result<(), BuildError> {
        let outside = || BuildError::Slot { slot: position.slot, span: self.span };
        let place = position.slot.checked_sub(self.span.first_slot()).ok_or_else(outside)?;
        let index = usize::try_from(place).map_err(|_| outside())?;
        let count = self.ordinal_counts.get_mut(index).ok_or_else(outside)?;
        let ordinal_count = u32::MAX;
        let end = position.ordinal.checked_add(1);
        let end = end.ok_or(BuildError::Ordinal { position, ordinal_count })?;
        *count = end.max(*count);
        let value = (place << 32) | u64::from(position.ordinal);
        self.pairs.push(Pair { prefix: prefix.number(), value });
        Ok(())
    }

    /// The bytes of the run: the same whatever the order in which entries came.
    pub fn finish(mut self) -> Result<Vec<u8>, BuildError> {
        self.pairs.sort_unstable();
        let key_count = u64::try_from(self.pairs.len()).unwrap_or(u64::MAX);
        let mut writer = RunWriter::new(self.subject, self.span, self.ordinal_counts, key_count)?;
        let mut bytes = Vec::new();
        for Pair { prefix, value } in self.pairs {
            let place = usize::try_from(value >> 32).unwrap_or(usize::MAX);
            let base = writer.value_bases.get(place).copied().unwrap_or(0);
            let value = base.saturating_add(value & u64::from(u32::MAX));
            writer.push_pair(Pair { prefix, value }, &mut bytes)?;
        }
        writer.finish(&mut bytes)?;
        Ok(bytes)
    }
}
