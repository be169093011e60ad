//! The bytes of a cache file: records one after the other, and a table of them once it is full.
//!
//! A record is its head of 36 bytes and the cached bytes. The head: a magic number, the CRC-32 of
//! all after it, the file's key (16 bytes), the first byte of the range, and its length. A full file
//! ends with a table of where its records are, so that it need not be read through at a start: for
//! each record key, first byte, length and offset, 32 bytes; then how many, the CRC-32 of the
//! entries, and another magic number. All numbers are little-endian.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::key::{EntryKey, FileKey};

pub(super) const HEAD_BYTES: usize = 4 + 4 + 16 + 8 + 4;
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"QRec");
const TABLE_ENTRY_BYTES: usize = 16 + 8 + 4 + 4;
const TABLE_END_BYTES: u64 = 4 + 4 + 8;
const TABLE_MAGIC: [u8; 8] = *b"QTable01";

/// Where a record is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace {
    pub(super) key: EntryKey,
    /// Of its head.
    pub(super) offset: u32,
    /// Of the cached range, without the head.
    pub(super) payload_bytes: u32,
}

impl RecordPlace {
    /// How long the record is, head and all.
    pub(super) fn record_bytes(&self) -> usize {
        HEAD_BYTES.saturating_add(usize::try_from(self.payload_bytes).unwrap_or(usize::MAX))
    }

    fn end(&self) -> u64 {
        u64::from(self.offset) + HEAD_LENGTH + u64::from(self.payload_bytes)
    }
}

/// [`HEAD_BYTES`], as offsets are counted.
pub(super) const HEAD_LENGTH: u64 = 36;
const _: () = assert!(HEAD_BYTES == 36, "both say how long a head is");

/// A record whole, ready to be written.
pub(super) fn encode_record(key: EntryKey, payload: &[u8], payload_bytes: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES.saturating_add(payload.len()));
    out.extend(RECORD_MAGIC.to_le_bytes());
    out.extend([0; 4]);
    let (FileKey(file), start) = key;
    out.extend(file);
    out.extend(start.to_le_bytes());
    out.extend(payload_bytes.to_le_bytes());
    out.extend_from_slice(payload);
    let checksum = crc32fast::hash(out.get(8..).unwrap_or_default());
    if let Some(field) = out.get_mut(4..8) {
        field.copy_from_slice(&checksum.to_le_bytes());
    }
    out
}

/// A head, taken apart.
struct CacheRecordHead {
    checksum: u32,
    key: EntryKey,
    payload_bytes: u32,
}

fn decode_head(bytes: &[u8]) -> Option<CacheRecordHead> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (file, rest) = rest.split_first_chunk()?;
    let (start, rest) = rest.split_first_chunk()?;
    let (payload_bytes, _) = rest.split_first_chunk()?;
    (u32::from_le_bytes(*magic) == RECORD_MAGIC).then(|| CacheRecordHead {
        checksum: u32::from_le_bytes(*checksum),
        key: (FileKey(*file), u64::from_le_bytes(*start)),
        payload_bytes: u32::from_le_bytes(*payload_bytes),
    })
}

/// Whether these bytes are the record of that place, to the last bit.
pub(super) fn is_record(bytes: &[u8], place: &RecordPlace) -> bool {
    let Some(head) = decode_head(bytes) else { return false };
    head.key == place.key
        && head.payload_bytes == place.payload_bytes
        && bytes.len() == place.record_bytes()
        && head.checksum == crc32fast::hash(bytes.get(8..).unwrap_or_default())
}

