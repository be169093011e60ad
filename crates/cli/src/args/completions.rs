//! The arguments of `quipu completions`.

use clap_complete::Shell;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu completions bash > ~/.local/share/bash-completion/completions/quipu
  quipu completions zsh > ~/.zfunc/_quipu
  quipu completions fish > ~/.config/fish/completions/quipu.fish

A folder such as ~/.zfunc must be in zsh's fpath.";

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
