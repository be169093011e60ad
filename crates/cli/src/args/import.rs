//! The arguments of `quipu import`.

use std::path::PathBuf;

use chain::BlockRange;

use super::{ChainArgs, DataArgs, WorkArgs, parse_blocks};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu import /archives/mainnet
  quipu import --data-dir data --blocks 0..999 mainnet-00000-5ec1ffb8.era1
  quipu import --data-dir data --genesis genesis.json my-chain/
  quipu import --data-dir data --unanchored --without-receipts slice.ere

A kill at any moment is harmless: the same command again takes up after the last whole file.";

/// What is taken of archives, wherever they come from.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SelectionArgs {
    /// Only these blocks, both ends included
    #[arg(long, value_name = "A..B", value_parser = parse_blocks)]
    pub(crate) blocks: Option<BlockRange>,
    /// Take ranges that link to nothing known: they are proven inside, and reported as unanchored
    #[arg(long)]
    pub(crate) unanchored: bool,
    /// Take archives of the noreceipts profile; the same range with receipts replaces it later
    #[arg(long)]
    pub(crate) without_receipts: bool,
    /// Build no log index, now and later: logs are found by reading blocks, until `quipu index` builds it
    #[arg(long)]
    pub(crate) without_log_index: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Archive files (.era1, .ere, .erae) or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}
