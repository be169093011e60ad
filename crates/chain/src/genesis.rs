//! From a genesis file to block 0, the forks and the blob schedule.

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip7594::MAX_BLOBS_PER_TX_FUSAKA;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_eips::eip7840::{BLOB_BASE_COST, BlobParams};
use alloy_eips::eip7892::BlobScheduleBlobParams;
use alloy_genesis::{ChainConfig, Genesis};
use alloy_primitives::B256;
use alloy_trie::EMPTY_ROOT_HASH;
use alloy_trie::root::state_root_ref_unhashed;
use thiserror::Error;

use crate::fork::{Activation, Fork};

/// What geth takes for a gas limit that is absent or zero.
const GAS_LIMIT_DEFAULT: u64 = 4_712_388;

/// Why a genesis file does not describe a chain.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GenesisError {
    /// Block 0 says that it is another block.
    #[error("genesis: number is {found}, expected 0")]
    Number {
        /// The number it claims.
        found: u64,
    },
    /// A base fee that no header can hold.
    #[error("genesis: baseFeePerGas is {found}, at most {} fits a header", u64::MAX)]
    BaseFee {
        /// The fee it asks for.
        found: u128,
    },
    /// A fork that begins before its predecessor.
    #[error("genesis: {later} begins at {later_at}, before {earlier} at {earlier_at}")]
    ForkOrder {
        /// The fork that must come first.
        earlier: Fork,
        /// Where it begins.
        earlier_at: Activation,
        /// The fork that must come after.
        later: Fork,
        /// Where it begins.
        later_at: Activation,
    },
}

/// Block 0 of the chain that a genesis file describes. Which of the optional fields it has is
/// decided by the forks that are active in it, as geth decides it.
///
/// An absent `difficulty` cannot be told from zero here; geth's default of 131072 for such a file
/// is not applied.
pub fn genesis_header(genesis: &Genesis) -> Result<Header, GenesisError> {
    if let Some(found) = genesis.number.filter(|number| *number != 0) {
        return Err(GenesisError::Number { found });
    }
    let forks = forks(&genesis.config)?;
    let begins = |wanted| forks.iter().find(|(fork, _)| *fork == wanted).map(|(_, begins)| *begins);
    let is_active =
        |fork| begins(fork).is_some_and(|begins| begins.is_active(0, genesis.timestamp));
    let is_london = is_active(Fork::London);
    // A fork with a time counts only on top of London.
    let is_cancun = is_london && is_active(Fork::Cancun);
    let is_amsterdam = is_london && is_active(Fork::Amsterdam);
    let base_fee_given = genesis
        .base_fee_per_gas
        .map(|found| u64::try_from(found).map_err(|_| GenesisError::BaseFee { found }))
        .transpose()?;
    // The empty block access list is an empty RLP list, as the empty list of ommers is.
    let empty_list_hash = Header::default().ommers_hash;
    Ok(Header {
        parent_hash: genesis.parent_hash.unwrap_or_default(),
        beneficiary: genesis.coinbase,
        state_root: state_root(genesis),
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        difficulty: genesis.difficulty,
        number: 0,
        gas_limit: if genesis.gas_limit == 0 { GAS_LIMIT_DEFAULT } else { genesis.gas_limit },
        timestamp: genesis.timestamp,
        extra_data: genesis.extra_data.clone(),
        mix_hash: genesis.mix_hash,
        nonce: genesis.nonce.into(),
        base_fee_per_gas: base_fee_given.or_else(|| is_london.then_some(INITIAL_BASE_FEE)),
        withdrawals_root: (is_london && is_active(Fork::Shanghai)).then_some(EMPTY_WITHDRAWALS),
        blob_gas_used: is_cancun.then(|| genesis.blob_gas_used.unwrap_or(0)),
        excess_blob_gas: is_cancun.then(|| genesis.excess_blob_gas.unwrap_or(0)),
        parent_beacon_block_root: is_cancun.then_some(B256::ZERO),
        requests_hash: (is_london && is_active(Fork::Prague)).then_some(EMPTY_REQUESTS_HASH),
        block_access_list_hash: is_amsterdam.then_some(empty_list_hash),
        slot_number: is_amsterdam.then(|| genesis.slot_number.unwrap_or(0)),
        ..Header::default()
    })
}

fn state_root(genesis: &Genesis) -> B256 {
    state_root_ref_unhashed(&genesis.alloc)
}

/// The forks of a config in their order.
///
/// A block fork that the config leaves out although a later one is given begins with that later
/// one, because each fork contains the rules before it; geth refuses such a file, Besu's own dev
/// files are written so. Forks that not every chain has (DAO, the glaciers) are not filled in.
pub(crate) fn forks(config: &ChainConfig) -> Result<Vec<(Fork, Activation)>, GenesisError> {
    let mut forks = vec![(Fork::Frontier, Activation::Block(0))];
    forks.extend(block_forks(config).map(|(fork, first)| (fork, Activation::Block(first))));
    let times = [
        (Fork::Shanghai, config.shanghai_time.or(config.cancun_time)),
        (Fork::Cancun, config.cancun_time),
        (Fork::Prague, config.prague_time),
        (Fork::Osaka, config.osaka_time),
        (Fork::Bpo1, config.bpo1_time),
        (Fork::Bpo2, config.bpo2_time),
        (Fork::Bpo3, config.bpo3_time),
        (Fork::Bpo4, config.bpo4_time),
        (Fork::Bpo5, config.bpo5_time),
        (Fork::Amsterdam, config.amsterdam_time),
        (Fork::Bogota, config.bogota_time),
    ];
    forks.extend(
        times.into_iter().filter_map(|(fork, first)| Some((fork, Activation::Time(first?)))),
    );
    check_order(&forks)?;
    Ok(forks)
}

