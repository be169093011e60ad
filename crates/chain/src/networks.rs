//! The public networks: facts that their users agreed on.

use alloy_consensus::constants::{
    HOLESKY_GENESIS_HASH, HOODI_GENESIS_HASH, MAINNET_GENESIS_HASH, SEPOLIA_GENESIS_HASH,
};
use alloy_eips::eip7840::BlobParams;
use alloy_eips::eip7892::BlobScheduleBlobParams;
use alloy_primitives::B256;

use crate::fork::{Activation, Fork};

/// One public network.
pub(crate) struct KnownNetwork {
    pub(crate) name: &'static str,
    pub(crate) chain_id: u64,
    pub(crate) genesis_hash: B256,
    /// Forks that begin at a block, after Frontier.
    block_forks: &'static [(Fork, u64)],
    /// Forks that begin at a time.
    time_forks: &'static [(Fork, u64)],
}

/// The names of [`NETWORKS`], in the same order.
pub(crate) const NAMES: &[&str] = &["mainnet", "sepolia", "holesky", "hoodi"];

pub(crate) static NETWORKS: &[KnownNetwork] = &[
    KnownNetwork {
        name: "mainnet",
        chain_id: 1,
        genesis_hash: MAINNET_GENESIS_HASH,
        block_forks: &[
            (Fork::Homestead, 1_150_000),
            (Fork::Dao, 1_920_000),
            (Fork::TangerineWhistle, 2_463_000),
            (Fork::SpuriousDragon, 2_675_000),
            (Fork::Byzantium, 4_370_000),
            (Fork::Constantinople, 7_280_000),
            (Fork::Petersburg, 7_280_000),
            (Fork::Istanbul, 9_069_000),
            (Fork::MuirGlacier, 9_200_000),
            (Fork::Berlin, 12_244_000),
            (Fork::London, 12_965_000),
            (Fork::ArrowGlacier, 13_773_000),
            (Fork::GrayGlacier, 15_050_000),
            (Fork::Paris, 15_537_394),
        ],
        time_forks: &[
            (Fork::Shanghai, 1_681_338_455),
            (Fork::Cancun, 1_710_338_135),
            (Fork::Prague, 1_746_612_311),
            (Fork::Osaka, 1_764_798_551),
            (Fork::Bpo1, 1_765_290_071),
            (Fork::Bpo2, 1_767_747_671),
        ],
    },
    KnownNetwork {
        name: "sepolia",
        chain_id: 11_155_111,
        genesis_hash: SEPOLIA_GENESIS_HASH,
        // The first block without proof of work. Its mergeNetsplitBlock, 1735371, came later and
        // only set apart the nodes that had followed.
        block_forks: forks_of_a_young_network::<1_450_409>(),
        time_forks: &[
            (Fork::Shanghai, 1_677_557_088),
            (Fork::Cancun, 1_706_655_072),
            (Fork::Prague, 1_741_159_776),
            (Fork::Osaka, 1_760_427_360),
            (Fork::Bpo1, 1_761_017_184),
            (Fork::Bpo2, 1_761_607_008),
            (Fork::Amsterdam, 1_791_294_816),
        ],
    },
    KnownNetwork {
        name: "holesky",
        chain_id: 17_000,
        genesis_hash: HOLESKY_GENESIS_HASH,
        block_forks: forks_of_a_young_network::<0>(),
        time_forks: &[
            (Fork::Shanghai, 1_696_000_704),
            (Fork::Cancun, 1_707_305_664),
            (Fork::Prague, 1_740_434_112),
            (Fork::Osaka, 1_759_308_480),
            (Fork::Bpo1, 1_759_800_000),
            (Fork::Bpo2, 1_760_389_824),
        ],
    },
    KnownNetwork {
        name: "hoodi",
        chain_id: 560_048,
        genesis_hash: HOODI_GENESIS_HASH,
        block_forks: forks_of_a_young_network::<0>(),
        time_forks: &[
            (Fork::Shanghai, 0),
            (Fork::Cancun, 0),
            (Fork::Prague, 1_742_999_832),
            (Fork::Osaka, 1_761_677_592),
            (Fork::Bpo1, 1_762_365_720),
            (Fork::Bpo2, 1_762_955_544),
        ],
    },
];

