//! An archive of arbitrary bytes is refused, or every block in it is read or refused; proving it
//! as a whole ends in a report about what was read, or in a refusal.

#![no_main]

use std::num::NonZeroUsize;

use archive::Archive;
use chain::ChainSpec;
use chain::trust::Anchors;
use ingest::prove::{NO_POINTS, NoProgress, Prover};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(archive) = Archive::from_source("fuzzed".to_owned(), data.to_vec()) else { return };
    let range = archive.range();
    for number in range.first()..range.end() {
        // A refusal names a place inside the file.
        if let Err(error) = archive.read_block(number) {
            assert!(error.offset <= archive.bytes_count(), "{error}");
            assert_eq!(error.block, Some(number), "{error}");
        }
    }
    assert!(archive.read_block(range.end()).is_err(), "a block past the end of the range");
    let (spec, anchors) = (ChainSpec::bare("fuzzed", None, None), Anchors::none());
    let (threads, progress, points) = (NonZeroUsize::MIN, &NoProgress, NO_POINTS);
    let prover = Prover { spec: &spec, anchors: &anchors, threads, progress, points };
    match prover.prove(&archive) {
        Ok(report) => assert_eq!(report.run.range, range),
        Err(error) => assert!(error.offset <= archive.bytes_count(), "{error}"),
    }
});
