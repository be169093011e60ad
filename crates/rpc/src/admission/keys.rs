//! API keys: what is known of each, and how one is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::caller::Grant;
use super::key_hash::KeyHash;
use super::rates::Rates;
use crate::method_pattern::MethodPattern;

/// A key that is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What logs and pages call it.
    pub name: String,
    /// What it is known by.
    pub hash: KeyHash,
    /// The methods that it may ask; none for all.
    pub methods: Option<Vec<MethodPattern>>,
    /// How much it may ask.
    pub rates: Rates,
}

/// All keys that are admitted, by hash. How long a lookup takes reveals nothing of a key: nobody can choose
/// what a presented key hashes to.
#[derive(Debug)]
pub(super) struct KeyTable<K = KeyHash>(BTreeMap<K, Arc<Grant>>);

impl KeyTable {
    pub(super) fn new(keys: Vec<ApiKey>) -> Self {
        let entry = |key: ApiKey| {
            let ApiKey { name, hash, methods, rates } = key;
            (hash, Arc::new(Grant::new(name, methods, rates)))
        };
        Self(keys.into_iter().map(entry).collect())
    }
}

impl<K: Ord> KeyTable<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of this hash.
    pub(super) fn find(&self, hash: &K) -> Option<Arc<Grant>> {
        self.0.get(hash).map(Arc::clone)
    }

    /// Keeps the counts of keys that are in both tables with the same rates.
    pub(super) fn continue_from(&mut self, previous: &Self) {
        for (hash, grant) in &mut self.0 {
            let same = previous.0.get(hash);
            if let Some(other) = same.filter(|other| other.rates() == grant.rates()) {
                *grant = Arc::new(grant.counting_with(other));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn a_key_is_found_by_its_hash_wherever_it_stands() {
        let key = |name: &str| ApiKey {
            name: name.to_owned(),
            hash: KeyHash::of(name),
            methods: None,
            rates: Rates::default(),
        };
        let table = KeyTable::new(["a", "b", "c"].map(key).into());
        for name in ["a", "b", "c"] {
            assert_eq!(table.find(&KeyHash::of(name)).unwrap().name(), name);
        }
        assert!(table.find(&KeyHash::of("d")).is_none());
        assert!(KeyTable::new(Vec::new()).find(&KeyHash::of("a")).is_none());
    }

    /// A hash that counts how often it is compared.
    #[derive(PartialEq, Eq)]
    struct Counted(KeyHash);

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// Each request with a wrong key was compared with all of them, and each key of new rules with all of
    /// the old ones.
    #[test]
    fn a_key_is_compared_with_few_of_many() {
        const COUNT: usize = 10_000;
        let hash = |index: usize| Counted(KeyHash::of(&index.to_string()));
        let table = || {
            let grant = |name| Arc::new(Grant::new(name, None, Rates::default()));
            KeyTable((0..COUNT).map(|index| (hash(index), grant(index.to_string()))).collect())
        };
        let (mut next, previous) = (table(), table());
        COMPARISONS.set(0);
        assert!(previous.find(&hash(COUNT)).is_none());
        assert_eq!(previous.find(&hash(7)).unwrap().name(), "7");
        let of_two = COMPARISONS.replace(0);
        assert!((2..400).contains(&of_two), "{of_two}");
        next.continue_from(&previous);
        let of_all = COMPARISONS.get();
        assert!((COUNT..200 * COUNT).contains(&of_all), "{of_all}");
    }
}
