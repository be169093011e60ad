//! Admission: who may ask, which methods, and how much a second.
//!
//! - `keys` are API keys, stored as hashes;
//! - `tokens` are JSON Web Tokens, which say themselves what they allow;
//! - `credentials` are what the head of a request says of who asks;
//! - `proxies` are believed when they tell whom they forward;
//! - `rates` and `rate_table` count calls and weight, by key and by address;
//! - `caller` is whoever was let in;
//! - `shared` holds the rules, which can be replaced while requests are served;
//! - `connection` and `socket` remember who asks on a connection.
//!
//! Knows: the rules, and what becomes of a request that they do not let in.
//! Never knows: HTTP beyond names and values of header fields, or what is asked.

mod caller;
mod connection;
mod credentials;
mod keys;
mod proxies;
mod rate_table;
mod rates;
mod shared;
mod socket;
mod tokens;

use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::address_group::AddressGroup;
use crate::refusal::ExceededRate;

use caller::{ADDRESS, Grant};
use credentials::Secret;
use keys::KeyTable;
use proxies::TrustedProxies;
use rate_table::RateTable;
use rates::RateLimits;
use tokens::{TokenClock, TokenGrant, TokenVerifier};

pub(crate) use caller::Caller;
pub(crate) use connection::ConnectionCaller;
pub(crate) use credentials::{CallerHead, strip_key};
pub use keys::{ApiKey, KeyHash, KeyHashError};
pub use proxies::{ProxyNetwork, ProxyNetworkError};
pub use rates::Rates;
pub(crate) use shared::SharedAdmission;
pub(crate) use socket::SocketCaller;
pub(crate) use tokens::TokenFault;
pub use tokens::{TokenKey, TokenKeyError};

/// Whether a request needs a key or a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyRequirement {
    /// As soon as there is a key, or a key for tokens. Rules of this kind do not open a server that needs
    /// one.
    #[default]
    IfAnyKnown,
    /// Every request does. Without any key nobody is let in.
    Always,
    /// None does; one that has a key is limited by it.
    Never,
}

/// The rules as an operator gives them. Without keys and rates everybody is let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// Whether a key or a token is needed.
    pub key_requirement: KeyRequirement,
    /// The keys that are let in.
    pub keys: Vec<ApiKey>,
    /// How much each address may ask.
    pub per_address: Rates,
    /// Proxies whose word on the address of a client is believed.
    pub proxies: Vec<ProxyNetwork>,
    /// Keys by which tokens are believed; with none, no token is.
    pub token_keys: Vec<TokenKey>,
}

/// Rules that are in force, and what was asked under them so far.
#[derive(Debug)]
pub struct Admission {
    key_requirement: KeyRequirement,
    keys: KeyTable,
    per_address: Rates,
    addresses: Arc<RateTable<AddressGroup>>,
    proxies: TrustedProxies,
    tokens: TokenVerifier,
    /// What subjects of tokens have asked, at each of the rates that their tokens tell.
    subjects: Arc<RateTable<(KeyHash, Rates)>>,
}

/// Why rules are not put in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AdmissionError {
    /// Whoever removed the last key did not say that everybody may ask now.
    #[error(
        "no key is left, and without one everybody would be let in: the rules stay as they were; say \
         require_key = \"never\" if everybody may ask, or \"always\" if nobody may"
    )]
    WouldOpen,
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It has no key, and one is needed.
    NoKey,
    /// Its key is none of those that are let in.
    UnknownKey,
    /// Its token is not believed.
    BadToken(TokenFault),
    /// Its address has asked too much.
    RateLimited(ExceededRate),
}

impl Admission {
    /// Rules that can be put in force.
    #[must_use]
    pub fn new(settings: AdmissionSettings) -> Self {
        Self::with_clock(settings, TokenClock::system())
    }

    /// The same by another time of day, since the beginning of 1970.
    #[cfg(test)]
    pub(crate) fn at_time(settings: AdmissionSettings, now: fn() -> std::time::Duration) -> Self {
        Self::with_clock(settings, TokenClock(now))
    }

