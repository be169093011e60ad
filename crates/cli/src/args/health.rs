//! The arguments of `quipu health`.

use super::listen::{ListenAddress, parse_listen, parse_metrics_listen};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu health
  quipu health --ready --listen 127.0.0.1:8545

The settings are those of quipu serve: where QUIPU_LISTEN or quipu.toml tell the server where to listen, \
they tell it here too. A server on all addresses is asked on the loopback address. One that speaks TLS \
has to have an address for metrics (--metrics-listen), which answers this too.";

#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// Where the server listens
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8545",
        value_parser = parse_listen
    )]
    pub(crate) listen: ListenAddress,
    /// Where metrics are asked for, which is asked if given: there is no TLS there
    #[arg(long, value_name = "ADDR", value_parser = parse_metrics_listen)]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// Ask whether what is configured can be answered, and not only whether the process runs
    #[arg(long)]
    pub(crate) ready: bool,
}
