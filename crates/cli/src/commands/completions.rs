//! `quipu completions`: what a shell completes, made from the flags.

use crate::Failure;
use crate::args::completions::CompletionsArgs;
use crate::config::command;
use crate::output::print_lines;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "quipu", &mut text);
    let text = String::from_utf8(text)?;
    let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    Ok(print_lines(&lines)?)
}
