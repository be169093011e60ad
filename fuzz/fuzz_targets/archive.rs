//! An archive of arbitrary bytes is refused, or every block in it is read or refused.

#![no_main]

use ingest::archive::Archive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(archive) = Archive::from_source("fuzzed".to_owned(), data.to_vec()) else { return };
    let range = archive.range();
    for number in range.first()..range.end() {
        // A refusal names a place inside the file.
        if let Err(error) = archive.read_block(number) {
            assert!(error.offset <= archive.bytes_count(), "{error}");
            assert_eq!(error.block, Some(number), "{error}");
        }
    }
    assert!(archive.read_block(range.end()).is_err(), "a block past the end of the range");
});
