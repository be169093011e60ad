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

use crate::refusal::ExceededRate;

use caller::{ADDRESS, Grant};
use credentials::Secret;
use keys::KeyTable;
use proxies::TrustedProxies;
use rate_table::{AddressGroup, RateTable};
use rates::RateLimits;
use tokens::{TokenGrant, TokenVerifier};

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

/// The rules as an operator gives them. Without keys and rates everybody is let in.
#[derive(Clone, Debug, Default)]
pub struct AdmissionSettings {
    /// The keys that are let in; without any, and without keys for tokens, everybody is.
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
    keys: KeyTable,
    per_address: Rates,
    addresses: Arc<RateTable<AddressGroup>>,
    proxies: TrustedProxies,
    tokens: TokenVerifier,
    /// What subjects of tokens have asked, at each of the rates that their tokens tell.
    subjects: Arc<RateTable<(KeyHash, Rates)>>,
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
    /// Puts rules in force.
    #[must_use]
    pub fn new(settings: AdmissionSettings) -> Self {
        let AdmissionSettings { keys, per_address, proxies, token_keys } = settings;
        Self {
            keys: KeyTable::new(keys),
            per_address,
            addresses: Arc::default(),
            proxies: TrustedProxies::new(proxies),
            tokens: TokenVerifier::new(&token_keys),
            subjects: Arc::default(),
        }
    }

    /// Whether everybody is let in, for any amount.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.needs_key() && self.per_address.is_unlimited()
    }

    /// Whether only callers with a key or a token are let in.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        !self.keys.is_empty() || !self.tokens.is_empty()
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
        let address = self.address_limits(client);
        if !self.needs_key() {
            return Ok(Arc::new(Caller::new(None, address)));
        }
        let secret = secret.ok_or(Denial::NoKey)?;
        if let Some(grant) = self.keys.find(&secret.hash) {
            return Ok(Arc::new(Caller::new(Some(grant), address)));
        }
        if !self.tokens.takes(secret.text) {
            return Err(Denial::UnknownKey);
        }
        // To verify a signature is work, which nobody asks for more often than it may.
        if let Some(limits) = &address {
            limits.check(ADDRESS).map_err(Denial::RateLimited)?;
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
