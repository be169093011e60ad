//! What gas and blob gas cost: the prices that a header commits to, and those that follow from it.
//!
//! Numbers are a header's or a schedule's, and either may be nonsense: nothing here overflows.

use alloy_consensus::Header;
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7840::BlobParams;

use crate::fork::Fork;
use crate::spec::ChainSpec;

/// How far above its target a block may go.
pub(crate) const ELASTICITY: u64 = 2;
/// The part of the base fee by which it changes at the most.
const CHANGE_DENOMINATOR: u128 = 8;

/// The base fee of the block above one that has a base fee, by EIP-1559.
#[must_use]
pub fn base_fee_after(header: &Header) -> Option<u64> {
    Some(next_base_fee(header.base_fee_per_gas?, header.gas_used, header.gas_limit))
}

/// The same of a block's own numbers.
pub(crate) fn next_base_fee(base_fee: u64, gas_used: u64, gas_limit: u64) -> u64 {
    let base_fee = u128::from(base_fee);
    let (used, target) = (gas_used, gas_limit / ELASTICITY);
    let change = |gas: u64| {
        let change = base_fee.saturating_mul(gas.into()).checked_div(target.into());
        change.unwrap_or_default() / CHANGE_DENOMINATOR
    };
    let next = if used > target {
        base_fee.saturating_add(change(used.saturating_sub(target)).max(1))
    } else {
        base_fee.saturating_sub(change(target.saturating_sub(used)))
    };
    u64::try_from(next).unwrap_or(u64::MAX)
}

/// Which blob prices of a chain can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobPrices {
    /// All of them.
    Known,
    /// Those of blocks from this time on: somebody told the schedule, and not all of it.
    KnownSince(u64),
    /// None: nobody told the schedule.
    Unknown,
}

impl ChainSpec {
    /// The base fee of the block above a header, and whether it has one. `None` if that cannot be
    /// known, because the chain's rules are not.
    #[must_use]
    pub fn next_base_fee(&self, header: &Header) -> Option<Option<u64>> {
        let next = header.number.saturating_add(1);
        // London began at a block everywhere.
        let is_london = self.is_active(Fork::London, next, 0)?;
        let initial = is_london.then_some(INITIAL_BASE_FEE);
        Some(base_fee_after(header).or(initial))
    }

    /// What a unit of blob gas costs in a block of this time; `None` if it is not known.
    #[must_use]
    pub fn blob_fee(&self, timestamp: u64, excess_blob_gas: u64) -> Option<u128> {
        Some(blob_fee(&self.usable_blob_params(timestamp)?, excess_blob_gas))
    }

    /// What it costs in the block above a header, if that is of the same fork.
    #[must_use]
    pub fn next_blob_fee(&self, header: &Header) -> Option<u128> {
        let params = self.usable_blob_params(header.timestamp)?;
        let excess = header.excess_blob_gas?;
        let used = header.blob_gas_used.unwrap_or_default();
        let base_fee = header.base_fee_per_gas.unwrap_or_default();
        Some(blob_fee(&params, excess_after(&params, excess, used, base_fee)))
    }

    /// Which blob prices can be known.
    #[must_use]
    pub fn blob_prices(&self) -> BlobPrices {
        match (self.blob_schedule(), self.forks()) {
            (None, None) => BlobPrices::Unknown,
            // Without a schedule these forks have no blobs.
            (_, Some(_)) => BlobPrices::Known,
            (Some(schedule), None) => match schedule.scheduled.first() {
                Some((0, _)) => BlobPrices::Known,
                Some((since, _)) => BlobPrices::KnownSince(*since),
                None => BlobPrices::Unknown,
            },
        }
    }

    /// A price that never changes is none: such parameters are a mistake.
    fn usable_blob_params(&self, timestamp: u64) -> Option<BlobParams> {
        self.blob_params_at(timestamp).filter(|params| params.update_fraction > 0)
    }
}

fn blob_fee(params: &BlobParams, excess_blob_gas: u64) -> u128 {
    params.calc_blob_fee(excess_blob_gas)
}

