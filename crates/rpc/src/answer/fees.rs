//! What gas costs and what the forks are: answers about the chain that follow from its headers.

use alloy_consensus::Header;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use chain::{
    BlockNumber, BlockRange, ChainSpec, ForkConfig, TxFields, base_fee_after, decode_header,
};
use store::{Reader, RowParts, RowView, StoredBlock, StoredHeader};

use super::{Answering, CallFailure, CallResult, Context, RequestedBlock, null};
use crate::json::{Object, put_data, put_list, put_quantity, put_quantity_u128};
use crate::params::{BlockRef, BlockTagName};
use crate::refusal::Refusal;

/// Blocks that `eth_feeHistory` tells of at the most; more are cut to these, as nodes do.
const BLOCKS_MAX: u64 = 1024;
/// Blocks whose headers are read before others have their turn.
const BLOCKS_PER_TURN: u64 = 4;
/// Blocks with transactions that a suggested price rests on, and how many are looked at for them.
const SAMPLED_BLOCKS: usize = 20;
const SAMPLED_BLOCKS_MAX: u64 = 40;
/// The cheapest transactions of a block that count for a suggestion.
const SAMPLES_PER_BLOCK: usize = 3;
/// Tips below this are not meant to be a price.
const TIP_MIN: u128 = 2;
/// No suggestion is higher, whatever was paid.
const TIP_MAX: u128 = 500_000_000_000;
/// The suggestion where nobody paid anything.
const TIP_DEFAULT: u128 = 1_000_000;

/// What one block adds to the history of fees.
struct BlockFees {
    base_fee: u64,
    gas_used_ratio: f64,
    /// Price and share of blob gas; `None` if the schedule is not known.
    blob: Option<(u128, f64)>,
    rewards: Vec<u128>,
}

