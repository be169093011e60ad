//! The limits of those who ask, by name or address, for as long as they have asked anything lately.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::rates::{RateLimits, Rates};

/// Entries that no connection uses beyond which some are dropped.
const UNUSED_MAX: usize = 16 * 1024;

/// Limits by whom they are of.
#[derive(Debug)]
pub(super) struct RateTable<K>(Mutex<RateEntries<K>>);

#[derive(Debug)]
struct RateEntries<K> {
    limits: BTreeMap<K, Arc<RateLimits>>,
    /// When so many are there, some are dropped.
    full: usize,
}

impl<K> Default for RateTable<K> {
    fn default() -> Self {
        Self(Mutex::new(RateEntries { limits: BTreeMap::new(), full: UNUSED_MAX }))
    }
}

impl<K: Ord> RateTable<K> {
    /// The limits of one, which are new if it has not asked lately.
    pub(super) fn find(&self, key: K, rates: Rates) -> Arc<RateLimits> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.limits.len() >= entries.full && !entries.limits.contains_key(&key) {
            entries.evict();
        }
        let found = entries.limits.entry(key).or_insert_with(|| Arc::new(RateLimits::new(rates)));
        Arc::clone(found)
    }
}

impl<K: Ord> RateEntries<K> {
    /// Drops those that have nothing to pay, and if too many are left, all that no connection uses:
    /// whoever comes from very many addresses escapes the limit of one anyway. What connections use
    /// stays, or the next one would begin anew.
    fn evict(&mut self) {
        let is_used = |limits: &Arc<RateLimits>| Arc::strong_count(limits) > 1;
        self.limits.retain(|_, limits| is_used(limits) || !limits.is_idle());
        let used = self.limits.values().filter(|limits| is_used(limits)).count();
        if self.limits.len().saturating_sub(used) > UNUSED_MAX / 2 {
            self.limits.retain(|_, limits| is_used(limits));
        }
        // Not again before as many as there may be have come.
        self.full = used.saturating_add(UNUSED_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const RATES: Rates = Rates { calls: NonZeroU32::new(1), weight: None };

    fn length(table: &RateTable<usize>) -> usize {
        table.0.lock().unwrap().limits.len()
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_has_the_same_limits_until_nothing_is_left_to_pay() {
        let table = RateTable::default();
        table.find(0, RATES).take(1, "it").unwrap();
        assert!(table.find(0, RATES).take(1, "it").is_err());
        // All others are idle: they go, and this one stays.
        for key in 1..UNUSED_MAX * 3 {
            table.find(key, RATES);
            assert!(length(&table) <= UNUSED_MAX);
        }
        assert!(table.find(0, RATES).take(1, "it").is_err());
        advance(Duration::from_secs(2)).await;
        (0..UNUSED_MAX).for_each(|key| drop(table.find(UNUSED_MAX * 3 + key, RATES)));
        assert!(!table.0.lock().unwrap().limits.contains_key(&0));
    }

    #[tokio::test(start_paused = true)]
    async fn any_number_of_clients_that_owe_take_bounded_memory_and_those_in_use_stay() {
        let table = RateTable::default();
        let used = table.find(usize::MAX, RATES);
        for key in 0..UNUSED_MAX * 3 {
            table.find(key, RATES).take(1, "it").unwrap();
            assert!(length(&table) <= UNUSED_MAX + 1);
        }
        used.take(1, "it").unwrap();
        assert!(table.find(usize::MAX, RATES).take(1, "it").is_err());
    }

    /// Those in use were counted among those that may be too many: every eviction dropped all debts.
    #[tokio::test(start_paused = true)]
    async fn debts_stay_however_many_connections_there_are() {
        let table = RateTable::default();
        let _used: Vec<_> = (0..UNUSED_MAX).map(|key| table.find(key, RATES)).collect();
        table.find(usize::MAX, RATES).take(1, "it").unwrap();
        for key in UNUSED_MAX..UNUSED_MAX * 4 {
            table.find(key, RATES);
            assert!(length(&table) <= UNUSED_MAX * 2 + 1, "{}", length(&table));
        }
        assert!(table.find(usize::MAX, RATES).take(1, "it").is_err());
    }

    #[test]
    fn while_connections_use_them_there_may_be_more_and_later_not() {
        let table = RateTable::default();
        let used: Vec<_> = (0..UNUSED_MAX + 10).map(|key| table.find(key, RATES)).collect();
        assert_eq!(length(&table), used.len());
        drop(used);
        (0..UNUSED_MAX * 2).for_each(|key| drop(table.find(key * 7, RATES)));
        assert!(length(&table) <= UNUSED_MAX * 2, "{}", length(&table));
    }
}