/// The excess of the block above, with the reserve price of EIP-7918 from Osaka on.
pub(crate) fn excess_after(params: &BlobParams, excess: u64, used: u64, base_fee: u64) -> u64 {
    let sum = excess.saturating_add(used);
    let target = params.target_blob_count.saturating_mul(DATA_GAS_PER_BLOB);
    if sum < target {
        return 0;
    }
    let reserve = u128::from(params.blob_base_cost).saturating_mul(base_fee.into());
    let price = blob_fee(params, excess).saturating_mul(DATA_GAS_PER_BLOB.into());
    if reserve <= price {
        return sum.saturating_sub(target);
    }
    let room = params.max_blob_count.saturating_sub(params.target_blob_count);
    let scaled = u128::from(used).saturating_mul(room.into());
    let scaled = scaled.checked_div(params.max_blob_count.into()).unwrap_or_default();
    excess.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use alloy_eips::eip1559::BaseFeeParams;

    use super::*;

    fn header(base_fee: u64, gas_used: u64, gas_limit: u64) -> Header {
        Header { base_fee_per_gas: Some(base_fee), gas_used, gas_limit, ..Header::default() }
    }

    #[test]
    fn base_fees_are_those_that_alloy_computes_and_nonsense_does_not_overflow() {
        for base_fee in [0, 1, 7, 8, 1_000_000_000, 123_456_789_012] {
            for (used, limit) in [
                (0, 30_000_000),
                (15_000_000, 30_000_000),
                (30_000_000, 30_000_000),
                (1, 2),
                (3, 5),
            ] {
                let header = header(base_fee, used, limit);
                let expected = header.next_block_base_fee(BaseFeeParams::ethereum());
                assert_eq!(base_fee_after(&header), expected, "{base_fee} {used} {limit}");
            }
        }
        assert_eq!(base_fee_after(&header(u64::MAX, u64::MAX, 2)), Some(u64::MAX));
        assert_eq!(base_fee_after(&header(5, 0, 0)), Some(5));
        assert_eq!(base_fee_after(&Header::default()), None);
    }

    #[test]
    fn a_base_fee_begins_with_london_and_is_not_guessed_where_forks_are_unknown() {
        let mainnet = ChainSpec::known("mainnet").unwrap();
        let at = |number| Header { number, ..Header::default() };
        assert_eq!(mainnet.next_base_fee(&at(12_964_998)), Some(None));
        assert_eq!(mainnet.next_base_fee(&at(12_964_999)), Some(Some(1_000_000_000)));
        let private = ChainSpec::bare("private", Some(1337), None);
        assert_eq!(private.next_base_fee(&at(1)), None);
        assert_eq!(private.next_base_fee(&header(7, 1, 2)), None);
    }

    #[test]
    fn excess_blob_gas_is_what_alloy_computes_and_nonsense_does_not_overflow() {
        let blob = DATA_GAS_PER_BLOB;
        for params in [BlobParams::cancun(), BlobParams::prague(), BlobParams::bpo2()] {
            for excess in [0, blob, 100 * blob, 10_000_000, 200_000_000] {
                for used in [0, blob, 3 * blob, params.max_blob_gas_per_block()] {
                    for base_fee in [0, 7, 1_000_000_000, 50_000_000_000] {
                        let expected =
                            params.next_block_excess_blob_gas_osaka(excess, used, base_fee);
                        assert_eq!(excess_after(&params, excess, used, base_fee), expected);
                    }
                }
            }
        }
        let broken = BlobParams { max_blob_count: 0, target_blob_count: 0, ..BlobParams::osaka() };
        assert_eq!(excess_after(&broken, u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        let flat = BlobParams { update_fraction: 0, ..BlobParams::osaka() };
        let spec = ChainSpec::bare("private", Some(1337), None).with_blob_params(vec![(5, flat)]);
        assert_eq!(spec.blob_fee(5, 1), None);
    }

    #[test]
    fn blob_prices_are_known_as_far_as_somebody_told_the_schedule() {
        assert_eq!(ChainSpec::known("hoodi").unwrap().blob_prices(), BlobPrices::Known);
        let private = ChainSpec::bare("private", Some(1337), None);
        assert_eq!(private.blob_prices(), BlobPrices::Unknown);
        let told = |since| private.clone().with_blob_params(vec![(since, BlobParams::prague())]);
        assert_eq!(told(9).blob_prices(), BlobPrices::KnownSince(9));
        assert_eq!(told(0).blob_prices(), BlobPrices::Known);
        assert_eq!((told(9).blob_fee(8, 0), told(9).blob_fee(9, 0)), (None, Some(1)));
    }
}
