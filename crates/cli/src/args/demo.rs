//! The arguments of `quipu demo`.

use std::path::PathBuf;

use super::listen::{ListenAddress, parse_listen};
use super::sample::SampleChainArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu demo
  quipu demo --listen 127.0.0.1:0 --block-count 200 --txs-per-block 3
  quipu demo --data-dir data";

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    // QUIPU_DATA_DIR does not give it: whoever has that set wants no sample chain in it.
    /// Keep the data here instead of in a temporary folder; held already, it is only served
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where to listen: ADDRESS:PORT, or a port of this machine's loopback address; port 0 takes a
    /// free one
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8545",
        value_parser = parse_listen
    )]
    pub(crate) listen: ListenAddress,
    /// Show browsers no explorer at `/`: they get the line of JSON that programs get
    #[arg(long)]
    pub(crate) no_explorer: bool,
    #[command(flatten)]
    pub(crate) chain: SampleChainArgs,
}
