//! The arguments of `quipu verify`.

use std::path::PathBuf;

use super::{ChainArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu verify /archives/mainnet
  quipu verify mainnet-00000-5ec1ffb8.era1 mainnet-00001-a5364e9a.era1
  quipu verify --genesis genesis.json my-chain/
  quipu verify --anchor 15537394:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664 mainnet-01896-*.ere
  quipu verify --json /archives/mainnet | jq 'select(.proven | not)'";

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
