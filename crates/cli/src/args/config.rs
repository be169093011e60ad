//! The arguments of `quipu config`.

use clap::ValueEnum;

use super::DataArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu config check --config quipu.toml
  quipu config dump --data-dir data
  quipu config dump > quipu.toml

Every flag has a variable and a key in quipu.toml: a flag is stronger than its variable, the variable \
than the key, the key than the default. The file is the one that --config or QUIPU_CONFIG names, or else \
quipu.toml in the data folder. docs/configuration.md lists them all.";

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// What to do
    #[arg(value_enum)]
    pub(crate) action: ConfigAction,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigAction {
    /// Say whether the file is as it should be
    Check,
    /// Print every setting with its value and where that comes from, as a quipu.toml
    Dump,
}