impl KnownNetwork {
    /// Every fork in its order, Frontier first.
    pub(crate) fn forks(&self) -> Vec<(Fork, Activation)> {
        let blocks =
            self.block_forks.iter().map(|(fork, first)| (*fork, Activation::Block(*first)));
        let times = self.time_forks.iter().map(|(fork, first)| (*fork, Activation::Time(*first)));
        let frontier = (Fork::Frontier, Activation::Block(0));
        std::iter::once(frontier).chain(blocks).chain(times).collect()
    }
}

/// The blob schedule that all four networks share; only the times of its steps differ.
pub(crate) fn blob_schedule(forks: &[(Fork, Activation)]) -> BlobScheduleBlobParams {
    let mut scheduled = Vec::new();
    for step in forks {
        match *step {
            (Fork::Bpo1, Activation::Time(first)) => scheduled.push((first, BlobParams::bpo1())),
            (Fork::Bpo2, Activation::Time(first)) => scheduled.push((first, BlobParams::bpo2())),
            _ => {}
        }
    }
    BlobScheduleBlobParams {
        cancun: BlobParams::cancun(),
        prague: BlobParams::prague(),
        osaka: BlobParams::osaka(),
        scheduled,
    }
}

/// Networks younger than London began with all its rules; the glaciers that followed only moved
/// mainnet's difficulty bomb.
const fn forks_of_a_young_network<const PARIS: u64>() -> &'static [(Fork, u64)] {
    const {
        &[
            (Fork::Homestead, 0),
            (Fork::TangerineWhistle, 0),
            (Fork::SpuriousDragon, 0),
            (Fork::Byzantium, 0),
            (Fork::Constantinople, 0),
            (Fork::Petersburg, 0),
            (Fork::Istanbul, 0),
            (Fork::MuirGlacier, 0),
            (Fork::Berlin, 0),
            (Fork::London, 0),
            (Fork::Paris, PARIS),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_networks_agree() {
        let names: Vec<_> = NETWORKS.iter().map(|network| network.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn forks_are_listed_in_their_order() {
        for network in NETWORKS {
            for forks in [network.block_forks, network.time_forks] {
                let in_order = forks.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let monotone = forks.windows(2).all(|pair| pair[0].1 <= pair[1].1);
                assert!(in_order && monotone, "{}", network.name);
            }
        }
    }

    #[test]
    fn every_blob_parameter_fork_of_a_network_has_its_parameters() {
        let is_blob_fork = |fork: Fork| {
            matches!(fork, Fork::Bpo1 | Fork::Bpo2 | Fork::Bpo3 | Fork::Bpo4 | Fork::Bpo5)
        };
        for network in NETWORKS {
            let dated = network.time_forks.iter().filter(|(fork, _)| is_blob_fork(*fork)).count();
            let scheduled = blob_schedule(&network.forks()).scheduled.len();
            assert_eq!(scheduled, dated, "{}", network.name);
        }
    }

    #[test]
    fn the_blob_schedule_has_the_agreed_numbers() {
        let schedule = blob_schedule(&NETWORKS[0].forks());
        let numbers = |params: &BlobParams| {
            (params.target_blob_count, params.max_blob_count, params.update_fraction)
        };
        assert_eq!(numbers(&schedule.cancun), (3, 6, 3_338_477));
        assert_eq!(numbers(&schedule.prague), (6, 9, 5_007_716));
        assert_eq!(numbers(&schedule.osaka), (6, 9, 5_007_716));
        let steps: Vec<_> =
            schedule.scheduled.iter().map(|(first, params)| (*first, numbers(params))).collect();
        let expected =
            [(1_765_290_071, (10, 15, 8_346_193)), (1_767_747_671, (14, 21, 11_684_671))];
        assert_eq!(steps, expected);
    }
}
