//! Which chain a data folder holds or shall hold: what the user names, then the folder itself, then
//! the names of the archives.

use std::collections::BTreeSet;
use std::path::PathBuf;

use alloy_genesis::Genesis;
use alloy_primitives::B256;
use archive::ArchiveName;
use archive::file_kind::FileBegin;
use chain::{BlockNumber, ChainSpec, GenesisError};
use store::manifest::Network;
use store::names::GENESIS_NAME;
use store::read::block_on;
use store::{CommitFacts, Reader, Store, StoreError, Writer};
use thiserror::Error;

use crate::import::network_of;

/// Why a genesis.json describes no chain.
#[derive(Debug, Error)]
pub enum GenesisTextError {
    /// It is no JSON at all.
    #[error("this is no genesis.json: {begin}, and as JSON it fails: {cause}")]
    NotJson {
        /// How it begins.
        begin: FileBegin,
        /// Where it fails.
        cause: serde_json::Error,
    },
    /// It is JSON, but not that of a genesis.
    #[error("this is no genesis.json: {0}")]
    Json(#[from] serde_json::Error),
    /// It lacks what every genesis has: an object of something else, or an empty one.
    #[error("this is no genesis.json: it has no {member}")]
    Lacks {
        /// What is not there.
        member: &'static str,
    },
    /// Its content cannot be that of a block 0.
    #[error(transparent)]
    Content(#[from] GenesisError),
}

/// Why it cannot be said which chain a folder holds or shall hold.
#[derive(Debug, Error)]
pub enum FolderChainError {
    /// The genesis.json that the user gives.
    #[error("{place}: {cause}")]
    NamedGenesis {
        /// What the user calls it.
        place: String,
        /// What is wrong with it.
        cause: GenesisTextError,
    },
    /// The genesis.json that the folder keeps.
    #[error("{place}: {cause}")]
    KeptGenesis {
        /// The file.
        place: String,
        /// What is wrong with it.
        cause: GenesisTextError,
    },
    /// The genesis.json that the folder keeps is another chain's.
    #[error("{place}: has {} {}, the manifest says {}", .difference.what, .difference.found, .difference.held)]
    GenesisOfOther {
        /// The file.
        place: String,
        /// From what the manifest says.
        difference: Box<ChainDifference>,
    },
    /// Archives of more than one network.
    #[error("archives of several networks: {networks}")]
    SeveralNetworks {
        /// Their names.
        networks: String,
    },
    /// Archives of another network than the folder's.
    #[error("{folder} holds {held}, the archives say {found}")]
    ArchivesOfOther {
        /// The folder.
        folder: String,
        /// Its network.
        held: String,
        /// The archives' network.
        found: String,
    },
    /// Nobody says which network it is.
    #[error("no archive's name says its network")]
    NoNetworkName,
    /// The user names another chain than the one that is held.
    #[error(
        "{folder} holds {name} with {what} {}, the flags name {named} with {what} {}",
        .difference.held,
        .difference.found,
        what = .difference.what
    )]
    OtherChain {
        /// The folder.
        folder: String,
        /// What its chain is called.
        name: String,
        /// What the named chain is called.
        named: String,
        /// From what the folder holds.
        difference: Box<ChainDifference>,
    },
    /// The folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where two chains cannot be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainDifference {
    /// What differs.
    pub what: &'static str,
    /// By the data folder.
    pub held: String,
    /// By the other side.
    pub found: String,
}

/// What the user says of the chain.
#[derive(Clone, Debug)]
pub enum NamedChain {
    /// A network that is compiled in.
    Known(Box<ChainSpec>),
    /// A genesis.json, which the folder is to keep.
    Genesis {
        /// Its content.
        text: Vec<u8>,
        /// What the user calls it.
        place: String,
    },
    /// A chain id, and perhaps the hash of block 0.
    Id {
        /// The chain id.
        chain_id: u64,
        /// The hash.
        genesis_hash: Option<B256>,
    },
}

