//! `cargo xtask fmt`: formats every crate of the repository.

use std::path::Path;

use anyhow::Result;

use crate::step::{CiStep, run_all};

/// Manifests of the crates that are workspaces of their own.
pub const OUTSIDE_MANIFESTS: [&str; 3] =
    ["fuzz/Cargo.toml", "e2e/clients/alloy/Cargo.toml", "bench/compare/Cargo.toml"];

/// Formats the workspace and the crates outside of it.
pub fn run(root: &Path) -> Result<()> {
    run_all(root, plan(&[]))
}

/// The steps that report what is not formatted, and change nothing.
pub(crate) fn plan_check() -> Vec<CiStep> {
    plan(&["--check"])
}

fn plan(options: &[&str]) -> Vec<CiStep> {
    let mut steps = vec![CiStep::cargo("format", &[&["fmt", "--all"], options].concat())];
    for manifest in OUTSIDE_MANIFESTS {
        let name = format!("format of {manifest}");
        let arguments = [&["fmt", "--manifest-path", manifest], options].concat();
        steps.push(CiStep::cargo(&name, &arguments));
    }
    steps
}
