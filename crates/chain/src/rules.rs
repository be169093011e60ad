//! The rules of headers: what a header of a fork has, and how it follows from its parent's.
//!
//! They hold for chains whose forks somebody described ([`ChainSpec::is_described`]). Block 0 follows
//! no rule: its hash is what a chain is named by. A header with more fields than the newest fork that
//! is known of its chain is of a later fork, whose steps may be others: only the timestamp and what
//! the merge ended are held against it.

use std::cmp::Ordering;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_eips::eip1559::{GAS_LIMIT_BOUND_DIVISOR, INITIAL_BASE_FEE};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{B64, B256, U256};
use thiserror::Error;

use crate::fees::{ELASTICITY, excess_after, next_base_fee};
use crate::fork::Fork;
use crate::header::{FIELDS_KNOWN, has_unknown_fields};
use crate::spec::ChainSpec;

/// The lowest gas limit that a block may have.
const GAS_LIMIT_MIN: u64 = 5000;
/// Fields of a header before London.
const FRONTIER_FIELDS: usize = 15;
/// The forks that appended fields, and how many.
const APPENDED_FIELDS: [(Fork, usize); 5] = [
    (Fork::London, 1),
    (Fork::Shanghai, 1),
    (Fork::Cancun, 3),
    (Fork::Prague, 1),
    (Fork::Amsterdam, 2),
];

/// A rule that a header breaks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum RuleFault {
    #[error("header has {found} fields, {fork} has {expected}")]
    Fields { found: usize, expected: usize, fork: Fork },
    #[error("timestamp is {found}, the parent's is {parent}: it must be above")]
    Timestamp { found: u64, parent: u64 },
    #[error("gas used is {found}, the gas limit is {limit}")]
    GasAboveLimit { found: u64, limit: u64 },
    #[error(
        "gas limit is {found}, expected at least {GAS_LIMIT_MIN} and less than {bound} away from \
         {parent}{}", later_fork_hint(*.is_newest_fork)
    )]
    GasLimit { found: u64, parent: u64, bound: u64, is_newest_fork: bool },
    #[error(
        "base fee is {found}, the parent's gas gives {expected}{}",
        later_fork_hint(*.is_newest_fork)
    )]
    BaseFee { found: u64, expected: u64, is_newest_fork: bool },
    #[error("blob gas used is {found}, its {blob_count} blobs take {expected}")]
    BlobGasUsed { found: u64, expected: u64, blob_count: u64 },
    #[error(
        "excess blob gas is {found}, the parent's blobs give {expected}{}",
        later_fork_hint(*.is_newest_fork)
    )]
    ExcessBlobGas { found: u64, expected: u64, is_newest_fork: bool },
    #[error("difficulty is {found}, after the merge it is 0")]
    Difficulty { found: U256 },
    #[error("nonce is {found}, after the merge it is 0")]
    Nonce { found: B64 },
    #[error("ommers hash is {found}, after the merge it is that of no ommers")]
    Ommers { found: B256 },
}

impl RuleFault {
    /// Whether an honest block would show the same if its network has had a fork since this build was
    /// made that appended no field: one that changes blob parameters or the steps of gas prices.
    #[must_use]
    pub fn may_be_later_fork(&self) -> bool {
        matches!(
            self,
            Self::GasLimit { is_newest_fork: true, .. }
                | Self::BaseFee { is_newest_fork: true, .. }
                | Self::ExcessBlobGas { is_newest_fork: true, .. }
        )
    }
}

fn later_fork_hint(is_newest_fork: bool) -> &'static str {
    if is_newest_fork {
        ": either is false, or the network has had a fork that this build or its genesis file does \
         not know; then upgrade"
    } else {
        ""
    }
}

/// The fields of a header that the rules between parent and child are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFields {
    number: u64,
    timestamp: u64,
    gas_limit: u64,
    gas_used: u64,
    base_fee: Option<u64>,
    blob_gas_used: u64,
    excess_blob_gas: Option<u64>,
    /// No chain's is larger than what fits; one that is larger counts as the largest.
    difficulty: u64,
    /// Those of later forks than this build knows count as one.
    field_count: usize,
}

