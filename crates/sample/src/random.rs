//! Chance that comes out the same everywhere.
//!
//! Every block, transaction and address has a generator of its own, begun from what it is
//! ([`Stream`] and position) rather than from where another one stopped. That is what lets blocks
//! be made in any order.

use std::ops::RangeInclusive;

use alloy_primitives::{Address, B256, U256};
use chain::SplitMix64;

/// What a generator is for. Part of its seed, so that no two uses see the same numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    BlockSize,
    Block,
    Transaction,
    Ommer,
    Difficulty,
    Wallet,
    Contract,
    Selector,
    Word,
    SlotTable,
}

impl Stream {
    /// Fixed for ever: another number is another chain.
    fn salt(self) -> u64 {
        match self {
            Self::BlockSize => 1,
            Self::Block => 2,
            Self::Transaction => 3,
            Self::Ommer => 4,
            Self::Difficulty => 5,
            Self::Wallet => 6,
            Self::Contract => 7,
            Self::Selector => 8,
            Self::Word => 9,
            Self::SlotTable => 10,
        }
    }
}

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct SampleRandom(SplitMix64);

impl SampleRandom {
    /// The generator of one thing: the `index`-th of its kind at `place`.
    pub(super) fn new(seed: u64, stream: Stream, place: u64, index: u64) -> Self {
        let mut state = SplitMix64::mix(seed ^ SplitMix64::mix(stream.salt()));
        for part in [place, index] {
            state = SplitMix64::mix(
                state.wrapping_add(SplitMix64::GOLDEN) ^ part.wrapping_mul(SplitMix64::GOLDEN),
            );
        }
        Self(SplitMix64::new(state))
    }

    /// An amount as people send them: one to four digits that matter and a power of ten, or every
    /// digit that a division leaves.
    pub(super) fn amount(&mut self) -> U256 {
        if self.chance(4_000) {
            return U256::from(self.next() >> 4);
        }
        let digits = U256::from(self.within(1..=9_999));
        digits * U256::from(10).pow(U256::from(self.within(4..=18)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_number()
    }

    /// A number below `bound`. The bias of the remainder is far below what anyone could see in a
    /// chain.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number of the range, both ends included.
    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        first + self.below(last - first + 1)
    }

    /// True `share` times in ten thousand.
    pub(super) fn chance(&mut self, share: u64) -> bool {
        self.below(10_000) < share
    }

    /// A number from 1 to 2^`octaves` - 1 with a probability of about one over the number: Zipf's
    /// law, in integers. An octave is drawn evenly, then a number inside it.
    pub(super) fn zipf(&mut self, octaves: u64) -> u64 {
        let first = 1_u64 << (self.below(octaves) & 63);
        first + self.below(first)
    }

    pub(super) fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(bytes) {
                *to = from;
            }
        }
    }

    pub(super) fn hash(&mut self) -> B256 {
        let mut hash = B256::ZERO;
        self.fill(hash.as_mut_slice());
        hash
    }

    pub(super) fn address(&mut self) -> Address {
        let mut address = Address::ZERO;
        self.fill(address.as_mut_slice());
        address
    }

    /// One of `items`, which must not be empty.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        at(items, self.next())
    }
}

/// The item at `position`, counting round and round. `items` must not be empty.
#[expect(clippy::indexing_slicing, reason = "a remainder of the length is below the length")]
pub(super) fn at<T>(items: &[T], position: u64) -> &T {
    &items[to_usize(position % to_u64(items.len()))]
}

/// A length as a 64-bit number.
pub(super) fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A number that is known to be the length of something in memory.
pub(super) fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs of the reference implementation for the seed 1234567.
        let mut random = SampleRandom(SplitMix64::new(1_234_567));
        let outputs: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(outputs, expected);
    }

    #[test]
    fn zipf_halves_the_probability_when_the_number_doubles() {
        let mut random = SampleRandom::new(1, Stream::Block, 0, 0);
        let mut counts = [0_u32; 16];
        for _ in 0..64_000 {
            counts[to_usize(random.zipf(4))] += 1;
        }
        assert_eq!(counts[0], 0);
        for (number, expected) in [(1, 16_000), (2, 8_000), (3, 8_000), (7, 4_000), (15, 2_000)] {
            assert!(counts[number].abs_diff(expected) < expected / 10, "{number}: {counts:?}");
        }
    }
}
