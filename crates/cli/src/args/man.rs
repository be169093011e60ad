//! The arguments of `quipu man`.

use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu man --to ~/.local/share/man/man1
  man quipu-serve

The pages are quipu.1 and one for each command, such as quipu-serve.1. Pages of that name are replaced.";

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}
