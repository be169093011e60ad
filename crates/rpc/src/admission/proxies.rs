//! Proxies: whose word on the address of a client is believed, and which address that is.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use thiserror::Error;

/// Bits of an IPv6 address before the IPv4 address that is mapped into it (RFC 4291, 2.5.5.2).
const MAPPED_BITS: u8 = 96;

/// A network whose machines are trusted proxies: `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyNetwork(IpNet);

/// Why a text names no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write an address or a network, such as 127.0.0.1, 10.0.0.0/8 or fd00::/8")]
pub struct ProxyNetworkError;

impl FromStr for ProxyNetwork {
    type Err = ProxyNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network = text.parse::<IpNet>();
        let network = network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(|network| Self(to_canonical(network))).map_err(|_| ProxyNetworkError)
    }
}

/// The network of IPv4 that one of mapped addresses, such as `::ffff:10.0.0.0/104`, stands for:
/// addresses of peers are compared in this form.
fn to_canonical(network: IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else { return network };
    let bits = mapped.prefix_len().checked_sub(MAPPED_BITS);
    let address = mapped.addr().to_ipv4_mapped();
    let network4 = bits.zip(address).and_then(|(bits, it)| Ipv4Net::new(it, bits).ok());
    network4.map_or(network, IpNet::V4)
}

impl fmt::Display for ProxyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub(super) fn new(networks: Vec<ProxyNetwork>) -> Self {
        Self(networks.into_iter().map(|ProxyNetwork(network)| network).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address of a client whose connection comes from `peer`, and whose request says it was
    /// forwarded so: lists of addresses in the order in which they came. From the end on, as far as
    /// each was added by a trusted proxy; whatever stands before that a client can write itself.
    pub(super) fn client_address<'a>(
        &self,
        peer: IpAddr,
        forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> IpAddr {
        let mut client = peer.to_canonical();
        for hop in forwarded.rev().flat_map(|list| list.rsplit(|byte| *byte == b',')) {
            if !self.has(client) {
                break;
            }
            let Some(address) = parse_hop(hop) else { break };
            client = address;
        }
        client
    }
}

/// An address, to which some proxies add a port.
fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(networks: &[&str], peer: &str, forwarded: &[&str], expected: &str) {
        let forwarded: Vec<&[u8]> = forwarded.iter().map(|list| list.as_bytes()).collect();
        check_bytes(networks, peer, &forwarded, expected);
    }

    fn check_bytes(networks: &[&str], peer: &str, forwarded: &[&[u8]], expected: &str) {
        let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
        let proxies = TrustedProxies::new(networks);
        let found = proxies.client_address(peer.parse().unwrap(), forwarded.iter().copied());
        assert_eq!(
            found.to_string(),
            expected,
            "{networks:?} {peer} {forwarded:?}",
            networks = proxies.0
        );
    }

    #[test]
    fn the_last_address_that_no_trusted_proxy_has_is_the_client() {
        let own = ["10.0.0.0/8", "::1"];
        // Anybody else may write what it likes.
        check(&[], "192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check(&own, "192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check(&own, "10.0.0.1", &[], "10.0.0.1");
        check(&own, "10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check(&own, "::1", &["198.51.100.7"], "198.51.100.7");
        check(&own, "::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        // A client wrote the first itself.
        check(&own, "10.0.0.1", &["127.0.0.1, 198.51.100.7"], "198.51.100.7");
        check(&own, "10.0.0.1", &["203.0.113.9", "198.51.100.7,10.0.0.2"], "198.51.100.7");
        // All are ours: the client is as well.
        check(&own, "10.0.0.1", &["10.0.0.3 , 10.0.0.2"], "10.0.0.3");
        check(&own, "10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7");
        check(&own, "10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1");
        check(&own, "10.0.0.1", &["2001:db8::1"], "2001:db8::1");
        // Whatever is no address ends the list.
        check(&own, "10.0.0.1", &["198.51.100.7, unknown"], "10.0.0.1");
        check(&own, "10.0.0.1", &["198.51.100.7, 10.0.0.2, "], "10.0.0.1");
        check_bytes(&own, "10.0.0.1", &[b"198.51.100.7, \xff"], "10.0.0.1");
    }

    /// A byte that is no text made the whole field count for nothing, and the proxy for the client.
    #[test]
    fn bytes_that_a_client_wrote_change_nothing_of_what_a_proxy_added() {
        let own = ["10.0.0.0/8"];
        check_bytes(&own, "10.0.0.1", &[b"\xff, 198.51.100.7"], "198.51.100.7");
        check_bytes(&own, "10.0.0.1", &[b"\xff\xfe", b"198.51.100.7, 10.0.0.2"], "198.51.100.7");
    }

    #[test]
    fn a_mapped_network_is_the_one_that_it_stands_for() {
        for (network, peer) in [
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.0/104", "::ffff:10.9.9.9"),
            ("10.0.0.1", "::ffff:10.0.0.1"),
        ] {
            check(&[network], peer, &["198.51.100.7"], "198.51.100.7");
        }
        check(&["::ffff:10.0.0.1"], "10.0.0.2", &["198.51.100.7"], "10.0.0.2");
    }

    #[test]
    fn a_network_is_an_address_with_or_without_a_length() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("fd00::/8", "fd00::/8"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ] {
            assert_eq!(text.parse::<ProxyNetwork>().unwrap().to_string(), expected);
        }
        for text in ["", "10.0.0.0/33", "proxy.example", "10.0.0.0/8,::1"] {
            assert_eq!(text.parse::<ProxyNetwork>(), Err(ProxyNetworkError), "{text}");
        }
    }
}
