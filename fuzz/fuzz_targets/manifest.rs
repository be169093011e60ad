//! A manifest either is refused or comes back to the byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use store::manifest::Manifest;

fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::decode(data) {
        assert_eq!(manifest.encode(), data);
    }
});
