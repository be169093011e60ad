//! Admission: who may ask, which methods, and how much a second.
//!
//! - `keys` are API keys, stored as hashes;
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

use std::net::IpAddr;
use std::sync::Arc;

use crate::refusal::ExceededRate;

use caller::ADDRESS;
use keys::KeyTable;
use proxies::TrustedProxies;
use rate_table::{AddressGroup, RateTable};
use rates::RateLimits;

pub(crate) use caller::Caller;
pub(crate) use connection::ConnectionCaller;
pub(crate) use credentials::{CallerHead, strip_key};
pub use keys::{ApiKey, KeyHash, KeyHashError};
pub use proxies::{ProxyNetwork, ProxyNetworkError};
pub use rates::Rates;
pub(crate) use shared::SharedAdmission;
pub(crate) use socket::SocketCaller;

/// The rules as an operator gives them. Without keys and rates everybody is let in.
#[derive(Clone, Debug, Default)]
pub struct AdmissionSettings {
    /// The keys that are let in; with none, no key is asked for.
    pub keys: Vec<ApiKey>,
    /// How much each address may ask.
    pub per_address: Rates,
    /// Proxies whose word on the address of a client is believed.
    pub proxies: Vec<ProxyNetwork>,
}

/// Rules that are in force, and what was asked under them so far.
#[derive(Debug)]
pub struct Admission {
    keys: KeyTable,
    per_address: Rates,
    addresses: Arc<RateTable<AddressGroup>>,
    proxies: TrustedProxies,
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It has no key, and one is needed.
    NoKey,
    /// Its key is none of those that are let in.
    UnknownKey,
    /// Its address has asked too much.
    RateLimited(ExceededRate),
}

impl Admission {
    /// Puts rules in force.
    #[must_use]
    pub fn new(settings: AdmissionSettings) -> Self {
        let AdmissionSettings { keys, per_address, proxies } = settings;
        Self {
            keys: KeyTable::new(keys),
            per_address,
            addresses: Arc::default(),
            proxies: TrustedProxies::new(proxies),
        }
    }

    /// Whether everybody is let in, for any amount.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.needs_key() && self.per_address.is_unlimited()
    }

    /// Whether only callers with a key are let in.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Goes on counting where other rules left off, for keys and addresses whose rates are the same.
    fn continue_from(&mut self, previous: &Self) {
        self.keys.continue_from(&previous.keys);
        if self.per_address == previous.per_address {
            self.addresses = Arc::clone(&previous.addresses);
        }
    }

    /// The address of whoever sent a request over a connection of `peer`.
    fn client_address(&self, peer: IpAddr, head: &CallerHead<'_>) -> IpAddr {
        self.proxies.client_address(peer, head.forwarded())
    }

    /// Lets a caller in, or tells why not.
    fn admit(&self, secret: Option<KeyHash>, client: IpAddr) -> Result<Arc<Caller>, Denial> {
        let grant = match secret.map(|hash| self.keys.find(&hash)) {
            Some(Some(grant)) => Some(grant),
            _ if !self.needs_key() => None,
            Some(None) => return Err(Denial::UnknownKey),
            None => return Err(Denial::NoKey),
        };
        Ok(Arc::new(Caller::new(grant, self.address_limits(client))))
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
