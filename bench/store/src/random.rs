//! Numbers that look random and are the same in every run.

/// The seed of all picks: a run can be repeated.
const SEED: u64 = 0x5152_1950;

/// A number that looks random, by its index: `SplitMix64`.
#[must_use]
pub fn mix(index: u64) -> u64 {
    let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sequence of them: good enough to pick rows.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(SEED)
    }
}

impl Random {
    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `end`, which is not zero. The bias of a remainder does not matter here.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_number() % end).unwrap_or_default()
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
