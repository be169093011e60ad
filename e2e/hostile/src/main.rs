//! Hostile clients against `quipu serve`, beside a well-behaved client.
//!
//!     e2e-hostile [--short] [--seconds N] [--only NAME]... [--quipu PROGRAM] [--data FOLDER] [--write]
//!
//! Without flags every abuse goes on for 20 seconds and the waits of the well-behaved client are
//! measured: `cargo xtask bench hostile`. `--write` puts the table into docs/security.md. `--short`
//! is what `e2e/hostile.sh` runs for every change: a second each, with a small budget, and nothing
//! that is timed. The sample chain is made in `--data` and kept there; without it, in a temporary
//! folder.

#![expect(clippy::print_stdout, reason = "what was found is for the person who asked")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match e2e_hostile::run::run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("hostile: {error:#}");
            ExitCode::FAILURE
        }
    }
}
