//! The container: buckets, and a tail that stays in memory and says where each bucket is.

use std::ops::Range;

use super::bits::{Packer, WIDTH_MAX, read, width_of};
use super::bucket::{CHECKSUM_BYTES, KeyLayout, Keys, unseal};
use super::error::{BuildError, CorruptIndex};
use super::key::{IndexKey, RunSubject};
use super::part::SLOT_PLACE_BITS;
use super::span::RunSpan;
use crate::bytes::{allocated, slice, wide};

const MAGIC: [u8; 8] = *b"QuipuIdx";
/// The ends of files that development builds wrote.
const UNRELEASED_MAGICS: [[u8; 8]; 2] = [*b"QuipuRun", *b"QuipuPst"];
const VERSION: u8 = 1;
/// Length of the footer, at the very end of the file: seven words.
const FOOTER_BYTES: u64 = 7 * 8;
/// What the checksum of the tail does not cover: itself, and the magic.
const UNCOVERED_BYTES: usize = 4 + 8;
const SLOT_ENTRY_BYTES: u64 = 4;
/// Bytes that tell of the long lists of one bucket: its number, and how many bytes they take.
const LONG_ENTRY_BYTES: u64 = 4 + 8;
/// The most buckets: beyond this many, buckets grow instead of the directory.
const BUCKET_COUNT_MAX: u64 = 1 << 19;
/// The fewest bits of an ordinal. With them a key takes at least a byte, so that the length of a bucket
/// tells how many keys it has.
const ORDINAL_BITS_MIN: u32 = 4;

/// What all buckets of a file have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) subject: RunSubject,
    pub(super) span: RunSpan,
    /// Ordinals, or postings.
    pub(super) item_count: u64,
    pub(super) bucket_count: u64,
    /// Bits of an ordinal, or of the place of a posting.
    pub(super) value_bits: u32,
    /// How many keys could be in a bucket.
    key_span: u64,
    /// Of the keys that have ordinals.
    low_bits: u32,
}

impl Shape {
    pub(super) fn new(
        subject: RunSubject,
        span: RunSpan,
        item_count: u64,
        value_bits: u32,
    ) -> Self {
        let bucket_items = if subject.has_lists() { 512 } else { 256 };
        let bucket_count = item_count.div_ceil(bucket_items).clamp(1, BUCKET_COUNT_MAX);
        let all_keys = 1_u64.checked_shl(subject.key_bits()).unwrap_or(0);
        let keys_each = all_keys.checked_div(item_count).unwrap_or(all_keys);
        let key_span = all_keys.div_ceil(bucket_count);
        let low_bits = keys_each.checked_ilog2().unwrap_or(0);
        Self { subject, span, item_count, bucket_count, value_bits, key_span, low_bits }
    }

    /// The shape of a run whose values are ordinals, below `ordinal_end` when those of all slots are laid
    /// end to end.
    pub(super) fn of_ordinals(
        subject: RunSubject,
        span: RunSpan,
        key_count: u64,
        ordinal_end: u64,
    ) -> Self {
        let value_bits = width_of(ordinal_end.saturating_sub(1)).max(ORDINAL_BITS_MIN);
        Self::new(subject, span, key_count, value_bits)
    }

    /// The most ordinals or postings in one file: a limit for files, not a goal. A run with 2^36 hashes
    /// would answer one absent hash in eight with a false candidate.
    pub(super) fn item_count_max(subject: RunSubject) -> u64 {
        if subject.has_lists() { 1 << 40 } else { 1 << 36 }
    }

    pub(super) fn check_item_count(&self) -> Result<(), BuildError> {
        let (max, found) = (Self::item_count_max(self.subject), self.item_count);
        if found > max { Err(BuildError::TooMany { max, found }) } else { Ok(()) }
    }

    /// The bucket of a key: its place among all keys, scaled.
    pub(super) fn bucket_of(&self, key: u64) -> u64 {
        let scaled = key.saturating_mul(self.bucket_count);
        scaled.checked_shr(self.subject.key_bits()).unwrap_or(0)
    }

