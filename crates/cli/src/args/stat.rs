//! The arguments of `quipu stat`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use super::DataArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu stat --data-dir data
  quipu stat --data-dir data --json | jq .coverage";

#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
