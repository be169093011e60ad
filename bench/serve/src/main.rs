//! `cargo xtask bench serve`: how fast answers are served, each figure beside what was promised.
//!
//!     bench-serve [--json] [--quick] [--data FOLDER] [--rounds N] [--seconds N] [--threads N]
//!                 [--apart] [--payload small|mainnet] [--reth PROGRAM] [--write] [--only NAME]...
//!
//! The sample chain of a million transactions is made in `--data`, in a folder named by its payload, and kept there; without it, in a
//! temporary folder (`TMPDIR`, some 2 GB) that goes with the run. `--quick` takes a short chain. `--write` puts what came
//! out into docs/benchmarks.md and docs/plots. `--apart` gives the server that is asked the first core,
//! and the load generator and all else the others.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match bench_serve::run::run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench serve: {error:#}");
            ExitCode::FAILURE
        }
    }
}