impl StepFields {
    /// The fields of a header, which was decoded from `rlp`.
    #[must_use]
    pub fn of(header: &Header, rlp: &[u8]) -> Self {
        Self {
            number: header.number,
            timestamp: header.timestamp,
            gas_limit: header.gas_limit,
            gas_used: header.gas_used,
            base_fee: header.base_fee_per_gas,
            blob_gas_used: header.blob_gas_used.unwrap_or(0),
            excess_blob_gas: header.excess_blob_gas,
            difficulty: header.difficulty.saturating_to(),
            field_count: field_count(header, rlp),
        }
    }

    /// The newest fork whose rules hold for the header, and how its fields compare with that fork's.
    fn compare_fields(&self, spec: &ChainSpec) -> Option<(Fork, Ordering)> {
        let fork = spec.fork_at(self.number, self.timestamp)?;
        Some((fork, self.field_count.cmp(&fields_of(fork))))
    }
}

/// Holds a header against the rules of its own fork, and against its parent's where that is known.
/// Tells whether all rules of its fork were held against it.
pub(crate) fn check_header(
    spec: &ChainSpec,
    parent: Option<&StepFields>,
    header: &Header,
    fields: &StepFields,
) -> Result<bool, RuleFault> {
    if !spec.is_described() || header.number == 0 {
        return Ok(false);
    }
    let Some((fork, order)) = fields.compare_fields(spec) else { return Ok(false) };
    let is_known = match order {
        Ordering::Equal => true,
        // A fork that nobody told this build of.
        Ordering::Greater if spec.newest_fork() == Some(fork) => false,
        Ordering::Greater | Ordering::Less => {
            let (found, expected) = (fields.field_count, fields_of(fork));
            return Err(RuleFault::Fields { found, expected, fork });
        }
    };
    if fork >= Fork::Paris || header.difficulty.is_zero() {
        check_merged(header)?;
    }
    if is_known && header.gas_used > header.gas_limit {
        let (found, limit) = (header.gas_used, header.gas_limit);
        return Err(RuleFault::GasAboveLimit { found, limit });
    }
    if let Some(parent) = parent {
        check_step(spec, parent, fields)?;
    }
    Ok(is_known)
}

/// Holds a header against its parent's: both must have been held against their own forks.
pub fn check_step(
    spec: &ChainSpec,
    parent: &StepFields,
    child: &StepFields,
) -> Result<(), RuleFault> {
    if !spec.is_described() {
        return Ok(());
    }
    if child.timestamp <= parent.timestamp {
        let (found, parent) = (child.timestamp, parent.timestamp);
        return Err(RuleFault::Timestamp { found, parent });
    }
    // Where the merge happened is told by the first difficulty of zero, except that of block 0.
    if parent.number > 0 && parent.difficulty == 0 && child.difficulty != 0 {
        return Err(RuleFault::Difficulty { found: U256::from(child.difficulty) });
    }
    match child.compare_fields(spec) {
        Some((fork, Ordering::Equal)) => {
            let is_newest_fork = spec.newest_fork() == Some(fork);
            check_gas_limit(parent, child, is_newest_fork)?;
            check_base_fee(parent, child, is_newest_fork)?;
            check_excess_blob_gas(spec, parent, child, is_newest_fork)
        }
        _ => Ok(()),
    }
}

/// Holds the blobs of a block against its header.
pub(crate) fn check_blobs(header: &Header, blob_count: u64) -> Result<(), RuleFault> {
    let expected = blob_count.saturating_mul(DATA_GAS_PER_BLOB);
    match header.blob_gas_used {
        Some(found) if found != expected => {
            Err(RuleFault::BlobGasUsed { found, expected, blob_count })
        }
        _ => Ok(()),
    }
}

