//! Real chain data, where it is at hand: a folder `shared/data` beside the checkout. It is public and
//! too large to commit; without it the tests that read it pass, and each says that it was skipped.
//! `.ci/run` counts these lines.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder; `None` if the test is to be skipped, which is told under the name of the test.
pub fn shared_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let is_there = folder.is_dir();
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test").to_owned();
    let line = if is_there {
        format!("reading ../shared/data: {test}")
    } else {
        format!("skipped: {test}: no ../shared/data")
    };
    // Past the test harness, which keeps what passing tests print.
    let _ = writeln!(std::io::stderr(), "{line}");
    is_there.then_some(folder)
}
