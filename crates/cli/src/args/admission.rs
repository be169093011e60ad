//! Who may ask a server: the flags, and the keys that stand in quipu.toml.
//!
//! Knows: flags and their help.
//! Never knows: how a caller is let in.

use std::num::NonZeroU32;

use rpc::{AdmissionSettings, ApiKey, ProxyNetwork, Rates};

use crate::amounts::parse_some;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArgs {
    /// Calls a second of one address (of IPv6: of one /64 network); each of a batch counts. Beyond it
    /// requests get 429 with Retry-After [default: any number]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroU32>)]
    rate_per_address: Option<NonZeroU32>,
    /// Weight a second of one address: a unit for each call, for each KiB that is answered and for each
    /// page that is read [default: any amount]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroU32>)]
    weight_per_address: Option<NonZeroU32>,
    /// Addresses or networks of proxies whose X-Forwarded-For tells the address of a client; may be
    /// repeated [default: none]
    #[arg(long = "trusted-proxy", value_name = "CIDR", value_delimiter = ',')]
    trusted_proxies: Vec<ProxyNetwork>,
    /// The tables `[[keys]]` of quipu.toml: no flag has a key.
    #[arg(skip)]
    pub(crate) keys: Vec<ApiKey>,
}

impl AdmissionArgs {
    pub(crate) fn settings(&self) -> AdmissionSettings {
        AdmissionSettings {
            keys: self.keys.clone(),
            per_address: Rates { calls: self.rate_per_address, weight: self.weight_per_address },
            proxies: self.trusted_proxies.clone(),
        }
    }
}
