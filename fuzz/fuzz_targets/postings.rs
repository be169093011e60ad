//! A posting file of arbitrary bytes is refused, or every query of it is answered or refused; what can
//! be merged with itself beside it does not panic either.

#![no_main]

use alloy_primitives::Address;
use libfuzzer_sys::fuzz_target;
use segment::postings::{FoundPostings, PostingKey, Postings, merge_posting_files};
use segment::slice;

fuzz_target!(|data: &[u8]| {
    let Ok(postings) = Postings::from_file(data) else { return };
    for byte in 0..=255 {
        let key = PostingKey::of_address(&Address::repeat_byte(byte));
        let bucket = slice(data, &postings.bucket_range(key));
        let Ok(Some(FoundPostings::Long(list))) = postings.probe(key, bucket) else { continue };
        let Ok(table) = list.read_table(slice(data, &list.table_range())) else { continue };
        for slots in [0..1, 0..postings.span().slot_count()] {
            let pieces = table.pieces_range(slots.clone());
            let _ = table.read_parts(slots, slice(data, &pieces));
        }
    }
    for bucket in 0..postings.bucket_count().min(64) {
        let Some(range) = postings.buckets_range(bucket..bucket + 1) else { continue };
        let _ = postings.entries(bucket, slice(data, &range));
    }
    let _ = merge_posting_files(data, data);
});
