//! Who may ask a server: the flags, and the keys that stand in quipu.toml.
//!
//! Knows: flags and their help, and that keys for tokens lie in files.
//! Never knows: how a caller is let in.

use std::fmt::Display;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ValueEnum;
use rpc::{
    AdmissionSettings, ApiKey, KeyRequirement, ProxyNetwork, Rates, TokenKey, TokenKeyError,
};

use crate::Failure;
use crate::amounts::parse_some;

/// Digits of a secret of 32 bytes.
const SECRET_DIGITS: usize = 64;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArgs {
    /// Whether every request needs an API key or a token
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
    /// A file with the secret of JSON Web Tokens that are let in (HS256): 64 hexadecimal digits, or at
    /// least 32 bytes; may be repeated [default: no tokens]
    #[arg(long = "jwt-secret-file", value_name = "FILE", value_delimiter = ',')]
    jwt_secret_files: Vec<PathBuf>,
    /// A file with the public key of JSON Web Tokens that are let in (`EdDSA`), in PEM; may be repeated
    /// [default: no tokens]
    #[arg(long = "jwt-public-key-file", value_name = "FILE", value_delimiter = ',')]
    jwt_public_key_files: Vec<PathBuf>,
    /// The tables `[[keys]]` of quipu.toml: no flag has a key.
    #[arg(skip)]
    pub(crate) keys: Vec<ApiKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequireKeyArg {
    /// As soon as there is a key, or a key for tokens; a reload that leaves none is refused
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
    /// The rules, with the keys for tokens as their files have them now.
    pub(crate) fn settings(&self) -> Result<AdmissionSettings, Failure> {
        let secrets = self.jwt_secret_files.iter();
        let secrets = secrets.map(|path| read_key("jwt-secret-file", path, TokenKey::from_secret));
        let publics = self.jwt_public_key_files.iter();
        let publics =
            publics.map(|path| read_key("jwt-public-key-file", path, TokenKey::from_public_pem));
        Ok(AdmissionSettings {
            key_requirement: self.require_key.into(),
            keys: self.keys.clone(),
            per_address: Rates { calls: self.rate_per_address, weight: self.weight_per_address },
            proxies: self.trusted_proxies.clone(),
            token_keys: secrets.chain(publics).collect::<Result<_, _>>()?,
        })
    }
}

fn read_key(
    flag: &str,
    path: &Path,
    read: fn(&[u8]) -> Result<TokenKey, TokenKeyError>,
) -> Result<TokenKey, Failure> {
    let place = path.display();
    let wrong = |said: &dyn Display| Failure::Usage(anyhow!("--{flag} {place}: {said}"));
    let bytes = fs::read(path).map_err(|error| {
        if is_secret(path) {
            // Not shown: it would be in the log of whoever starts the server.
            return Failure::Usage(anyhow!(
                "--{flag}: this looks like the secret itself: write it into a file that only the \
                 server can read, and name that file here"
            ));
        }
        wrong(&error)
    })?;
    read(&bytes).map_err(|error| wrong(&error))
}

/// Whether what should name a file is the secret that should be in it. A relative name stands behind the
/// folder of the configuration.
fn is_secret(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_prefix("0x").unwrap_or(name);
    digits.len() == SECRET_DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit())
}
