//! The arguments of `quipu check`.

use chain::trust::Anchor;

use super::{DataArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu check --data-dir data
  quipu check --data-dir data --anchor 15537393:0x55b11b918355b1ef9c5db810302ebad0bf2544255b530cdce90674d5887bb286
  quipu check --at s3://bucket/mainnet";

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Read every object of this bucket instead, and hold it against its length and digest
    #[arg(long, value_name = "URL")]
    pub(crate) at: Option<String>,
    /// A block hash you trust: blocks at or below it by parent links are anchored; may be repeated
    #[arg(
        long = "anchor",
        value_name = "NUMBER:HASH",
        value_delimiter = ',',
        conflicts_with = "at"
    )]
    pub(crate) anchors: Vec<Anchor>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}
