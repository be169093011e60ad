//! Two neighbouring runs of equal size become one, byte for byte the one that a direct build gives.
//!
//! Knows: two runs and the writer of the third.
//! Never knows: a hash; the prefixes that the runs keep are enough.
//!
//! A larger run has other buckets and other widths, but the same prefixes in the same order. Its
//! values are the left run's, and the right run's moved up by the number of values on the left.

use std::ops::Range;

use super::bucket::Pair;
use super::error::{BuildError, CorruptRun, MergeError, Side};
use super::opening::slice;
use super::run::Run;
use super::writer::RunWriter;

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
pub struct Merge {
    left: Input,
    right: Input,
    /// Taken when the merge is done.
    writer: Option<RunWriter>,
}

impl Merge {
    /// Begins to merge two halves.
    pub fn new(left: Run, right: Run) -> Result<Self, MergeError> {
        let (left_span, right_span) = (left.span(), right.span());
        let span = left_span.merged_with(&right_span);
        let span = span.ok_or(MergeError::NotHalves { left: left_span, right: right_span })?;
        if left.subject() != right.subject() {
            let (left, right) = (left.subject(), right.subject());
            return Err(MergeError::Subjects { left, right });
        }
        let key_count = left.key_count().saturating_add(right.key_count());
        let counts = [&left, &right].map(|run| run.head().ordinal_counts.as_slice()).concat();
        let writer = RunWriter::new(left.subject(), span, counts, key_count)?;
        let value_base = left.value_count();
        let left = Input::new(left, 0);
        let right = Input::new(right, value_base);
        Ok(Self { left, right, writer: Some(writer) })
    }

    /// Supplies the bytes that [`Self::step`] asked for.
    pub fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), MergeError> {
        let input = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        let buckets = input.needed().ok_or(MergeError::NotNeeded { side })?;
        input.supply(buckets, bytes).map_err(|cause| MergeError::Corrupt { side, cause })
    }

    /// Appends as much of the merged run to `bytes` as can be known, and says what is missing.
    pub fn step(&mut self, bytes: &mut Vec<u8>) -> Result<MergeStep, MergeError> {
        let Some(writer) = &mut self.writer else { return Ok(MergeStep::Done) };
        merge_pairs(&mut self.left, &mut self.right, writer, bytes)?;
        for (side, input) in [(Side::Left, &self.left), (Side::Right, &self.right)] {
            let range = input.needed().and_then(|buckets| input.run.buckets_range(buckets));
            if let Some(range) = range {
                return Ok(MergeStep::Need { side, range });
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.finish(bytes)?;
        }
        Ok(MergeStep::Done)
    }
}

/// Merges two run files that are in memory.
pub fn merge_files(left: &[u8], right: &[u8]) -> Result<Vec<u8>, MergeError> {
    let open =
        |side, file| Run::from_file(file).map_err(|cause| MergeError::Corrupt { side, cause });
    let mut merge = Merge::new(open(Side::Left, left)?, open(Side::Right, right)?)?;
    let mut bytes = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut bytes)? {
        let file = match side {
            Side::Left => left,
            Side::Right => right,
        };
        merge.supply(side, slice(file, &range))?;
    }
    Ok(bytes)
}

/// Writes pairs in order until one side has none at hand and more to come.
fn merge_pairs(
    left: &mut Input,
    right: &mut Input,
    writer: &mut RunWriter,
    bytes: &mut Vec<u8>,
) -> Result<(), BuildError> {
    loop {
        let (next, pair) = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) if one < other => (&mut *left, one),
            (Some(_), Some(other)) => (&mut *right, other),
            (Some(one), None) if right.is_at_end() => (&mut *left, one),
            (None, Some(other)) if left.is_at_end() => (&mut *right, other),
            (_, None) | (None, _) => return Ok(()),
        };
        next.taken = next.taken.saturating_add(1);
        writer.push_pair(pair, bytes)?;
    }
}

/// One side of a merge.
#[derive(Debug)]
struct Input {
    run: Run,
    /// What is added to this side's values.
    value_base: u64,
    /// The first bucket that has not been decoded.
    bucket_next: u64,
    pairs: Vec<Pair>,
    /// How many of `pairs` are written.
    taken: usize,
}

impl Input {
    fn new(run: Run, value_base: u64) -> Self {
        Self { run, value_base, bucket_next: 0, pairs: Vec::new(), taken: 0 }
    }

    #[inline]
    fn peek(&self) -> Option<Pair> {
        self.pairs.get(self.taken).copied()
    }

    fn is_at_end(&self) -> bool {
        self.peek().is_none() && self.bucket_next >= self.run.bucket_count()
    }

    /// The buckets to supply next; `None` while there is something at hand, and at the end.
    fn needed(&self) -> Option<Range<u64>> {
        if self.peek().is_some() || self.is_at_end() {
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

    fn supply(&mut self, buckets: Range<u64>, bytes: &[u8]) -> Result<(), CorruptRun> {
        let range = self.run.buckets_range(buckets.clone()).unwrap_or(0..0);
        let expected = range.end.saturating_sub(range.start);
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != expected {
            return Err(CorruptRun::Length { part: "piece of buckets", expected, found });
        }
        self.pairs.clear();
        self.taken = 0;
        let mut rest = bytes;
        let bucket_end = buckets.end;
        for bucket in buckets {
            let range = self.run.buckets_range(bucket..bucket.saturating_add(1)).unwrap_or(0..0);
            let length = range.end.saturating_sub(range.start);
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
            let (one, others) = rest.split_at(length);
            self.run.open(bucket, one)?.decode(&mut self.pairs)?;
            rest = others;
        }
        let value_count = self.run.value_count();
        for pair in &mut self.pairs {
            if pair.value >= value_count {
                let (field, max) = ("value of a key", value_count.saturating_sub(1));
                return Err(CorruptRun::TooLarge { field, max, found: pair.value });
            }
            pair.value = pair.value.saturating_add(self.value_base);
        }
        self.bucket_next = bucket_end;
        Ok(())
    }
}
