//! What a chain is: its name, its genesis, when its forks begin and how many blobs they carry.

use alloy_eips::eip7840::BlobParams;
use alloy_eips::eip7892::BlobScheduleBlobParams;
use alloy_genesis::Genesis;
use alloy_primitives::B256;

use crate::fork::{Activation, Fork};
use crate::fork_facts::ForkFacts;
use crate::genesis::{self, GenesisError};
use crate::networks;

/// The rules of one chain, as far as they are known. What is not known stays `None`: a block can
/// be proven without its fork, and a guess would be worse than no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    name: String,
    chain_id: Option<u64>,
    genesis_hash: Option<B256>,
    forks: Option<Vec<(Fork, Activation)>>,
    blob_schedule: Option<BlobScheduleBlobParams>,
    is_described: bool,
    fork_facts: Option<ForkFacts>,
}

impl ChainSpec {
    /// A network that is compiled in; see [`ChainSpec::known_names`].
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        networks::NETWORKS.iter().find(|network| network.name == name).map(Self::of_network)
    }

    /// The names that [`ChainSpec::known`] accepts.
    #[must_use]
    pub fn known_names() -> &'static [&'static str] {
        networks::NAMES
    }

    /// The compiled-in network with this chain id.
    #[must_use]
    pub fn known_by_chain_id(chain_id: u64) -> Option<Self> {
        networks::NETWORKS.iter().find(|network| network.chain_id == chain_id).map(Self::of_network)
    }

    /// The chain that a genesis file describes.
    pub fn from_genesis(name: &str, genesis: &Genesis) -> Result<Self, GenesisError> {
        Ok(Self {
            name: name.to_owned(),
            chain_id: Some(genesis.config.chain_id),
            genesis_hash: Some(genesis::genesis_header(genesis)?.hash_slow()),
            forks: Some(genesis::forks(&genesis.config)?),
            blob_schedule: genesis::blob_schedule(&genesis.config),
            is_described: genesis::has_ethereum_consensus(&genesis.config),
            fork_facts: Some(ForkFacts::of_genesis(genesis)),
        })
    }

    /// A chain of which little is known. A compiled-in chain id brings that network's forks and
    /// blob schedule; the genesis hash is the caller's alone, because a shadow fork or a private
    /// chain may share the chain id and not the genesis.
    #[must_use]
    pub fn bare(name: &str, chain_id: Option<u64>, genesis_hash: Option<B256>) -> Self {
        let network = chain_id.and_then(Self::known_by_chain_id);
        let (forks, blob_schedule) =
            network.map_or((None, None), |network| (network.forks, network.blob_schedule));
        let (name, fork_facts) = (name.to_owned(), None);
        let is_described = false;
        Self { name, chain_id, genesis_hash, forks, blob_schedule, is_described, fork_facts }
    }

    /// Whether this is one of the compiled-in public networks, as far as is known: it has such a
    /// chain id, and no other genesis.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        let network = self.chain_id.and_then(Self::known_by_chain_id);
        network.is_some_and(|network| {
            self.genesis_hash.is_none_or(|hash| network.genesis_hash == Some(hash))
        })
    }

    /// What the chain is called here.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The chain id of EIP-155.
    #[must_use]
    pub fn chain_id(&self) -> Option<u64> {
        self.chain_id
    }

    /// The hash of block 0.
    #[must_use]
    pub fn genesis_hash(&self) -> Option<B256> {
        self.genesis_hash
    }

    /// The forks in their order.
    #[must_use]
    pub fn forks(&self) -> Option<&[(Fork, Activation)]> {
        self.forks.as_deref()
    }

    /// Whether headers are held to the rules of the chain's forks: the network is compiled in, or
    /// a genesis file of a chain with Ethereum's consensus describes it. The forks that come with a
    /// mere chain id may be those of another chain.
    #[must_use]
    pub fn is_described(&self) -> bool {
        self.is_described
    }

    /// The last of the forks that are known.
    pub(crate) fn newest_fork(&self) -> Option<Fork> {
        self.forks()?.last().map(|(fork, _)| *fork)
    }

    /// How many blobs the forks carry.
    #[must_use]
    pub fn blob_schedule(&self) -> Option<&BlobScheduleBlobParams> {
        self.blob_schedule.as_ref()
    }

    /// What tells the chain from others beside its forks.
    pub(crate) fn fork_facts(&self) -> Option<&ForkFacts> {
        self.fork_facts.as_ref()
    }

    /// The newest fork whose rules hold for a block of this number and timestamp.
    #[must_use]
    pub fn fork_at(&self, number: u64, timestamp: u64) -> Option<Fork> {
        self.forks()?
            .iter()
            .filter(|(_, activation)| activation.is_active(number, timestamp))
            .map(|(fork, _)| *fork)
            .max()
    }

    /// Whether the rules of `fork` hold; `None` when the chain's forks are not known.
    #[must_use]
    pub fn is_active(&self, fork: Fork, number: u64, timestamp: u64) -> Option<bool> {
        let activation = self.activation(fork);
        self.forks().map(|_| activation.is_some_and(|begins| begins.is_active(number, timestamp)))
    }

    /// Whether a signature in block `number` may have its `s` in the upper half of the curve's
    /// order, which EIP-2 forbids from Homestead on. True when the forks are not known: the rule
    /// then cannot be held against a block, whose transactions root commits to the signature all
    /// the same.
    #[must_use]
    pub fn allows_high_s(&self, number: u64) -> bool {
        // Homestead is a block fork, so the timestamp cannot matter.
        self.is_active(Fork::Homestead, number, 0) != Some(true)
    }

    /// The same chain with blob parameters that somebody told: from which time on, in rising order.
    /// Before the first of them nothing is known.
    #[must_use]
    pub fn with_blob_params(self, scheduled: Vec<(u64, BlobParams)>) -> Self {
        let forks = BlobScheduleBlobParams {
            cancun: BlobParams::cancun(),
            prague: BlobParams::prague(),
            osaka: BlobParams::osaka(),
            scheduled,
        };
        Self { blob_schedule: Some(forks), ..self }
    }

    /// The blob parameters in force at a timestamp; `None` before Cancun or when not known.
    #[must_use]
    pub fn blob_params_at(&self, timestamp: u64) -> Option<BlobParams> {
        let schedule = self.blob_schedule()?;
        // Blob forks begin at times, so the number cannot matter.
        let is_active = |fork| self.is_active(fork, 0, timestamp) == Some(true);
        if let Some(params) = schedule.active_scheduled_params_at_timestamp(timestamp) {
            Some(*params)
        } else if is_active(Fork::Osaka) {
            Some(schedule.osaka)
        } else if is_active(Fork::Prague) {
            Some(schedule.prague)
        } else if is_active(Fork::Cancun) {
            Some(schedule.cancun)
        } else {
            None
        }
    }

    fn activation(&self, wanted: Fork) -> Option<Activation> {
        let found = self.forks()?.iter().find(|(fork, _)| *fork == wanted);
        found.map(|(_, activation)| *activation)
    }

    fn of_network(network: &networks::KnownNetwork) -> Self {
        let forks = network.forks();
        let blob_schedule = networks::blob_schedule(&forks);
        Self {
            name: network.name.to_owned(),
            chain_id: Some(network.chain_id),
            genesis_hash: Some(network.genesis_hash),
            forks: Some(forks),
            blob_schedule: Some(blob_schedule),
            is_described: true,
            fork_facts: ForkFacts::of_network(network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `fork_at` says for (chain, number, timestamp).
    fn check(chain: &str, number: u64, timestamp: u64, expected: Fork) {
        let spec = ChainSpec::known(chain).unwrap();
        assert_eq!(spec.fork_at(number, timestamp), Some(expected), "{chain} {number} {timestamp}");
    }

    #[test]
    fn a_fork_begins_with_its_first_block_and_not_before() {
        check("mainnet", 0, 0, Fork::Frontier);
        check("mainnet", 1_149_999, 0, Fork::Frontier);
        check("mainnet", 1_150_000, 0, Fork::Homestead);
        check("mainnet", 7_280_000, 0, Fork::Petersburg);
        check("mainnet", 15_537_393, 0, Fork::GrayGlacier);
        check("mainnet", 15_537_394, 0, Fork::Paris);
        check("mainnet", 17_034_870, 1_681_338_455, Fork::Shanghai);
        check("mainnet", 19_426_586, 1_710_338_134, Fork::Shanghai);
        check("mainnet", 19_426_587, 1_710_338_135, Fork::Cancun);
        check("mainnet", 24_000_000, 1_767_747_671, Fork::Bpo2);
        check("sepolia", 1_450_408, 0, Fork::London);
        check("sepolia", 1_450_409, 0, Fork::Paris);
        check("sepolia", 10_000_000, 1_791_294_815, Fork::Bpo2);
        check("sepolia", 10_000_000, 1_791_294_816, Fork::Amsterdam);
        // These two have not said when.
        check("mainnet", u64::MAX, u64::MAX, Fork::Bpo2);
        check("hoodi", u64::MAX, u64::MAX, Fork::Bpo2);
        check("hoodi", 0, 1_742_213_400, Fork::Cancun);
        check("holesky", 0, 1_695_902_100, Fork::Paris);
    }

    #[test]
    fn high_s_is_allowed_only_before_homestead() {
        let mainnet = ChainSpec::known("mainnet").unwrap();
        assert!(mainnet.allows_high_s(1_149_999));
        assert!(!mainnet.allows_high_s(1_150_000));
        assert!(!ChainSpec::known("sepolia").unwrap().allows_high_s(0));
        assert!(ChainSpec::bare("private", None, None).allows_high_s(0));
    }

    #[test]
    fn blob_parameters_follow_the_schedule() {
        let mainnet = ChainSpec::known("mainnet").unwrap();
        let max_at = |timestamp| mainnet.blob_params_at(timestamp).map(|it| it.max_blob_count);
        assert_eq!(max_at(1_710_338_134), None);
        assert_eq!(max_at(1_710_338_135), Some(6));
        assert_eq!(max_at(1_746_612_311), Some(9));
        assert_eq!(max_at(1_764_798_551), Some(9));
        assert_eq!(max_at(1_765_290_071), Some(15));
        assert_eq!(max_at(1_767_747_671), Some(21));
    }

    #[test]
    fn amsterdam_keeps_the_blob_parameters_before_it() {
        let sepolia = ChainSpec::known("sepolia").unwrap();
        let before = sepolia.blob_params_at(1_791_294_815);
        assert_eq!(before.map(|it| it.update_fraction), Some(11_684_671));
        assert_eq!(sepolia.blob_params_at(1_791_294_816), before);
    }

    #[test]
    fn a_bare_spec_takes_the_forks_of_its_chain_id_and_never_the_genesis() {
        let spec = ChainSpec::bare("shadow", Some(1), None);
        assert_eq!(spec.forks(), ChainSpec::known("mainnet").unwrap().forks());
        assert_eq!(spec.genesis_hash(), None);
        assert_eq!(spec.name(), "shadow");
        assert!(!spec.is_described() && ChainSpec::known("mainnet").unwrap().is_described());
        let unknown = ChainSpec::bare("private", Some(1337), Some(B256::repeat_byte(1)));
        assert_eq!(unknown.fork_at(1, 1), None);
        assert_eq!(unknown.is_active(Fork::Homestead, 1, 1), None);
        assert_eq!(unknown.blob_params_at(u64::MAX), None);
        let told = unknown
            .clone()
            .with_blob_params(vec![(100, BlobParams::prague()), (200, BlobParams::bpo1())]);
        let max_at = |timestamp| told.blob_params_at(timestamp).map(|it| it.max_blob_count);
        assert_eq!([99, 100, 199, 200].map(max_at), [None, Some(9), Some(9), Some(15)]);
        assert_eq!(unknown.genesis_hash(), Some(B256::repeat_byte(1)));
    }

    #[test]
    fn a_chain_is_a_public_network_by_its_chain_id_unless_its_genesis_is_another() {
        for name in ChainSpec::known_names() {
            assert!(ChainSpec::known(name).unwrap().is_built_in(), "{name}");
        }
        let genesis_hash = ChainSpec::known("mainnet").unwrap().genesis_hash();
        assert!(ChainSpec::bare("one", Some(1), None).is_built_in());
        assert!(ChainSpec::bare("one", Some(1), genesis_hash).is_built_in());
        assert!(!ChainSpec::bare("shadow", Some(1), Some(B256::repeat_byte(1))).is_built_in());
        assert!(!ChainSpec::bare("private", Some(1337), genesis_hash).is_built_in());
        assert!(!ChainSpec::bare("unknown", None, genesis_hash).is_built_in());
    }

    #[test]
    fn an_unlisted_fork_is_known_to_be_inactive() {
        let sepolia = ChainSpec::known("sepolia").unwrap();
        assert_eq!(sepolia.is_active(Fork::Dao, u64::MAX, u64::MAX), Some(false));
    }
}
