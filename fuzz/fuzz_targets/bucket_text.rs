//! The texts of a bucket either are refused or come back to the byte: retractions, notes of orphans and
//! the index.
//!
//! The title and the checksum are set right first: behind them is what should not be believed. The first
//! byte of an input chooses the title.

#![no_main]

use libfuzzer_sys::fuzz_target;
use replica::reencode_bucket_text;

const TITLES: [&str; 3] = ["quipu index 1\n", "quipu orphans 1\n", "quipu retraction 1\n"];

fuzz_target!(|data: &[u8]| {
    if let Some(again) = reencode_bucket_text(data) {
        assert_eq!(again, data);
    }
    let Some((choice, lines)) = data.split_first() else { return };
    let title = TITLES[usize::from(*choice) % TITLES.len()].as_bytes();
    let mut text = [title, lines].concat();
    let checksum = crc32fast::hash(&text);
    text.extend(format!("checksum {checksum:08x}\n").into_bytes());
    if let Some(again) = reencode_bucket_text(&text) {
        assert_eq!(again, text);
    }
});
