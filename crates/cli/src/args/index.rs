//! The arguments of `quipu index`.

use super::DataArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu index --data-dir data

A kill at any moment is harmless: the same command again goes on after the last 8,192 blocks that are \
done. `quipu serve` may run beside it, and uses what is done within a second; a server that follows a \
node writes to the folder itself, and must be stopped first.";

#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
