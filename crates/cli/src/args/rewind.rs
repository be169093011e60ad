//! The arguments of `quipu rewind`.

use chain::trust::Anchor;

use super::DataArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu rewind --data-dir data --to 100:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664";

#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// The last block that stays, with the hash that it has here
    #[arg(long, value_name = "NUMBER:HASH")]
    pub(crate) to: Anchor,
    /// First withdraw from this bucket what the folder published above that block: no reader serves
    /// it any more
    #[arg(long, value_name = "URL")]
    pub(crate) retract_at: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
