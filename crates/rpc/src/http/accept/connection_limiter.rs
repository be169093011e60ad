//! Limits of connections: so many in all, and so many of each client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::address_group::AddressGroup;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionLimit {
    /// All places are taken.
    Server,
    /// This client has all that are for one.
    Client,
}

/// Places for connections.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    taken: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    places_max: usize,
    places_per_client_max: Option<usize>,
    count: usize,
    /// Only clients that have one. Also where they may have any number: a limit may be set later.
    by_client: BTreeMap<AddressGroup, usize>,
}

/// A place that is taken; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    room: Arc<ConnectionLimiter>,
    client: AddressGroup,
}

impl ConnectionLimiter {
    pub(super) fn new(places_max: usize, places_per_client_max: Option<usize>) -> Arc<Self> {
        let limiter = Self { taken: Mutex::default() };
        limiter.set_places(places_max, places_per_client_max);
        Arc::new(limiter)
    }

    /// So many places there are from now on; those that are taken stay so.
    pub(super) fn set_places(&self, places_max: usize, places_per_client_max: Option<usize>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        (taken.places_max, taken.places_per_client_max) = (places_max, places_per_client_max);
    }

    /// Takes a place for a client.
    pub(super) fn enter(
        self: &Arc<Self>,
        client: IpAddr,
    ) -> Result<ConnectionPermit, ConnectionLimit> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.count >= taken.places_max {
            return Err(ConnectionLimit::Server);
        }
        let client = AddressGroup::of(client);
        let own = taken.by_client.get(&client).copied().unwrap_or_default();
        if taken.places_per_client_max.is_some_and(|places_max| own >= places_max) {
            return Err(ConnectionLimit::Client);
        }
        taken.by_client.insert(client, own.saturating_add(1));
        taken.count = taken.count.saturating_add(1);
        Ok(ConnectionPermit { room: Arc::clone(self), client })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.count = taken.count.saturating_sub(1);
        if let Some(own) = taken.by_client.get_mut(&self.client) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_by_client_and_given_back() {
        let [one, other] = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let room = ConnectionLimiter::new(3, Some(2));
        let first = room.enter(one).unwrap();
        let second = room.enter(mapped).unwrap();
        assert_eq!(room.enter(one).unwrap_err(), ConnectionLimit::Client);
        let third = room.enter(other).unwrap();
        assert_eq!(room.enter(other).unwrap_err(), ConnectionLimit::Server);
        drop(first);
        let again = room.enter(one).unwrap();
        drop((second, third, again));
        let taken = room.taken.lock().unwrap();
        assert_eq!((taken.count, taken.by_client.len()), (0, 0));
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let [one, other, third] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:1::1"].map(|text| text.parse().unwrap());
        let room = ConnectionLimiter::new(9, Some(1));
        let _first = room.enter(one).unwrap();
        assert_eq!(room.enter(other).unwrap_err(), ConnectionLimit::Client);
        room.enter(third).unwrap();
    }

    #[test]
    fn without_a_limit_one_client_may_have_all() {
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let room = ConnectionLimiter::new(2, None);
        let places = [room.enter(client).unwrap(), room.enter(client).unwrap()];
        assert_eq!(room.enter(client).unwrap_err(), ConnectionLimit::Server);
        drop(places);
    }

    #[test]
    fn a_limit_that_is_set_later_counts_what_is_open_and_closes_nothing() {
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let room = ConnectionLimiter::new(2, None);
        let [first, second] = [room.enter(client).unwrap(), room.enter(client).unwrap()];
        room.set_places(9, Some(2));
        assert_eq!(room.enter(client).unwrap_err(), ConnectionLimit::Client);
        drop(first);
        let third = room.enter(client).unwrap();
        room.set_places(1, None);
        assert_eq!(room.enter(client).unwrap_err(), ConnectionLimit::Server);
        drop((second, third));
        room.enter(client).unwrap();
    }
}
