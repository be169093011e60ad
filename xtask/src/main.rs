//! `cargo xtask`: names a task, runs it, and turns the result into an exit code.

#![expect(clippy::print_stdout, reason = "a task's output is for the person who started it")]

use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::{bench, ci, deny, fmt, fuzz, instructions, nightly, step, tidy};

const USAGE: &str = "\
cargo xtask TASK

  ci                              format, lints, docs, tidy, dependencies: what every change must pass
  fmt                             formats the workspace and the crates outside of it
  tidy                            house rules that no other tool checks
  deny                            licences, bans and sources of the dependencies
  fuzz [--seconds N] [TARGET...]  fuzz each target for N seconds (default 20)
  nightly [--list] [--seconds N] [PART...]
                                  what takes longer, in parts (default 600 seconds a fuzz target)
  bench [ARGUMENT...]             the benchmarks; arguments go to them
  instructions [--bless]          instructions of the six reads, against the committed numbers
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, rest)) => run(task, rest),
        None => Err(anyhow::anyhow!("no task named\n\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str, rest: &[String]) -> Result<()> {
    let root = step::repository()?;
    match task {
        "ci" => none(rest).and_then(|()| ci::run(&root)),
        "fmt" => none(rest).and_then(|()| fmt::run(&root)),
        "tidy" => none(rest).and_then(|()| tidy::run(&root)),
        "deny" => none(rest).and_then(|()| deny::run(&root)),
        "fuzz" => fuzz::run(&root, &fuzz::FuzzArgs::parse(rest, fuzz::SECONDS_DEFAULT)?),
        "nightly" => nightly::run(&root, &nightly::NightlyArgs::parse(rest)?),
        "bench" => bench::run(&root, rest),
        "instructions" => instructions::run(&root, rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        unknown => bail!("no task is called {unknown}\n\n{USAGE}"),
    }
}

fn none(rest: &[String]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(argument) => bail!("unexpected argument {argument}\n\n{USAGE}"),
    }
}
