//! The arguments of `quipu backfill`.

use chain::BlockRange;

use crate::amounts::parse_number;
use crate::upstream_args::UpstreamArgs;

use super::{ChainArgs, DataArgs, WorkArgs, parse_blocks};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu backfill --data-dir data --upstream http://localhost:8545 --blocks 0..99999
  quipu backfill --data-dir data --upstream https://node.example/key   # every gap
  quipu backfill --data-dir data --upstream wss://a.example --upstream https://b.example --quorum 2

A kill at any moment is harmless: the same command again takes up after the last whole segment.";

#[derive(Debug, clap::Args)]
pub(crate) struct BackfillArgs {
    /// Only these blocks, both ends included [default: every gap]
    #[arg(long, value_name = "A..B", value_parser = parse_blocks, conflicts_with = "backfill_to")]
    pub(crate) blocks: Option<BlockRange>,
    /// Fill gaps no further down than to this block [default: 0]
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub(crate) backfill_to: Option<u64>,
    /// Take ranges that link to nothing known: they are proven inside, and reported as unanchored
    #[arg(long)]
    pub(crate) unanchored: bool,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}