impl Context<'_> {
    pub(super) async fn base_fee(&self, on: &mut Answering<'_>) -> CallResult {
        let (_, tip) = self.tip_header(on.reader).await?;
        put_price(on.out, self.fee_after(on.reader, &tip).await?.map(u128::from))
    }

    pub(super) async fn blob_base_fee(&self, on: &mut Answering<'_>) -> CallResult {
        let (_, tip) = self.tip_header(on.reader).await?;
        put_price(on.out, self.blob_fee_of(&tip)?)
    }

    pub(super) async fn gas_price(&self, on: &mut Answering<'_>) -> CallResult {
        let (tip, price) = self.price_at_tip(on.reader).await?;
        let base_fee = tip.base_fee_per_gas.unwrap_or_default();
        put_price(on.out, Some(price.saturating_add(base_fee.into())))
    }

    pub(super) async fn max_priority_fee(&self, on: &mut Answering<'_>) -> CallResult {
        let (_, price) = self.price_at_tip(on.reader).await?;
        put_price(on.out, Some(price))
    }

    /// The newest header and the tip that is suggested above it. A price of yesterday is none: a node
    /// must be followed, and its tip be reached.
    async fn price_at_tip(&self, reader: &mut Reader) -> Result<(Header, u128), CallFailure> {
        let is_at_tip =
            self.is_following && self.health.is_none_or(|health| health.troubles().is_empty());
        if !is_at_tip {
            return Err(self.unknown(Refusal::NotAtTip));
        }
        let (stored, tip) = self.tip_header(reader).await?;
        let price = self.suggested_tip(reader, &stored, &tip).await?;
        Ok((tip, price))
    }

    /// What a unit of blob gas costs in a block, if it has blob gas.
    fn blob_fee_of(&self, header: &Header) -> Result<Option<u128>, CallFailure> {
        let Some(excess) = header.excess_blob_gas else { return Ok(None) };
        let timestamp = header.timestamp;
        let fee = self.spec.blob_fee(timestamp, excess);
        fee.map(Some).ok_or_else(|| self.unknown(Refusal::BlobPriceUnknown { timestamp }))
    }

    async fn tip_header(&self, reader: &mut Reader) -> Result<(StoredHeader, Header), CallFailure> {
        let number = self.view.tip().ok_or(CallFailure::Refused(Refusal::NothingHeld))?;
        self.header_of(reader, number).await
    }

    /// The header of a block that is held.
    async fn header_of(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<(StoredHeader, Header), CallFailure> {
        let stored = self.view.read_header(reader, number).await?.ok_or(CallFailure::NotABlock)?;
        let header = decode_header(&stored.rlp).map_err(|_| CallFailure::NotABlock)?;
        Ok((stored, header))
    }

    /// The base fee of the block above a header. Where the forks are not known, the block itself tells
    /// if it is held; else the rule of EIP-1559 counts only if the header itself came by it.
    async fn fee_after(
        &self,
        reader: &mut Reader,
        header: &Header,
    ) -> Result<Option<u64>, CallFailure> {
        if let Some(known) = self.spec.next_base_fee(header) {
            return Ok(known);
        }
        let neighbour = |number: Option<BlockNumber>| number.filter(|number| self.is_held(*number));
        if let Some(number) = neighbour(BlockNumber(header.number).next()) {
            return Ok(self.header_of(reader, number).await?.1.base_fee_per_gas);
        }
        if let Some(number) = neighbour(BlockNumber(header.number).parent()) {
            let parent = self.header_of(reader, number).await?.1;
            if header.base_fee_per_gas.is_some()
                && base_fee_after(&parent) == header.base_fee_per_gas
            {
                return Ok(base_fee_after(header));
            }
        }
        Err(self.unknown(Refusal::ForksUnknown))
    }

    fn is_held(&self, number: BlockNumber) -> bool {
        self.view.coverage().iter().any(|range| range.contains(number))
    }

    /// EIP-7910.
    pub(super) async fn config(&self, on: &mut Answering<'_>) -> CallResult {
        let (_, tip) = self.tip_header(on.reader).await?;
        let configs = self.spec.fork_configs(tip.timestamp);
        let known = configs.zip(self.spec.chain_id());
        let (configs, chain_id) = known.ok_or_else(|| self.unknown(Refusal::ForksUnknown))?;
        let mut object = Object::begin(on.out);
        for (name, config) in
            [("current", configs.current), ("next", configs.next), ("last", configs.last)]
        {
            match config {
                Some(config) => put_fork(object.member(name), chain_id, &config),
                None => object.raw(name, "null"),
            }
        }
        object.end();
        Ok(None)
    }

    pub(super) async fn fee_history(
        &self,
        on: &mut Answering<'_>,
        count: u64,
        newest: BlockRef,
        percentiles: Vec<f64>,
    ) -> CallResult {
        let Answering { reader, out, .. } = on;
        // As nodes do it: of no blocks there is nothing to know, whichever the newest is.
        let range = if count == 0 { None } else { self.fee_range(reader, count, newest).await? };
        let Some(range) = range else {
            out.extend_from_slice(b"{\"oldestBlock\":\"0x0\",\"gasUsedRatio\":null}");
            return Ok(None);
        };
        let mut fees = Vec::new();
        let mut newest = None;
        for (done, number) in (0_u64..).zip(range.numbers()) {
            // What is in memory never waits by itself: others are let in, before every block of which
            // more than the header is read.
            if !percentiles.is_empty() || done % BLOCKS_PER_TURN == BLOCKS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
            let (stored, header) = self.header_of(reader, number).await?;
            let rewards = self.rewards(reader, &stored, &header, &percentiles).await?;
            fees.push(block_fees(self.spec, &header, rewards));
            newest = Some(header);
        }
        let newest = newest.ok_or(CallFailure::NotABlock)?;
        let next_fee = self.fee_after(reader, &newest).await?.unwrap_or_default();
        let next_blob_fee = match newest.excess_blob_gas {
            Some(_) => self.spec.next_blob_fee(&newest),
            None => Some(0),
        };
        put_history(out, range.first(), &fees, (next_fee, next_blob_fee), !percentiles.is_empty());
        Ok(None)
    }

    /// The blocks that are asked for, first and last; `None` if they are none. Fewer than asked for are
    /// told only below genesis, and of more than 1024 the newest.
    async fn fee_range(
        &self,
        reader: &mut Reader,
        count: u64,
        newest: BlockRef,
    ) -> Result<Option<BlockRange>, CallFailure> {
        let tip = self.view.tip().ok_or(CallFailure::Refused(Refusal::NothingHeld))?;
        let mut count = count.min(BLOCKS_MAX);
        let last = match newest {
            // There is no pending block: it is the first of those that are missing.
            BlockRef::Tag(BlockTagName::Pending) => {
                count = count.saturating_sub(1);
                tip
            }
            BlockRef::Tag(_) | BlockRef::Number(_) | BlockRef::Hash(_) => {
                match (self.requested(reader, newest).await?, newest) {
                    (RequestedBlock::Held(number), _) => number,
                    (RequestedBlock::Absent, BlockRef::Number(requested)) => {
                        return Err(Refusal::BeyondHead { requested, head: tip.get() }.into());
                    }
                    (RequestedBlock::Absent, BlockRef::Tag(tag)) => {
                        return Err(Refusal::TagUnknown { tag: tag.name() }.into());
                    }
                    // The method takes no hash.
                    (RequestedBlock::Absent, BlockRef::Hash(_)) => return Ok(None),
                    (RequestedBlock::Refused(refusal), _) => return Err(refusal.into()),
                }
            }
        };
        if count == 0 {
            return Ok(None);
        }
        let oldest = last.saturating_add(1).saturating_sub(count);
        let held = self.view.coverage();
        let run = held.iter().find(|range| range.contains(last));
        match run.filter(|range| range.first() > oldest.get()) {
            Some(range) => {
                let number = range.first().saturating_sub(1);
                let held = held.to_vec();
                Err(Refusal::BlockNotHeld { number, held }.into())
            }
            None => Ok(BlockRange::from_ends(oldest, last)),
        }
    }

    /// What the producer of a block got for a unit of gas, at these percentiles of its gas.
    async fn rewards(
        &self,
        reader: &mut Reader,
        stored: &StoredHeader,
        header: &Header,
        percentiles: &[f64],
    ) -> Result<Vec<u128>, CallFailure> {
        if percentiles.is_empty() || stored.transaction_count == 0 {
            return Ok(vec![0; percentiles.len()]);
        }
        let number = stored.number;
        if !self.view.coverage_receipts().iter().any(|range| range.contains(number)) {
            return Err(self.receipts_not_held(number));
        }
        let block = self.view.read_block(reader, number, RowParts::Receipt).await?;
        let block = block.ok_or(CallFailure::NotABlock)?;
        let mut paid = tips(&block, header.base_fee_per_gas, |tip, row| {
            row.receipt.map(|receipt| (tip, receipt.gas_used))
        })?;
        paid.sort_by_key(|(tip, _)| *tip);
        Ok(at_percentiles(&paid, header.gas_used, percentiles))
    }

    /// A tip that is likely to be enough: the 60th percentile of the cheapest of the newest blocks.
    async fn suggested_tip(
        &self,
        reader: &mut Reader,
        newest: &StoredHeader,
        header: &Header,
    ) -> Result<u128, CallFailure> {
        if let Some(kept) = self.suggested_tip.find(newest.hash) {
            return Ok(kept);
        }
        let first = header.number.saturating_sub(SAMPLED_BLOCKS_MAX.saturating_sub(1)).max(1);
        let mut samples = Vec::new();
        let mut sampled_blocks: usize = 0;
        for number in (first..=header.number).rev().map(BlockNumber) {
            if sampled_blocks >= SAMPLED_BLOCKS || !self.is_held(number) {
                break;
            }
            let (_, header) = self.header_of(reader, number).await?;
            let block = self.view.read_block(reader, number, RowParts::Transaction).await?;
            let block = block.ok_or(CallFailure::NotABlock)?;
            // What a producer pays itself is no price.
            let mut paid = tips(&block, header.base_fee_per_gas, |tip, row| {
                (tip >= TIP_MIN && row.sender != header.beneficiary).then_some(tip)
            })?;
            paid.sort_unstable();
            paid.truncate(SAMPLES_PER_BLOCK);
            sampled_blocks = sampled_blocks.saturating_add(usize::from(!paid.is_empty()));
            samples.extend(paid);
            tokio::task::yield_now().await;
        }
        samples.sort_unstable();
        let position = samples.len().saturating_sub(1).saturating_mul(60) / 100;
        let price = samples.get(position).copied().unwrap_or(TIP_DEFAULT).min(TIP_MAX);
        self.suggested_tip.keep(newest.hash, price);
        Ok(price)
    }
}

