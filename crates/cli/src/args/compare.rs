//! The arguments of `quipu compare`.

use std::num::{NonZeroU64, NonZeroUsize};

use chain::BlockRange;

use crate::amounts::{parse_number, parse_some};

use super::{DataArgs, parse_blocks};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu compare --data-dir data --with http://localhost:8545
  quipu compare --data-dir data --with http://localhost:8545 --sample 1000 --seed 7
  quipu compare --data-dir data --with http://localhost:8545 --blocks 0..99 --every";

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// The other endpoint: http or https
    #[arg(long, value_name = "URL")]
    pub(crate) with: String,
    /// All of these blocks, both ends included
    #[arg(long, value_name = "A..B", value_parser = parse_blocks, conflicts_with = "sample")]
    pub(crate) blocks: Option<BlockRange>,
    /// So many blocks out of all that are held, evenly spread, the first and the last among them
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_some::<NonZeroU64>)]
    pub(crate) sample: NonZeroU64,
    /// Another seed, other blocks and transactions
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_number::<u64>)]
    pub(crate) seed: u64,
    /// Transactions of a block to ask about, the first and the last among them
    #[arg(long, value_name = "M", default_value_t = 4, value_parser = parse_number::<u64>)]
    pub(crate) txs_per_block: u64,
    /// Print every difference, too, as it is found
    #[arg(long)]
    pub(crate) every: bool,
    /// Connections to ask on
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) concurrency: NonZeroUsize,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
