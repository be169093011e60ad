//! When the sample chain's forks happen, and what its blocks cost.
//!
//! The forks are packed into the first 136 blocks so that a short chain passes all of them.
//! Difficulty is made up: a slow wave instead of proof of work's rule.

use alloy_eips::eip7840::BlobParams;

use super::SampleSettings;
use super::random::{SampleRandom, Stream};

pub(super) const HOMESTEAD: u64 = 8;
pub(super) const TANGERINE_WHISTLE: u64 = 12;
pub(super) const SPURIOUS_DRAGON: u64 = 16;
pub(super) const BYZANTIUM: u64 = 24;
pub(super) const PETERSBURG: u64 = 32;
pub(super) const ISTANBUL: u64 = 36;
pub(super) const MUIR_GLACIER: u64 = 40;
pub(super) const BERLIN: u64 = 44;
pub(super) const LONDON: u64 = 52;
pub(super) const ARROW_GLACIER: u64 = 56;
pub(super) const GRAY_GLACIER: u64 = 60;
/// The first block without proof of work.
pub(super) const PARIS: u64 = 64;
pub(super) const SHANGHAI: u64 = 72;
pub(super) const CANCUN: u64 = 80;
pub(super) const PRAGUE: u64 = 96;
pub(super) const OSAKA: u64 = 112;
pub(super) const BPO1: u64 = 120;
pub(super) const BPO2: u64 = 128;
pub(super) const AMSTERDAM: u64 = 136;

/// 2026-01-01 00:00:00 UTC, the time of block 0.
pub(super) const GENESIS_TIME: u64 = 1_767_225_600;
/// Seconds from one block to the next, in every fork.
pub(super) const BLOCK_SECONDS: u64 = 12;

/// The slot of block 0, had there been slots; each block has one.
const FIRST_SLOT: u64 = 13_000_000;

const GAS_TARGET_MIN: u64 = 30_000_000;
/// Gas that a block has room for with each transaction it may hold; most need two thirds of it.
const GAS_PER_TX: u64 = 150_000;

/// Every `FULL_EVERY`-th block is full: block 20 (with post-state roots), 84 (with blobs), 148...
const FULL_EVERY: u64 = 64;
const FULL_FIRST: u64 = 20;
/// Transactions of a full block, whatever the settings say.
const FULL_TX_COUNT: u32 = 200;
/// Every `EMPTY_EVERY`-th block is empty: block 9, 41, 73, 105...
const EMPTY_EVERY: u64 = 32;
const EMPTY_FIRST: u64 = 9;

pub(super) fn timestamp(number: u64) -> u64 {
    GENESIS_TIME + BLOCK_SECONDS * number
}

/// How many transactions a block has: the settings' number give or take a half, on average that
/// number, but for the blocks that are empty or full on purpose.
pub(super) fn tx_count(settings: &SampleSettings, number: u64) -> u32 {
    if number == 0 || number % EMPTY_EVERY == EMPTY_FIRST {
        return 0;
    }
    if number % FULL_EVERY == FULL_FIRST {
        return FULL_TX_COUNT;
    }
    let half = settings.txs_per_block / 2;
    let mut random = SampleRandom::new(settings.seed, Stream::BlockSize, number, 0);
    let extra = random.below(u64::from(half) * 2 + 1);
    (settings.txs_per_block - half).saturating_add(u32::try_from(extra).unwrap_or(u32::MAX))
}

/// The most gas that a block uses. With no block above London's target the base fee never rises:
/// what drafts pay, which do not know it, is enough for every block.
pub(super) fn gas_used_max(settings: &SampleSettings) -> u64 {
    let ordinary_max = u64::from(settings.txs_per_block) + u64::from(settings.txs_per_block / 2);
    let tx_count_max = ordinary_max.max(u64::from(FULL_TX_COUNT));
    GAS_TARGET_MIN.max(tx_count_max * GAS_PER_TX)
}

/// The gas limit, genesis included: London doubled it, so that its target is what the limit was.
pub(super) fn gas_limit(settings: &SampleSettings, number: u64) -> u64 {
    let factor = if number >= LONDON { 2 } else { 1 };
    gas_used_max(settings) * factor
}

/// The slot of a block of Amsterdam.
pub(super) fn slot(number: u64) -> u64 {
    FIRST_SLOT + number
}

/// The difficulty: a little above 2^34, and nothing from Paris on.
pub(super) fn difficulty(seed: u64, number: u64) -> u64 {
    if number >= PARIS {
        return 0;
    }
    (1 << 34) + SampleRandom::new(seed, Stream::Difficulty, number, 0).below(1 << 24)
}

/// The total difficulty of the last block with proof of work, at which the merge happens.
pub(super) fn terminal_total_difficulty(seed: u64) -> u64 {
    (0..PARIS).map(|number| difficulty(seed, number)).sum()
}

/// How many blobs a block may hold and how their price moves; `None` before Cancun.
pub(super) fn blob_params(number: u64) -> Option<BlobParams> {
    match number {
        BPO2.. => Some(BlobParams::bpo2()),
        BPO1.. => Some(BlobParams::bpo1()),
        OSAKA.. => Some(BlobParams::osaka()),
        PRAGUE.. => Some(BlobParams::prague()),
        CANCUN.. => Some(BlobParams::cancun()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_what_was_asked_for_on_average() {
        for txs_per_block in [0, 1, 2, 20, 201] {
            let settings = SampleSettings { txs_per_block, ..SampleSettings::default() };
            let ordinary = (1..2000)
                .filter(|number| number % FULL_EVERY != FULL_FIRST)
                .filter(|number| number % EMPTY_EVERY != EMPTY_FIRST);
            let counts: Vec<u32> = ordinary.map(|number| tx_count(&settings, number)).collect();
            let mean = f64::from(counts.iter().sum::<u32>())
                / f64::from(u32::try_from(counts.len()).unwrap());
            let expected = f64::from(txs_per_block);
            assert!((mean - expected).abs() <= expected / 20.0, "{txs_per_block}: mean {mean}");
        }
    }

    #[test]
    fn a_short_chain_has_full_and_empty_blocks_on_both_sides_of_the_merge() {
        let settings = SampleSettings::default();
        let numbers_of = |count| -> Vec<u64> {
            (0..200).filter(|number| tx_count(&settings, *number) == count).collect()
        };
        assert_eq!(numbers_of(200), [20, 84, 148]);
        assert_eq!(numbers_of(0), [0, 9, 41, 73, 105, 137, 169]);
    }
}
