//! The tail of a run file: slot table, directory, footer. All that is needed before a probe.
//!
//! Knows: the bytes after the buckets, and what makes them believable.
//! Never knows: what is in a bucket.

use std::ops::Range;

use super::Subject;
use super::bits::{Packer, WIDTH_MAX, read, width_of};
use super::error::CorruptRun;
use super::geometry::{FOOTER_BYTES, Geometry, KEY_COUNT_MAX, slot_table_bytes};
use super::span::RunSpan;
use crate::bytes::allocated;

const MAGIC: [u8; 8] = *b"QuipuRun";
const VERSION: u16 = 1;
/// What a checksum of the tail does not cover: itself, and the magic.
const UNCOVERED_BYTES: usize = 4 + 8;
const FIELDS_BYTES: u64 = 8 + 8 + 8 + 4 + 1 + 1 + 2;
const _: () = assert!(FIELDS_BYTES + 4 + 8 == FOOTER_BYTES, "docs/format-lookup.md draws 44 bytes");

/// What a run says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunHeader {
    pub(super) subject: Subject,
    pub(super) span: RunSpan,
    /// For each slot, one more than its highest ordinal; 0 if it has none.
    pub(super) ordinal_counts: Vec<u32>,
}

impl RunHeader {
    /// Where the values of each slot begin, and after the last one, where they end.
    pub(super) fn value_bases(&self) -> Vec<u64> {
        let counts = self.ordinal_counts.iter().copied().map(u64::from);
        let ends = counts.scan(0_u64, |sum, count| {
            *sum = sum.saturating_add(count);
            Some(*sum)
        });
        std::iter::once(0).chain(ends).collect()
    }
}

/// The last bytes of a run file: enough to know how long its tail is. Nothing else in it is
/// believed before the whole tail is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunFooter {
    first_slot: u64,
    key_count: u64,
    bucket_keys_min: u64,
    slot_count: u32,
    count_bits: u8,
    subject: u8,
    checksum: u32,
    file_bytes: u64,
}

impl RunFooter {
    /// Reads the footer from any last part of a file of `file_bytes`.
    pub(super) fn parse(suffix: &[u8], file_bytes: u64) -> Result<Self, CorruptRun> {
        let too_short = || {
            let found = u64::try_from(suffix.len()).unwrap_or(u64::MAX);
            CorruptRun::Length { part: "footer", expected: FOOTER_BYTES, found }
        };
        let (rest, magic) = suffix.split_last_chunk().ok_or_else(too_short)?;
        let (rest, checksum) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, version) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, [count_bits, subject]) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, slot_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, bucket_keys_min) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, key_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (_, first_slot) = rest.split_last_chunk().ok_or_else(too_short)?;
        if *magic != MAGIC {
            return Err(CorruptRun::Magic { expected: MAGIC, found: *magic });
        }
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(CorruptRun::Version { expected: VERSION, found: version });
        }
        let footer = Self {
            first_slot: u64::from_le_bytes(*first_slot),
            key_count: u64::from_le_bytes(*key_count),
            bucket_keys_min: u64::from_le_bytes(*bucket_keys_min),
            slot_count: u32::from_le_bytes(*slot_count),
            count_bits: *count_bits,
            subject: *subject,
            checksum: u32::from_le_bytes(*checksum),
            file_bytes,
        };
        footer.check_bounds()?;
        Ok(footer)
    }

    /// Where the tail is, the footer included.
    pub(super) fn tail(&self) -> Range<u64> {
        self.file_bytes.saturating_sub(self.tail_bytes())..self.file_bytes
    }

    fn tail_bytes(&self) -> u64 {
        let slot_count = u64::from(self.slot_count);
        Geometry::new(self.key_count, 0).tail_bytes(slot_count, self.count_bits.into())
    }

    fn check_bounds(&self) -> Result<(), CorruptRun> {
        RunSpan::new(self.first_slot, self.slot_count.into())?;
        for (field, max, found) in [
            ("key count", KEY_COUNT_MAX, self.key_count),
            ("width of a bucket's key count", WIDTH_MAX.into(), self.count_bits.into()),
            ("lowest key count of a bucket", KEY_COUNT_MAX, self.bucket_keys_min),
        ] {
            if found > max {
                return Err(CorruptRun::TooLarge { field, max, found });
            }
        }
        let (expected, found) = (self.tail_bytes(), self.file_bytes);
        if found < expected {
            return Err(CorruptRun::Length { part: "file shorter than its tail", expected, found });
        }
        Ok(())
    }
}

