//! What can be typed.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use alloy_primitives::B256;
use chain::trust::Anchor;
use clap::{Parser, Subcommand, ValueEnum};
use ingest::archive::Format;
use ingest::sample::Payload;

/// Ethereum history, proven: blocks, transactions and receipts from archive files.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the sample chain, write it as archives and prove it: needs nothing
    Demo(DemoArgs),
    /// Write the sample chain as archives
    Sample(SampleArgs),
    /// Prove archive files without storing them
    ///
    /// Every block of every file is proven: header hash and parent link, transactions root, ommers
    /// hash, withdrawals root, receipts root, logs bloom, gas used, and the sender of every
    /// transaction. Then the file's own index, accumulator, name and checksum. Prints for each file
    /// its range, transactions, root and verdict. Exits with 0 if all is true, with 1 if anything
    /// is false, naming file, block, byte and both values.
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Folder for the archives [default: quipu-demo-... in the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) chain: SampleChainArgs,
}

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
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block_count: u64,
    /// Transactions in an ordinary block; some blocks are empty, some hold 200 whatever this says
    #[arg(long, value_name = "M", default_value_t = 20)]
    pub(crate) txs_per_block: u32,
    /// Another seed, another chain
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sizes of call data and logs
    #[arg(long, value_enum, default_value_t = PayloadArg::Small)]
    pub(crate) payload: PayloadArg,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Archive files (.era1, .ere, .erae) or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print one JSON object for each file instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

/// How to do the work.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Threads to work with [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Which chain it is, and what is trusted.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArgs {
    /// A known network [default: told by the file's name]
    #[arg(long, env = "QUIPU_NETWORK", value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(chain::ChainSpec::known_names()), conflicts_with_all = ["genesis", "chain_id"])]
    pub(crate) network: Option<String>,
    /// Any other chain: its genesis.json gives chain id, forks, blob schedule and genesis hash
    #[arg(long, env = "QUIPU_GENESIS", value_name = "FILE", conflicts_with_all = ["chain_id", "genesis_hash"])]
    pub(crate) genesis: Option<PathBuf>,
    /// A chain without its genesis.json; a known id brings that network's forks
    #[arg(long, value_name = "N")]
    pub(crate) chain_id: Option<u64>,
    /// The hash of that chain's genesis block
    #[arg(long, value_name = "HASH", requires = "chain_id")]
    pub(crate) genesis_hash: Option<B256>,
    /// A block hash you trust: blocks at or below it by parent links are anchored; may be repeated
    #[arg(
        long = "anchor",
        env = "QUIPU_ANCHOR",
        value_name = "NUMBER:HASH",
        value_delimiter = ','
    )]
    pub(crate) anchors: Vec<Anchor>,
    /// The pre-merge epoch roots of mainnet, believed only if they hash to EIP-7643's root
    /// [default: mainnet-accumulators.bin beside the archives, if there]
    #[arg(long, value_name = "FILE")]
    pub(crate) accumulators: Option<PathBuf>,
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
