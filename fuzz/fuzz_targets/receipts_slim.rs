//! A list of slim receipts either is refused or comes back to the byte.

#![no_main]

use archive::{decode_slim, encode_slim};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(receipts) = decode_slim(data, data.len()) {
        assert_eq!(encode_slim(&receipts), data);
    }
});
