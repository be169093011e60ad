//! Two neighbouring runs of equal size become one, byte for byte the one that a direct build gives.
//!
//! A larger run has other buckets and other widths, but the same keys in the same order. Its ordinals
//! are the left run's, and the right run's moved up by the number of ordinals on the left; its posting
//! lists are those of both runs joined.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use super::error::{CorruptIndex, MergeError, Side};
use super::file::{Run, Shape, place_bits_max};
use super::posting::PlaceList;
use super::writer::{IndexValue, RunWriter};
use crate::bytes::{slice, wide};

/// Bytes of one side that a merge asks for at a time, unless a single bucket is larger.
const READ_BYTES_MAX: u64 = 1 << 18;

/// What a merge has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStep {
    /// It goes on when these bytes of one side's file are supplied.
    Need {
        /// Whose.
        side: Side,
        /// Which.
        range: Range<u64>,
    },
    /// All bytes of the merged run have been written.
    Done,
}

/// A merge in progress. It holds the decoded entries of one piece of either side, and both tails.
#[derive(Debug)]
pub struct Merge(Box<dyn Merging>);

impl Merge {
    /// Begins to merge two halves.
    pub fn new(left: Run, right: Run) -> Result<Self, MergeError> {
        let (left_span, right_span) = (left.span(), right.span());
        let span = left_span.merged_with(&right_span);
        let span = span.ok_or(MergeError::NotHalves { left: left_span, right: right_span })?;
        let subject = left.subject();
        if subject != right.subject() {
            return Err(MergeError::Subjects { left: subject, right: right.subject() });
        }
        let item_count = left.item_count().saturating_add(right.item_count());
        if subject.has_lists() {
            let place_bits = place_bits_max(span.slot_count());
            let shape = Shape::new(subject, span, item_count, place_bits);
            let writer = RunWriter::<PlaceList>::new(shape, Vec::new())?;
            return Ok(Self(Box::new(MergeOf::new(left, right, shape, writer))));
        }
        let ordinal_end = left.ordinal_end().saturating_add(right.ordinal_end());
        let shape = Shape::of_ordinals(subject, span, item_count, ordinal_end);
        let counts = left.ordinal_counts().chain(right.ordinal_counts()).collect();
        let writer = RunWriter::<u64>::new(shape, counts)?;
        Ok(Self(Box::new(MergeOf::new(left, right, shape, writer))))
    }

    /// Supplies the bytes that [`Self::step`] asked for.
    pub fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), MergeError> {
        self.0.supply(side, bytes)
    }

    /// Appends as much of the merged run to `out` as can be known, and says what is missing.
    pub fn step(&mut self, out: &mut Vec<u8>) -> Result<MergeStep, MergeError> {
        self.0.step(out)
    }
}

trait Merging: fmt::Debug + Send {
    fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), MergeError>;
    fn step(&mut self, out: &mut Vec<u8>) -> Result<MergeStep, MergeError>;
}

/// A merge of runs whose values are of one type.
#[derive(Debug)]
struct MergeOf<V> {
    left: MergeInput<V>,
    right: MergeInput<V>,
    shape: Shape,
    /// Ordinals of the left run.
    left_end: u64,
    /// Taken when the merge is done.
    writer: Option<RunWriter<V>>,
}

impl<V: IndexValue> MergeOf<V> {
    fn new(left: Run, right: Run, shape: Shape, writer: RunWriter<V>) -> Self {
        let left_end = left.ordinal_end();
        let [left, right] = [left, right].map(MergeInput::new);
        Self { left, right, shape, left_end, writer: Some(writer) }
    }
}