impl NamedChain {
    /// The chain. `name` is what one without a name of its own is called, if it is called anything.
    pub fn spec(&self, name: Option<&str>) -> Result<ChainSpec, FolderChainError> {
        match self {
            Self::Known(spec) => Ok(ChainSpec::clone(spec)),
            Self::Genesis { text, place } => {
                let named = |cause| FolderChainError::NamedGenesis { place: place.clone(), cause };
                parse_genesis(text, name).map_err(named)
            }
            Self::Id { chain_id, genesis_hash } => {
                let name = name.map_or_else(|| unnamed(*chain_id), str::to_owned);
                Ok(ChainSpec::bare(&name, Some(*chain_id), *genesis_hash))
            }
        }
    }
}

/// The chain of a folder, and what becomes of the genesis.json that the folder keeps.
#[derive(Clone, Debug)]
pub struct FolderChain {
    spec: ChainSpec,
    genesis: GenesisChange,
}

/// What becomes of the folder's genesis.json.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GenesisChange {
    /// It stays as it is.
    Stays,
    /// This is kept, so that later commands need no flag.
    Kept(Vec<u8>),
    /// It was left by an import of another chain, of which nothing came to be held.
    Forgotten,
}

impl FolderChain {
    /// Decides for an import of `files`. `store` is `None` if the folder is not there yet.
    pub fn of_archives(
        named: Option<NamedChain>,
        store: Option<&Store>,
        files: &[PathBuf],
    ) -> Result<Self, FolderChainError> {
        let networks = networks(files);
        let held = FolderFacts::read(store, only(&networks), named.as_ref())?;
        match named {
            Some(named) => Self::named(named, held, only(&networks)),
            None => Ok(Self::of(held.or_by_names(&networks)?)),
        }
    }

    /// Decides where no archive says it: by the user or by the folder; `None` if neither does. `name` is
    /// what a chain is called whose genesis.json does not say it.
    pub fn find(
        named: Option<NamedChain>,
        store: Option<&Store>,
        name: Option<&str>,
    ) -> Result<Option<Self>, FolderChainError> {
        let held = FolderFacts::read(store, None, named.as_ref())?;
        match named {
            Some(named) => Self::named(named, held, name).map(Some),
            None => Ok(held.spec.map(Self::of)),
        }
    }

    /// A chain that others know, as the nodes that follow it.
    #[must_use]
    pub fn of(spec: ChainSpec) -> Self {
        Self { spec, genesis: GenesisChange::Stays }
    }

    /// The chain.
    #[must_use]
    pub fn spec(&self) -> &ChainSpec {
        &self.spec
    }

    /// The user names the chain: it must not be another than the one that is held. `name` is what others
    /// than the folder call it.
    fn named(
        named: NamedChain,
        held: FolderFacts,
        name: Option<&str>,
    ) -> Result<Self, FolderChainError> {
        let spec = named.spec(held.network.name.as_deref().or(name))?;
        // The folder's name is not that of another chain.
        let own_name = named.spec(name)?.name().to_owned();
        // A chain id alone says less than what the folder knows.
        let is_bare = matches!(named, NamedChain::Id { .. }) && spec.genesis_hash().is_none();
        let genesis = match named {
            NamedChain::Genesis { text, .. } => GenesisChange::Kept(text),
            NamedChain::Known(_) | NamedChain::Id { .. } if held.is_empty => {
                GenesisChange::Forgotten
            }
            NamedChain::Known(_) | NamedChain::Id { .. } => GenesisChange::Stays,
        };
        if held.is_empty {
            return Ok(Self { spec, genesis });
        }
        held.refuse_other(&spec, own_name)?;
        let own = held.spec.filter(|_| is_bare);
        Ok(Self { spec: own.unwrap_or(spec), genesis })
    }

    /// Remembers the chain though nothing of it is held yet, so that later starts need no flag.
    pub fn remember(&self, writer: &mut Writer) -> Result<(), StoreError> {
        // Whatever else lies in the folder, its manifest was there before. The chain is named in it
        // when its genesis.json is there: a crash in between leaves a chain that is not named yet.
        self.settle(writer)?;
        let network = network_of(&self.spec);
        writer.commit(Vec::new(), CommitFacts { network, ..CommitFacts::default() })
    }

    /// Takes back a genesis.json that was kept, if nothing came to be held: it may be another chain's, and
    /// that may be why. `before` is the one that was there.
    pub fn withdraw(
        &self,
        store: &Store,
        writer: &mut Writer,
        before: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let is_empty = writer.view().coverage().is_empty() && !store.has_head_log()?;
        match (&self.genesis, before) {
            (GenesisChange::Kept(_), Some(before)) if is_empty => writer.keep_genesis(before),
            (GenesisChange::Kept(_), None) if is_empty => writer.forget_genesis(),
            (GenesisChange::Kept(_) | GenesisChange::Stays | GenesisChange::Forgotten, _) => Ok(()),
        }
    }

