//! Two neighbouring posting files of equal size become one, byte for byte the one that a direct build
//! gives.
//!
//! Knows: two files and the writer of the third.
//! Never knows: a log; the keys that the files keep are enough.

use std::ops::Range;

use super::bucket::{KeyPlaces, PlaceList};
use super::error::{CorruptPostings, PostingsMergeError};
use super::reader::Postings;
use super::tail::place_bits_max;
use super::writer::PostingsWriter;
use crate::bytes::slice;
use crate::lookup::{MergeStep, Side};
use crate::merge_input::{Bucketed, MergeInput};

/// A merge in progress. It holds the decoded keys of one piece of either side, and both tails.
#[derive(Debug)]
pub struct PostingsMerge {
    left: MergeInput<MergedFile>,
    right: MergeInput<MergedFile>,
    slot_count: u64,
    /// Taken when the merge is done.
    writer: Option<PostingsWriter>,
}

impl PostingsMerge {
    /// Begins to merge two halves.
    pub fn new(left: Postings, right: Postings) -> Result<Self, PostingsMergeError> {
        let (left_span, right_span) = (left.span(), right.span());
        let span = left_span.merged_with(&right_span);
        let span =
            span.ok_or(PostingsMergeError::NotHalves { left: left_span, right: right_span })?;
        let posting_count = left.posting_count().saturating_add(right.posting_count());
        let writer = PostingsWriter::new(span, posting_count, place_bits_max(span.slot_count()))?;
        let (left, right) = (MergeInput::new(MergedFile(left)), MergeInput::new(MergedFile(right)));
        Ok(Self { left, right, slot_count: span.slot_count(), writer: Some(writer) })
    }

    /// Supplies the bytes that [`Self::step`] asked for.
    pub fn supply(&mut self, side: Side, bytes: &[u8]) -> Result<(), PostingsMergeError> {
        let input = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        let supplied = input.supply(bytes).ok_or(PostingsMergeError::NotNeeded { side })?;
        supplied.map_err(|cause| PostingsMergeError::Corrupt { side, cause })
    }

    /// Appends as much of the merged file to `out` as can be known, and says what is missing.
    pub fn step(&mut self, out: &mut Vec<u8>) -> Result<MergeStep, PostingsMergeError> {
        while self.writer.is_some() {
            let Some(key) = self.next_key()? else { break };
            if let Some(writer) = &mut self.writer {
                writer.push(key, out)?;
            }
        }
        for (side, input) in [(Side::Left, &self.left), (Side::Right, &self.right)] {
            if let Some(range) = input.needed() {
                return Ok(MergeStep::Need { side, range });
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.finish(out)?;
        }
        Ok(MergeStep::Done)
    }

    /// The next key in order with the places of both sides; `None` while one side has no key at hand
    /// and more to come, and at the end.
    fn next_key(&mut self) -> Result<Option<KeyPlaces>, PostingsMergeError> {
        let (left, right) = (&mut self.left, &mut self.right);
        let prefix_of = |input: &MergeInput<MergedFile>| input.peek().map(|key| key.prefix);
        let (left_prefix, right_prefix) = (prefix_of(left), prefix_of(right));
        let is_known = |prefix: Option<u64>, input: &MergeInput<MergedFile>| {
            prefix.is_some() || input.is_at_end()
        };
        if !is_known(left_prefix, left) || !is_known(right_prefix, right) {
            return Ok(None);
        }
        let Some(prefix) = left_prefix.into_iter().chain(right_prefix).min() else {
            return Ok(None);
        };
        let take = |input: &mut MergeInput<MergedFile>, own: Option<u64>| {
            if own == Some(prefix) { input.next().map(|key| key.list) } else { None }
        };
        let (left, right) = (take(left, left_prefix), take(right, right_prefix));
        let list = PlaceList::merged(left, right, self.slot_count)
            .map_err(|(side, cause)| PostingsMergeError::Corrupt { side, cause })?;
        Ok(Some(KeyPlaces { prefix, list }))
    }
}

/// One side of a merge.
#[derive(Debug)]
struct MergedFile(Postings);

impl Bucketed for MergedFile {
    type Item = KeyPlaces;
    type Fault = CorruptPostings;

    fn bucket_count(&self) -> u64 {
        self.0.bucket_count()
    }

    fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        self.0.buckets_range(buckets)
    }

    fn decode(
        &self,
        bucket: u64,
        bytes: &[u8],
        keys: &mut Vec<KeyPlaces>,
    ) -> Result<(), CorruptPostings> {
        self.0.decode(bucket, bytes, keys)
    }

    fn wrong_length(expected: u64, found: u64) -> CorruptPostings {
        CorruptPostings::Length { part: "piece of buckets", expected, found }
    }
}

/// Merges two posting files that are in memory.
pub fn merge_posting_files(left: &[u8], right: &[u8]) -> Result<Vec<u8>, PostingsMergeError> {
    let open = |side, file| {
        Postings::from_file(file).map_err(|cause| PostingsMergeError::Corrupt { side, cause })
    };
    let mut merge = PostingsMerge::new(open(Side::Left, left)?, open(Side::Right, right)?)?;
    let mut out = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut out)? {
        let file = match side {
            Side::Left => left,
            Side::Right => right,
        };
        merge.supply(side, slice(file, &range))?;
    }
    Ok(out)
}