impl<V: IndexValue> Merging for MergeOf<V> {
    fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), MergeError> {
        let input = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        let supplied = input.supply(bytes).ok_or(MergeError::NotNeeded { side })?;
        supplied.map_err(|cause| MergeError::Corrupt { side, cause })
    }

    fn step(&mut self, out: &mut Vec<u8>) -> Result<MergeStep, MergeError> {
        let Some(writer) = &mut self.writer else { return Ok(MergeStep::Done) };
        let (left, right) = (&mut self.left, &mut self.right);
        // Until one side has no entry at hand and more to come.
        loop {
            let (is_left, is_right) = match (left.peek(), right.peek()) {
                (Some(one), Some(other)) if one == other && V::IS_UNIQUE => (true, true),
                // Of equal keys the ordinals of the left run are the lower ones.
                (Some(one), Some(other)) => (one <= other, one > other),
                (Some(_), None) if right.is_at_end() => (true, false),
                (None, Some(_)) if left.is_at_end() => (false, true),
                (_, None) | (None, _) => break,
            };
            let own = is_left.then(|| left.next()).flatten();
            let other = is_right.then(|| right.next()).flatten();
            let Some(key) = own.as_ref().or(other.as_ref()).map(|(key, _)| *key) else { break };
            let values = (own.map(|it| it.1), other.map(|it| it.1));
            let value = V::merged(&self.shape, self.left_end, values.0, values.1);
            let value = value.map_err(|(side, cause)| MergeError::Corrupt { side, cause })?;
            writer.push(key, value, out)?;
        }
        for (side, needed) in [(Side::Left, left.needed()), (Side::Right, right.needed())] {
            if let Some(range) = needed {
                return Ok(MergeStep::Need { side, range });
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.finish(out)?;
        }
        Ok(MergeStep::Done)
    }
}

/// One side of a merge: what is decoded of it, and what it needs next.
#[derive(Debug)]
struct MergeInput<V> {
    run: Run,
    /// The first bucket that has not been decoded.
    bucket_next: u64,
    entries: VecDeque<(u64, V)>,
}

impl<V: IndexValue> MergeInput<V> {
    fn new(run: Run) -> Self {
        Self { run, bucket_next: 0, entries: VecDeque::new() }
    }

    #[inline]
    fn peek(&self) -> Option<u64> {
        self.entries.front().map(|(key, _)| *key)
    }

    #[inline]
    fn next(&mut self) -> Option<(u64, V)> {
        self.entries.pop_front()
    }

    fn is_at_end(&self) -> bool {
        self.entries.is_empty() && self.bucket_next >= self.run.bucket_count()
    }

    /// The bytes to supply next; `None` while there is something at hand, and at the end.
    fn needed(&self) -> Option<Range<u64>> {
        self.run.buckets_range(self.buckets_needed()?)
    }

    fn buckets_needed(&self) -> Option<Range<u64>> {
        if !self.entries.is_empty() || self.is_at_end() {
            return None;
        }
        let begin = self.bucket_next;
        let mut end = begin.saturating_add(1);
        while let Some(range) = self.run.buckets_range(begin..end.saturating_add(1)) {
            if range.end.saturating_sub(range.start) > READ_BYTES_MAX {
                break;
            }
            end = end.saturating_add(1);
        }
        Some(begin..end)
    }

    /// Takes the bytes that were needed. `None` if nothing was.
    fn supply(&mut self, bytes: &[u8]) -> Option<Result<(), CorruptIndex>> {
        let buckets = self.buckets_needed()?;
        let range = self.run.buckets_range(buckets.clone())?;
        Some(self.decode(buckets, &range, bytes))
    }

    fn decode(
        &mut self,
        buckets: Range<u64>,
        range: &Range<u64>,
        bytes: &[u8],
    ) -> Result<(), CorruptIndex> {
        let (expected, found) = (range.end.saturating_sub(range.start), wide(bytes.len()));
        if found != expected {
            return Err(CorruptIndex::Length { part: "piece of buckets", expected, found });
        }
        // It is empty, and its room is used again.
        let mut entries = Vec::from(std::mem::take(&mut self.entries));
        let bucket_end = buckets.end;
        for bucket in buckets {
            let own = self.run.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
            let [start, end] = [own.start, own.end].map(|at| at.saturating_sub(range.start));
            V::decode(&self.run, bucket, slice(bytes, &(start..end)), &mut entries)?;
        }
        self.entries = entries.into();
        self.bucket_next = bucket_end;
        Ok(())
    }
}
