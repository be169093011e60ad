//! What logs are asked for: addresses and topics.

use std::ops::Range;

use alloy_primitives::{Address, B256, Bloom, keccak256};
use segment::LogView;
use segment::index::{IndexKey, KeyKind};

/// Values that are hashed for blooms in a step.
const HASHED_AT_ONCE: usize = 256;
/// A bloom has 2048 bits.
const BLOOM_BIT_MASK: u16 = 0x7ff;

/// The addresses and topics that logs are to have, all in rising order. Queries may be kept for long:
/// slices have no memory to spare, however many values stood twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    addresses: Box<[Address]>,
    topics: Box<[Box<[B256]>]>,
}

impl LogQuery {
    /// Logs of one of these addresses, or of any if there is none here; with one of these topics at each
    /// position, or with any if there is none: but a topic there must be.
    #[must_use]
    pub fn new(addresses: Vec<Address>, topics: Vec<Vec<B256>>) -> Self {
        let topics = topics.into_iter().map(in_order).collect();
        Self { addresses: in_order(addresses), topics }
    }

    /// The addresses of which a log has one; none if any will do.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The topics of which a log has one at each position; none where any will do.
    pub fn topics(&self) -> impl Iterator<Item = &[B256]> {
        self.topics.iter().map(|wanted| &**wanted)
    }

    /// How much memory its lists take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let topics = self.topics.iter().map(|wanted| size_of_val(&**wanted));
        let lists = size_of_val(&*self.topics).saturating_add(size_of_val(&*self.addresses));
        topics.fold(lists, usize::saturating_add)
    }

    /// Whether a log has what is asked for.
    #[must_use]
    pub fn matches(&self, log: &LogView<'_>) -> bool {
        self.matches_values(&log.address, log.topics.iter())
    }

    /// Whether a log with this address and these topics has what is asked for.
    #[must_use]
    pub fn matches_values<'a>(
        &self,
        address: &Address,
        topics: impl ExactSizeIterator<Item = &'a [u8; 32]>,
    ) -> bool {
        let is_any_of = |wanted: &[B256], found: &[u8; 32]| {
            wanted.is_empty() || wanted.binary_search_by(|topic| topic.0.cmp(found)).is_ok()
        };
        (self.addresses.is_empty() || self.addresses.binary_search(address).is_ok())
            && self.topics.len() <= topics.len()
            && self.topics.iter().zip(topics).all(|(wanted, found)| is_any_of(wanted, found))
    }

    /// The query, made ready for many blooms.
    #[must_use]
    pub fn for_blooms(&self) -> BloomQuery {
        let mut query = BloomQuery::default();
        while !query.hash_some(self) {}
        query
    }

    /// The lists of values of which a log has one each. None if every log is asked for.
    pub(crate) fn lists(&self) -> Vec<ValueList<'_>> {
        let addresses = ValueList::Addresses(&self.addresses);
        let topics = self.topics.iter().zip(KeyKind::TOPICS);
        let topics = topics.map(|(wanted, kind)| ValueList::Topics(kind, wanted));
        std::iter::once(addresses).chain(topics).filter(|list| list.len() > 0).collect()
    }
}

/// Values of which a log has one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueList<'a> {
    Addresses(&'a [Address]),
    Topics(KeyKind, &'a [B256]),
}

impl ValueList<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Addresses(wanted) => wanted.len(),
            Self::Topics(_, wanted) => wanted.len(),
        }
    }

    /// Keys of the index for some of them. Each costs a hash: a list of thousands is asked for in parts.
    pub(crate) fn keys(&self, range: Range<usize>) -> Vec<IndexKey> {
        self.map(range, IndexKey::of)
    }

    fn map<T>(&self, range: Range<usize>, of: impl Fn(KeyKind, &[u8]) -> T) -> Vec<T> {
        match self {
            Self::Addresses(wanted) => {
                let wanted = wanted.get(range).unwrap_or_default().iter();
                wanted.map(|it| of(KeyKind::LogAddress, it.as_slice())).collect()
            }
            Self::Topics(kind, wanted) => {
                let wanted = wanted.get(range).unwrap_or_default().iter();
                wanted.map(|it| of(*kind, it.as_slice())).collect()
            }
        }
    }
}

