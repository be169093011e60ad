//! A posting file of arbitrary bytes is refused, or every query of it is answered or refused; merging
//! it with an honest neighbour does not panic either.

#![no_main]

use alloy_primitives::Address;
use libfuzzer_sys::fuzz_target;
use segment::postings::{
    FoundPostings, PostingKey, Postings, PostingsBuilder, merge_posting_files,
};
use segment::slice;

fuzz_target!(|data: &[u8]| {
    let Ok(postings) = Postings::from_file(data) else { return };
    let mut keys: Vec<PostingKey> =
        (0..=255).map(|byte| PostingKey::of_address(&Address::repeat_byte(byte))).collect();
    for bucket in 0..postings.bucket_count().min(64) {
        let Some(range) = postings.buckets_range(bucket..bucket + 1) else { continue };
        let entries = postings.entries(bucket, slice(data, &range)).unwrap_or_default();
        keys.extend(entries.iter().take(64).map(|entry| entry.key));
    }
    for key in keys {
        let bucket = slice(data, &postings.bucket_range(key));
        let Ok(Some(FoundPostings::Long(list))) = postings.probe(key, bucket) else { continue };
        let Ok(table) = list.read_table(slice(data, &list.table_range())) else { continue };
        for slots in [0..1, 0..postings.span().slot_count()] {
            let pieces = table.pieces_range(slots.clone());
            let _ = table.read_parts(slots, slice(data, &pieces));
        }
    }
    let Ok(neighbour) = PostingsBuilder::new(postings.span().end_slot()).finish() else { return };
    if let Ok(merged) = merge_posting_files(data, &neighbour) {
        let merged = Postings::from_file(&merged).expect("what a merge writes is read");
        assert_eq!(merged.posting_count(), postings.posting_count());
    }
});
