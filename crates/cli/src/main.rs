//! `quipu`: an Ethereum history server.
//!
//! Knows: what was typed, and the exit code it earns.
//! Never knows: any rule that a unit test would want to check.

mod args;
mod chain_choice;
mod commands;
mod data_folder;
mod descriptors;
mod folder_text;
mod head_text;
mod node;
mod output;
mod priority;
mod progress;
mod trust_text;
mod upstream_args;

use std::process::ExitCode;

use clap::Parser;

use crate::args::fetch::FetchArgs;
use crate::args::{Args, Command};

/// Why a command did not end well, as far as the exit code tells.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The data or the work failed.
    Work(anyhow::Error),
    /// The command line or the configuration is wrong.
    Usage(anyhow::Error),
    /// The data is false, and every fault has been printed already.
    Told,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Work(error.into())
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match args.command {
        Command::Backfill(backfill) => commands::backfill::run(&backfill),
        Command::Check(check) => commands::check::run(&check),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Demo(demo) => commands::demo::run(demo),
        Command::Export(export) => commands::export::run(&export),
        Command::Fetch(fetch) => commands::fetch::run(&fetch),
        Command::Import(import) => match FetchArgs::of_import(import) {
            Ok(fetch) => commands::fetch::run(&fetch),
            Err(import) => commands::import::run(&import),
        },
        Command::Repair(repair) => commands::repair::run(&repair),
        Command::Rewind(rewind) => commands::rewind::run(&rewind),
        Command::Sample(sample) => commands::sample::run(&sample),
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Stat(stat) => commands::stat::run(&stat),
        Command::Verify(verify) => commands::verify::run(&verify),
    };
    let (error, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Told) => return ExitCode::from(1),
        Err(Failure::Work(error)) => (error, 1),
        Err(Failure::Usage(error)) => (error, 2),
    };
    eprintln!("error: {error:#}");
    ExitCode::from(code)
}