/// Members of a config beyond those of geth's that change no rule of headers.
const WITHOUT_HEADER_RULES: [&str; 8] = [
    "consolidationRequestContractAddress",
    "contractSizeLimit",
    "discovery",
    "eip150Hash",
    "evmStackSize",
    "mergeForkBlock",
    "preMergeForkBlock",
    "withdrawalRequestContractAddress",
];

/// Whether the chain follows Ethereum's own rules of headers, as far as its config tells. One member
/// that is not known may be another consensus, another fee market or a later fork, under any name:
/// then nothing is held against headers but their hashes.
pub(crate) fn has_ethereum_consensus(config: &ChainConfig) -> bool {
    let mut others = config.extra_fields.iter().filter(|(_, value)| !value.is_null());
    config.clique.is_none()
        && config.parlia.is_none()
        && others.all(|(name, _)| WITHOUT_HEADER_RULES.contains(&name.as_str()))
}

fn block_forks(config: &ChainConfig) -> impl Iterator<Item = (Fork, u64)> {
    let dao = config.dao_fork_block.filter(|_| config.dao_fork_support);
    let (required, optional) = (true, false);
    let given = [
        (Fork::Homestead, config.homestead_block, required),
        (Fork::Dao, dao, optional),
        (Fork::TangerineWhistle, config.eip150_block, required),
        (Fork::SpuriousDragon, config.eip158_block.or(config.eip155_block), required),
        (Fork::Byzantium, config.byzantium_block, required),
        (Fork::Constantinople, config.constantinople_block, required),
        // Geth too lets Constantinople bring Petersburg when the config does not say.
        (Fork::Petersburg, config.petersburg_block.or(config.constantinople_block), required),
        (Fork::Istanbul, config.istanbul_block, required),
        (Fork::MuirGlacier, config.muir_glacier_block, optional),
        (Fork::Berlin, config.berlin_block, required),
        (Fork::London, config.london_block, required),
        (Fork::ArrowGlacier, config.arrow_glacier_block, optional),
        (Fork::GrayGlacier, config.gray_glacier_block, optional),
        (Fork::Paris, paris_block(config), optional),
    ];
    let mut filled = Vec::with_capacity(given.len());
    let mut next_first = None;
    for (fork, first, is_required) in given.into_iter().rev() {
        let first = first.or(next_first.filter(|_| is_required));
        next_first = first.or(next_first);
        filled.extend(first.map(|first| (fork, first)));
    }
    filled.into_iter().rev()
}

/// The first block without proof of work, where the config tells it. A chain that merges at a
/// total difficulty does not say at which block: there a header's difficulty of zero tells.
fn paris_block(config: &ChainConfig) -> Option<u64> {
    let is_merged_from_start = config.terminal_total_difficulty.is_some_and(|ttd| ttd.is_zero());
    config.merge_netsplit_block.or(is_merged_from_start.then_some(0))
}

fn check_order(forks: &[(Fork, Activation)]) -> Result<(), GenesisError> {
    for ((earlier, earlier_at), (later, later_at)) in forks.iter().zip(forks.iter().skip(1)) {
        let is_ordered = match (earlier_at, later_at) {
            (Activation::Block(earlier), Activation::Block(later))
            | (Activation::Time(earlier), Activation::Time(later)) => earlier <= later,
            // Blocks and times cannot be compared, and all block forks are listed first.
            (Activation::Block(_), Activation::Time(_))
            | (Activation::Time(_), Activation::Block(_)) => true,
        };
        if !is_ordered {
            return Err(GenesisError::ForkOrder {
                earlier: *earlier,
                earlier_at: *earlier_at,
                later: *later,
                later_at: *later_at,
            });
        }
    }
    Ok(())
}

/// The blob schedule of a config; `None` when it has no Cancun.
///
/// Geth refuses a file that lacks the entry of a scheduled fork. Files from before EIP-7840 lack
/// them all and are still about, so for Cancun and Prague mainnet's parameters stand in, and a BPO
/// fork without an entry changes nothing, which is how geth reads a schedule once it has it.
/// Osaka brings limits of its own and otherwise keeps Prague's numbers unless it has an entry.
/// Amsterdam and Bogota bring no numbers: without an entry they keep those before them.
pub(crate) fn blob_schedule(config: &ChainConfig) -> Option<BlobScheduleBlobParams> {
    config.cancun_time?;
    let mut schedule = config.blob_schedule_blob_params();
    if !config.blob_schedule.contains_key("osaka") {
        schedule.osaka = of_osaka(schedule.prague);
    }
    // Alloy reads the entries of these forks only under capitalised names, which no client writes.
    for (name, first) in [("amsterdam", config.amsterdam_time), ("bogota", config.bogota_time)] {
        let entry = first.zip(config.blob_schedule.get(name));
        schedule.scheduled.extend(entry.map(|(first, params)| (first, of_osaka(*params))));
    }
    schedule.scheduled.sort_by_key(|(first, _)| *first);
    Some(schedule)
}

/// Numbers of an entry, with the limits that Osaka brought.
fn of_osaka(params: BlobParams) -> BlobParams {
    params.with_max_blobs_per_tx(MAX_BLOBS_PER_TX_FUSAKA).with_blob_base_cost(BLOB_BASE_COST)
}

#[cfg(test)]
mod tests;
