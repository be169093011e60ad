//! `cargo xtask ci`: what every change must pass, besides the tests.
//!
//! The tests stay outside: `cargo test --workspace` is their one command.

use std::path::Path;

use anyhow::Result;

use crate::step::{Step, run_all};
use crate::{deny, tidy};

/// Runs every check and reports all that failed.
pub fn run(root: &Path) -> Result<()> {
    run_all(root, plan())
}

fn plan() -> Vec<Step> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    // The fuzz crate is a workspace of its own, which `--workspace` does not reach.
    let fuzz_format = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
    let fuzz_check = ["check", "--manifest-path", "fuzz/Cargo.toml", "--locked"];
    // So is the client that the end-to-end checks build.
    let client_format = ["fmt", "--manifest-path", "e2e/clients/alloy/Cargo.toml", "--check"];
    // And the benchmark that links rivals; clippy would have to build them.
    let rivals_format = ["fmt", "--manifest-path", "bench/compare/Cargo.toml", "--check"];
    vec![
        Step::cargo("format", &["fmt", "--all", "--check"]),
        Step::cargo("format of fuzz", &fuzz_format),
        Step::cargo("format of the alloy client", &client_format),
        Step::cargo("format of bench/compare", &rivals_format),
        Step::function("tidy", tidy::run),
        Step::cargo("clippy", &clippy),
        Step::cargo("fuzz targets", &fuzz_check),
        Step::cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"])
            .with_env("RUSTDOCFLAGS", "--deny warnings"),
        Step::function("dependencies", deny::run),
    ]
}
