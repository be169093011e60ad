//! Who may ask a server: the flags, and the keys that stand in quipu.toml.
//!
//! Knows: flags and their help, and that keys for tokens lie in files.
//! Never knows: how a caller is let in.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use rpc::{AdmissionSettings, ApiKey, ProxyNetwork, Rates, TokenKey, TokenKeyError};

use crate::Failure;
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
    /// A file with the secret of JSON Web Tokens that are let in (HS256): 64 hexadecimal digits, or at
    /// least 32 bytes [default: no tokens]
    #[arg(long, value_name = "FILE")]
    jwt_secret: Option<PathBuf>,
    /// A file with the public key of JSON Web Tokens that are let in (`EdDSA`), in PEM [default: no
    /// tokens]
    #[arg(long, value_name = "FILE")]
    jwt_public_key: Option<PathBuf>,
    /// The tables `[[keys]]` of quipu.toml: no flag has a key.
    #[arg(skip)]
    pub(crate) keys: Vec<ApiKey>,
}

impl AdmissionArgs {
    /// The rules, with the keys for tokens as their files have them now.
    pub(crate) fn settings(&self) -> Result<AdmissionSettings, Failure> {
        let secret = self.jwt_secret.as_deref();
        let secret = secret.map(|path| read_key("jwt-secret", path, TokenKey::from_secret));
        let public = self.jwt_public_key.as_deref();
        let public = public.map(|path| read_key("jwt-public-key", path, TokenKey::from_public_pem));
        Ok(AdmissionSettings {
            keys: self.keys.clone(),
            per_address: Rates { calls: self.rate_per_address, weight: self.weight_per_address },
            proxies: self.trusted_proxies.clone(),
            token_keys: secret.into_iter().chain(public).collect::<Result<_, _>>()?,
        })
    }
}

fn read_key(
    flag: &str,
    path: &Path,
    read: fn(&[u8]) -> Result<TokenKey, TokenKeyError>,
) -> Result<TokenKey, Failure> {
    let place = path.display();
    let wrong = |said: &dyn std::fmt::Display| Failure::Usage(anyhow!("--{flag} {place}: {said}"));
    let bytes = fs::read(path).map_err(|error| wrong(&error))?;
    read(&bytes).map_err(|error| wrong(&error))
}