fn check_merged(header: &Header) -> Result<(), RuleFault> {
    if !header.difficulty.is_zero() {
        return Err(RuleFault::Difficulty { found: header.difficulty });
    }
    if !header.nonce.is_zero() {
        return Err(RuleFault::Nonce { found: header.nonce });
    }
    if header.ommers_hash != EMPTY_OMMER_ROOT_HASH {
        return Err(RuleFault::Ommers { found: header.ommers_hash });
    }
    Ok(())
}

fn check_gas_limit(
    parent: &StepFields,
    child: &StepFields,
    is_newest_fork: bool,
) -> Result<(), RuleFault> {
    let is_first_of_london = parent.base_fee.is_none() && child.base_fee.is_some();
    // London multiplied the limit, so that its target stayed what the limit was.
    let factor = if is_first_of_london { ELASTICITY } else { 1 };
    let (found, parent) = (child.gas_limit, parent.gas_limit.saturating_mul(factor));
    let bound = parent / GAS_LIMIT_BOUND_DIVISOR;
    if found < GAS_LIMIT_MIN || found.abs_diff(parent) >= bound.max(1) {
        return Err(RuleFault::GasLimit { found, parent, bound, is_newest_fork });
    }
    Ok(())
}

fn check_base_fee(
    parent: &StepFields,
    child: &StepFields,
    is_newest_fork: bool,
) -> Result<(), RuleFault> {
    let Some(found) = child.base_fee else { return Ok(()) };
    let expected = match parent.base_fee {
        Some(base_fee) => next_base_fee(base_fee, parent.gas_used, parent.gas_limit),
        None => INITIAL_BASE_FEE,
    };
    if found == expected {
        return Ok(());
    }
    Err(RuleFault::BaseFee { found, expected, is_newest_fork })
}

fn check_excess_blob_gas(
    spec: &ChainSpec,
    parent: &StepFields,
    child: &StepFields,
    is_newest_fork: bool,
) -> Result<(), RuleFault> {
    let Some((found, params)) = child.excess_blob_gas.zip(spec.blob_params_at(child.timestamp))
    else {
        return Ok(());
    };
    let Some(expected) = next_excess_blob_gas(&params, parent) else { return Ok(()) };
    if found == expected {
        return Ok(());
    }
    Err(RuleFault::ExcessBlobGas { found, expected, is_newest_fork })
}

/// The excess blob gas of a child, with the parameters of the child's fork. `None` if those are such
/// that nothing can be computed with them.
fn next_excess_blob_gas(params: &BlobParams, parent: &StepFields) -> Option<u64> {
    // More than any chain has.
    const BLOBS_MAX: u64 = 1 << 20;
    let BlobParams { target_blob_count, max_blob_count, update_fraction, .. } = *params;
    let is_usable = (1..=BLOBS_MAX).contains(&max_blob_count)
        && target_blob_count <= max_blob_count
        && update_fraction > 0;
    if !is_usable {
        return None;
    }
    let excess = parent.excess_blob_gas.unwrap_or(0);
    Some(excess_after(params, excess, parent.blob_gas_used, parent.base_fee.unwrap_or(0)))
}

/// How many fields a header of the fork has.
fn fields_of(fork: Fork) -> usize {
    let appended = APPENDED_FIELDS.iter().filter(|(first, _)| fork >= *first);
    FRONTIER_FIELDS + appended.map(|(_, count)| count).sum::<usize>()
}

/// How many fields a header has; all that this build does not know count as one.
fn field_count(header: &Header, rlp: &[u8]) -> usize {
    let optional = [
        header.base_fee_per_gas.is_some(),
        header.withdrawals_root.is_some(),
        header.blob_gas_used.is_some(),
        header.excess_blob_gas.is_some(),
        header.parent_beacon_block_root.is_some(),
        header.requests_hash.is_some(),
        header.block_access_list_hash.is_some(),
        header.slot_number.is_some(),
    ];
    let known = FRONTIER_FIELDS + optional.iter().filter(|is_there| **is_there).count();
    let has_more = known == FIELDS_KNOWN && has_unknown_fields(header, rlp);
    known + usize::from(has_more)
}

#[cfg(test)]
mod tests;
