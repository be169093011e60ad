//! `cargo xtask ci`: what every change must pass, besides the tests.
//!
//! The tests stay outside: `cargo test --workspace` is their one command.

use std::path::Path;

use anyhow::Result;

use crate::step::{CiStep, run_all};
use crate::{deny, fmt, tidy};

/// Runs every check and reports all that failed.
pub fn run(root: &Path) -> Result<()> {
    run_all(root, plan())
}

fn plan() -> Vec<CiStep> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    // The fuzz crate is a workspace of its own, which `--workspace` does not reach. So is
    // bench/compare, but clippy would have to build the rivals that it links.
    let fuzz_check =
        ["clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--", "-D", "warnings"];
    let mut steps = fmt::plan_check();
    steps.extend([
        CiStep::function("tidy", tidy::run),
        CiStep::cargo("clippy", &clippy),
        CiStep::cargo("fuzz targets", &fuzz_check),
        CiStep::cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"])
            .with_env("RUSTDOCFLAGS", "--deny warnings"),
        CiStep::function("dependencies", deny::run),
    ]);
    steps
}
