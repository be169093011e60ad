//! A lookup run of arbitrary bytes is refused, or every probe of it is answered or refused, and alike
//! whether its bytes are kept or not; merging it with an honest neighbour does not panic either.

#![no_main]

use alloy_primitives::B256;
use libfuzzer_sys::fuzz_target;
use segment::lookup::{Run, RunBuilder, RunSpan, VerifiedBuckets, merge_files};

fuzz_target!(|data: &[u8]| {
    let Ok(run) = Run::from_file(data) else { return };
    let verified = VerifiedBuckets::none_of(run.bucket_count());
    for byte in 0..=255 {
        let hash = B256::repeat_byte(byte);
        let range = run.bucket_range(&hash);
        let bucket = data.get(range.start as usize..range.end as usize).unwrap_or_default();
        let found = run.probe(&hash, bucket);
        for _ in 0..2 {
            let kept = run.probe_kept(&hash, bucket, &verified);
            assert_eq!(kept.ok(), found.as_ref().ok().cloned());
        }
    }
    let span = RunSpan::new(run.span().end_slot(), run.span().slot_count());
    let Ok(span) = span else { return };
    let Ok(neighbour) = RunBuilder::new(run.subject(), span).finish() else { return };
    let _ = merge_files(data, &neighbour);
});
