//! The arguments of `quipu verify`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use std::path::PathBuf;

use super::{ChainArgs, WorkArgs};

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
