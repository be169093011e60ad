//! Writing a run: sorted entries in, the bytes of the file out, in one pass.

use std::fmt;

use super::error::{BuildError, CorruptIndex, Side};
use super::file::{Run, Shape, put_tail};
use crate::bytes::wide;

/// What a key has: an ordinal or a posting list.
pub(super) trait IndexValue: fmt::Debug + Sized + Send + 'static {
    /// Whether a key occurs once in a run.
    const IS_UNIQUE: bool;

    /// The order of values that have the same key.
    fn rank(&self) -> u64;

    /// How many ordinals or postings it is.
    fn item_count(&self) -> u64;

    /// Appends the long lists of a bucket, and the bucket. Returns how many bytes each took.
    fn encode(shape: &Shape, bucket: u64, entries: &[(u64, Self)], out: &mut Vec<u8>)
    -> (u64, u64);

    /// Appends the entries of a bucket, given with its long lists, in order.
    fn decode(
        run: &Run,
        bucket: u64,
        bytes: &[u8],
        entries: &mut Vec<(u64, Self)>,
    ) -> Result<(), CorruptIndex>;

    /// The value in the merged run of this shape, or which of the two is damaged. The left run has
    /// `left_end` ordinals.
    fn merged(
        shape: &Shape,
        left_end: u64,
        left: Option<Self>,
        right: Option<Self>,
    ) -> Result<Self, (Side, CorruptIndex)>;
}

/// Writes a run from entries that come in order, holding one bucket at a time. Finished bytes are
/// appended to a buffer that the caller may empty at any time.
#[derive(Debug)]
pub(super) struct RunWriter<V> {
    shape: Shape,
    /// One more than the highest ordinal of each slot, or 0; none for posting lists.
    ordinal_counts: Vec<u32>,
    bucket: Vec<(u64, V)>,
    /// Bytes of the long lists of each bucket that is written, and of the bucket itself.
    bucket_bytes: Vec<(u64, u64)>,
    key_count: u64,
    item_count: u64,
    previous: Option<(u64, u64)>,
}

impl<V: IndexValue> RunWriter<V> {
    pub(super) fn new(shape: Shape, ordinal_counts: Vec<u32>) -> Result<Self, BuildError> {
        shape.check_item_count()?;
        let (bucket, bucket_bytes) = (Vec::new(), Vec::new());
        let (key_count, item_count, previous) = (0, 0, None);
        Ok(Self { shape, ordinal_counts, bucket, bucket_bytes, key_count, item_count, previous })
    }

    /// Adds the next entry.
    #[inline]
    pub(super) fn push(&mut self, key: u64, value: V, out: &mut Vec<u8>) -> Result<(), BuildError> {
        let rank = Some((key, value.rank()));
        if self.previous >= rank {
            return Err(BuildError::Order { key });
        }
        self.previous = rank;
        self.key_count = self.key_count.saturating_add(1);
        self.item_count = self.item_count.saturating_add(value.item_count());
        self.write_buckets_before(self.shape.bucket_of(key), out);
        self.bucket.push((key, value));
        Ok(())
    }

    /// Writes what is left: the last buckets and the tail.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        let (expected, found) = (self.shape.item_count, self.item_count);
        if found != expected {
            return Err(BuildError::EntryCount { expected, found });
        }
        self.write_buckets_before(self.shape.bucket_count, out);
        put_tail(&self.shape, self.key_count, &self.ordinal_counts, &self.bucket_bytes, out);
        Ok(())
    }

    #[inline]
    fn write_buckets_before(&mut self, end: u64, out: &mut Vec<u8>) {
        while wide(self.bucket_bytes.len()) < end {
            let number = wide(self.bucket_bytes.len());
            self.bucket_bytes.push(V::encode(&self.shape, number, &self.bucket, out));
            self.bucket.clear();
        }
    }
}
