//! A list of receipts either is refused or comes back to the byte.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(receipts) = chain::decode_receipts(data) {
        assert_eq!(chain::encode_receipts(&receipts), data);
    }
});
