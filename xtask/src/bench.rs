//! `cargo xtask bench`: the benchmarks of the workspace.

use std::path::Path;

use anyhow::Result;

use crate::step::{cargo, succeed};

/// The crates that have benchmarks.
const CRATES: &[&str] = &["ingest", "segment"];

/// Runs every benchmark; `arguments` are passed to each.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    for name in CRATES {
        let mut bench = cargo();
        bench.current_dir(root).args([
            "bench",
            "--locked",
            "--package",
            name,
            "--bench",
            "*",
            "--",
        ]);
        succeed(bench.args(arguments))?;
    }
    Ok(())
}
