//! Any file name is read or promises nothing.

#![no_main]

use std::path::Path;

use archive::ArchiveName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    let path = Path::new(name);
    if ArchiveName::parse(path).is_some() {
        assert!(ArchiveName::is_archive(path), "a name that was read is an archive's");
    }
});
