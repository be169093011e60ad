//! No list but mainnet's own is believed.

#![no_main]

use chain::accumulator::EpochRoots;
use libfuzzer_sys::fuzz_target;

/// Pre-merge mainnet has 1897 epochs with a root of 32 bytes each.
const EPOCH_COUNT: usize = 1897;
const LIST_BYTES: usize = EPOCH_COUNT * 32;

fuzz_target!(|data: &[u8]| {
    // Few inputs would have one of the two right lengths by chance; so each is tried in both, too.
    for length in [data.len(), LIST_BYTES, 4 + LIST_BYTES] {
        let mut bytes = data.to_vec();
        bytes.resize(length, 0);
        if let Ok(roots) = EpochRoots::parse(&bytes) {
            assert_eq!(roots.len(), EPOCH_COUNT);
        }
    }
});
