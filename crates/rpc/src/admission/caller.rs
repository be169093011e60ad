//! Whoever was let in: which methods it may ask, and how much.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tracing::debug;

use super::key_hash::KeyHash;
use super::rates::{RateLimits, Rates};
use crate::address_group::AddressGroup;
use crate::method_pattern::MethodPattern;
use crate::refusal::ExceededRate;

/// Whose limits they are, as a client is told.
pub(super) const ADDRESS: &str = "this address";
const KEY: &str = "this key";

/// Bytes of an answer that are a unit of weight.
const UNIT_BYTES: usize = 1024;

/// What a key is allowed.
#[derive(Debug)]
pub(crate) struct Grant {
    name: String,
    /// None for all.
    methods: Option<Vec<MethodPattern>>,
    limits: Arc<RateLimits>,
}

impl Grant {
    pub(super) fn new(name: String, methods: Option<Vec<MethodPattern>>, rates: Rates) -> Self {
        Self { name, methods, limits: Arc::new(RateLimits::new(rates)) }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rates(&self) -> Rates {
        self.limits.rates()
    }

    /// The same, counting what another counts.
    pub(super) fn counting_with(&self, other: &Self) -> Self {
        let limits = Arc::clone(&other.limits);
        Self { name: self.name.clone(), methods: self.methods.clone(), limits }
    }

    fn allows(&self, method: &str) -> bool {
        let covers = |methods: &Vec<MethodPattern>| methods.iter().any(|it| it.covers(method));
        self.methods.as_ref().is_none_or(covers)
    }
}

/// The client that a request counts for where clients share something: its key, or else its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientId {
    Key(KeyHash),
    Address(AddressGroup),
}

impl ClientId {
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(AddressGroup::of(address))
    }
}

/// For requests that come over no network.
impl Default for ClientId {
    fn default() -> Self {
        Self::at(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

/// Whoever asks.
#[derive(Debug)]
pub(crate) struct Caller {
    id: ClientId,
    /// None where no key is needed.
    grant: Option<Arc<Grant>>,
    /// None where addresses are not limited.
    address: Option<Arc<RateLimits>>,
}

impl Caller {
    pub(super) fn new(
        id: ClientId,
        grant: Option<Arc<Grant>>,
        address: Option<Arc<RateLimits>>,
    ) -> Self {
        Self { id, grant, address }
    }

    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    /// Whether it may ask this method.
    pub(crate) fn allows(&self, method: &str) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.allows(method))
    }

    /// Counts calls before they are answered, each with a unit of weight, or refuses them. A refusal costs
    /// nothing, whichever limit it is by.
    pub(crate) fn take(&self, calls: usize) -> Result<(), ExceededRate> {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        if let Some(limits) = &self.address {
            limits.take(calls, ADDRESS)?;
        }
        let Some(grant) = &self.grant else { return Ok(()) };
        grant.limits.take(calls, KEY).inspect_err(|exceeded| {
            self.address.iter().for_each(|limits| limits.give_back(calls));
            debug!(key = ?grant.name, %exceeded, "refused");
        })
    }

    /// Whether a call would be taken. None is.
    pub(crate) fn check(&self) -> Result<(), ExceededRate> {
        self.address.as_ref().map_or(Ok(()), |limits| limits.check(ADDRESS))?;
        self.grant.as_ref().map_or(Ok(()), |grant| grant.limits.check(KEY))
    }

    /// Calls of a batch that is answered: a caller cannot pay for more at once.
    pub(crate) fn calls_max(&self) -> usize {
        let limits = self.address.iter().chain(self.grant.as_ref().map(|grant| &grant.limits));
        let calls = limits.map(|limits| limits.calls_max()).min().unwrap_or(u32::MAX);
        usize::try_from(calls).unwrap_or(usize::MAX)
    }

    /// Adds the weight of an answer. The units of its calls were taken before.
    pub(crate) fn charge_answer(&self, bytes: usize) {
        self.charge(u64::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u64::MAX));
    }

    /// Adds weight.
    pub(crate) fn charge(&self, weight: u64) {
        let own = self.grant.as_ref().map(|grant| &grant.limits);
        self.address.iter().chain(own).for_each(|limits| limits.charge(weight));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    fn per_second(calls: u32) -> Rates {
        Rates { calls: NonZeroU32::new(calls), weight: None }
    }

    /// Whoever asked again and again with a key in debt locked out all others of its address.
    #[tokio::test(start_paused = true)]
    async fn who_is_refused_as_a_key_has_taken_nothing_of_its_address() {
        let address = Arc::new(RateLimits::new(per_second(10)));
        let with_key = |calls| {
            let grant = Grant::new(String::new(), None, per_second(calls));
            Caller::new(ClientId::default(), Some(Arc::new(grant)), Some(Arc::clone(&address)))
        };
        let (slow, fast) = (with_key(1), with_key(100));
        slow.take(1).unwrap();
        for calls in [1, 7, 9] {
            assert_eq!(slow.take(calls).unwrap_err().whose, KEY);
            assert_eq!(slow.check().unwrap_err().whose, KEY);
        }
        fast.take(9).unwrap();
        assert_eq!(fast.take(1).unwrap_err().whose, ADDRESS);
        // Nor has a refusal of the address taken anything of the key.
        advance(Duration::from_millis(101)).await;
        fast.take(1).unwrap();
    }
}