    /// The lowest key of a bucket; of the one after the last, one more than the highest key.
    pub(super) fn key_min(&self, bucket: u64) -> u64 {
        let scaled = bucket.min(self.bucket_count).checked_shl(self.subject.key_bits());
        scaled.unwrap_or(u64::MAX).div_ceil(self.bucket_count)
    }

    /// How keys are packed in a bucket of posting lists.
    pub(super) fn list_keys(&self, key_count: u64) -> KeyLayout {
        let keys_each = self.key_span.checked_div(key_count).unwrap_or(self.key_span);
        let low_bits = keys_each.checked_ilog2().unwrap_or(0);
        KeyLayout { key_count, low_bits, zero_count: self.zero_count(low_bits) }
    }

    /// How keys are packed in a bucket of ordinals.
    pub(super) fn ordinal_keys(&self, key_count: u64) -> KeyLayout {
        let zero_count = self.zero_count(self.low_bits);
        KeyLayout { key_count, low_bits: self.low_bits, zero_count }
    }

    /// How many keys a bucket of ordinals of this length has.
    #[inline]
    pub(super) fn ordinal_count(&self, bucket_bytes: u64) -> u64 {
        let bits = bucket_bytes.saturating_sub(wide(CHECKSUM_BYTES)).saturating_mul(8);
        let key_bits = u64::from(self.low_bits.saturating_add(self.value_bits)).saturating_add(1);
        bits.saturating_sub(self.zero_count(self.low_bits)).checked_div(key_bits).unwrap_or(0)
    }

    /// Bytes of a bucket of ordinals with `key_count` keys.
    pub(super) fn ordinal_bucket_bytes(&self, key_count: u64) -> u64 {
        let values = key_count.saturating_mul(self.value_bits.into());
        let bits = self.ordinal_keys(key_count).end().saturating_add(values);
        bits.div_ceil(8).saturating_add(wide(CHECKSUM_BYTES))
    }

    /// What the directory says of a bucket of this length.
    fn bucket_size(&self, bytes: u64) -> u64 {
        if self.subject.has_lists() { bytes } else { self.ordinal_count(bytes) }
    }

    fn bucket_bytes(&self, size: u64) -> u64 {
        if self.subject.has_lists() { size } else { self.ordinal_bucket_bytes(size) }
    }

    fn zero_count(&self, low_bits: u32) -> u64 {
        self.key_span.saturating_sub(1).checked_shr(low_bits).unwrap_or(0)
    }

    fn slot_table_bytes(&self) -> u64 {
        let slots = if self.subject.has_lists() { 0 } else { self.span.slot_count() };
        slots.saturating_mul(SLOT_ENTRY_BYTES)
    }

    fn directory_bytes(&self, width: u32) -> u64 {
        self.bucket_count.saturating_mul(width.into()).div_ceil(8)
    }
}

/// Bits of a place in a file of `slot_count` slots. A file of one slot may need fewer.
pub(super) fn place_bits_max(slot_count: u64) -> u32 {
    SLOT_PLACE_BITS.saturating_add(slot_count.trailing_zeros())
}

/// The last bytes of a file: enough to know how long its tail is. Only the bounds of its numbers are
/// checked before the whole tail is there.
#[derive(Clone, Copy, Debug)]
struct Footer {
    shape: Shape,
    key_count: u64,
    bucket_size_min: u64,
    long_count: u64,
    /// Of the directory.
    width: u32,
    checksum: u32,
}