/// A price; null where the fork that brings it has not come yet.
fn put_price(out: &mut Vec<u8>, price: Option<u128>) -> CallResult {
    let Some(price) = price else { return null(out) };
    put_quantity_u128(out, price);
    Ok(None)
}

/// What `pick` takes of the transactions of a block, each with what its producer got for a unit of gas.
fn tips<T>(
    block: &StoredBlock,
    base_fee: Option<u64>,
    pick: impl Fn(u128, RowView<'_>) -> Option<T>,
) -> Result<Vec<T>, CallFailure> {
    let mut picked = Vec::with_capacity(block.rows.len());
    for row in &block.rows {
        let fields = TxFields::read(row.encoded).map_err(|_| CallFailure::NotABlock)?;
        let price = fields.effective_gas_price(base_fee);
        let tip = price.saturating_sub(base_fee.unwrap_or_default().into());
        picked.extend(pick(tip, row));
    }
    Ok(picked)
}

fn block_fees(spec: &ChainSpec, header: &Header, rewards: Vec<u128>) -> BlockFees {
    let blob = match (header.excess_blob_gas, header.blob_gas_used) {
        (Some(excess), used) => {
            let fee = spec.blob_fee(header.timestamp, excess);
            let params = spec.blob_params_at(header.timestamp);
            fee.zip(params).map(|(fee, params)| {
                let most = params.max_blob_count.saturating_mul(DATA_GAS_PER_BLOB);
                (fee, share(used.unwrap_or_default(), most))
            })
        }
        (None, _) => Some((0, 0.0)),
    };
    BlockFees {
        base_fee: header.base_fee_per_gas.unwrap_or_default(),
        gas_used_ratio: share(header.gas_used, header.gas_limit),
        blob,
        rewards,
    }
}

/// A part of a whole; none of nothing.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "as nodes compute it, to the last digit"
)]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The tips at percentiles of a block's gas, as nodes find them: the header's gas is the whole, the
/// gas of receipts is what each transaction weighs.
fn at_percentiles(paid: &[(u128, u64)], gas_used: u64, percentiles: &[f64]) -> Vec<u128> {
    let mut rest = paid.iter();
    let Some((mut tip, mut sum)) = rest.next().copied() else {
        return vec![0; percentiles.len()];
    };
    let mut at = |percentile: f64| {
        let threshold = threshold(gas_used, percentile);
        while sum < threshold
            && let Some((next, gas)) = rest.next()
        {
            tip = *next;
            sum = sum.saturating_add(*gas);
        }
        tip
    };
    percentiles.iter().map(|percentile| at(*percentile)).collect()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as nodes round it; percentiles are from 0 to 100"
)]
fn threshold(gas_used: u64, percentile: f64) -> u64 {
    (gas_used as f64 * percentile / 100.0) as u64
}

