//! The arguments of `quipu check`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use super::{DataArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu check --data-dir data
  quipu check --at s3://bucket/mainnet";

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Read every object of this bucket instead, and hold it against its length and digest
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