impl Footer {
    /// Reads the footer from any last part of a file of `file_bytes`.
    fn parse(suffix: &[u8], file_bytes: u64) -> Result<Self, CorruptIndex> {
        let (expected, found) = (FOOTER_BYTES, wide(suffix.len()));
        let too_short = || CorruptIndex::Length { part: "footer", expected, found };
        let magic = suffix.last_chunk::<8>().ok_or_else(too_short)?;
        if UNRELEASED_MAGICS.contains(magic) {
            return Err(CorruptIndex::Unreleased);
        }
        if *magic != MAGIC {
            return Err(CorruptIndex::Magic { expected: MAGIC, found: *magic });
        }
        let footer: &[u8; 56] = suffix.last_chunk().ok_or_else(too_short)?;
        let (words, _) = footer.as_chunks::<8>();
        let [first_slot, item_count, key_count, bucket_size_min, counts, rest, _] = words else {
            return Err(too_short());
        };
        let [width, value_bits, subject, version, checksum @ ..] = *rest;
        if version != VERSION {
            return Err(CorruptIndex::Version { expected: VERSION, found: version });
        }
        let [first_slot, item_count, key_count, bucket_size_min, counts] =
            [first_slot, item_count, key_count, bucket_size_min, counts]
                .map(|word| u64::from_le_bytes(*word));
        let span = RunSpan::new(first_slot, counts & u64::from(u32::MAX))?;
        let found = subject;
        let subject = RunSubject::from_code(found).ok_or(CorruptIndex::Subject { found })?;
        let footer = Self {
            shape: Shape::new(subject, span, item_count, value_bits.into()),
            key_count,
            bucket_size_min,
            long_count: counts >> 32,
            width: width.into(),
            checksum: u32::from_le_bytes(checksum),
        };
        footer.check_bounds(file_bytes)?;
        Ok(footer)
    }

    fn check_bounds(&self, file_bytes: u64) -> Result<(), CorruptIndex> {
        let shape = &self.shape;
        let (lists, slot_count) = (shape.subject.has_lists(), shape.span.slot_count());
        let (long_count_max, value_bits_max) =
            if lists { (shape.bucket_count, place_bits_max(slot_count)) } else { (0, WIDTH_MAX) };
        for (field, max, found) in [
            ("entry count", Shape::item_count_max(shape.subject), shape.item_count),
            ("key count", shape.item_count, self.key_count),
            ("width of a bucket's size", WIDTH_MAX.into(), self.width.into()),
            ("size of the smallest bucket", file_bytes, self.bucket_size_min),
            ("number of buckets with long lists", long_count_max, self.long_count),
            ("width of a value", value_bits_max.into(), shape.value_bits.into()),
        ] {
            if found > max {
                return Err(CorruptIndex::TooLarge { field, max, found });
            }
        }
        let fault =
            |reason| CorruptIndex::Content { part: "footer before byte", at: file_bytes, reason };
        // Only a single slot may have few blocks.
        if lists && slot_count > 1 && shape.value_bits < value_bits_max {
            return Err(fault("its places are narrower than its slots"));
        }
        if !lists && self.key_count != shape.item_count {
            return Err(fault("it has other numbers of keys and of ordinals"));
        }
        let (expected, found) = (self.tail_bytes(), file_bytes);
        if found < expected {
            let part = "file shorter than its tail";
            return Err(CorruptIndex::Length { part, expected, found });
        }
        Ok(())
    }

    fn tail_bytes(&self) -> u64 {
        let long = LONG_ENTRY_BYTES.saturating_mul(self.long_count);
        let tables = self.shape.slot_table_bytes().saturating_add(long);
        tables.saturating_add(self.shape.directory_bytes(self.width)).saturating_add(FOOTER_BYTES)
    }
}

/// A run that is being opened, by two reads of its file: its footer tells where its tail is, and the tail
/// is all that a probe needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOpening {
    file_bytes: u64,
    /// Where the tail is; `None` until the footer was supplied.
    tail: Option<Range<u64>>,
}

impl RunOpening {
    /// Begins to open a file of `file_bytes` bytes.
    #[must_use]
    pub fn new(file_bytes: u64) -> Self {
        Self { file_bytes, tail: None }
    }

    /// The bytes of the file that are needed next: those of the footer, then those of the tail.
    #[must_use]
    pub fn needed(&self) -> Range<u64> {
        let footer = self.file_bytes.saturating_sub(FOOTER_BYTES)..self.file_bytes;
        self.tail.clone().unwrap_or(footer)
    }