fn put_history(
    out: &mut Vec<u8>,
    oldest: u64,
    fees: &[BlockFees],
    (next_fee, next_blob_fee): (u64, Option<u128>),
    has_rewards: bool,
) {
    let mut object = Object::begin(out);
    object.quantity("oldestBlock", oldest);
    if has_rewards {
        put_list(object.member("reward"), fees, |out, block| {
            put_list(out, block.rewards.iter().copied(), put_quantity_u128);
        });
    }
    let base_fees = fees.iter().map(|block| block.base_fee).chain([next_fee]);
    put_list(object.member("baseFeePerGas"), base_fees, put_quantity);
    put_list(object.member("gasUsedRatio"), fees, |out, block| {
        put_ratio(out, block.gas_used_ratio);
    });
    // A price that is not known is left out with all others, as a receipt leaves it out.
    let blob: Option<Vec<(u128, f64)>> = fees.iter().map(|block| block.blob).collect();
    if let Some((blob, next)) = blob.zip(next_blob_fee) {
        let blob_fees = blob.iter().map(|(fee, _)| *fee).chain([next]);
        put_list(object.member("baseFeePerBlobGas"), blob_fees, put_quantity_u128);
        put_list(object.member("blobGasUsedRatio"), blob, |out, (_, ratio)| put_ratio(out, ratio));
    }
    object.end();
}

