//! A bug on purpose: `cargo xtask fuzz` fails unless this one is found.
//!
//! To reach it a fuzzer needs both things that the others rely on: recorded comparisons, to solve
//! for eight bytes at once, and coverage, to keep each further byte that was guessed right.

#![no_main]

use libfuzzer_sys::fuzz_target;

const MAGIC: u64 = u64::from_le_bytes(*b"a quipu ");

fuzz_target!(|data: &[u8]| {
    let Some((magic, knots)) = data.split_first_chunk() else { return };
    if u64::from_le_bytes(*magic) != MAGIC {
        return;
    }
    let mut tied = 0;
    for (knot, expected) in knots.iter().zip(b"cord") {
        if knot != expected {
            return;
        }
        tied += 1;
        assert!(tied < 4, "the canary sang: the fuzzer looks");
    }
});
