//! The arguments of `quipu sample`.

use std::path::PathBuf;

use archive::Format;
use clap::ValueEnum;
use sample::Payload;

use crate::amounts::{parse_number, parse_some};

use super::WorkArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu sample --to archives
  quipu sample --to archives --format era1 --block-count 64
  quipu sample --to archives --block-count 10000 --txs-per-block 150 --payload mainnet
  quipu import --data-dir data --genesis archives/genesis.json archives";

#[derive(Debug, clap::Args)]
pub(crate) struct SampleArgs {
    /// Folder for the archives, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Archive format; era1 ends at the merge
    #[arg(long, value_enum, default_value_t = FormatArg::Ere)]
    pub(crate) format: FormatArg,
    #[command(flatten)]
    pub(crate) chain: SampleChainArgs,
}

/// The sample chain's parameters.
#[derive(Debug, clap::Args)]
pub(crate) struct SampleChainArgs {
    /// Blocks, genesis included
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = parse_some::<u64>)]
    pub(crate) block_count: u64,
    /// Transactions in an ordinary block; some blocks are empty, some hold 200 whatever this says
    #[arg(long, value_name = "M", default_value_t = 20, value_parser = parse_number::<u32>)]
    pub(crate) txs_per_block: u32,
    /// Another seed, another chain with an id of its own
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_number::<u64>)]
    pub(crate) seed: u64,
    /// Sizes of call data and logs
    #[arg(long, value_enum, default_value_t = PayloadArg::Small)]
    pub(crate) payload: PayloadArg,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArg {
    /// Pre-merge only: block after block with an accumulator
    Era1,
    /// All of history: section after section with slim receipts
    Ere,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Era1 => Self::Era1,
            FormatArg::Ere => Self::Ere,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PayloadArg {
    /// Short call data: many transactions in little space
    Small,
    /// Sizes and repetitions as mainnet has them
    Mainnet,
}

impl From<PayloadArg> for Payload {
    fn from(payload: PayloadArg) -> Self {
        match payload {
            PayloadArg::Small => Self::Small,
            PayloadArg::Mainnet => Self::Mainnet,
        }
    }
}
