//! What a chain says of its forks to others: fork ids, precompiles and system contracts (EIP-7910).
//!
//! A new fork is a row in a table here, if it brings a contract, and nothing if it does not.

use alloy_eips::eip2124::ForkHash;
use alloy_eips::eip7840::BlobParams;
use alloy_eips::{eip2935, eip4788, eip7002, eip7251, eip8282};
use alloy_primitives::{Address, B256};

use crate::fork::{Activation, Fork};
use crate::fork_facts::{ForkFacts, steps};
use crate::spec::ChainSpec;

/// One fork as `eth_config` tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkConfig {
    /// From which time on; 0 if from genesis.
    pub activation_time: u64,
    /// How many blobs a block has from then on; `None` before Cancun.
    pub blob_params: Option<BlobParams>,
    /// The checksum over genesis and all forks up to this one.
    pub fork_id: [u8; 4],
    /// The precompiled contracts by name, in the order of names.
    pub precompiles: Vec<(&'static str, Address)>,
    /// The system contracts by name, in the order of names.
    pub system_contracts: Vec<(&'static str, Address)>,
}

/// The forks around a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkConfigs {
    /// The fork that is in force; `None` if it began at a block, as those before Shanghai did.
    pub current: Option<ForkConfig>,
    /// The one that follows, if it has a date.
    pub next: Option<ForkConfig>,
    /// The last that has a date, if any is still to come.
    pub last: Option<ForkConfig>,
}

/// Precompiled contracts: since which fork, the name that nodes agreed on, and the address's number.
const PRECOMPILES: &[(Fork, &str, u16)] = &[
    (Fork::Istanbul, "BLAKE2F", 0x09),
    (Fork::Prague, "BLS12_G1ADD", 0x0b),
    (Fork::Prague, "BLS12_G1MSM", 0x0c),
    (Fork::Prague, "BLS12_G2ADD", 0x0d),
    (Fork::Prague, "BLS12_G2MSM", 0x0e),
    (Fork::Prague, "BLS12_MAP_FP2_TO_G2", 0x11),
    (Fork::Prague, "BLS12_MAP_FP_TO_G1", 0x10),
    (Fork::Prague, "BLS12_PAIRING_CHECK", 0x0f),
    (Fork::Byzantium, "BN254_ADD", 0x06),
    (Fork::Byzantium, "BN254_MUL", 0x07),
    (Fork::Byzantium, "BN254_PAIRING", 0x08),
    (Fork::Frontier, "ECREC", 0x01),
    (Fork::Frontier, "ID", 0x04),
    (Fork::Cancun, "KZG_POINT_EVALUATION", 0x0a),
    (Fork::Byzantium, "MODEXP", 0x05),
    (Fork::Osaka, "P256VERIFY", 0x100),
    (Fork::Frontier, "RIPEMD160", 0x03),
    (Fork::Frontier, "SHA256", 0x02),
];

/// System contracts: since which fork, and where. Deposits go to an address of the chain's own.
const SYSTEM_CONTRACTS: &[(Fork, &str, Option<Address>)] = &[
    (Fork::Cancun, "BEACON_ROOTS_ADDRESS", Some(eip4788::BEACON_ROOTS_ADDRESS)),
    (
        Fork::Amsterdam,
        "BUILDER_DEPOSIT_CONTRACT_ADDRESS",
        Some(eip8282::BUILDER_DEPOSIT_CONTRACT_ADDRESS),
    ),
    (
        Fork::Amsterdam,
        "BUILDER_EXIT_CONTRACT_ADDRESS",
        Some(eip8282::BUILDER_EXIT_CONTRACT_ADDRESS),
    ),
    (
        Fork::Prague,
        "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS",
        Some(eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS),
    ),
    (Fork::Prague, "DEPOSIT_CONTRACT_ADDRESS", None),
    (Fork::Prague, "HISTORY_STORAGE_ADDRESS", Some(eip2935::HISTORY_STORAGE_ADDRESS)),
    (
        Fork::Prague,
        "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS",
        Some(eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS),
    ),
];

impl ChainSpec {
    /// The forks around the time of the newest block; `None` if the chain's forks or its genesis are
    /// not known.
    #[must_use]
    pub fn fork_configs(&self, timestamp: u64) -> Option<ForkConfigs> {
        let (facts, genesis_hash) = (self.fork_facts()?, self.genesis_hash()?);
        let times = self.forks()?.iter().filter_map(|(_, begins)| match begins {
            Activation::Block(_) => None,
            Activation::Time(first) => Some(*first),
        });
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let config = |first: u64| self.fork_config(facts, genesis_hash, &times, first);
        let (past, to_come): (Vec<u64>, Vec<u64>) =
            times.iter().partition(|first| **first <= timestamp);
        Some(ForkConfigs {
            current: past.last().map(|first| config(*first)),
            next: to_come.first().map(|first| config(*first)),
            last: to_come.last().map(|first| config(*first)),
        })
    }

