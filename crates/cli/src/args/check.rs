//! The arguments of `quipu check`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use super::{DataArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu check --data-dir data";

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
