//! The arguments of `quipu key`.

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu key new --name app
  curl -H 'Authorization: Bearer KEY' localhost:8545 -d '...'
  curl localhost:8545/v1/KEY -d '...'";

#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// What to do
    #[arg(value_enum)]
    pub(crate) action: KeyAction,
    /// What logs call the key [default: key- and the first digits of its hash]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyAction {
    /// Make a key, and print it with the table that lets it in
    New,
}
