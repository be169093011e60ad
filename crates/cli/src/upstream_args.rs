//! Which nodes are asked, and how: flags become [`Upstreams`].

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use chain::{BlobPrices, ChainSpec};
use node::{
    AskLimits, BlockTag, HeaderClaim, Identity, RestLimits, UpstreamUrl, Upstreams, UpstreamsError,
};
use tracing::warn;

use crate::Failure;
use crate::amounts::{parse_number, parse_some};

/// How long nodes are waited for that all fail: longer than the preferred one may fail before the next
/// one says what is final.
pub(crate) const PATIENCE: Duration = Duration::from_mins(12);

/// The nodes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Upstream")]
pub(crate) struct UpstreamArgs {
    // Texts, because what cannot be parsed would be shown whole, and addresses hold keys.
    /// A node: http, https, ws or wss; may be repeated, the first is preferred
    #[arg(long = "upstream", value_name = "URL", value_delimiter = ',')]
    pub(crate) upstreams: Vec<String>,
    /// So many nodes must agree on which block is the tip, or final [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) quorum: Option<NonZeroUsize>,
    /// Blocks this far below the tip are final, whatever the node says of it
    /// [default: the node's finalized block]
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub(crate) finality_depth: Option<u64>,
    /// Questions at a time that each node is asked at the most [default: 16]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) upstream_concurrency: Option<NonZeroUsize>,
    /// Seconds that an answer may take [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = parse_some::<NonZeroU64>)]
    pub(crate) upstream_timeout: Option<NonZeroU64>,
}

impl UpstreamArgs {
    /// Their addresses.
    pub(crate) fn urls(&self) -> Result<Vec<UpstreamUrl>, Failure> {
        if self.upstreams.is_empty() {
            return Err(Failure::Usage(anyhow!("no node is named: give --upstream URL")));
        }
        let parse = |(position, text): (usize, &String)| {
            let which = || format!("--upstream, number {}", position.saturating_add(1));
            parse_node(text).with_context(which).map_err(Failure::Usage)
        };
        self.upstreams.iter().enumerate().map(parse).collect()
    }

    /// Refuses to ask for more agreement than there are nodes, where there are any.
    pub(crate) fn check_quorum(&self) -> Result<(), Failure> {
        let (quorum, count) = (self.quorum.map_or(1, NonZeroUsize::get), self.upstreams.len());
        if count == 0 || quorum <= count {
            return Ok(());
        }
        Err(Failure::Usage(anyhow!(
            "--quorum {quorum} cannot be reached with {count} of --upstream: name more nodes, or ask \
             for less"
        )))
    }

    /// The first node that is asked over HTTP: calls are passed through to it.
    pub(crate) fn first_http(&self) -> Result<UpstreamUrl, Failure> {
        let mut urls =
            if self.upstreams.is_empty() { Vec::new() } else { self.urls()? }.into_iter();
        urls.find(UpstreamUrl::is_http).ok_or_else(|| {
            Failure::Usage(anyhow!(
                "--pass-through needs a node over http or https: --pass-through-to URL"
            ))
        })
    }

    /// The first node that is asked over a WebSocket: subscriptions are passed through to it.
    pub(crate) fn first_socket(&self) -> Result<Option<UpstreamUrl>, Failure> {
        let urls = if self.upstreams.is_empty() { Vec::new() } else { self.urls()? };
        Ok(urls.into_iter().find(UpstreamUrl::is_websocket))
    }

    /// The nodes of a chain.
    pub(crate) fn nodes(&self, spec: &ChainSpec) -> Result<Arc<Upstreams>, Failure> {
        let defaults = AskLimits::default();
        let limits = AskLimits {
            answer_timeout: self
                .upstream_timeout
                .map_or(defaults.answer_timeout, |seconds| Duration::from_secs(seconds.get())),
            concurrency_max: self
                .upstream_concurrency
                .map_or(defaults.concurrency_max, NonZeroUsize::get),
            ..defaults
        };
        let quorum = self.quorum.map_or(1, NonZeroUsize::get);
        let nodes = Upstreams::new(self.urls()?, spec, quorum, limits, RestLimits::default());
        nodes.map(Arc::new).map_err(|error| Failure::Usage(anyhow!("{error}")))
    }