/// A number with as many digits as tell it from all others.
fn put_ratio(out: &mut Vec<u8>, ratio: f64) {
    out.extend_from_slice(ratio.to_string().as_bytes());
}

fn put_fork(out: &mut Vec<u8>, chain_id: u64, config: &ForkConfig) {
    let mut object = Object::begin(out);
    object.raw("activationTime", &config.activation_time.to_string());
    match config.blob_params {
        Some(params) => {
            let mut schedule = Object::begin(object.member("blobSchedule"));
            schedule.raw("target", &params.target_blob_count.to_string());
            schedule.raw("max", &params.max_blob_count.to_string());
            schedule.raw("baseFeeUpdateFraction", &params.update_fraction.to_string());
            schedule.end();
        }
        None => object.raw("blobSchedule", "null"),
    }
    object.quantity("chainId", chain_id);
    object.data("forkId", &config.fork_id);
    for (name, contracts) in
        [("precompiles", &config.precompiles), ("systemContracts", &config.system_contracts)]
    {
        let mut list = Object::begin(object.member(name));
        for (name, address) in contracts {
            put_data(list.member(name), address.as_slice());
        }
        list.end();
    }
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_weigh_as_much_as_their_transactions_used_gas() {
        let paid = [(1, 10_000), (5, 30_000), (9, 60_000)];
        let check = |percentiles: &[f64], expected: &[u128]| {
            assert_eq!(at_percentiles(&paid, 100_000, percentiles), expected, "{percentiles:?}");
        };
        check(&[0.0, 10.0, 10.1, 40.0, 41.0, 100.0], &[1, 1, 5, 5, 9, 9]);
        check(&[], &[]);
        // Where receipts sum up to less than the header, as refunds make it from Amsterdam on, the
        // last transaction is the highest there is; where to more, the header's gas is the whole.
        assert_eq!(at_percentiles(&paid, 125_000, &[100.0]), [9]);
        assert_eq!(at_percentiles(&paid, 50_000, &[80.0, 100.0]), [5, 9]);
        assert_eq!(at_percentiles(&[], 50_000, &[1.0, 2.0]), [0, 0]);
    }

    #[test]
    fn ratios_are_json_numbers_whatever_the_header_says() {
        let written = |part, whole| {
            let mut out = Vec::new();
            put_ratio(&mut out, share(part, whole));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(72_868, 100_000_000), "0.00072868");
        assert_eq!(written(1, 2), "0.5");
        assert_eq!(written(5, 5), "1");
        assert_eq!(written(7, 0), "0");
        let tiny: f64 = serde_json::from_str(&written(1, u64::MAX)).unwrap();
        assert!(tiny > 0.0);
        let large: f64 = serde_json::from_str(&written(u64::MAX, 1)).unwrap();
        assert!(large > 1e19);
    }
}
