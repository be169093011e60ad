//! The arguments of `quipu repair`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use super::{ChainArgs, DataArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu repair --data-dir data
  quipu repair --data-dir data --network mainnet --accumulators mainnet-accumulators.bin
  quipu repair --data-dir data --name my-chain --anchor 100:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664

Exits with 0 if the manifest is there, with 1 if a segment had to be left out whose blocks are in no
other file, or if there is nothing to rebuild it from.";

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// What a chain that is not built in is called [default: what the next import's archives say]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}
