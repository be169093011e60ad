//! The arguments of `quipu repair`.

use super::{ChainArgs, DataArgs, WorkArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu repair --data-dir data
  quipu repair --data-dir data --network mainnet
  quipu repair --data-dir data --name my-chain --anchor 100:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664

Exits with 0 if the folder lacks nothing that it held, with 1 if blocks are lost or a segment had to be \
left out whose blocks are in no other file, or if there is nothing to rebuild the manifest from.";

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// What a chain that is not built in is called [default: what the next import's archives say]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// List ranges of blocks that nothing known links to the others
    #[arg(long)]
    pub(crate) unanchored: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

/// A name is one word of the manifest.
fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.chars().all(is_plain) && text.chars().any(|letter| letter.is_ascii_alphanumeric()) {
        return Ok(text.to_owned());
    }
    Err("a name is made of letters, digits, `-`, `_` and `.`, with a letter or a digit".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word() {
        for name in ["a", "my-chain", "sample_2.0", "7"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for name in ["", " ", "-", "--", ".", "my chain", "a\n", "\u{e9}"] {
            assert!(parse_name(name).is_err(), "{name:?}");
        }
    }
}
