//! e2store, the container of all archives: a row of typed, length-prefixed entries.

use std::io::{self, Read, Write};

use snap::read::FrameDecoder;
use snap::write::FrameEncoder;

use super::error::ArchiveFault;

/// Bytes before an entry's data: tag, length, two reserved bytes.
pub(super) const HEAD_BYTES: u64 = 8;
/// The largest entry that other readers accept; a longer length is damage.
pub(super) const ENTRY_BYTES_MAX: u32 = 50 * 1024 * 1024;
/// The most that an entry may inflate to. No block of any network comes near it; it stops a
/// crafted entry from taking the machine's memory.
const INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What an entry holds, as its first two bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Version,
    Header,
    Body,
    Receipts,
    SlimReceipts,
    TotalDifficulty,
    Proof,
    Accumulator,
    BlockIndex,
    DynamicBlockIndex,
    /// Empty or unknown: passed over.
    Other([u8; 2]),
}

impl Tag {
    pub(super) fn from_bytes(bytes: [u8; 2]) -> Self {
        match bytes {
            [0x65, 0x32] => Self::Version,
            [0x03, 0x00] => Self::Header,
            [0x04, 0x00] => Self::Body,
            [0x05, 0x00] => Self::Receipts,
            // 08 00 and 09 00 were written for a few days in February 2026, before the tags of
            // slim receipts and proofs were settled.
            [0x0a | 0x08, 0x00] => Self::SlimReceipts,
            [0x0b | 0x09, 0x00] => Self::Proof,
            [0x06, 0x00] => Self::TotalDifficulty,
            [0x07, 0x00] => Self::Accumulator,
            [0x66, 0x32] => Self::BlockIndex,
            [0x67, 0x32] => Self::DynamicBlockIndex,
            other => Self::Other(other),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Version => [0x65, 0x32],
            Self::Header => [0x03, 0x00],
            Self::Body => [0x04, 0x00],
            Self::Receipts => [0x05, 0x00],
            Self::SlimReceipts => [0x0a, 0x00],
            Self::Proof => [0x0b, 0x00],
            Self::TotalDifficulty => [0x06, 0x00],
            Self::Accumulator => [0x07, 0x00],
            Self::BlockIndex => [0x66, 0x32],
            Self::DynamicBlockIndex => [0x67, 0x32],
            Self::Other(bytes) => bytes,
        }
    }

    /// The tag's name in error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Header => "header",
            Self::Body => "body",
            Self::Receipts => "receipts",
            Self::SlimReceipts => "slim receipts",
            Self::Proof => "proof",
            Self::TotalDifficulty => "total difficulty",
            Self::Accumulator => "accumulator",
            Self::BlockIndex => "block index",
            Self::DynamicBlockIndex => "dynamic block index",
            Self::Other(_) => "unknown",
        }
    }
}

/// Bytes that can be read at any place: a file, or memory in tests.
pub trait ReadAt: Send + Sync {
    /// How many bytes there are.
    fn bytes_count(&self) -> u64;

    /// Fills `buffer` from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for Vec<u8> {
    fn bytes_count(&self) -> u64 {
        u64::try_from(self.len()).unwrap_or(u64::MAX)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buffer.len());
        let source = end.and_then(|end| self.get(start..end));
        buffer.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file and its length when it was opened.
#[derive(Debug)]
pub struct FileBytes {
    file: std::fs::File,
    bytes_count: u64,
}

impl FileBytes {
    /// Opens a file for reading.
    pub fn open(path: &std::path::Path) -> io::Result<Self> {
        // Before it is opened: opening a pipe would wait for its writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let file = std::fs::File::open(path)?;
        let bytes_count = file.metadata()?.len();
        Ok(Self { file, bytes_count })
    }
}

impl ReadAt for FileBytes {
    fn bytes_count(&self) -> u64 {
        self.bytes_count
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }
}

/// Where an entry lies and what it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct E2storeEntry {
    pub(super) tag: Tag,
    /// Of the entry's head.
    pub(super) offset: u64,
    pub(super) data_bytes: u32,
}

