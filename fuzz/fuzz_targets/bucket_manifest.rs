//! A manifest of a bucket is refused, or lists files whose names lead nowhere else, and whatever it says of
//! the chain is shown or set aside.
//!
//! The checksum is set right first: behind it is what should not be believed.

#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use replica::{decode_published_manifest, listed_files};
use store::disk::is_file_name;
use store::read::Inline;
use store::{Limits, PublishedHistory, Store};
use testing::disk::faulty::FaultyDisk;

fuzz_target!(|data: &[u8]| {
    let Ok(manifest) = decode_published_manifest(&mended(data)) else { return };
    assert_eq!(decode_published_manifest(&manifest.encode()).as_ref(), Ok(&manifest));
    for file in listed_files(&manifest) {
        assert!(is_file_name(&file.name), "{}", file.name);
    }
    let disk = Arc::new(FaultyDisk::new(1));
    let store = Store::open(disk, Arc::new(Inline), Limits::default()).expect("an empty folder");
    let named = [("manifests/fuzzed".to_owned(), Arc::new(manifest.clone()))];
    store.show_published(&PublishedHistory::new(named, BTreeSet::new(), []));
    let view = store.view();
    assert!(view.segments().count() <= manifest.segments().len());
});

/// The same lines with a checksum that holds.
fn mended(data: &[u8]) -> Vec<u8> {
    let last = data.strip_suffix(b"\n").unwrap_or(data).iter().rposition(|byte| *byte == b'\n');
    let begin = last.map_or(0, |at| at + 1);
    let is_checksum = data.get(begin..).is_some_and(|line| line.starts_with(b"checksum "));
    let mut text = data.get(..begin).filter(|_| is_checksum).unwrap_or(data).to_vec();
    let checksum = crc32fast::hash(&text);
    text.extend(format!("checksum {checksum:08x}\n").into_bytes());
    text
}
