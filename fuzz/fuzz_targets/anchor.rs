//! A text either is refused or is an anchor that says the same when written and read again.

#![no_main]

use chain::trust::Anchor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(anchor) = text.parse::<Anchor>() {
        assert_eq!(anchor.to_string().parse(), Ok(anchor));
    }
});