    fn fork_config(
        &self,
        facts: &ForkFacts,
        genesis_hash: B256,
        times: &[u64],
        first: u64,
    ) -> ForkConfig {
        let mut fork_id = ForkHash::from(genesis_hash);
        let up_to = times.iter().copied().filter(|time| *time <= first);
        for step in facts.blocks.iter().copied().chain(steps(up_to, facts.genesis_time)) {
            fork_id += step;
        }
        // Forks of blocks lie before all forks of times.
        let fork = self.fork_at(u64::MAX, first).unwrap_or(Fork::Frontier);
        let precompiles = PRECOMPILES.iter().filter(|(since, ..)| *since <= fork);
        let system_contracts = SYSTEM_CONTRACTS.iter().filter(|(since, ..)| *since <= fork);
        ForkConfig {
            activation_time: if first <= facts.genesis_time { 0 } else { first },
            blob_params: self.blob_params_at(first),
            fork_id: fork_id.0,
            precompiles: precompiles.map(|(_, name, number)| (*name, numbered(*number))).collect(),
            system_contracts: system_contracts
                .map(|(_, name, place)| (*name, place.unwrap_or(facts.deposit_contract)))
                .collect(),
        }
    }
}

/// The address that is a small number.
fn numbered(number: u16) -> Address {
    let mut address = Address::ZERO;
    if let Some(low) = address.last_chunk_mut() {
        *low = number.to_be_bytes();
    }
    address
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{address, hex};

    use super::*;

    /// The fork id at a time, in hex.
    fn fork_id(network: &str, timestamp: u64) -> String {
        let configs = ChainSpec::known(network).unwrap().fork_configs(timestamp).unwrap();
        hex::encode(configs.current.unwrap().fork_id)
    }

    /// The ids that go-ethereum's own tests have.
    #[test]
    fn fork_ids_are_those_that_nodes_tell_each_other() {
        assert_eq!(fork_id("mainnet", 1_681_338_455), "dce96c2d");
        assert_eq!(fork_id("mainnet", 1_710_338_135), "9f3d2254");
        assert_eq!(fork_id("mainnet", 1_746_612_311), "c376cf8b");
        assert_eq!(fork_id("mainnet", 1_764_798_551), "5167e2a6");
        assert_eq!(fork_id("mainnet", 1_765_290_071), "cba2a1c0");
        assert_eq!(fork_id("mainnet", 1_767_747_671), "07c9462e");
        assert_eq!(fork_id("sepolia", 1_677_557_088), "f7f9bc08");
        assert_eq!(fork_id("sepolia", 1_706_655_072), "88cf81d9");
        assert_eq!(fork_id("sepolia", 1_741_159_776), "ed88b5fd");
        assert_eq!(fork_id("holesky", 1_696_000_704), "fd4f016b");
        assert_eq!(fork_id("holesky", 1_707_305_664), "9b192ad0");
        assert_eq!(fork_id("holesky", 1_740_434_112), "dfbd9bed");
        assert_eq!(fork_id("hoodi", 1_742_999_832), "0929e24e");
    }

    #[test]
    fn contracts_appear_with_their_fork_in_the_order_of_their_names() {
        let mainnet = ChainSpec::known("mainnet").unwrap();
        let at = |timestamp| mainnet.fork_configs(timestamp).unwrap();
        assert_eq!(at(0).current, None);
        assert_eq!(at(0).next.unwrap().activation_time, 1_681_338_455);
        let (shanghai, prague) = (at(1_681_338_455), at(1_746_612_311).current.unwrap());
        let shanghai_now = shanghai.current.unwrap();
        assert_eq!((shanghai_now.precompiles.len(), shanghai_now.blob_params), (9, None));
        assert!(shanghai_now.system_contracts.is_empty());
        assert_eq!(shanghai.next.unwrap().precompiles.len(), 10);
        assert_eq!(shanghai.last.unwrap().activation_time, 1_767_747_671);
        assert_eq!((prague.precompiles.len(), prague.system_contracts.len()), (17, 5));
        let osaka = at(1_764_798_551).current.unwrap();
        assert_eq!(osaka.precompiles.len(), 18);
        let address = address!("0x0000000000000000000000000000000000000100");
        assert!(osaka.precompiles.contains(&("P256VERIFY", address)));
        for named in [osaka.precompiles, osaka.system_contracts] {
            assert!(named.is_sorted_by_key(|(name, _)| *name), "{named:?}");
        }
        // Nothing is left to come.
        let newest = at(u64::MAX);
        assert_eq!((newest.next, newest.last), (None, None));
        let amsterdam = ChainSpec::known("sepolia").unwrap().fork_configs(1_791_294_816).unwrap();
        let contracts = amsterdam.current.unwrap().system_contracts;
        assert_eq!(contracts.len(), 7);
        assert!(contracts.is_sorted_by_key(|(name, _)| *name), "{contracts:?}");
    }

    #[test]
    fn a_fork_that_began_with_genesis_began_at_time_0() {
        let hoodi = ChainSpec::known("hoodi").unwrap();
        let cancun = hoodi.fork_configs(1_742_212_800).unwrap().current.unwrap();
        assert_eq!(cancun.activation_time, 0);
        assert_eq!(hex::encode(cancun.fork_id), "bef71d30");
    }

    #[test]
    fn of_a_chain_that_is_known_by_its_id_alone_no_fork_is_told() {
        assert_eq!(ChainSpec::bare("private", Some(1337), None).fork_configs(1), None);
        assert_eq!(ChainSpec::bare("shadow", Some(1), Some(B256::ZERO)).fork_configs(1), None);
    }
}
