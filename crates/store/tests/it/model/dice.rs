//! Chance for the model: everything that a run does follows from one seed.

use chain::SplitMix64;

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(super) struct Dice(SplitMix64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring runs.
        let mut dice = Self(SplitMix64::new(seed ^ 0x5175_6970_7500_0000));
        dice.next();
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_number()
    }

    /// A number below `count`; 0 if there is none.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        self.0.below(count)
    }

    /// A number from `first` to `last`, both included.
    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of them; `None` if there is none.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).unwrap();
        items.get(usize::try_from(self.below(count)).unwrap())
    }
}
