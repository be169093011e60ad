//! `quipu`: an Ethereum history server.
//!
//! Knows: what was typed, and the exit code it earns.
//! Never knows: any rule that a unit test would want to check.

mod amounts;
mod args;
mod bucket;
mod chain_choice;
mod commands;
mod config;
mod data_folder;
mod descriptors;
mod folder_text;
mod free_space;
mod head_text;
mod hints;
mod interrupt;
mod node;
mod output;
mod priority;
mod progress;
mod trust_text;
mod unix_time;
mod upstream_args;
mod version;

use std::process::ExitCode;

use crate::args::{Args, Command};
use crate::output::set_verbosity;

/// Why a command did not end well, as far as the exit code tells.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The data or the work failed.
    Work(anyhow::Error),
    /// The command line or the configuration is wrong.
    Usage(anyhow::Error),
    /// The data is false, and every fault has been printed already.
    Told,
    /// A signal asked it to stop, and it has said what stays; the exit code that goes with the signal.
    Stopped(u8),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Work(error.into())
    }
}

fn main() -> ExitCode {
    let typed: Vec<_> = std::env::args_os().collect();
    let (error, code) = match config::parse(&typed).and_then(run) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Told) => return ExitCode::from(1),
        Err(Failure::Stopped(code)) => return ExitCode::from(code),
        Err(Failure::Work(error)) => (error, 1),
        Err(Failure::Usage(error)) => (error, 2),
    };
    eprintln!("error: {error:#}");
    if let Some(hint) = hints::find_hint(&error) {
        eprintln!("  hint: {hint}");
    }
    ExitCode::from(code)
}

fn run(args: Args) -> Result<(), Failure> {
    set_verbosity(args.verbosity());
    match args.command {
        Command::Backfill(backfill) => commands::backfill::run(&backfill),
        Command::Check(check) => commands::check::run(&check),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Completions(completions) => commands::completions::run(&completions),
        Command::Config(config) => commands::config::run(&config),
        Command::Demo(demo) => commands::demo::run(demo),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Export(export) => commands::export::run(&export),
        Command::Fetch(fetch) => commands::fetch::run(&fetch),
        Command::Health(health) => commands::health::run(&health),
        Command::Import(import) => commands::import::run(&import),
        Command::Repair(repair) => commands::repair::run(&repair),
        Command::Index(index) => commands::index::run(&index),
        Command::Key(key) => commands::key::run(&key),
        Command::Man(man) => commands::man::run(&man),
        Command::Merge(merge) => commands::merge::run(&merge),
        Command::Prove(prove) => commands::prove::run(&prove),
        Command::Prune(prune) => commands::prune::run(&prune),
        Command::Publish(publish) => commands::publish::run(&publish),
        Command::Rewind(rewind) => commands::rewind::run(&rewind),
        Command::Sample(sample) => commands::sample::run(&sample),
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Stat(stat) => commands::stat::run(&stat),
        Command::Verify(verify) => commands::verify::run(&verify),
        Command::VerifyProof(args) => commands::verify_proof::run(&args),
    }
}
