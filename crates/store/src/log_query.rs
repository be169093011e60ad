//! What logs are asked for: addresses and topics.
//!
//! Knows: when a log has what is asked for, and which keys of the index may lead to it.
//! Never knows: blocks, or how the question was put.

use alloy_primitives::{Address, B256, Bloom, BloomInput, keccak256};
use segment::LogView;
use segment::postings::{PostingKey, PostingKind};

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
        let is_any_of = |wanted: &[B256], found: &[u8; 32]| {
            wanted.is_empty() || wanted.binary_search_by(|topic| topic.0.cmp(found)).is_ok()
        };
        (self.addresses.is_empty() || self.addresses.binary_search(&log.address).is_ok())
            && self.topics.len() <= log.topics.len()
            && self.topics.iter().zip(log.topics).all(|(wanted, found)| is_any_of(wanted, found))
    }

    /// The query, made ready for many blooms.
    #[must_use]
    pub fn for_blooms(&self) -> BloomQuery {
        let addresses: Box<[B256]> = self.addresses.iter().map(keccak256).collect();
        let topics = self.topics.iter().map(|wanted| wanted.iter().map(keccak256).collect());
        let lists = std::iter::once(addresses).chain(topics);
        BloomQuery { hashes: lists.filter(|wanted| !wanted.is_empty()).collect() }
    }

    /// Keys of the index: a log has one of each list. None at all if every log is asked for.
    pub(crate) fn keys(&self) -> Vec<Vec<PostingKey>> {
        let mut keys = Vec::new();
        if !self.addresses.is_empty() {
            keys.push(self.addresses.iter().map(PostingKey::of_address).collect());
        }
        for (wanted, kind) in self.topics.iter().zip(PostingKind::TOPICS) {
            if !wanted.is_empty() {
                keys.push(wanted.iter().map(|it| PostingKey::of(kind, it.as_slice())).collect());
            }
        }
        keys
    }
}

/// What is asked for by the hashes that blooms are made of. A query may have thousands of values: they are
/// hashed once, not for each block.
#[derive(Clone, Debug)]
pub struct BloomQuery {
    /// A log has one of each list.
    hashes: Vec<Box<[B256]>>,
}

impl BloomQuery {
    /// Whether a log with what is asked for may be among those of a bloom.
    #[must_use]
    pub fn may_be_in(&self, bloom: &Bloom) -> bool {
        let has = |hash: &B256| bloom.contains_input(BloomInput::Hash(*hash));
        self.hashes.iter().all(|wanted| wanted.iter().any(has))
    }
}

/// Sorted to be searched; those that stand twice count once.
fn in_order<T: Ord>(mut values: Vec<T>) -> Box<[T]> {
    values.sort_unstable();
    values.dedup();
    values.into_boxed_slice()
}