    /// Supplies the bytes that [`Self::needed`] names; `None` if those of the tail are still needed.
    pub fn supply(&mut self, bytes: &[u8]) -> Result<Option<Run>, CorruptIndex> {
        if self.tail.is_some() {
            return Run::parse(bytes, self.file_bytes).map(Some);
        }
        let footer = Footer::parse(bytes, self.file_bytes)?;
        let start = self.file_bytes.saturating_sub(footer.tail_bytes());
        self.tail = Some(start..self.file_bytes);
        Ok(None)
    }
}

/// A run whose tail is in memory and holds together. The caller supplies buckets, which are checked one
/// by one.
#[derive(Debug)]
pub struct Run {
    pub(super) shape: Shape,
    key_count: u64,
    /// Where each bucket begins with the long lists before it; after the last one, the tail.
    bucket_starts: Vec<u64>,
    /// The buckets that have long lists, and how many bytes those take.
    long_bytes: Vec<(u64, u64)>,
    /// Where the ordinals of each slot begin, and after the last one, where they end.
    pub(super) ordinal_bases: Vec<u64>,
}

/// Where a bucket is in the file.
#[derive(Clone, Debug)]
pub(super) struct BucketPlace {
    /// Where the long lists before it begin.
    pub(super) long_start: u64,
    pub(super) range: Range<u64>,
}

impl Run {
    /// Opens a run whose whole file is in memory.
    pub fn from_file(file: &[u8]) -> Result<Self, CorruptIndex> {
        let mut opening = RunOpening::new(wide(file.len()));
        loop {
            if let Some(run) = opening.supply(slice(file, &opening.needed()))? {
                return Ok(run);
            }
        }
    }

    /// Reads a tail, whose checksum must be right and whose lengths must add up to the file's.
    fn parse(tail: &[u8], file_bytes: u64) -> Result<Self, CorruptIndex> {
        let footer = Footer::parse(tail, file_bytes)?;
        let (expected, found) = (footer.tail_bytes(), wide(tail.len()));
        if found != expected {
            return Err(CorruptIndex::Length { part: "tail", expected, found });
        }
        let at = file_bytes.saturating_sub(expected);
        let covered = tail.len().saturating_sub(UNCOVERED_BYTES);
        let found = crc32fast::hash(tail.get(..covered).unwrap_or_default());
        if found != footer.checksum {
            let (part, expected) = ("tail at byte", footer.checksum);
            return Err(CorruptIndex::Checksum { part, at, expected, found });
        }
        let (shape, fault) =
            (footer.shape, |reason| CorruptIndex::Content { part: "tail at byte", at, reason });
        let slots_end = shape.slot_table_bytes();
        let directory_end = slots_end.saturating_add(shape.directory_bytes(footer.width));
        let longs_end =
            directory_end.saturating_add(LONG_ENTRY_BYTES.saturating_mul(footer.long_count));
        let ordinal_bases = read_slot_table(slice(tail, &(0..slots_end)));
        if !shape.subject.has_lists() {
            let end = ordinal_bases.last().copied().unwrap_or(0);
            let own = Shape::of_ordinals(shape.subject, shape.span, shape.item_count, end);
            if own.value_bits != shape.value_bits {
                return Err(fault("the width of its ordinals is not that of their number"));
            }
        }
        let long_bytes = read_long_entries(slice(tail, &(directory_end..longs_end)));
        let directory = slice(tail, &(slots_end..directory_end));
        let bucket_starts = read_directory(&footer, directory, &long_bytes).map_err(fault)?;
        if bucket_starts.last() != Some(&at) {
            let found = bucket_starts.last().copied().unwrap_or(0);
            return Err(CorruptIndex::Length { part: "buckets", expected: at, found });
        }
        Ok(Self { shape, key_count: footer.key_count, bucket_starts, long_bytes, ordinal_bases })
    }

