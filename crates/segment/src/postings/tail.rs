//! The tail of a posting file: where each bucket and its long lists are, and the footer.
//!
//! Knows: the bytes after the buckets, and what makes them believable.
//! Never knows: what is in a bucket.

use std::ops::Range;

use super::bucket::BucketFrame;
use super::error::CorruptPostings;
use super::key::{KEY_BITS, PostingKey};
use super::part::SLOT_PLACE_BITS;
use crate::bytes::{allocated, wide};
use crate::lookup::RunSpan;
use crate::lookup::bits::{Packer, WIDTH_MAX, read, width_of};
use crate::lookup::geometry::{bucket_of, bucket_prefix_min};

const MAGIC: [u8; 8] = *b"QuipuPst";
const VERSION: u16 = 1;
/// Bytes of the footer, at the very end of the file.
const FOOTER_BYTES: u64 = 56;
/// What a checksum of the tail does not cover: itself, and the magic.
const UNCOVERED_BYTES: usize = 4 + 8;
const _: () = assert!(
    8 * 4 + 4 + 4 + 1 + 1 + 2 + 4 + 8 == FOOTER_BYTES,
    "docs/format-logs.md draws 56 bytes"
);
/// Bytes that tell of the long lists of one bucket: its number, and how many bytes they take.
const LONG_ENTRY_BYTES: u64 = 4 + 8;
/// Postings of a bucket on average while the directory is small.
const BUCKET_POSTINGS_MEAN: u64 = 512;
/// The most buckets: beyond this many, buckets grow instead of the directory.
const BUCKET_COUNT_MAX: u64 = 1 << 19;
/// The most postings in one file: a limit for files, not a goal.
pub(super) const POSTING_COUNT_MAX: u64 = 1 << 40;

/// How many buckets a file with so many postings has.
pub(super) fn bucket_count(posting_count: u64) -> u64 {
    posting_count.div_ceil(BUCKET_POSTINGS_MEAN).clamp(1, BUCKET_COUNT_MAX)
}

/// Bits of a place in a file of so many slots. A single slot may need fewer: it may have few blocks.
pub(super) fn place_bits_max(slot_count: u64) -> u32 {
    SLOT_PLACE_BITS.saturating_add(slot_count.trailing_zeros())
}

/// What all buckets of a file have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileFrame {
    pub(super) span: RunSpan,
    pub(super) bucket_count: u64,
    pub(super) place_bits: u32,
}

impl FileFrame {
    pub(super) fn bucket_of(&self, key: PostingKey) -> u64 {
        bucket_of(key.number(), KEY_BITS, self.bucket_count)
    }

    /// What is known of one of the buckets before its bytes are.
    pub(super) fn bucket(&self, number: u64) -> BucketFrame {
        let begin = |bucket| bucket_prefix_min(bucket, KEY_BITS, self.bucket_count);
        let prefix_min = begin(number);
        BucketFrame {
            number,
            prefix_min,
            prefix_count: begin(number.saturating_add(1)).saturating_sub(prefix_min),
            slot_count: self.span.slot_count(),
            place_bits: self.place_bits,
        }
    }
}

/// The last bytes of a posting file: enough to know how long its tail is. Nothing else in it is
/// believed before the whole tail is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostingsFooter {
    first_slot: u64,
    posting_count: u64,
    key_count: u64,
    bucket_bytes_min: u64,
    slot_count: u32,
    long_count: u32,
    width: u8,
    place_bits: u8,
    checksum: u32,
    file_bytes: u64,
}

impl PostingsFooter {
    /// Its length, at the very end of a file.
    pub const BYTES: u64 = FOOTER_BYTES;

