//! An index file of arbitrary bytes is refused, or every question is answered or refused, and alike
//! whether its bytes are kept or not; merging it with an honest neighbour does not panic either.

#![no_main]

use alloy_primitives::{Address, B256};
use libfuzzer_sys::fuzz_target;
use segment::index::{
    FoundPostings, IndexKey, Merge, MergeError, MergeStep, OrdinalsBuilder, PostingsBuilder, Run,
    RunSpan, RunSubject, Side, VerifiedBuckets,
};
use segment::slice;

fuzz_target!(|data: &[u8]| {
    let Ok(run) = Run::from_file(data) else { return };
    match run.subject() {
        RunSubject::Logs => find_postings(&run, data),
        RunSubject::Transactions | RunSubject::Blocks => probe(&run, data),
    }
    let end = run.span().end_slot();
    let neighbour = match run.subject() {
        RunSubject::Logs => PostingsBuilder::new(end).finish(),
        subject => {
            let Ok(span) = RunSpan::new(end, run.span().slot_count()) else { return };
            OrdinalsBuilder::new(subject, span).finish()
        }
    };
    let Ok(neighbour) = neighbour else { return };
    let item_count = run.item_count();
    if let Ok(merged) = merge(run, data, &neighbour) {
        let merged = Run::from_file(&merged).expect("what a merge writes is read");
        assert_eq!(merged.item_count(), item_count);
    }
});

fn probe(run: &Run, data: &[u8]) {
    let verified = VerifiedBuckets::none_of(run.bucket_count());
    for byte in 0..=255 {
        let key = IndexKey::of_hash(&B256::repeat_byte(byte));
        let bucket = slice(data, &run.bucket_range(key));
        let found = run.probe(key, bucket);
        for _ in 0..2 {
            let kept = run.probe_kept(key, bucket, &verified);
            assert_eq!(kept.ok(), found.as_ref().ok().cloned());
        }
    }
    for (bucket, range) in run.buckets().take(64) {
        let _ = run.entries(bucket, slice(data, &range));
    }
}

fn find_postings(run: &Run, data: &[u8]) {
    let mut keys: Vec<IndexKey> =
        (0..=255).map(|byte| IndexKey::of_address(&Address::repeat_byte(byte))).collect();
    for (bucket, range) in run.buckets().take(64) {
        let entries = run.posting_entries(bucket, slice(data, &range)).unwrap_or_default();
        keys.extend(entries.iter().take(64).map(|entry| entry.key));
    }
    for key in keys {
        let bucket = slice(data, &run.bucket_range(key));
        let Ok(Some(FoundPostings::Long(list))) = run.find_postings(key, bucket) else { continue };
        let Ok(table) = list.read_table(slice(data, &list.table_range())) else { continue };
        for slots in [0..1, 0..run.span().slot_count()] {
            let pieces = table.pieces_range(slots.clone());
            let _ = table.read_parts(slots, slice(data, &pieces));
        }
    }
}

fn merge(left: Run, left_file: &[u8], right_file: &[u8]) -> Result<Vec<u8>, MergeError> {
    let mut merge = Merge::new(left, Run::from_file(right_file).expect("honest"))?;
    let mut merged = Vec::new();
    while let MergeStep::Need { side, range } = merge.step(&mut merged)? {
        let file = if side == Side::Left { left_file } else { right_file };
        merge.supply(side, slice(file, &range))?;
    }
    Ok(merged)
}