    fn with_clock(settings: AdmissionSettings, clock: TokenClock) -> Self {
        let AdmissionSettings { key_requirement, keys, per_address, proxies, token_keys } =
            settings;
        Self {
            key_requirement,
            keys: KeyTable::new(keys),
            per_address,
            addresses: Arc::default(),
            proxies: TrustedProxies::new(proxies),
            tokens: TokenVerifier::new(&token_keys, clock),
            subjects: Arc::default(),
        }
    }

    /// Whether everybody is let in, for any amount, and nobody needs to be looked up.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.needs_key() && !self.knows_key() && self.per_address.is_unlimited()
    }

    /// Whether only callers with a key or a token are let in.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        match self.key_requirement {
            KeyRequirement::Always => true,
            KeyRequirement::IfAnyKnown => self.knows_key(),
            KeyRequirement::Never => false,
        }
    }

    /// Whether there is a key, or a key for tokens.
    #[must_use]
    pub fn knows_key(&self) -> bool {
        !self.keys.is_empty() || !self.tokens.is_empty()
    }

    /// Refuses to take the place of rules that need a key, if these let everybody in and nobody has said
    /// that they should.
    fn check_replacing(&self, previous: &Self) -> Result<(), AdmissionError> {
        let is_meant = self.key_requirement == KeyRequirement::Never;
        if previous.needs_key() && !self.needs_key() && !is_meant {
            return Err(AdmissionError::WouldOpen);
        }
        Ok(())
    }

    /// Goes on counting where other rules left off, for keys and addresses whose rates are the same.
    fn continue_from(&mut self, previous: &Self) {
        self.keys.continue_from(&previous.keys);
        self.subjects = Arc::clone(&previous.subjects);
        if self.per_address == previous.per_address {
            self.addresses = Arc::clone(&previous.addresses);
        }
    }

    /// The address of whoever sent a request over a connection of `peer`.
    fn client_address(&self, peer: IpAddr, head: &CallerHead<'_>) -> IpAddr {
        self.proxies.client_address(peer, head.forwarded())
    }

    /// Lets a caller in, or tells why not.
    fn admit(&self, secret: Option<Secret<'_>>, client: IpAddr) -> Result<Arc<Caller>, Denial> {
        // To verify a signature is work, which nobody asks for more often than it may.
        let is_token = |secret: Secret<'_>| {
            self.tokens.takes(secret.text) && self.keys.find(&secret.hash).is_none()
        };
        if secret.is_some_and(is_token)
            && let Some(limits) = self.address_limits(client)
        {
            limits.check(ADDRESS).map_err(Denial::RateLimited)?;
        }
        self.identify(secret, client)
    }

    /// Lets a caller in, however much its address has asked.
    fn identify(&self, secret: Option<Secret<'_>>, client: IpAddr) -> Result<Arc<Caller>, Denial> {
        let address = self.address_limits(client);
        let secret = match secret {
            Some(secret) if self.needs_key() || self.knows_key() => secret,
            None if self.needs_key() => return Err(Denial::NoKey),
            Some(_) | None => return Ok(Arc::new(Caller::new(None, address))),
        };
        if let Some(grant) = self.keys.find(&secret.hash) {
            return Ok(Arc::new(Caller::new(Some(grant), address)));
        }
        if !self.tokens.takes(secret.text) {
            return Err(Denial::UnknownKey);
        }
        let token = self.tokens.verify(secret.text, secret.hash).map_err(Denial::BadToken)?;
        let TokenGrant { subject, name, methods, rates, until } = token;
        let limits = self.subjects.find((subject, rates), rates);
        let grant = Arc::new(Grant::with_limits(name, methods, limits));
        Ok(Arc::new(Caller::new(Some(grant), address).until(until)))
    }

    /// Counts a request that was not let in as a call of its address: guessing is limited as asking is.
    fn count_denied(&self, client: IpAddr) -> Result<(), ExceededRate> {
        self.address_limits(client).map_or(Ok(()), |limits| limits.take(1, ADDRESS))
    }

    fn address_limits(&self, client: IpAddr) -> Option<Arc<RateLimits>> {
        let rates = self.per_address;
        (!rates.is_unlimited()).then(|| self.addresses.find(AddressGroup::of(client), rates))
    }
}