    /// What the run is an index of.
    #[must_use]
    pub fn subject(&self) -> RunSubject {
        self.shape.subject
    }

    /// The slots that it covers.
    #[must_use]
    pub fn span(&self) -> RunSpan {
        self.shape.span
    }

    /// How many keys it has.
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// How many ordinals or postings it has.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.shape.item_count
    }

    /// How many buckets it has.
    #[must_use]
    pub fn bucket_count(&self) -> u64 {
        self.shape.bucket_count
    }

    /// About how much memory its tail takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let lists = allocated(&self.bucket_starts).saturating_add(allocated(&self.long_bytes));
        wide(lists.saturating_add(allocated(&self.ordinal_bases)))
    }

    /// The bytes of the file that a probe for a key needs: one bucket.
    #[must_use]
    pub fn bucket_range(&self, key: IndexKey) -> Range<u64> {
        self.place(self.shape.bucket_of(key.number())).map_or(0..0, |place| place.range)
    }

    /// The bytes of whole buckets with their long lists; `None` where there are none.
    #[must_use]
    pub fn buckets_range(&self, buckets: Range<u64>) -> Option<Range<u64>> {
        let start = self.place(buckets.start)?.long_start;
        let end = self.place(buckets.end.checked_sub(1)?)?.range.end;
        (!buckets.is_empty()).then_some(start..end)
    }

    /// All buckets, with the bytes of each and of its long lists.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, Range<u64>)> {
        let starts = self.bucket_starts.iter().zip(self.bucket_starts.iter().skip(1));
        (0..).zip(starts.map(|(start, end)| *start..*end))
    }

    #[inline]
    pub(super) fn place(&self, bucket: u64) -> Option<BucketPlace> {
        let (_, from) = self.bucket_starts.split_at_checked(usize::try_from(bucket).ok()?)?;
        let [long_start, end, ..] = *from else { return None };
        let long = self.long_bytes.binary_search_by_key(&bucket, |(of, _)| *of);
        let long = long.ok().and_then(|index| self.long_bytes.get(index)).map_or(0, |it| it.1);
        Some(BucketPlace { long_start, range: long_start.saturating_add(long)..end })
    }

    /// The place of a bucket whose bytes, long lists included if `is_whole`, are as many as these.
    #[inline]
    pub(super) fn expect_bucket(
        &self,
        bucket: u64,
        bytes: &[u8],
        is_whole: bool,
    ) -> Result<BucketPlace, CorruptIndex> {
        let Some(place) = self.place(bucket) else {
            let reason = "there is no such bucket";
            return Err(CorruptIndex::Content { part: "bucket at byte", at: 0, reason });
        };
        let start = if is_whole { place.long_start } else { place.range.start };
        let (expected, found) = (place.range.end.saturating_sub(start), wide(bytes.len()));
        if found != expected {
            return Err(CorruptIndex::Length { part: "bucket", expected, found });
        }
        Ok(place)
    }

    /// A bucket of ordinals, with the bytes before its checksum, which is verified unless `is_verified`.
    #[inline]
    pub(super) fn ordinal_bucket<'a>(
        &self,
        number: u64,
        bytes: &'a [u8],
        is_verified: bool,
    ) -> Result<Keys<'a>, CorruptIndex> {
        if self.shape.subject.has_lists() {
            return Err(CorruptIndex::OtherValues { expected: "ordinals", found: self.subject() });
        }
        let place = self.expect_bucket(number, bytes, false)?;
        let at = place.range.start;
        let bits = if is_verified {
            bytes.split_last_chunk::<CHECKSUM_BYTES>().map_or(bytes, |(body, _)| body)
        } else {
            unseal("bucket at byte", at, number, bytes)?
        };
        let layout = self.shape.ordinal_keys(self.shape.ordinal_count(wide(bytes.len())));
        Ok(Keys { layout, bits, key_min: self.shape.key_min(number), at })
    }
}

