//! Tables of what repeats in a segment: addresses, words and selectors, the most used first.
//!
//! The census is a sum: blocks may be counted in any order and on any thread, and sums be added
//! up in any order; the tables that come out are the same.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use alloy_primitives::map::{AddressMap, B256Map, SelectorMap};
use alloy_primitives::{Address, B256, Selector};

use crate::bytes::allocated;

/// Entries of each table at the most: 443 KB, so that with 8192 blocks and the directory of 150,000
/// pages the tail of a full era stays under a megabyte.
const ADDRESSES_MAX: usize = 12_288;
const WORDS_MAX: usize = 6_144;
const SELECTORS_MAX: usize = 255;

/// Rows from which an entry pays for its own bytes: the first of a literal is as dear as the entry.
const USES_MIN: u32 = 2;

/// How often addresses, words and selectors occur in some blocks.
#[derive(Clone, Debug, Default)]
pub struct Census {
    addresses: AddressMap<Uses>,
    words: B256Map<Uses>,
    selectors: SelectorMap<Uses>,
    /// The row that is being counted.
    row: u64,
}

/// In how many rows something occurs. Inside a row the first occurrence pays for the others.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    rows: u32,
    /// The last row that it was counted for.
    last: u64,
}

impl Census {
    /// What is counted from here on belongs to another row.
    pub(crate) fn begin_row(&mut self) {
        self.row = self.row.saturating_add(1);
    }

    pub(crate) fn count_address(&mut self, address: Address) {
        count(&mut self.addresses, address, self.row);
    }

    pub(crate) fn count_word(&mut self, word: B256) {
        count(&mut self.words, word, self.row);
    }

    pub(crate) fn count_selector(&mut self, selector: [u8; 4]) {
        count(&mut self.selectors, Selector::from(selector), self.row);
    }

    /// Adds up two censuses.
    pub fn merge(&mut self, other: Self) {
        add(&mut self.addresses, other.addresses);
        add(&mut self.words, other.words);
        add(&mut self.selectors, other.selectors);
    }

    /// The tables for these blocks.
    #[must_use]
    pub fn into_tables(self) -> Tables {
        Tables {
            addresses: most_used(self.addresses, ADDRESSES_MAX),
            words: most_used(self.words, WORDS_MAX),
            selectors: most_used(self.selectors, SELECTORS_MAX)
                .into_iter()
                .map(|selector| selector.0)
                .collect(),
        }
    }
}

/// What a reader needs beside a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub(crate) addresses: Vec<Address>,
    pub(crate) words: Vec<B256>,
    pub(crate) selectors: Vec<[u8; 4]>,
}

impl Tables {
    pub(crate) fn memory_bytes(&self) -> usize {
        allocated(&self.addresses)
            .saturating_add(allocated(&self.words))
            .saturating_add(allocated(&self.selectors))
    }
}

/// What a writer needs: the tables the other way round.
#[derive(Debug)]
pub(crate) struct Codebook {
    pub(crate) addresses: AddressMap<u64>,
    pub(crate) words: B256Map<u64>,
    pub(crate) selectors: SelectorMap<u8>,
}

impl Codebook {
    pub(crate) fn new(tables: &Tables) -> Self {
        Self {
            addresses: (0..).zip(&tables.addresses).map(|(id, entry)| (*entry, id)).collect(),
            words: (0..).zip(&tables.words).map(|(id, entry)| (*entry, id)).collect(),
            selectors: (0..)
                .zip(&tables.selectors)
                .map(|(id, entry)| (Selector::from(*entry), id))
                .collect(),
        }
    }
}

fn count<K: Eq + Hash>(counts: &mut HashMap<K, Uses, impl BuildHasher>, key: K, row: u64) {
    let uses = counts.entry(key).or_default();
    if uses.last != row {
        *uses = Uses { rows: uses.rows.saturating_add(1), last: row };
    }
}

#[expect(clippy::iter_over_hash_type, reason = "a sum does not depend on the order")]
fn add<K: Eq + Hash>(
    sums: &mut HashMap<K, Uses, impl BuildHasher>,
    counts: HashMap<K, Uses, impl BuildHasher>,
) {
    for (key, uses) in counts {
        let sum = sums.entry(key).or_default();
        sum.rows = sum.rows.saturating_add(uses.rows);
    }
}

/// Entries by falling use; equal ones by value, so that the order is the same everywhere.
fn most_used<K: Ord + Copy>(
    counts: HashMap<K, Uses, impl BuildHasher>,
    entries_max: usize,
) -> Vec<K> {
    let mut entries: Vec<(u32, K)> = counts
        .into_iter()
        .filter(|(_, uses)| uses.rows >= USES_MIN)
        .map(|(entry, uses)| (uses.rows, entry))
        .collect();
    entries.sort_unstable_by(|(uses_a, a), (uses_b, b)| uses_b.cmp(uses_a).then(a.cmp(b)));
    entries.truncate(entries_max);
    entries.into_iter().map(|(_, entry)| entry).collect()
}
