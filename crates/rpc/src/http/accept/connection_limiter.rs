//! Limits of connections: so many in all, and so many of each client.
//!
//! Knows: who has how many.
//! Never knows: what they do with them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

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
    places_max: usize,
    places_per_client_max: Option<usize>,
    taken: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    count: usize,
    /// Only clients that have one, and only if they are counted.
    by_client: BTreeMap<IpAddr, usize>,
}

/// A place that is taken; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    room: Arc<ConnectionLimiter>,
    client: IpAddr,
}

impl ConnectionLimiter {
    pub(super) fn new(places_max: usize, places_per_client_max: Option<usize>) -> Arc<Self> {
        Arc::new(Self { places_max, places_per_client_max, taken: Mutex::default() })
    }

    /// Takes a place for a client.
    pub(super) fn enter(
        self: &Arc<Self>,
        client: IpAddr,
    ) -> Result<ConnectionPermit, ConnectionLimit> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.count >= self.places_max {
            return Err(ConnectionLimit::Server);
        }
        // One client, whichever way its address is written.
        let client = client.to_canonical();
        if let Some(places_max) = self.places_per_client_max {
            let own = taken.by_client.entry(client).or_default();
            if *own >= places_max {
                return Err(ConnectionLimit::Client);
            }
            *own = own.saturating_add(1);
        }
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
    fn without_a_limit_one_client_may_have_all() {
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let room = ConnectionLimiter::new(2, None);
        let places = [room.enter(client).unwrap(), room.enter(client).unwrap()];
        assert_eq!(room.enter(client).unwrap_err(), ConnectionLimit::Server);
        drop(places);
    }
}
