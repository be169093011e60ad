//! Filters over logs: which logs match, and which blooms say that none does.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

use crate::hash::{Hash32, keccak256, write_hex};
use crate::header::BLOOM_BYTES;
use crate::receipt::{AddressBytes, LogParts};

/// The question that a list of logs answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFilter {
    /// The first block.
    pub from_block: u64,
    /// The last block, which counts too.
    pub to_block: u64,
    /// Any of these contracts; none given means every contract.
    pub addresses: Vec<[u8; 20]>,
    /// By position, any of these topics; none given means every topic, but there must be one.
    pub topics: Vec<Vec<Hash32>>,
}

/// The filter as the text of a bundle has it.
impl fmt::Display for ProofFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_block, to_block, addresses, topics } = self;
        write!(f, "{{\"fromBlock\":{from_block},\"toBlock\":{to_block},\"address\":")?;
        write_list(f, addresses, |f, address| write_quoted(f, address))?;
        write!(f, ",\"topics\":")?;
        write_list(f, topics, |f, any| write_list(f, any, |f, topic| write_quoted(f, &topic.0)))?;
        write!(f, "}}")
    }
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    mut write_item: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    write!(f, "[")?;
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            write!(f, ",")?;
        }
        write_item(f, item)?;
    }
    write!(f, "]")
}

fn write_quoted(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    write!(f, "\"")?;
    write_hex(f, bytes)?;
    write!(f, "\"")
}

/// A filter, made ready for many blocks.
#[derive(Debug)]
pub(crate) struct LogMatcher {
    addresses: BTreeSet<AddressBytes>,
    topics: Vec<BTreeSet<Hash32>>,
    /// For each part of the filter that names something: the bits of each alternative.
    alternatives: Vec<Vec<BloomBits>>,
}

/// The three bits that an item sets: byte of the bloom and mask in it.
type BloomBits = [(usize, u8); 3];

impl LogMatcher {
    pub(crate) fn new(filter: &ProofFilter) -> Self {
        let addresses: Vec<BloomBits> = filter.addresses.iter().map(|it| bloom_bits(it)).collect();
        let topics =
            filter.topics.iter().map(|any| any.iter().map(|it| bloom_bits(&it.0)).collect());
        let alternatives = core::iter::once(addresses).chain(topics);
        Self {
            addresses: filter.addresses.iter().copied().collect(),
            topics: filter.topics.iter().map(|any| any.iter().copied().collect()).collect(),
            alternatives: alternatives.filter(|any: &Vec<BloomBits>| !any.is_empty()).collect(),
        }
    }

    /// Whether a block with this bloom has no log that matches. An empty bloom says that it has no
    /// logs at all, because each sets bits for its address.
    pub(crate) fn is_excluded_by(&self, bloom: &[u8; BLOOM_BYTES]) -> bool {
        let has = |bits: &BloomBits| {
            bits.iter().all(|(byte, mask)| bloom.get(*byte).is_some_and(|it| it & mask != 0))
        };
        let is_empty = bloom.iter().all(|byte| *byte == 0);
        is_empty || self.alternatives.iter().any(|any| !any.iter().any(has))
    }

    /// As nodes have it: a position without topics still asks for a log that has one there.
    pub(crate) fn matches(&self, log: &LogParts<'_>) -> bool {
        let of_contract = self.addresses.is_empty() || self.addresses.contains(&log.address);
        let mut pairs = self.topics.iter().zip(&log.topics);
        of_contract
            && self.topics.len() <= log.topics.len()
            && pairs.all(|(any, topic)| any.is_empty() || any.contains(topic))
    }
}

fn bloom_bits(item: &[u8]) -> BloomBits {
    let hash = keccak256(item).0;
    let (pairs, _rest) = hash.as_chunks::<2>();
    let mut bits = [(0, 0); 3];
    for (bit, pair) in bits.iter_mut().zip(pairs) {
        let number = u16::from_be_bytes(*pair) & 0x7ff;
        // Bit 0 is the lowest of the last byte.
        let byte = BLOOM_BYTES.saturating_sub(1).saturating_sub(usize::from(number >> 3));
        *bit = (byte, 1 << (number & 7));
    }
    bits
}
