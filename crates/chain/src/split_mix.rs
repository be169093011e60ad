//! `SplitMix64`: numbers that look random and are the same on every machine.

/// A generator.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The increment: 2^64 divided by the golden ratio, made odd.
    pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::GOLDEN);
        Self::mix(self.0)
    }

    /// A number below `count`; 0 if there is none. The bias of a remainder does not matter here.
    pub fn below(&mut self, count: u64) -> u64 {
        self.next_number().checked_rem(count).unwrap_or_default()
    }

    /// The finaliser: nearby numbers give distant ones.
    #[must_use]
    pub const fn mix(number: u64) -> u64 {
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The number of a sequence at a position: what a generator that begins with 0 gives there.
    #[must_use]
    pub const fn at(position: u64) -> u64 {
        Self::mix(position.wrapping_mul(Self::GOLDEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let mut numbers = SplitMix64::new(1_234_567);
        let found: [u64; 3] = std::array::from_fn(|_| numbers.next_number());
        let reference =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(found, reference);
        let mut numbers = SplitMix64::new(0);
        assert!((1..9).all(|position| SplitMix64::at(position) == numbers.next_number()));
        assert_eq!(numbers.below(0), 0);
    }
}