fn read_slot_table(table: &[u8]) -> Vec<u64> {
    let (counts, _) = table.as_chunks();
    let ends = counts.iter().scan(0_u64, |sum, count| {
        *sum = sum.saturating_add(u32::from_le_bytes(*count).into());
        Some(*sum)
    });
    std::iter::once(0).chain(ends).collect()
}

fn read_long_entries(bytes: &[u8]) -> Vec<(u64, u64)> {
    let (entries, _) = bytes.as_chunks::<12>();
    let entry = |entry: &[u8; 12]| {
        let [a, b, c, d, length @ ..] = *entry;
        (u64::from(u32::from_le_bytes([a, b, c, d])), u64::from_le_bytes(length))
    };
    entries.iter().map(entry).collect()
}

/// Where each bucket begins, or what is wrong with the directory, which has the length of each bucket of
/// posting lists and the number of keys of each bucket of ordinals: those numbers are narrower.
fn read_directory(
    footer: &Footer,
    directory: &[u8],
    long_bytes: &[(u64, u64)],
) -> Result<Vec<u64>, &'static str> {
    let shape = &footer.shape;
    let mut longs = long_bytes.iter().peekable();
    let (mut at, mut keys) = (0_u64, 0_u64);
    // A few megabytes at the most, and they stay: no room beyond.
    let count = usize::try_from(shape.bucket_count).unwrap_or(0);
    let mut starts = Vec::with_capacity(count.saturating_add(1));
    starts.push(at);
    for bucket in 0..shape.bucket_count {
        let excess = read(directory, bucket.saturating_mul(footer.width.into()), footer.width);
        let size = footer.bucket_size_min.saturating_add(excess.ok_or("it is cut short")?);
        keys = keys.saturating_add(size);
        let bytes = shape.bucket_bytes(size);
        let long = longs.next_if(|(of, _)| *of == bucket).map_or(0, |(_, bytes)| *bytes);
        at = at.saturating_add(long).saturating_add(bytes);
        starts.push(at);
    }
    if longs.next().is_some() {
        return Err("its long lists belong to no bucket");
    }
    if !shape.subject.has_lists() && keys != footer.key_count {
        return Err("its buckets have another number of keys than the footer says");
    }
    Ok(starts)
}

/// Appends the tail of a run. `bucket_bytes` has the bytes of the long lists of each bucket, and of the
/// bucket itself.
pub(super) fn put_tail(
    shape: &Shape,
    key_count: u64,
    ordinal_counts: &[u32],
    bucket_bytes: &[(u64, u64)],
    out: &mut Vec<u8>,
) {
    let begin = out.len();
    out.extend(ordinal_counts.iter().flat_map(|count| count.to_le_bytes()));
    let sizes = || bucket_bytes.iter().map(|(_, bytes)| shape.bucket_size(*bytes));
    let bucket_size_min = sizes().min().unwrap_or(0);
    let width = width_of(sizes().max().unwrap_or(0).saturating_sub(bucket_size_min));
    let mut packer = Packer::new(out);
    sizes().for_each(|size| packer.push(size.saturating_sub(bucket_size_min), width));
    packer.finish();
    let mut long_count = 0_u32;
    for (bucket, (long, _)) in (0_u32..).zip(bucket_bytes).filter(|(_, (long, _))| *long > 0) {
        out.extend(bucket.to_le_bytes());
        out.extend(long.to_le_bytes());
        long_count = long_count.saturating_add(1);
    }
    for word in [shape.span.first_slot(), shape.item_count, key_count, bucket_size_min] {
        out.extend(word.to_le_bytes());
    }
    out.extend(u32::try_from(shape.span.slot_count()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(long_count.to_le_bytes());
    out.extend([width, shape.value_bits].map(|bits| u8::try_from(bits).unwrap_or(u8::MAX)));
    out.extend([shape.subject.code(), VERSION]);
    let checksum = crc32fast::hash(out.get(begin..).unwrap_or_default());
    out.extend(checksum.to_le_bytes());
    out.extend(MAGIC);
}