    /// Reads the footer from any last part of a file of `file_bytes`.
    pub fn parse(suffix: &[u8], file_bytes: u64) -> Result<Self, CorruptPostings> {
        let (part, expected, found) = ("footer", FOOTER_BYTES, wide(suffix.len()));
        let too_short = || CorruptPostings::Length { part, expected, found };
        let (rest, magic) = suffix.split_last_chunk().ok_or_else(too_short)?;
        let (rest, checksum) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, version) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, [width, place_bits]) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, long_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, slot_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, bucket_bytes_min) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, key_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (rest, posting_count) = rest.split_last_chunk().ok_or_else(too_short)?;
        let (_, first_slot) = rest.split_last_chunk().ok_or_else(too_short)?;
        if *magic != MAGIC {
            return Err(CorruptPostings::Magic { expected: MAGIC, found: *magic });
        }
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(CorruptPostings::Version { expected: VERSION, found: version });
        }
        let footer = Self {
            first_slot: u64::from_le_bytes(*first_slot),
            posting_count: u64::from_le_bytes(*posting_count),
            key_count: u64::from_le_bytes(*key_count),
            bucket_bytes_min: u64::from_le_bytes(*bucket_bytes_min),
            slot_count: u32::from_le_bytes(*slot_count),
            long_count: u32::from_le_bytes(*long_count),
            width: *width,
            place_bits: *place_bits,
            checksum: u32::from_le_bytes(*checksum),
            file_bytes,
        };
        footer.check_bounds()?;
        Ok(footer)
    }

    /// Where the tail is, the footer included.
    #[must_use]
    pub fn tail(&self) -> Range<u64> {
        self.file_bytes.saturating_sub(self.tail_bytes())..self.file_bytes
    }

    fn directory_bytes(&self) -> u64 {
        bucket_count(self.posting_count).saturating_mul(self.width.into()).div_ceil(8)
    }

    fn tail_bytes(&self) -> u64 {
        let long = LONG_ENTRY_BYTES.saturating_mul(self.long_count.into());
        self.directory_bytes().saturating_add(long).saturating_add(FOOTER_BYTES)
    }

    fn check_bounds(&self) -> Result<(), CorruptPostings> {
        RunSpan::new(self.first_slot, self.slot_count.into())?;
        for (field, max, found) in [
            ("posting count", POSTING_COUNT_MAX, self.posting_count),
            ("key count", self.posting_count, self.key_count),
            ("width of a bucket's length", WIDTH_MAX.into(), self.width.into()),
            ("lowest length of a bucket", self.file_bytes, self.bucket_bytes_min),
            (
                "width of a place",
                place_bits_max(self.slot_count.into()).into(),
                self.place_bits.into(),
            ),
        ] {
            if found > max {
                return Err(CorruptPostings::TooLarge { field, max, found });
            }
        }
        // Only a single slot may have few blocks.
        let is_narrow = u32::from(self.place_bits) < place_bits_max(self.slot_count.into());
        if is_narrow && self.slot_count > 1 {
            let reason = "its places are narrower than its slots";
            return Err(CorruptPostings::Content { part: "tail", number: 0, reason });
        }
        let (expected, found) = (self.tail_bytes(), self.file_bytes);
        if found < expected {
            let part = "file shorter than its tail";
            return Err(CorruptPostings::Length { part, expected, found });
        }
        Ok(())
    }
}

/// A tail that holds together.
#[derive(Debug)]
pub(super) struct PostingsTail {
    pub(super) frame: FileFrame,
    pub(super) posting_count: u64,
    pub(super) key_count: u64,
    /// Where each bucket ends; before it lie its long lists, and before them the bucket before.
    bucket_ends: Vec<u64>,
    /// Bytes of long lists, by bucket, for those that have any.
    long_bytes: Vec<(u64, u64)>,
}

