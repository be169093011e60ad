//! Block rewards: the ether that a block brought into being before the merge.

use alloy_consensus::Header;

use crate::fork::Fork;
use crate::spec::ChainSpec;

const WEI_PER_ETHER: u128 = 1_000_000_000_000_000_000;
const FRONTIER_REWARD: u128 = 5 * WEI_PER_ETHER;
const BYZANTIUM_REWARD: u128 = 3 * WEI_PER_ETHER;
const CONSTANTINOPLE_REWARD: u128 = 2 * WEI_PER_ETHER;
/// An uncle that is one block older than its sibling gets seven of so many parts of the reward, one
/// that is two blocks older six, and so on.
const UNCLE_PARTS: u64 = 8;
/// The part of the reward that the block's own producer gets for each uncle.
const NEPHEW_PART: u128 = 32;

/// New ether of one block, in wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issuance {
    /// For the block's producer, with the extra for the uncles that it names.
    pub block_reward: u128,
    /// For the producers of those uncles.
    pub uncle_reward: u128,
}

impl ChainSpec {
    /// New ether of a block with uncles of these numbers. `None` where it cannot be known: nobody
    /// described the chain, or its consensus is not Ethereum's.
    #[must_use]
    pub fn issuance(&self, header: &Header, uncle_numbers: &[u64]) -> Option<Issuance> {
        if !self.is_described() {
            return None;
        }
        // Nobody mined the genesis block, and the beacon chain pays its validators itself.
        if header.number == 0 || header.difficulty.is_zero() {
            return Some(Issuance::default());
        }
        // Both forks began at a block everywhere.
        let is_active = |fork| self.is_active(fork, header.number, 0);
        let reward = if is_active(Fork::Constantinople)? {
            CONSTANTINOPLE_REWARD
        } else if is_active(Fork::Byzantium)? {
            BYZANTIUM_REWARD
        } else {
            FRONTIER_REWARD
        };
        let mut issued = Issuance { block_reward: reward, uncle_reward: 0 };
        for number in uncle_numbers {
            let age = header.number.saturating_sub(*number);
            let parts = u128::from(UNCLE_PARTS.saturating_sub(age));
            let share = reward.saturating_mul(parts) / u128::from(UNCLE_PARTS);
            issued.uncle_reward = issued.uncle_reward.saturating_add(share);
            issued.block_reward = issued.block_reward.saturating_add(reward / NEPHEW_PART);
        }
        Some(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    fn mined(number: u64) -> Header {
        Header { number, difficulty: U256::from(1_u64), ..Header::default() }
    }

    fn on_mainnet(number: u64, uncles: &[u64]) -> (u128, u128) {
        let mainnet = ChainSpec::known("mainnet").unwrap();
        let issued = mainnet.issuance(&mined(number), uncles).unwrap();
        (issued.block_reward, issued.uncle_reward)
    }

    /// The reward fell twice, and the genesis block has none.
    #[test]
    fn rewards_are_those_of_their_forks() {
        for (number, ether) in [
            (0, 0),
            (1, 5),
            (4_369_999, 5),
            (4_370_000, 3),
            (7_279_999, 3),
            (7_280_000, 2),
            (15_537_393, 2),
        ] {
            assert_eq!(on_mainnet(number, &[]), (ether * WEI_PER_ETHER, 0), "block {number}");
        }
        let mainnet = ChainSpec::known("mainnet").unwrap();
        let merged = Header { number: 15_537_394, ..Header::default() };
        assert_eq!(mainnet.issuance(&merged, &[]), Some(Issuance::default()));
    }

    #[test]
    fn uncles_get_less_with_every_block_and_their_nephew_a_little_for_each() {
        // Mainnet's block 3 has one uncle, of number 2: seven eighths of 5 ether.
        assert_eq!(on_mainnet(3, &[2]), (5_156_250_000_000_000_000, 4_375_000_000_000_000_000));
        // Two of ages 1 and 6: 9/8 of a reward of 2 ether, and 2/32 more for the block.
        assert_eq!(
            on_mainnet(8_000_000, &[7_999_999, 7_999_994]),
            (2_125_000_000_000_000_000, 2_250_000_000_000_000_000)
        );
        // Numbers that no valid block names do not overflow.
        assert_eq!(on_mainnet(100, &[0]), (5_156_250_000_000_000_000, 0));
        assert_eq!(on_mainnet(100, &[u64::MAX]).1, FRONTIER_REWARD);
    }

    #[test]
    fn of_a_chain_that_nobody_described_nothing_is_known() {
        let bare = ChainSpec::bare("private", Some(1), None);
        assert_eq!(bare.issuance(&mined(1), &[]), None);
        assert_eq!(bare.issuance(&Header::default(), &[]), None);
    }
}
