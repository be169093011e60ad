//! `cargo xtask bench`: the benchmarks of the workspace.
//!
//! `store` and `compare` are programs that print tables; without a name, every crate's own
//! benchmarks run.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::libclang;
use crate::step::{cargo, succeed};

/// The crates that have benchmarks of their own.
const CRATES: &[&str] = &["ingest", "segment"];

/// Runs what the first argument names, or every crate's benchmarks; other arguments are passed on.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, rest)) if name == "store" => {
            succeed(program(root, &["--package", "bench-store"]).args(rest))
        }
        // A workspace of its own, which alone links rivals.
        Some((name, rest)) if name == "compare" => {
            let mut compare = program(root, &["--manifest-path", "bench/compare/Cargo.toml"]);
            libclang::provide(root, &mut compare)?;
            succeed(compare.args(rest))
        }
        _ => run_crates(root, arguments),
    }
}

/// Builds a program and runs it, with what is added as its arguments.
fn program(root: &Path, which: &[&str]) -> Command {
    let mut program = cargo();
    program.current_dir(root).args(["run", "--release", "--locked", "--quiet"]);
    program.args(which).arg("--");
    program
}

fn run_crates(root: &Path, arguments: &[String]) -> Result<()> {
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
