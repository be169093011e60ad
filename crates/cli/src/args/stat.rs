//! The arguments of `quipu stat`.

use super::DataArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu stat --data-dir data
  quipu stat --data-dir data --json | jq .coverage
  quipu stat --at s3://bucket/mainnet";

#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell what is published in this bucket instead
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
