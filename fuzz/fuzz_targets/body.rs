//! A body either is refused or comes back to the byte.

#![no_main]

use alloy_primitives::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let rlp = Bytes::copy_from_slice(data);
    if let Ok(body) = chain::Body::decode(&rlp) {
        assert_eq!(body.encode(), data);
    }
});