    /// The nodes of a chain that only they can tell.
    pub(crate) fn unknown_nodes(&self) -> Result<Arc<Upstreams>, Failure> {
        self.nodes(&ChainSpec::bare("unknown", None, None))
    }

    /// The chain that the nodes follow, if it is a known one.
    pub(crate) async fn ask_spec(&self, nodes: &Upstreams) -> Result<ChainSpec, Failure> {
        let Identity { chain_id, genesis_hash } = nodes.introduce().await?;
        let known = ChainSpec::known_by_chain_id(chain_id);
        let is_same =
            |spec: &ChainSpec| genesis_hash.is_none_or(|found| spec.genesis_hash() == Some(found));
        known.filter(is_same).ok_or_else(|| {
            let hash = genesis_hash.map_or(String::new(), |hash| format!(" --genesis-hash {hash}"));
            Failure::Usage(anyhow!(
                "the upstream follows a chain that is not known here: name it with --genesis FILE, \
                 or take its word with --chain-id {chain_id}{hash}"
            ))
        })
    }

    /// The highest block that will not change, by the word of those that decide it: by the depth that
    /// was given, or the one that they call final.
    pub(crate) async fn fetch_final(&self, nodes: &Upstreams) -> Result<HeaderClaim, Failure> {
        let tag = match self.finality_depth {
            None => BlockTag::Finalized,
            Some(depth) if nodes.quorum() > 1 => {
                BlockTag::Number(nodes.fetch_tip().await?.claim.number.saturating_sub(depth))
            }
            Some(depth) => {
                let tip = nodes.fetch_decided(BlockTag::Latest, PATIENCE).await?;
                let tip = tip.ok_or_else(|| Failure::Work(anyhow!("the upstream has no tip")))?;
                BlockTag::Number(tip.number.saturating_sub(depth))
            }
        };
        let claim = match nodes.fetch_decided(tag, PATIENCE).await {
            // What they say instead is in the error.
            Err(error @ UpstreamsError::NoQuorum { .. }) => {
                return Err(Failure::Work(anyhow!("which block is final: {error}\n{DEPTH_HINT}")));
            }
            asked => asked?,
        };
        claim.ok_or_else(|| {
            let said = "the upstream does not say which block is final";
            Failure::Work(anyhow!("{said}\n{DEPTH_HINT}"))
        })
    }
}

/// The address of a node. A port that is none would count for nothing, and the usual one be asked.
pub(crate) fn parse_node(text: &str) -> anyhow::Result<UpstreamUrl> {
    let url: UpstreamUrl = text.parse()?;
    // The colons of an IPv6 address stand in brackets.
    let after_host = url.name().rsplit(']').next().unwrap_or_default();
    match after_host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => Err(anyhow!(
            "not the address of a node: {port} is no port; write a number up to 65535, such as 8545"
        )),
        _ => Ok(url),
    }
}

const DEPTH_HINT: &str = "  hint: say how far below the tip blocks are final: --finality-depth N";

/// Says which blob prices cannot be known.
pub(crate) fn log_blob_prices(spec: &ChainSpec) {
    match spec.blob_prices() {
        BlobPrices::Known => {}
        BlobPrices::KnownSince(time) => warn!(
            time,
            "blob prices of blocks before this time are not known: the node tells no older schedule; \
             answers leave them out unless --genesis FILE names the chain"
        ),
        BlobPrices::Unknown => warn!(
            "blob prices are not known: no node answers eth_config; answers leave them out unless \
             --genesis FILE names the chain"
        ),
    }
}