    /// Keeps the genesis.json, or forgets it. One that stays was read, and is recorded if a crash kept
    /// that from being done.
    pub fn settle(&self, writer: &mut Writer) -> Result<(), StoreError> {
        match &self.genesis {
            GenesisChange::Stays => writer.adopt_genesis(),
            GenesisChange::Kept(bytes) => writer.keep_genesis(bytes),
            GenesisChange::Forgotten => writer.forget_genesis(),
        }
    }
}

/// The chain that a folder holds, as far as the folder knows it.
pub fn held_spec(store: &Store) -> Result<ChainSpec, FolderChainError> {
    let held = FolderFacts::read(Some(store), None, None)?;
    let Network { chain_id, genesis_hash, .. } = held.network;
    Ok(held.spec.unwrap_or_else(|| ChainSpec::bare("unknown", chain_id, genesis_hash)))
}

/// The same to prove blocks of the head by. A genesis.json that cannot be read is reported by those
/// who need more of it.
#[must_use]
pub fn proving_spec(store: &Store) -> ChainSpec {
    held_spec(store).unwrap_or_else(|_| {
        let view = store.view();
        let Network { chain_id, genesis_hash, .. } = view.network();
        ChainSpec::bare("unknown", chain_id, genesis_hash)
    })
}

/// The chain of a genesis.json. `name` is what it is called, if it is called anything.
pub fn parse_genesis(text: &[u8], name: Option<&str>) -> Result<ChainSpec, GenesisTextError> {
    // All members have defaults for whoever reads them, so that `{}` would be a chain with id 1.
    let json: serde_json::Value = serde_json::from_slice(text)
        .map_err(|cause| GenesisTextError::NotJson { begin: FileBegin::of(text), cause })?;
    for (member, place) in [("config.chainId", "/config/chainId"), ("alloc", "/alloc")] {
        if json.pointer(place).is_none_or(serde_json::Value::is_null) {
            return Err(GenesisTextError::Lacks { member });
        }
    }
    let genesis: Genesis = serde_json::from_slice(text)?;
    let name = name.map_or_else(|| unnamed(genesis.config.chain_id), str::to_owned);
    Ok(ChainSpec::from_genesis(&name, &genesis)?)
}

/// The chain that a file's name says, or one of which nothing is known.
#[must_use]
pub fn spec_by_name(network: &str) -> ChainSpec {
    ChainSpec::known(network).unwrap_or_else(|| ChainSpec::bare(network, None, None))
}

fn unnamed(chain_id: u64) -> String {
    format!("chain-{chain_id}")
}

/// What a folder says of its chain.
#[derive(Debug)]
struct FolderFacts {
    folder: String,
    network: Network,
    /// All that is known of it; `None` if it is nothing.
    spec: Option<ChainSpec>,
    /// The hash that block 0 has here.
    first_hash: Option<B256>,
    /// No block is held: what is known was left by an import that took nothing.
    is_empty: bool,
}

impl FolderFacts {
    /// Asks a folder, if it is there. `archives` is what they call a chain that the folder has no name
    /// for. A genesis.json that is named takes the place of the kept one, whatever that says.
    fn read(
        store: Option<&Store>,
        archives: Option<&str>,
        named: Option<&NamedChain>,
    ) -> Result<Self, FolderChainError> {
        let Some(store) = store else { return Ok(Self::of_none()) };
        let is_replaced = matches!(named, Some(NamedChain::Genesis { .. }));
        let genesis = if is_replaced { None } else { store.read_genesis()? };
        let view = store.view();
        let network = view.manifest().network().clone();
        let folder = store.place();
        let spec = match genesis {
            Some(text) => {
                let place = format!("{folder}/{GENESIS_NAME}");
                let name = network.name.as_deref().or(archives);
                Some(check_kept(parse_genesis(&text, name), &network, place)?)
            }
            None => spec_of_network(&network),
        };
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let first_hash = match block_on(view.read_hash(&mut reader, BlockNumber(0))) {
            // Whoever needs the blocks of a segment that is gone or cut tells so.
            Err(StoreError::Disk(error)) if error.is_missing() || error.is_of_content() => None,
            Err(StoreError::NotListed { .. } | StoreError::Segment { .. }) => None,
            found => found?,
        };
        let is_empty = view.coverage().is_empty() && !store.has_head_log()?;
        Ok(Self { folder, network, spec, first_hash, is_empty })
    }

