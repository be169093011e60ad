//! What is found in a file of the disk cache lies inside it, and a record that is believed is the one that
//! would be written, to the byte.
//!
//! The file is read as it is, then once more with checksums that hold, and, if the first byte is odd, with
//! the end of a table: behind these is what should not be believed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use replica::reencode_cache_file;

const HEAD_BYTES: usize = 36;
const TABLE_ENTRY_BYTES: usize = 32;

fuzz_target!(|data: &[u8]| {
    check(data);
    let Some((choice, file)) = data.split_first() else { return };
    let file = mended(file);
    check(&file);
    if choice & 1 == 1 {
        check(&with_table(&file, usize::from(choice >> 1)));
    }
});

fn check(file: &[u8]) {
    for (place, record) in reencode_cache_file(file) {
        assert_eq!(file.get(place), Some(&record[..]));
    }
}

/// The same records with heads that begin as they should, and with checksums that hold.
fn mended(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let mut at = 0;
    while let Some(length) = file.get(at + 32..at + HEAD_BYTES) {
        let payload = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let end = at + HEAD_BYTES + payload;
        let Some(record) = file.get(at + 8..end) else { break };
        let checksum = crc32fast::hash(record).to_le_bytes();
        file[at..at + 4].copy_from_slice(b"QRec");
        file[at + 4..at + 8].copy_from_slice(&checksum);
        at = end;
    }
    file
}

/// The last bytes of the file as the entries of a table, with its end behind them.
fn with_table(file: &[u8], entries: usize) -> Vec<u8> {
    let entries = entries.min(file.len() / TABLE_ENTRY_BYTES);
    let table = &file[file.len() - entries * TABLE_ENTRY_BYTES..];
    let count = u32::try_from(entries).expect("at most 127").to_le_bytes();
    let checksum = crc32fast::hash(table).to_le_bytes();
    [file, &count, &checksum, b"QTable01"].concat()
}
