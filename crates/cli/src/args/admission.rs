//! Who may ask a server: the flags, and the keys that stand in quipu.toml.

use std::num::NonZeroU32;

use clap::ValueEnum;
use rpc::{AdmissionSettings, ApiKey, KeyRequirement, ProxyNetwork, Rates};

use crate::amounts::parse_some;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArgs {
    /// Whether every request needs an API key
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = RequireKeyArg::Auto)]
    require_key: RequireKeyArg,
    /// Calls a second of one address (of IPv6: of one /56 network); each of a batch counts. Beyond it
    /// requests get 429 with Retry-After [default: any number]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroU32>)]
    rate_per_address: Option<NonZeroU32>,
    /// Weight a second of one address: a unit for each call, for each KiB that is answered, for each page
    /// that is read and for each lookup in an index [default: any amount]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequireKeyArg {
    /// As soon as there is a key; a reload that leaves none is refused
    Auto,
    /// Also where there is none: nobody is let in then
    Always,
    /// No request does; one that has a key is limited by it
    Never,
}

impl From<RequireKeyArg> for KeyRequirement {
    fn from(arg: RequireKeyArg) -> Self {
        match arg {
            RequireKeyArg::Auto => Self::IfAnyKnown,
            RequireKeyArg::Always => Self::Always,
            RequireKeyArg::Never => Self::Never,
        }
    }
}

impl AdmissionArgs {
    /// The rules.
    pub(crate) fn settings(&self) -> AdmissionSettings {
        AdmissionSettings {
            key_requirement: self.require_key.into(),
            keys: self.keys.clone(),
            per_address: Rates { calls: self.rate_per_address, weight: self.weight_per_address },
            proxies: self.trusted_proxies.clone(),
        }
    }
}
