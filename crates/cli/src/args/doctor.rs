//! The arguments of `quipu doctor`.

use crate::upstream_args::UpstreamArgs;

use super::{ChainArgs, DataArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu doctor --data-dir data
  quipu doctor --data-dir data --upstream http://localhost:8545

Exits with 0 if nothing must be done, with 1 if something must: each such line begins with FIX and says \
what. Nothing is changed.";

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}