    /// What a folder says that is not there yet.
    fn of_none() -> Self {
        let (folder, network) = (String::new(), Network::default());
        Self { folder, network, spec: None, first_hash: None, is_empty: true }
    }

    /// The folder's own chain, or the one that the archives' names say.
    fn or_by_names(self, networks: &BTreeSet<String>) -> Result<ChainSpec, FolderChainError> {
        if networks.len() > 1 {
            let networks = networks.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(FolderChainError::SeveralNetworks { networks });
        }
        if let (Some(held), Some(found)) = (self.network.name, only(networks))
            && held != found
        {
            let (folder, found) = (self.folder, found.to_owned());
            return Err(FolderChainError::ArchivesOfOther { folder, held, found });
        }
        let by_name = only(networks).map(spec_by_name);
        self.spec.or(by_name).ok_or(FolderChainError::NoNetworkName)
    }

    /// Refuses another chain than the one that is held.
    fn refuse_other(&self, chain: &ChainSpec, named: String) -> Result<(), FolderChainError> {
        let own = self.spec.as_ref();
        let known = Network {
            name: None,
            chain_id: own.and_then(ChainSpec::chain_id).or(self.network.chain_id),
            genesis_hash: self.first_hash.or_else(|| own.and_then(ChainSpec::genesis_hash)),
        };
        let Some(difference) = difference(&known, chain) else { return Ok(()) };
        let name = self.network.name.clone().unwrap_or_else(|| "a chain".to_owned());
        let folder = self.folder.clone();
        Err(FolderChainError::OtherChain { folder, name, named, difference })
    }
}

/// The chain of the kept genesis.json, if it is the one that the manifest names.
fn check_kept(
    parsed: Result<ChainSpec, GenesisTextError>,
    network: &Network,
    place: String,
) -> Result<ChainSpec, FolderChainError> {
    match parsed {
        Err(cause) => Err(FolderChainError::KeptGenesis { place, cause }),
        Ok(spec) => match difference(network, &spec) {
            Some(difference) => Err(FolderChainError::GenesisOfOther { place, difference }),
            None => Ok(spec),
        },
    }
}

/// Where two chains cannot be the same: what differs, and both values.
fn difference(held: &Network, found: &ChainSpec) -> Option<Box<ChainDifference>> {
    let text = |value: &dyn ToString| value.to_string();
    let chain_ids = held.chain_id.zip(found.chain_id()).filter(|(held, found)| held != found);
    let hashes = held.genesis_hash.zip(found.genesis_hash()).filter(|(held, found)| held != found);
    let (what, held, found) = match (chain_ids, hashes) {
        (Some((held, found)), _) => ("chain id", text(&held), text(&found)),
        (None, Some((held, found))) => ("genesis hash", text(&held), text(&found)),
        (None, None) => return None,
    };
    Some(Box::new(ChainDifference { what, held, found }))
}

/// The chain that a manifest names. A known network's name alone is not enough: what the manifest
/// says of it must be the same.
fn spec_of_network(network: &Network) -> Option<ChainSpec> {
    let Network { name, chain_id, genesis_hash } = network;
    let compiled = name.as_deref().and_then(ChainSpec::known);
    let same = compiled
        .filter(|spec| (spec.chain_id(), spec.genesis_hash()) == (*chain_id, *genesis_hash));
    same.or_else(|| Some(ChainSpec::bare(name.as_deref()?, *chain_id, *genesis_hash)))
}

/// The networks that archives say they are of.
fn networks(files: &[PathBuf]) -> BTreeSet<String> {
    files.iter().filter_map(|path| ArchiveName::parse(path)).map(|name| name.network).collect()
}

fn only(names: &BTreeSet<String>) -> Option<&str> {
    names.first().filter(|_| names.len() == 1).map(String::as_str)
}

#[cfg(test)]
mod tests;
