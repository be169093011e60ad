//! Addresses that count as one client.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that name a customer: a home commonly gets 56 bits, and whoever is given more
/// has more limits.
const CUSTOMER_BITS: u32 = 56;

/// Addresses that one client has: an address of IPv4, or a network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressGroup(IpAddr);

impl AddressGroup {
    /// Of an address, whichever way it is written.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> CUSTOMER_BITS)))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client_are_one() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:ff::1", true),
            ("2001:db8::1", "2001:db8:0:100::1", false),
        ] {
            let [one, other] = [one, other].map(|it| AddressGroup::of(it.parse().unwrap()));
            assert_eq!(one == other, is_same, "{one:?} {other:?}");
        }
    }
}
