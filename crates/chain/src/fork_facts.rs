//! What a chain has beside its forks that nodes tell it from others by (EIP-2124, EIP-7910).

use alloy_eips::eip6110;
use alloy_genesis::{ChainConfig, Genesis};
use alloy_primitives::{Address, address};

use crate::fork::{Activation, Fork};
use crate::networks::KnownNetwork;

/// Facts of a chain beside its forks that tell it from others: what its genesis file has, or what is
/// compiled in. A chain that is known by its chain id alone has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForkFacts {
    /// The timestamp of block 0.
    pub(crate) genesis_time: u64,
    /// Every block at which a rule changes, ascending, each once, without block 0. Not all are
    /// forks of [`Fork`]: nodes agreed on a block that set apart those who had not merged.
    pub(crate) blocks: Vec<u64>,
    /// Where deposits are made; the only system contract that is not at one address everywhere.
    pub(crate) deposit_contract: Address,
}

/// Facts of the public networks that their forks do not tell: name, time of genesis, a block that
/// only set nodes apart, and where deposits are made.
const NETWORK_FACTS: &[(&str, u64, Option<u64>, Address)] = &[
    ("mainnet", 0, None, eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS),
    (
        "sepolia",
        1_633_267_481,
        Some(1_735_371),
        address!("0x7f02c3e3c98b133055b8b348b2ac625669ed295d"),
    ),
    ("holesky", 1_695_902_100, None, address!("0x4242424242424242424242424242424242424242")),
    ("hoodi", 1_742_212_800, None, eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS),
];

impl ForkFacts {
    /// What a genesis file has.
    pub(crate) fn of_genesis(genesis: &Genesis) -> Self {
        let config: &ChainConfig = &genesis.config;
        let blocks = [
            config.homestead_block,
            config.dao_fork_block,
            config.eip150_block,
            config.eip155_block,
            config.eip158_block,
            config.byzantium_block,
            config.constantinople_block,
            config.petersburg_block,
            config.istanbul_block,
            config.muir_glacier_block,
            config.berlin_block,
            config.london_block,
            config.arrow_glacier_block,
            config.gray_glacier_block,
            config.merge_netsplit_block,
        ];
        Self {
            genesis_time: genesis.timestamp,
            blocks: steps(blocks.into_iter().flatten(), 0),
            deposit_contract: config.deposit_contract_address.unwrap_or_default(),
        }
    }

    /// What is compiled in of a network.
    pub(crate) fn of_network(network: &KnownNetwork) -> Option<Self> {
        let facts = NETWORK_FACTS.iter().find(|(name, ..)| *name == network.name);
        let (_, genesis_time, netsplit, deposit_contract) = facts.copied()?;
        let forks = network.forks();
        // The merge came at a total difficulty: its block was not agreed on beforehand.
        let blocks = forks.iter().filter_map(|(fork, begins)| match begins {
            Activation::Block(first) => (*fork != Fork::Paris).then_some(*first),
            Activation::Time(_) => None,
        });
        Some(Self { genesis_time, blocks: steps(blocks.chain(netsplit), 0), deposit_contract })
    }
}

/// Those above `genesis`, ascending and each once.
pub(crate) fn steps(given: impl Iterator<Item = u64>, genesis: u64) -> Vec<u64> {
    let mut steps: Vec<u64> = given.filter(|step| *step > genesis).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}
