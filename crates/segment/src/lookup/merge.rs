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
use super::run::Run;
use super::writer::RunWriter;
use crate::bytes::slice;
use crate::merge_input::{Bucketed, MergeInput};

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
    left: MergeInput<MovedRun>,
    right: MergeInput<MovedRun>,
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
        let left = MergeInput::new(MovedRun { run: left, value_base: 0 });
        let right = MergeInput::new(MovedRun { run: right, value_base });
        Ok(Self { left, right, writer: Some(writer) })
    }

    /// Supplies the bytes that [`Self::step`] asked for.
    pub fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), MergeError> {
        let input = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        let supplied = input.supply(bytes).ok_or(MergeError::NotNeeded { side })?;
        supplied.map_err(|cause| MergeError::Corrupt { side, cause })
    }

    /// Appends as much of the merged run to `bytes` as can be known, and says what is missing.
    pub fn step(&mut self, bytes: &mut Vec<u8>) -> Result<MergeStep, MergeError> {
        let Some(writer) = &mut self.writer else { return Ok(MergeStep::Done) };
        merge_pairs(&mut self.left, &mut self.right, writer, bytes)?;
        for (side, input) in [(Side::Left, &self.left), (Side::Right, &self.right)] {
            if let Some(range) = input.needed() {
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
    left: &mut MergeInput<MovedRun>,
    right: &mut MergeInput<MovedRun>,
    writer: &mut RunWriter,
    bytes: &mut Vec<u8>,
) -> Result<(), BuildError> {
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) if one < other => left.next(),
            (Some(_), Some(_)) => right.next(),
            (Some(_), None) if right.is_at_end() => left.next(),
            (None, Some(_)) if left.is_at_end() => right.next(),
            (_, None) | (None, _) => return Ok(()),
        };
        let Some(pair) = next else { return Ok(()) };
        writer.push_pair(pair, bytes)?;
    }
}

/// One side of a merge.
#[derive(Debug)]
struct MovedRun {
    run: Run,
    /// What is added to this side's values.
    value_base: u64,
}

impl Bucketed for MovedRun {
    type Item = Pair;
    type Fault = CorruptRun;

    fn bucket_count(&self) -> u64 {
        self.run.bucket_count()
    }

    fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        self.run.buckets_range(buckets)
    }

    fn decode(&self, bucket: u64, bytes: &[u8], pairs: &mut Vec<Pair>) -> Result<(), CorruptRun> {
        let begin = pairs.len();
        self.run.open(bucket, bytes)?.decode(pairs)?;
        let value_count = self.run.value_count();
        for pair in pairs.iter_mut().skip(begin) {
            if pair.value >= value_count {
                let (field, max) = ("value of a key", value_count.saturating_sub(1));
                return Err(CorruptRun::TooLarge { field, max, found: pair.value });
            }
            pair.value = pair.value.saturating_add(self.value_base);
        }
        Ok(())
    }

    fn wrong_length(expected: u64, found: u64) -> CorruptRun {
        CorruptRun::Length { part: "piece of buckets", expected, found }
    }
}