/// A tail that holds together.
#[derive(Debug)]
pub(super) struct RunTail {
    pub(super) head: RunHeader,
    pub(super) geometry: Geometry,
    /// How many keys come before each bucket, and after the last one, all.
    pub(super) keys_before: Vec<u64>,
    /// For each slot, where its values begin; after the last one, where they end.
    pub(super) value_bases: Vec<u64>,
}

impl RunTail {
    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(&self.head.ordinal_counts)
            .saturating_add(allocated(&self.keys_before))
            .saturating_add(allocated(&self.value_bases))
    }

    /// Believes a tail whose checksum is right and whose counts add up to the file's length.
    pub(super) fn parse(bytes: &[u8], file_bytes: u64) -> Result<Self, CorruptRun> {
        let footer = RunFooter::parse(bytes, file_bytes)?;
        let (expected, found) =
            (footer.tail_bytes(), u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let cut_short = CorruptRun::Length { part: "tail", expected, found };
        if found != expected {
            return Err(cut_short);
        }
        let covered = bytes.len().saturating_sub(UNCOVERED_BYTES);
        let found = crc32fast::hash(bytes.get(..covered).unwrap_or_default());
        if found != footer.checksum {
            return Err(CorruptRun::TailChecksum { expected: footer.checksum, found });
        }
        let slot_count = u64::from(footer.slot_count);
        let split = usize::try_from(slot_table_bytes(slot_count)).unwrap_or(usize::MAX);
        let (slots, directory) = bytes.split_at_checked(split).ok_or(cut_short)?;
        let (slots, _) = slots.as_chunks();
        let head = RunHeader {
            subject: Subject::from_code(footer.subject)?,
            span: RunSpan::new(footer.first_slot, slot_count)?,
            ordinal_counts: slots.iter().copied().map(u32::from_le_bytes).collect(),
        };
        let value_bases = head.value_bases();
        let ordinal_count = value_bases.last().copied().unwrap_or(0);
        let geometry = Geometry::new(footer.key_count, ordinal_count);
        let keys_before = read_directory(&footer, &geometry, directory)?;
        let buckets_bytes = file_bytes.saturating_sub(expected);
        if buckets_bytes != geometry.buckets_bytes() {
            let (part, expected) = ("buckets", geometry.buckets_bytes());
            return Err(CorruptRun::Length { part, expected, found: buckets_bytes });
        }
        Ok(Self { head, geometry, keys_before, value_bases })
    }
}

fn read_directory(
    footer: &RunFooter,
    geometry: &Geometry,
    directory: &[u8],
) -> Result<Vec<u64>, CorruptRun> {
    let width = u32::from(footer.count_bits);
    let cut_short = || {
        let found = u64::try_from(directory.len()).unwrap_or(u64::MAX);
        CorruptRun::Length { part: "directory", expected: geometry.directory_bytes(width), found }
    };
    // Few megabytes at the most, and they stay: no room beyond.
    let count = usize::try_from(geometry.bucket_count()).unwrap_or(0);
    let mut keys_before = Vec::with_capacity(count.saturating_add(1));
    keys_before.push(0);
    let mut sum = 0_u64;
    for bucket in 0..geometry.bucket_count() {
        let at = bucket.saturating_mul(width.into());
        let excess = read(directory, at, width).ok_or_else(cut_short)?;
        sum = sum.saturating_add(footer.bucket_keys_min).saturating_add(excess);
        keys_before.push(sum);
    }
    if sum != footer.key_count {
        return Err(CorruptRun::KeyCount { expected: footer.key_count, found: sum });
    }
    Ok(keys_before)
}

/// Appends the tail of a run whose buckets have these many keys.
pub(super) fn encode(head: &RunHeader, key_count: u64, bucket_keys: &[u64], bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    for count in &head.ordinal_counts {
        bytes.extend(count.to_le_bytes());
    }
    let bucket_keys_min = bucket_keys.iter().copied().min().unwrap_or(0);
    let excess = |keys: &u64| keys.saturating_sub(bucket_keys_min);
    let width = width_of(bucket_keys.iter().map(excess).max().unwrap_or(0));
    let mut packer = Packer::new(bytes);
    for keys in bucket_keys {
        packer.push(excess(keys), width);
    }
    packer.finish();
    bytes.extend(head.span.first_slot().to_le_bytes());
    bytes.extend(key_count.to_le_bytes());
    bytes.extend(bucket_keys_min.to_le_bytes());
    let slot_count = u32::try_from(head.span.slot_count()).unwrap_or(u32::MAX);
    bytes.extend(slot_count.to_le_bytes());
    bytes.extend([u8::try_from(width).unwrap_or(u8::MAX), head.subject.code()]);
    bytes.extend(VERSION.to_le_bytes());
    let checksum = crc32fast::hash(bytes.get(begin..).unwrap_or_default());
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(MAGIC);
}
