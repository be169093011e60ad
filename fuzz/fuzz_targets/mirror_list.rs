//! A mirror's list, in either form, either is refused or names files that are written in it, under names
//! that stay in a folder, and at addresses of the mirror alone.

#![no_main]

use ingest::fetch::{MirrorUrl, parse_list};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mirror: MirrorUrl = "http://a.example/era1".parse().expect("an address");
    for has_sums in [true, false] {
        for file in parse_list(&mirror, has_sums, bytes).unwrap_or_default() {
            let text = String::from_utf8_lossy(bytes);
            assert!(text.contains(&file.name), "a name out of nowhere: {}", file.name);
            assert!(!file.name.contains('/') && !file.name.starts_with('.'), "{}", file.name);
            assert!(file.named_range().is_some(), "{}", file.name);
            for source in &file.sources {
                let address = source.address();
                assert!(address.starts_with("http://a.example/"), "{address}");
                assert!(address.ends_with(&file.name), "{address}");
            }
        }
    }
});
