//! Reading a run: which bytes a probe needs, and what they answer.
//!
//! Knows: a run's tail, and how to ask a bucket.
//! Never knows: where the bytes come from, whether a candidate is a hit.

use std::ops::Range;

use alloy_primitives::B256;

use super::bucket::{Pair, RunBucket};
use super::error::CorruptRun;
use super::geometry::Geometry;
use super::prefix::HashPrefix;
use super::span::RunSpan;
use super::tail::{RunHeader, RunTail};
use super::verified_buckets::VerifiedBuckets;
use super::{Entry, Position, Positions, Subject};

/// A run whose tail is in memory and holds together. Buckets are supplied by the caller and
/// believed one by one.
#[derive(Debug)]
pub struct Run {
    tail: RunTail,
}

impl Run {
    /// Believes a tail, the footer included, of a file of `file_bytes`.
    pub(super) fn parse(tail: &[u8], file_bytes: u64) -> Result<Self, CorruptRun> {
        Ok(Self { tail: RunTail::parse(tail, file_bytes)? })
    }

    /// What the run finds.
    #[must_use]
    pub fn subject(&self) -> Subject {
        self.tail.head.subject
    }

    /// The slots that it covers.
    #[must_use]
    pub fn span(&self) -> RunSpan {
        self.tail.head.span
    }

    /// How many keys it has.
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.tail.geometry.key_count()
    }

    /// How many buckets it has.
    #[must_use]
    pub fn bucket_count(&self) -> u64 {
        self.tail.geometry.bucket_count()
    }

    /// About how much memory its tail takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::try_from(self.tail.memory_bytes()).unwrap_or(u64::MAX)
    }

    /// Where everything is in the file.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.tail.geometry
    }

    /// The bytes of the file that a probe for `hash` needs: one bucket.
    #[must_use]
    pub fn bucket_range(&self, hash: &B256) -> Range<u64> {
        self.place(self.bucket_of(hash)).map_or(0..0, |place| place.range)
    }

    /// The bytes of a run of whole buckets; `None` where there are none.
    #[must_use]
    pub fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        let first = self.place(buckets.start)?;
        let last = self.place(buckets.end.checked_sub(1)?)?;
        (!buckets.is_empty()).then_some(first.range.start..last.range.end)
    }

    /// Every position whose hash begins as `hash` does, given the bytes of
    /// [`Self::bucket_range`]: none if the hash is surely not in the run, and nearly always one if
    /// it is. Hash what a position points at before you believe it.
    pub fn probe(&self, hash: &B256, bucket_bytes: &[u8]) -> Result<Positions, CorruptRun> {
        let bucket = self.open(self.bucket_of(hash), bucket_bytes)?;
        self.find(hash, &bucket)
    }

    /// The same for bytes that are always the same: they are checked once.
    pub fn probe_kept(
        &self,
        hash: &B256,
        bucket_bytes: &[u8],
        verified: &VerifiedBuckets,
    ) -> Result<Positions, CorruptRun> {
        let number = self.bucket_of(hash);
        let bucket = self.lay_out(number, bucket_bytes)?;
        if !verified.contains(number) {
            bucket.check()?;
            verified.insert(number);
        }
        self.find(hash, &bucket)
    }

    /// Everything in one bucket, in order.
    pub fn entries(&self, bucket: u64, bucket_bytes: &[u8]) -> Result<Vec<Entry>, CorruptRun> {
        let mut pairs = Vec::new();
        let opened = self.open(bucket, bucket_bytes)?;
        opened.decode(&mut pairs)?;
        let entry = |(pair, index): (Pair, u64)| {
            let position = self.position(&opened, index, pair.value)?;
            Ok(Entry { prefix: HashPrefix::from_number(pair.prefix), position })
        };
        pairs.into_iter().zip(0..).map(entry).collect()
    }

    pub(super) fn head(&self) -> &RunHeader {
        &self.tail.head
    }

    /// How many values there can be.
    pub(super) fn value_count(&self) -> u64 {
        self.tail.value_bases.last().copied().unwrap_or(0)
    }

    fn bucket_of(&self, hash: &B256) -> u64 {
        self.tail.geometry.bucket_of(HashPrefix::of(hash))
    }

    #[inline]
    fn find(&self, hash: &B256, bucket: &RunBucket<'_>) -> Result<Positions, CorruptRun> {
        let mut positions = Positions::default();
        for index in bucket.find(HashPrefix::of(hash).number())? {
            positions.push(self.position(bucket, index, bucket.value(index)?)?);
        }
        Ok(positions)
    }

    /// Believes the bytes of a bucket.
    #[inline]
    pub(super) fn open<'a>(
        &'a self,
        bucket: u64,
        bytes: &'a [u8],
    ) -> Result<RunBucket<'a>, CorruptRun> {
        let bucket = self.lay_out(bucket, bytes)?;
        bucket.check()?;
        Ok(bucket)
    }

    /// A bucket that is not believed yet.
    #[inline]
    fn lay_out<'a>(&'a self, bucket: u64, bytes: &'a [u8]) -> Result<RunBucket<'a>, CorruptRun> {
        let bucket_count = self.bucket_count();
        let place = self.place(bucket).ok_or(CorruptRun::NoBucket { bucket, bucket_count })?;
        let offset = place.range.start;
        let expected = place.range.end.saturating_sub(offset);
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != expected {
            return Err(CorruptRun::BucketLength { bucket, offset, expected, found });
        }
        Ok(RunBucket::new(&self.tail.geometry, bucket, place.key_count, offset, bytes))
    }

    #[inline]
    fn place(&self, bucket: u64) -> Option<BucketPlace> {
        let geometry = &self.tail.geometry;
        let (_, from) = self.tail.keys_before.split_at_checked(usize::try_from(bucket).ok()?)?;
        let [before, end, ..] = from else { return None };
        let next = bucket.saturating_add(1);
        let range = geometry.bucket_offset(bucket, *before)..geometry.bucket_offset(next, *end);
        Some(BucketPlace { range, key_count: end.saturating_sub(*before) })
    }

    #[inline]
    fn position(
        &self,
        bucket: &RunBucket<'_>,
        index: u64,
        value: u64,
    ) -> Result<Position, CorruptRun> {
        let outside = || bucket.misfit(index, "its value is past the last ordinal");
        // Slots without ordinals begin where the next one does: the last that begins is meant.
        let bases = &self.tail.value_bases;
        let slot = bases.partition_point(|base| *base <= value).saturating_sub(1);
        let base = bases.get(slot).filter(|_| value < self.value_count()).ok_or_else(outside)?;
        let ordinal = u32::try_from(value.saturating_sub(*base)).map_err(|_| outside())?;
        let slot = u64::try_from(slot).map_err(|_| outside())?;
        Ok(Position { slot: self.span().first_slot().saturating_add(slot), ordinal })
    }
}

/// A bucket's place in the file.
struct BucketPlace {
    range: Range<u64>,
    key_count: u64,
}