impl E2storeEntry {
    /// Reads the head at `offset` and checks that the whole entry lies inside the source.
    pub(super) fn read(source: &impl ReadAt, offset: u64) -> Result<Self, ArchiveFault> {
        let left = source.bytes_count().saturating_sub(offset);
        if left < HEAD_BYTES {
            return Err(ArchiveFault::Truncated { what: "entry head", needed: HEAD_BYTES, left });
        }
        let mut head = [0; 8];
        source.read_exact_at(&mut head, offset)?;
        let [tag_0, tag_1, length_0, length_1, length_2, length_3, reserved_0, reserved_1] = head;
        let tag = Tag::from_bytes([tag_0, tag_1]);
        let data_bytes = u32::from_le_bytes([length_0, length_1, length_2, length_3]);
        if [reserved_0, reserved_1] != [0, 0] {
            return Err(ArchiveFault::Reserved { found: [reserved_0, reserved_1] });
        }
        if data_bytes > ENTRY_BYTES_MAX {
            return Err(ArchiveFault::EntryTooLarge { found: data_bytes, limit: ENTRY_BYTES_MAX });
        }
        let left = left.saturating_sub(HEAD_BYTES);
        if u64::from(data_bytes) > left {
            return Err(ArchiveFault::Truncated {
                what: tag.name(),
                needed: data_bytes.into(),
                left,
            });
        }
        Ok(Self { tag, offset, data_bytes })
    }

    /// The offset of the entry's data.
    pub(super) fn data_offset(&self) -> u64 {
        self.offset.saturating_add(HEAD_BYTES)
    }

    /// The offset of the byte after the entry.
    pub(super) fn end(&self) -> u64 {
        self.data_offset().saturating_add(self.data_bytes.into())
    }

    /// The entry's data as it lies in the source.
    pub(super) fn read_data(&self, source: &impl ReadAt) -> Result<Vec<u8>, ArchiveFault> {
        let length = usize::try_from(self.data_bytes).map_err(io::Error::other)?;
        let mut data = vec![0; length];
        source.read_exact_at(&mut data, self.data_offset())?;
        Ok(data)
    }

    /// The entry's data, which must have a fixed length.
    pub(super) fn read_array<const N: usize>(
        &self,
        source: &impl ReadAt,
    ) -> Result<[u8; N], ArchiveFault> {
        let found = u64::from(self.data_bytes);
        let data = self.read_data(source)?;
        data.try_into().map_err(|_| ArchiveFault::DataLength {
            what: self.tag.name(),
            found,
            expected: N,
        })
    }

    /// The entry's data, inflated.
    pub(super) fn read_inflated(&self, source: &impl ReadAt) -> Result<Vec<u8>, ArchiveFault> {
        inflate(&self.read_data(source)?)
    }
}

/// Undoes the snappy framing, checking every chunk's checksum.
pub(super) fn inflate(framed: &[u8]) -> Result<Vec<u8>, ArchiveFault> {
    let mut inflated = Vec::with_capacity(framed.len().saturating_mul(2));
    FrameDecoder::new(framed)
        .take(INFLATED_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut inflated)
        .map_err(|error| ArchiveFault::Snappy { reason: error.to_string() })?;
    if u64::try_from(inflated.len()).is_ok_and(|length| length > INFLATED_BYTES_MAX) {
        return Err(ArchiveFault::InflatedTooLarge { limit: INFLATED_BYTES_MAX });
    }
    Ok(inflated)
}

/// Frames `plain` with snappy, as compressed entries hold it.
pub(super) fn deflate(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = FrameEncoder::new(Vec::with_capacity(plain.len() / 2));
    encoder.write_all(plain)?;
    encoder.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// Writes one entry and returns how many bytes it took.
pub(super) fn write_entry(out: &mut impl Write, tag: Tag, data: &[u8]) -> io::Result<u64> {
    let length = u32::try_from(data.len())
        .ok()
        .filter(|length| *length <= ENTRY_BYTES_MAX)
        .ok_or_else(|| {
            io::Error::other(format!(
                "{} entry of {} bytes, readers accept at most {ENTRY_BYTES_MAX}",
                tag.name(),
                data.len()
            ))
        })?;
    out.write_all(&tag.to_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&[0, 0])?;
    out.write_all(data)?;
    Ok(HEAD_BYTES.saturating_add(length.into()))
}
