//! One side of a merge of two files with buckets: what is decoded of it, and what it needs next.
//!
//! Knows: how many buckets are asked for at a time.
//! Never knows: what is in a bucket, or where the bytes come from.

use std::collections::VecDeque;
use std::ops::Range;

use crate::bytes::{slice, wide};

/// Bytes of one side that a merge asks for at a time, unless a single bucket is larger.
const READ_BYTES_MAX: u64 = 1 << 18;

/// A file whose items lie in buckets, in order.
pub(crate) trait Bucketed {
    /// What a bucket holds.
    type Item;
    /// What is wrong with bytes that are no bucket.
    type Fault;

    /// How many buckets there are.
    fn bucket_count(&self) -> u64;
    /// The bytes of some buckets that follow each other; `None` where there are none.
    fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>>;
    /// Appends the items of a bucket, in order.
    fn decode(
        &self,
        bucket: u64,
        bytes: &[u8],
        items: &mut Vec<Self::Item>,
    ) -> Result<(), Self::Fault>;
    /// What is wrong if so many bytes were to be supplied, and so many were.
    fn wrong_length(expected: u64, found: u64) -> Self::Fault;
}

/// One side of a merge.
#[derive(Debug)]
pub(crate) struct MergeInput<F: Bucketed> {
    file: F,
    /// The first bucket that has not been decoded.
    bucket_next: u64,
    items: VecDeque<F::Item>,
}

impl<F: Bucketed> MergeInput<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { file, bucket_next: 0, items: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<&F::Item> {
        self.items.front()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<F::Item> {
        self.items.pop_front()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.items.is_empty() && self.bucket_next >= self.file.bucket_count()
    }

    /// The bytes to supply next; `None` while there is something at hand, and at the end.
    pub(crate) fn needed(&self) -> Option<Range<u64>> {
        self.file.buckets_range(self.buckets_needed()?)
    }

    fn buckets_needed(&self) -> Option<Range<u64>> {
        if !self.items.is_empty() || self.is_at_end() {
            return None;
        }
        let begin = self.bucket_next;
        let mut end = begin.saturating_add(1);
        while let Some(range) = self.file.buckets_range(begin..end.saturating_add(1)) {
            if range.end.saturating_sub(range.start) > READ_BYTES_MAX {
                break;
            }
            end = end.saturating_add(1);
        }
        Some(begin..end)
    }

    /// Takes the bytes that were needed. `None` if nothing was.
    pub(crate) fn supply(&mut self, bytes: &[u8]) -> Option<Result<(), F::Fault>> {
        let buckets = self.buckets_needed()?;
        let range = self.file.buckets_range(buckets.clone())?;
        Some(self.decode(buckets, &range, bytes))
    }

    fn decode(
        &mut self,
        buckets: Range<u64>,
        range: &Range<u64>,
        bytes: &[u8],
    ) -> Result<(), F::Fault> {
        let (expected, found) = (range.end.saturating_sub(range.start), wide(bytes.len()));
        if found != expected {
            return Err(F::wrong_length(expected, found));
        }
        // There is nothing in it any more but room.
        let mut items = Vec::from(std::mem::take(&mut self.items));
        let bucket_end = buckets.end;
        for bucket in buckets {
            let own = self.file.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
            let [start, end] = [own.start, own.end].map(|at| at.saturating_sub(range.start));
            self.file.decode(bucket, slice(bytes, &(start..end)), &mut items)?;
        }
        self.items = items.into();
        self.bucket_next = bucket_end;
        Ok(())
    }
}
