//! The arguments of `quipu health`.
//!
//! Knows: flags and their help.
//! Never knows: what comes of them.

use super::listen::{ListenAddress, parse_listen};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu health
  quipu health --ready --listen 127.0.0.1:8545

The settings are those of quipu serve: where QUIPU_LISTEN or quipu.toml tell the server where to listen,
they tell it here too. A server on all addresses is asked on the loopback address.";

#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// Where the server listens without TLS
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8545",
        value_parser = parse_listen
    )]
    pub(crate) listen: ListenAddress,
    /// Host names that requests may name, of which the first is sent [default: the address]
    #[arg(long = "host", value_name = "NAME", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// Ask whether what is configured can be answered, and not only whether the process runs
    #[arg(long)]
    pub(crate) ready: bool,
}