/// The table of a full file.
pub(super) fn encode_table(places: &[RecordPlace]) -> Vec<u8> {
    let mut out = Vec::with_capacity(places.len().saturating_mul(TABLE_ENTRY_BYTES));
    for place in places {
        let (FileKey(file), start) = place.key;
        out.extend(file);
        out.extend(start.to_le_bytes());
        out.extend(place.payload_bytes.to_le_bytes());
        out.extend(place.offset.to_le_bytes());
    }
    let checksum = crc32fast::hash(&out);
    out.extend(u32::try_from(places.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(checksum.to_le_bytes());
    out.extend(TABLE_MAGIC);
    out
}

/// What records are found in: a file, and for fuzzers bytes in memory.
pub(super) trait CacheBytes {
    /// Fills the buffer from the offset on.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl CacheBytes for File {
    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl CacheBytes for &[u8] {
    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let part = rest.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The records of a file that a read would believe: where each lies, and the same record as it would be
/// written.
pub(crate) fn reencode_records(bytes: &[u8]) -> Vec<(Range<usize>, Vec<u8>)> {
    let file_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let places = find_records(&bytes, file_bytes).unwrap_or_default();
    let believed = places.iter().filter_map(|place| {
        let begin = usize::try_from(place.offset).ok()?;
        let range = begin..begin.checked_add(place.record_bytes())?;
        let record = bytes.get(range.clone()).filter(|record| is_record(record, place))?;
        let payload = record.get(HEAD_BYTES..)?;
        Some((range, encode_record(place.key, payload, place.payload_bytes)))
    });
    believed.collect()
}

/// Where the records of a file are: from its table, or by walking from head to head as far as that
/// makes sense. Only the heads are looked at: a record is checked when it is read.
pub(super) fn find_records(
    file: &impl CacheBytes,
    file_bytes: u64,
) -> io::Result<Vec<RecordPlace>> {
    match read_table(file, file_bytes)? {
        Some(places) => Ok(places),
        None => walk_records(file, file_bytes),
    }
}

fn read_table(file: &impl CacheBytes, file_bytes: u64) -> io::Result<Option<Vec<RecordPlace>>> {
    let Some(end_at) = file_bytes.checked_sub(TABLE_END_BYTES) else { return Ok(None) };
    let mut end = [0; 16];
    file.fill(&mut end, end_at)?;
    let Some((count, rest)) = end.split_first_chunk() else { return Ok(None) };
    let Some((checksum, magic)) = rest.split_first_chunk() else { return Ok(None) };
    let entry_bytes = u64::try_from(TABLE_ENTRY_BYTES).unwrap_or(u64::MAX);
    let table_bytes = u64::from(u32::from_le_bytes(*count)).saturating_mul(entry_bytes);
    let Some(begin) = end_at.checked_sub(table_bytes).filter(|_| magic == TABLE_MAGIC) else {
        return Ok(None);
    };
    let mut table = vec![0; usize::try_from(table_bytes).unwrap_or(0)];
    file.fill(&mut table, begin)?;
    if crc32fast::hash(&table) != u32::from_le_bytes(*checksum) {
        return Ok(None);
    }
    let (entries, _) = table.as_chunks::<TABLE_ENTRY_BYTES>();
    let places = entries.iter().filter_map(|entry| {
        let (file, rest) = entry.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (payload_bytes, rest) = rest.split_first_chunk()?;
        let (offset, _) = rest.split_first_chunk()?;
        Some(RecordPlace {
            key: (FileKey(*file), u64::from_le_bytes(*start)),
            offset: u32::from_le_bytes(*offset),
            payload_bytes: u32::from_le_bytes(*payload_bytes),
        })
    });
    Ok(Some(places.filter(|place| place.end() <= begin).collect()))
}

fn walk_records(file: &impl CacheBytes, file_bytes: u64) -> io::Result<Vec<RecordPlace>> {
    let mut places = Vec::new();
    let mut at = 0_u64;
    let mut head = [0; HEAD_BYTES];
    while at.saturating_add(HEAD_LENGTH) <= file_bytes {
        file.fill(&mut head, at)?;
        let (Some(found), Ok(offset)) = (decode_head(&head), u32::try_from(at)) else { break };
        let place = RecordPlace { key: found.key, offset, payload_bytes: found.payload_bytes };
        if place.end() > file_bytes {
            break;
        }
        places.push(place);
        at = place.end();
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn file_of(parts: &[&[u8]]) -> (File, u64) {
        let mut file = tempfile::tempfile().unwrap();
        for part in parts {
            file.write_all(part).unwrap();
        }
        let bytes = file.stream_position().unwrap();
        (file, bytes)
    }

    fn key(start: u64) -> EntryKey {
        (FileKey::of("a"), start)
    }

    fn records() -> (Vec<u8>, Vec<u8>, Vec<RecordPlace>) {
        let (first, second) = (encode_record(key(7), b"abc", 3), encode_record(key(9), b"", 0));
        let places = vec![
            RecordPlace { key: key(7), offset: 0, payload_bytes: 3 },
            RecordPlace { key: key(9), offset: 39, payload_bytes: 0 },
        ];
        (first, second, places)
    }

    #[test]
    fn a_record_is_believed_whole_and_no_flipped_bit_is() {
        let (mut record, _, places) = records();
        assert!(is_record(&record, &places[0]));
        assert!(!is_record(&record, &places[1]));
        assert!(!is_record(&record[..record.len() - 1], &places[0]));
        for bit in 0..record.len() * 8 {
            record[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_record(&record, &places[0]), "bit {bit}");
            record[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn records_are_found_by_the_table_and_without_it() {
        let (first, second, places) = records();
        let table = encode_table(&places);
        let (file, bytes) = file_of(&[&first, &second]);
        assert_eq!(find_records(&file, bytes).unwrap(), places);
        let (file, bytes) = file_of(&[&first, &second, &table]);
        assert_eq!(find_records(&file, bytes).unwrap(), places);
        // The table counts, not what lies between records.
        let (file, bytes) = file_of(&[&first, &[0; 36], &table]);
        assert_eq!(find_records(&file, bytes).unwrap(), places);
    }

    #[test]
    fn of_a_damaged_file_the_records_before_the_damage_are_found() {
        let (first, second, places) = records();
        let mut table = encode_table(&places);
        table[3] ^= 1;
        let (file, bytes) = file_of(&[&first, &second, &table]);
        assert_eq!(find_records(&file, bytes).unwrap(), places);
        for (cut, found) in [(0, 0), (38, 0), (39, 1), (74, 1), (75, 2)] {
            let whole = [first.clone(), second.clone()].concat();
            let (file, bytes) = file_of(&[&whole[..cut]]);
            assert_eq!(find_records(&file, bytes).unwrap(), places[..found], "cut at {cut}");
        }
        let (file, bytes) = file_of(&[b"no cache file at all, but long enough for a head"]);
        assert_eq!(find_records(&file, bytes).unwrap(), []);
    }

    #[test]
    fn what_is_believed_of_a_file_is_what_was_written() {
        let (first, second, places) = records();
        let mut file = [&first[..], &second, &encode_table(&places)].concat();
        let found = [(0..39, first.clone()), (39..75, second.clone())];
        assert_eq!(reencode_records(&file), found);
        assert_eq!(reencode_records(&file[..75]), found);
        file[38] ^= 1;
        assert_eq!(reencode_records(&file), found[1..]);
    }

    #[test]
    fn a_table_that_points_beyond_the_records_is_not_followed_there() {
        let place = RecordPlace { key: key(0), offset: u32::MAX, payload_bytes: u32::MAX };
        let (file, bytes) = file_of(&[&encode_table(&[place])]);
        assert_eq!(find_records(&file, bytes).unwrap(), []);
    }
}
