//! A list of checksums, in either style, either is refused or says only what is written in it.

#![no_main]

use std::path::Path;

use archive::ChecksumList;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let archive = Path::new("mainnet-00000-5ec1ffb8.era1");
    if let Ok(list) = ChecksumList::parse_named("fuzzed".to_owned(), text)
        && list.find(archive).is_some()
    {
        assert!(text.contains("mainnet-00000-5ec1ffb8.era1"), "a checksum out of nowhere");
    }
    if let Ok(list) = ChecksumList::parse_numbered("fuzzed".to_owned(), text) {
        assert_eq!(list.find(archive).is_some(), !text.is_empty());
    }
});
