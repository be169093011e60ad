//! The project's own tasks, one module each, run as `cargo xtask NAME`.
//!
//! Knows: how this repository is checked, fuzzed and measured.
//! Never knows: what the crates it checks mean.
//!
//! A library so that the tests hold the same rules as the command does.
//!
//! ```
//! let root = tempfile::tempdir().unwrap();
//! std::fs::write(root.path().join("README.md"), "[a](gone.md)\n").unwrap();
//! let problems = xtask::tidy::find_problems(root.path()).unwrap();
//! assert_eq!(problems[0].to_string(), "README.md:1: dead link: gone.md");
//! ```

#![expect(clippy::print_stdout, reason = "a task's output is for the person who started it")]

pub mod bench;
pub mod ci;
pub mod deny;
pub mod fmt;
pub mod fuzz;
pub mod instructions;
pub mod libclang;
pub mod nightly;
pub mod step;
pub mod tidy;
pub mod tools;
