//! Numbers that look random and are the same in every run.

use chain::SplitMix64;

/// The seed of all picks: a run can be repeated.
const SEED: u64 = 0x5152_1950;

/// Picks that are the same in every run.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Default for Random {
    fn default() -> Self {
        Self(SplitMix64::new(SEED))
    }
}

impl Random {
    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0.next_number()
    }

    /// A number below `end`, which is not zero. The bias of a remainder does not matter here.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.0.below(end)).unwrap_or_default()
    }

    /// So many of the items, some perhaps more than once.
    pub fn pick<'a, T>(&mut self, items: &'a [T], count: usize) -> Vec<&'a T> {
        (0..count).filter_map(|_| items.get(self.below(items.len()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_are_spread_and_repeat() {
        let items: Vec<u32> = (0..100).collect();
        let picks = Random::default().pick(&items, 10_000);
        assert_eq!(picks, Random::default().pick(&items, 10_000));
        for item in &items {
            let count = picks.iter().filter(|pick| **pick == item).count();
            assert!((50..200).contains(&count), "{item}: {count}");
        }
        assert!(Random::default().pick::<u32>(&[], 3).is_empty());
    }
}
