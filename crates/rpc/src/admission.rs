//! Admission: who may call, which methods, and how much a second.
//!
//! - `keys` are API keys, each stored as its `key_hash`;
//! - `credentials` are what the head of a request says about its sender;
//! - `proxies` are trusted to name the client that they forward;
//! - `rates` and `rate_table` count calls and weight, by key and by address;
//! - `caller` is an admitted client;
//! - `shared` holds the rules, which can be replaced while requests are served;
//! - `connection` and `socket` remember the caller of a connection.

mod caller;
mod connection;
mod credentials;
mod key_hash;
mod keys;
mod proxies;
mod rate_table;
mod rates;
mod shared;
mod socket;

use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::address_group::AddressGroup;
use crate::refusal::ExceededRate;

use caller::ADDRESS;
use keys::KeyTable;
use proxies::TrustedProxies;
use rate_table::RateTable;
use rates::RateLimits;

pub(crate) use caller::{Caller, ClientId};
pub(crate) use connection::ConnectionCaller;
pub(crate) use credentials::{CallerHead, strip_key};
pub use key_hash::{KeyHash, KeyHashError};
pub use keys::ApiKey;
pub use proxies::{ProxyNetwork, ProxyNetworkError};
pub use rates::Rates;
pub(crate) use shared::SharedAdmission;
pub(crate) use socket::SocketCaller;

/// Whether a request needs a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyRequirement {
    /// As soon as there is a key. Rules of this kind do not open a server that needs one.
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
    /// Whether a key is needed.
    pub key_requirement: KeyRequirement,
    /// The keys that are let in.
    pub keys: Vec<ApiKey>,
    /// How much each address may ask.
    pub per_address: Rates,
    /// Proxies whose word on the address of a client is believed.
    pub proxies: Vec<ProxyNetwork>,
}

/// Rules that are in force, and what was asked under them so far.
#[derive(Debug)]
pub struct Admission {
    key_requirement: KeyRequirement,
    keys: KeyTable,
    per_address: Rates,
    addresses: Arc<RateTable<AddressGroup>>,
    proxies: TrustedProxies,
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
    /// Its address has asked too much.
    RateLimited(ExceededRate),
}

impl Admission {
    /// Rules that can be put in force.
    #[must_use]
    pub fn new(settings: AdmissionSettings) -> Self {
        let AdmissionSettings { key_requirement, keys, per_address, proxies } = settings;
        Self {
            key_requirement,
            keys: KeyTable::new(keys),
            per_address,
            addresses: Arc::default(),
            proxies: TrustedProxies::new(proxies),
        }
    }

    /// Whether every client is admitted, for any amount, and is the other end of its connection: none needs
    /// to be looked up.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let is_unlimited =
            !self.needs_key() && !self.knows_key() && self.per_address.is_unlimited();
        is_unlimited && self.proxies.is_empty()
    }

    /// Whether only callers with a key are admitted.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        match self.key_requirement {
            KeyRequirement::Always => true,
            KeyRequirement::IfAnyKnown => self.knows_key(),
            KeyRequirement::Never => false,
        }
    }

    /// Whether there is a key.
    #[must_use]
    pub fn knows_key(&self) -> bool {
        !self.keys.is_empty()
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
        if self.per_address == previous.per_address {
            self.addresses = Arc::clone(&previous.addresses);
        }
    }

    /// The address of whoever sent a request over a connection of `peer`.
    fn client_address(&self, peer: IpAddr, head: &CallerHead<'_>) -> IpAddr {
        self.proxies.client_address(peer, head.forwarded())
    }

    /// Admits a caller by the hash of its key, however much it has asked, or returns why not.
    fn admit(&self, key: Option<KeyHash>, client: IpAddr) -> Result<Arc<Caller>, Denial> {
        let (id, grant) = match key {
            Some(hash) if self.needs_key() || self.knows_key() => {
                let grant = self.keys.find(&hash).ok_or(Denial::UnknownKey)?;
                (ClientId::Key(hash), Some(grant))
            }
            None if self.needs_key() => return Err(Denial::NoKey),
            Some(_) | None => (ClientId::at(client), None),
        };
        Ok(Arc::new(Caller::new(id, grant, self.address_limits(client))))
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
