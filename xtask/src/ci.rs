//! `cargo xtask ci`: what every change must pass, besides the tests.
//!
//! The tests stay outside: `cargo test --workspace` is their one command.

use std::path::Path;

use anyhow::Result;

use crate::step::{CiStep, run_all};
use crate::{deny, tidy};

/// Runs every check and reports all that failed.
pub fn run(root: &Path) -> Result<()> {
    run_all(root, plan())
}

fn plan() -> Vec<CiStep> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    // The fuzz crate is a workspace of its own, which `--workspace` does not reach.
    let fuzz_format = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
    let fuzz_check =
        ["clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--", "-D", "warnings"];
    // So is the client that the end-to-end checks build.
    let client_format = ["fmt", "--manifest-path", "e2e/clients/alloy/Cargo.toml", "--check"];
    // And the benchmark that links rivals; clippy would have to build them.
    let rivals_format = ["fmt", "--manifest-path", "bench/compare/Cargo.toml", "--check"];
    vec![
        CiStep::cargo("format", &["fmt", "--all", "--check"]),
        CiStep::cargo("format of fuzz", &fuzz_format),
        CiStep::cargo("format of the alloy client", &client_format),
        CiStep::cargo("format of bench/compare", &rivals_format),
        CiStep::function("tidy", tidy::run),
        CiStep::cargo("clippy", &clippy),
        CiStep::cargo("fuzz targets", &fuzz_check),
        CiStep::cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"])
            .with_env("RUSTDOCFLAGS", "--deny warnings"),
        CiStep::function("dependencies", deny::run),
    ]
}
