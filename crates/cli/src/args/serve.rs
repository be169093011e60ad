//! The arguments of `quipu serve`.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::ValueEnum;
use rpc::PassThroughMethod;
use rpc::http::HttpSettings;

use crate::amounts::{parse_number, parse_some, parse_time};
use crate::upstream_args::UpstreamArgs;

use super::admission::AdmissionArgs;
use super::bucket::SourceArgs;
use super::given::GivenSettings;
use super::limits::LimitArgs;
use super::listen::{
    ListenAddress, parse_allowed_host, parse_listen, parse_metrics_listen, parse_origin,
};
use super::tls::TlsArgs;
use super::{ChainArgs, DataArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu serve --data-dir data
  quipu serve --data-dir data --listen 0.0.0.0:8545 --cors-origin https://app.example
  quipu serve --data-dir data --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
  quipu serve --data-dir data --pass-through eth_*,net_* --pass-through-to http://localhost:8546
  quipu serve --data-dir data --upstream ws://localhost:8546 --backfill-to 0
  quipu serve --source s3://bucket/mainnet
  curl -s localhost:8545 -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\",\"params\":[]}'";

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Where to listen: ADDRESS:PORT, or a port of this machine's loopback address; port 0 takes a
    /// free one
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8545",
        value_parser = parse_listen
    )]
    pub(crate) listen: ListenAddress,
    /// How a hash is answered that is not found here and may exist elsewhere [default: refuse; null
    /// while a node is followed]
    #[arg(long, value_enum)]
    pub(crate) unknown_hash: Option<UnknownHashArg>,
    /// Methods that are not served here and go to the upstream node: names, or beginnings such as
    /// eth_*; may be repeated. What signs with a node's keys or manages it never goes. Where history
    /// has gaps, reads that are named here go there too if a hash is not found [default: none]
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) pass_through: Vec<PassThroughMethod>,
    /// The node that they go to, over http or https; it need not be followed. A second address of it,
    /// over ws or wss, is where subscriptions go that are not served here, if --pass-through covers
    /// them [default: the first --upstream of each]
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "pass_through")]
    pub(crate) pass_through_to: Vec<String>,
    /// Origins whose pages may ask; may be repeated
    #[arg(
        long = "cors-origin",
        value_name = "ORIGIN",
        default_value = "*",
        value_delimiter = ',',
        value_parser = parse_origin
    )]
    pub(crate) cors_origins: Vec<String>,
    /// Accept only requests with one of these names in their Host header; may be repeated [default:
    /// any]
    #[arg(
        long = "allowed-host",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = parse_allowed_host
    )]
    pub(crate) allowed_hosts: Vec<String>,
    /// Show browsers no explorer at `/`: they get the line of JSON that programs get
    #[arg(long)]
    pub(crate) no_explorer: bool,
    /// Where metrics are asked for, in place of /metrics where the server listens: ADDRESS:PORT, or a
    /// port of this machine's loopback address. Only /metrics, /healthz and /readyz are answered there
    #[arg(long, value_name = "ADDR", value_parser = parse_metrics_listen)]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// How logs are written to standard error; the variable `RUST_LOG` says what
    #[arg(long, value_enum, default_value_t = LogFormatArg::Text)]
    pub(crate) log_format: LogFormatArg,
    /// A request that takes so long has a line in the log; 0 writes none
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) slow_request: Duration,
    #[command(flatten)]
    pub(crate) admission: AdmissionArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    /// All of these as they were given, to be read again.
    #[arg(skip)]
    pub(crate) given: GivenSettings,
}

impl ServeArgs {
    /// The limits and manners of the server.
    pub(crate) fn http_settings(&self) -> HttpSettings {
        self.limits.http(HttpSettings {
            cors_origins: self.cors_origins.clone(),
            hosts: self.allowed_hosts.clone(),
            has_explorer: !self.no_explorer,
            ..HttpSettings::default()
        })
    }
}

/// How a tip is followed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,
    /// Fill gaps down to this block while serving (0 = genesis) [default: off]
    #[arg(long, value_name = "N", help_heading = "Upstream", value_parser = parse_number::<u64>)]
    pub(crate) backfill_to: Option<u64>,
    /// Blocks to catch up with before a gap is left and reported instead
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Upstream", value_parser = parse_number::<u64>)]
    pub(crate) gap_max: u64,
    /// Milliseconds between two looks at a node that offers no subscription (ws, wss)
    #[arg(long, value_name = "MS", default_value = "1000", help_heading = "Upstream", value_parser = parse_some::<NonZeroU64>)]
    pub(crate) poll_every: NonZeroU64,
    /// Between two lines in the log that tell how following goes; 0 writes none
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_time, help_heading = "Upstream")]
    pub(crate) heartbeat_every: Duration,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnknownHashArg {
    /// As if it did not exist
    Null,
    /// Error 4444 with the ranges that are held
    Refuse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArg {
    /// For people
    Text,
    /// One object a line
    Json,
}