/// What is asked for by the bits that blooms have of it. A query may have thousands of values: they are
/// hashed once, not for each block.
#[derive(Clone, Debug, Default)]
pub struct BloomQuery {
    /// Of each value three bits; a log has one of each list.
    lists: Vec<Vec<[u16; 3]>>,
}

impl BloomQuery {
    /// Hashes some more values of a query, a few hundred; tells whether those were the last.
    pub fn hash_some(&mut self, query: &LogQuery) -> bool {
        let lists = query.lists();
        let end_at = lists.len().saturating_sub(1);
        if self.lists.is_empty() {
            self.lists.push(Vec::new());
        }
        let at = self.lists.len().saturating_sub(1);
        let (Some(list), Some(hashed)) = (lists.get(at), self.lists.last_mut()) else {
            // Every log is asked for.
            self.lists.clear();
            return true;
        };
        let end = hashed.len().saturating_add(HASHED_AT_ONCE).min(list.len());
        hashed.extend(list.map(hashed.len()..end, |_, value| bloom_bits(value)));
        if end < list.len() {
            return false;
        }
        if at < end_at {
            self.lists.push(Vec::new());
        }
        at >= end_at
    }

    /// Whether a log with what is asked for may be among those of a bloom.
    #[must_use]
    pub fn may_be_in(&self, bloom: &Bloom) -> bool {
        let has_bit = |bit: &u16| {
            let (byte, mask) = (usize::from(bit / 8), 1_u8 << (bit % 8));
            bloom.iter().rev().nth(byte).is_some_and(|byte| byte & mask != 0)
        };
        self.lists.iter().all(|wanted| wanted.iter().any(|bits| bits.iter().all(has_bit)))
    }
}

/// The bits of a bloom that a value sets, as the yellow paper numbers them: from the last byte on.
fn bloom_bits(value: &[u8]) -> [u16; 3] {
    let hash = keccak256(value);
    let (pairs, _) = hash.as_slice().as_chunks();
    let mut bits = [0; 3];
    for (bit, pair) in bits.iter_mut().zip(pairs) {
        *bit = u16::from_be_bytes(*pair) & BLOOM_BIT_MASK;
    }
    bits
}

/// Sorted to be searched; those that stand twice count once.
fn in_order<T: Ord>(mut values: Vec<T>) -> Box<[T]> {
    values.sort_unstable();
    values.dedup();
    values.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::BloomInput;

    #[test]
    fn a_query_hashed_in_steps_finds_what_a_bloom_has() {
        let topic = |of: usize| keccak256(of.to_be_bytes());
        let address = |of: usize| Address::from_word(topic(of));
        let query = LogQuery::new(
            (0..250).map(address).collect(),
            vec![(0..1000).map(topic).collect(), vec![], vec![topic(7)]],
        );
        let mut steps = 1;
        let mut hashed = BloomQuery::default();
        while !hashed.hash_some(&query) {
            steps += 1;
        }
        assert_eq!(steps, 1 + 4 + 1);
        // The third is among the others too.
        for (of_address, of_topic, third, expected) in [
            (Some(249), Some(999), Some(7), true),
            (Some(0), Some(0), Some(7), true),
            (None, Some(0), Some(7), false),
            (Some(0), Some(0), None, false),
        ] {
            let mut bloom = Bloom::ZERO;
            let of_address = of_address.map(|it| address(it).to_vec());
            let topics = [of_topic, third].map(|of| of.map(|it| topic(it).to_vec()));
            for value in topics.iter().flatten().chain(&of_address) {
                bloom.accrue(BloomInput::Raw(value));
            }
            let found = hashed.may_be_in(&bloom);
            assert_eq!(found, expected, "{of_address:?} {of_topic:?} {third:?}");
        }
        assert!(LogQuery::default().for_blooms().may_be_in(&Bloom::ZERO));
    }
}