impl PostingsTail {
    /// Believes a tail whose checksum is right and whose lengths add up to the file's.
    pub(super) fn parse(bytes: &[u8], file_bytes: u64) -> Result<Self, CorruptPostings> {
        let footer = PostingsFooter::parse(bytes, file_bytes)?;
        let (expected, found) = (footer.tail_bytes(), wide(bytes.len()));
        if found != expected {
            return Err(CorruptPostings::Length { part: "tail", expected, found });
        }
        let covered = bytes.len().saturating_sub(UNCOVERED_BYTES);
        let found = crc32fast::hash(bytes.get(..covered).unwrap_or_default());
        if found != footer.checksum {
            let (part, number, expected) = ("tail", 0, footer.checksum);
            return Err(CorruptPostings::Checksum { part, number, expected, found });
        }
        let content = |reason| CorruptPostings::Content { part: "tail", number: 0, reason };
        let directory = footer.directory_bytes();
        let long_end = LONG_ENTRY_BYTES.saturating_mul(footer.long_count.into());
        let longs = crate::bytes::slice(bytes, &(directory..directory.saturating_add(long_end)));
        let long_bytes = read_long_entries(longs);
        let mut longs = long_bytes.iter().peekable();
        let mut at = 0_u64;
        let count = bucket_count(footer.posting_count);
        // Few megabytes at the most, and they stay: no room beyond.
        let mut bucket_ends = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for bucket in 0..count {
            let bit = bucket.saturating_mul(footer.width.into());
            let excess = read(bytes, bit, footer.width.into());
            let excess = excess.ok_or_else(|| content("its directory is cut short"))?;
            let long = longs.next_if(|(of, _)| *of == bucket).map_or(0, |(_, bytes)| *bytes);
            let own = footer.bucket_bytes_min.saturating_add(excess);
            at = at.saturating_add(long).saturating_add(own);
            bucket_ends.push(at);
        }
        if longs.next().is_some() {
            return Err(content("its long lists belong to no bucket"));
        }
        if at.saturating_add(expected) != file_bytes {
            let (part, expected) = ("buckets", file_bytes.saturating_sub(expected));
            return Err(CorruptPostings::Length { part, expected, found: at });
        }
        let span = RunSpan::new(footer.first_slot, footer.slot_count.into())?;
        let PostingsFooter { posting_count, key_count, .. } = footer;
        let bucket_count = wide(bucket_ends.len());
        let frame = FileFrame { span, bucket_count, place_bits: footer.place_bits.into() };
        Ok(Self { frame, posting_count, key_count, bucket_ends, long_bytes })
    }

    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        allocated(&self.bucket_ends).saturating_add(allocated(&self.long_bytes))
    }

    /// The bytes of whole buckets with their long lists; `None` where there are none.
    pub(super) fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        let end_of = |bucket: u64| self.bucket_ends.get(usize::try_from(bucket).ok()?).copied();
        let start = match buckets.start.checked_sub(1) {
            None => 0,
            Some(before) => end_of(before)?,
        };
        let end = end_of(buckets.end.checked_sub(1)?)?;
        (!buckets.is_empty()).then_some(start..end)
    }

    /// The bytes of one bucket without its long lists, and where those begin.
    pub(super) fn bucket_range(&self, bucket: u64) -> Option<(Range<u64>, u64)> {
        let whole = self.buckets_range(bucket..bucket.saturating_add(1))?;
        let long = self.long_bytes.binary_search_by_key(&bucket, |(of, _)| *of);
        let long = long.ok().and_then(|index| self.long_bytes.get(index)).map_or(0, |it| it.1);
        Some((whole.start.saturating_add(long)..whole.end, whole.start))
    }
}

fn read_long_entries(bytes: &[u8]) -> Vec<(u64, u64)> {
    let (entries, _) = bytes.as_chunks::<12>();
    let entry = |entry: &[u8; 12]| {
        let [a, b, c, d, length @ ..] = *entry;
        (u64::from(u32::from_le_bytes([a, b, c, d])), u64::from_le_bytes(length))
    };
    entries.iter().map(entry).collect()
}

/// What the tail of a file tells.
#[derive(Debug)]
pub(super) struct TailSource {
    pub(super) frame: FileFrame,
    pub(super) posting_count: u64,
    pub(super) key_count: u64,
    /// Bytes of the long lists of each bucket, and of the bucket itself.
    pub(super) bucket_bytes: Vec<(u64, u64)>,
}

impl TailSource {
    /// Appends the tail.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let lengths = || self.bucket_bytes.iter().map(|(_, bytes)| *bytes);
        let bucket_bytes_min = lengths().min().unwrap_or(0);
        let width = width_of(lengths().max().unwrap_or(0).saturating_sub(bucket_bytes_min));
        let mut packer = Packer::new(out);
        lengths().for_each(|bytes| packer.push(bytes.saturating_sub(bucket_bytes_min), width));
        packer.finish();
        let mut long_count = 0_u32;
        for (bucket, (long, _)) in (0_u32..).zip(&self.bucket_bytes) {
            if *long > 0 {
                out.extend(bucket.to_le_bytes());
                out.extend(long.to_le_bytes());
                long_count = long_count.saturating_add(1);
            }
        }
        out.extend(self.frame.span.first_slot().to_le_bytes());
        out.extend(self.posting_count.to_le_bytes());
        out.extend(self.key_count.to_le_bytes());
        out.extend(bucket_bytes_min.to_le_bytes());
        out.extend(u32::try_from(self.frame.span.slot_count()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(long_count.to_le_bytes());
        let widths = [width, self.frame.place_bits];
        out.extend(widths.map(|bits| u8::try_from(bits).unwrap_or(u8::MAX)));
        out.extend(VERSION.to_le_bytes());
        let checksum = crc32fast::hash(out.get(begin..).unwrap_or_default());
        out.extend(checksum.to_le_bytes());
        out.extend(MAGIC);
    }
}
