//! Which chain a data folder holds or shall hold: flags, then the folder itself, then the names of
//! the archives.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use chain::ChainSpec;
use ingest::archive::ArchiveName;
use ingest::import::network_of;
use store::genesis_file::read_recorded_genesis;
use store::head::Recovery;
use store::head::has_log;
use store::manifest::Network;
use store::names::GENESIS_NAME;
use store::read::block_on;
use store::{CommitFacts, Reader, StoreError, Writer};

use crate::Failure;
use crate::args::{ChainArgs, DataArgs};
use crate::chain_choice::{self, spec_by_flags, spec_by_name};
use crate::data_folder::{DataFolder, locate};

/// What to do about a genesis.json that is damaged.
const GENESIS_REMEDY: &str = "`quipu repair --genesis FILE` puts the right one in its place";

/// The chain, and what becomes of the genesis.json that the folder keeps.
#[derive(Clone, Debug)]
pub(crate) struct FolderChain {
    pub(crate) spec: ChainSpec,
    genesis: Genesis,
}

/// What becomes of the folder's genesis.json.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Genesis {
    /// It stays as it is.
    Stays,
    /// This is kept, so that later commands need no flag.
    Kept(Vec<u8>),
    /// It was left by an import of another chain, of which nothing came to be held.
    Forgotten,
}

impl FolderChain {
    /// Decides for an import of `files`. `folder` is `None` if it is not there yet.
    pub(crate) fn choose(
        args: &ChainArgs,
        folder: Option<&DataFolder>,
        files: &[PathBuf],
    ) -> Result<Self, Failure> {
        let named = networks(files);
        let held = match folder {
            // One that is given takes the place of the one that is kept, whatever that says.
            Some(folder) => FolderFacts::read(folder, only(&named), args.genesis.is_none())?,
            None => FolderFacts { is_empty: true, ..FolderFacts::default() },
        };
        let name = held.network.name.as_deref().or_else(|| only(&named));
        match spec_by_flags(args, name)? {
            Some(by_flags) => Self::by_flags(args, held, by_flags),
            None => Ok(Self { spec: held.or_by_names(&named)?, genesis: Genesis::Stays }),
        }
    }

    /// Decides where no archive tells: by flags, by the folder or by asking.
    pub(crate) fn choose_or_ask(
        args: &ChainArgs,
        folder: Option<&DataFolder>,
        ask: impl FnOnce() -> Result<ChainSpec, Failure>,
    ) -> Result<Self, Failure> {
        match Self::choose_if_told(args, folder)? {
            Some(chain) => Ok(chain),
            None => Ok(Self::asked(ask()?)),
        }
    }

    /// Decides by flags or by the folder; `None` if neither tells.
    pub(crate) fn choose_if_told(
        args: &ChainArgs,
        folder: Option<&DataFolder>,
    ) -> Result<Option<Self>, Failure> {
        let held = match folder {
            Some(folder) => FolderFacts::read(folder, None, args.genesis.is_none())?,
            None => FolderFacts { is_empty: true, ..FolderFacts::default() },
        };
        if let Some(by_flags) = spec_by_flags(args, held.network.name.as_deref())? {
            return Self::by_flags(args, held, by_flags).map(Some);
        }
        Ok(held.spec.map(|spec| Self { spec, genesis: Genesis::Stays }))
    }

    /// The chain that a node follows.
    pub(crate) fn asked(spec: ChainSpec) -> Self {
        Self { spec, genesis: Genesis::Stays }
    }

    /// Flags name the chain: they must not name another than the one that is held.
    fn by_flags(args: &ChainArgs, held: FolderFacts, by_flags: ChainSpec) -> Result<Self, Failure> {
        let genesis = match &args.genesis {
            Some(path) => Genesis::Kept(chain_choice::read_genesis(path).map_err(Failure::Usage)?),
            None if held.is_empty => Genesis::Forgotten,
            None => Genesis::Stays,
        };
        if held.is_empty {
            return Ok(Self { spec: by_flags, genesis });
        }
        held.refuse_other(&by_flags)?;
        // A chain id alone says less than what the folder knows.
        let is_bare = args.chain_id.is_some() && by_flags.genesis_hash().is_none();
        let own = held.spec.filter(|_| is_bare);
        Ok(Self { spec: own.unwrap_or(by_flags), genesis })
    }

    /// Remembers the chain though nothing of it is held yet, so that later starts need no flag.
    pub(crate) fn remember(&self, writer: &mut Writer) -> anyhow::Result<()> {
        // Whatever else lies in the folder, its manifest was there before. The chain is named in it
        // when its genesis.json is there: a crash in between leaves a chain that is not named yet.
        self.settle(writer)?;
        let network = network_of(&self.spec);
        writer.commit(Vec::new(), CommitFacts { network, ..CommitFacts::default() })?;
        Ok(())
    }

    /// Keeps the genesis.json, or forgets it. One that stays was read, and is recorded if a crash kept
    /// that from being done.
    pub(crate) fn settle(&self, writer: &mut Writer) -> anyhow::Result<()> {
        match &self.genesis {
            Genesis::Stays => writer.adopt_genesis()?,
            Genesis::Kept(bytes) => writer.keep_genesis(bytes)?,
            Genesis::Forgotten => writer.forget_genesis()?,
        }
        Ok(())
    }
}

impl DataFolder {
    /// Opens a folder that must be there, with its head: commands that only read make nothing.
    pub(crate) fn open(args: &DataArgs) -> Result<Self, Failure> {
        let (folder, head) = Self::open_without_head(args)?;
        head?;
        Ok(folder)
    }

    /// The same, also if its head cannot be shown: why not is told beside it.
    pub(crate) fn open_without_head(
        args: &DataArgs,
    ) -> Result<(Self, Result<Recovery, StoreError>), Failure> {
        let path = locate(args)?;
        match Self::find(&path)? {
            Some(folder) => {
                let head = folder.store.read_head(proving_spec_of(&folder));
                Ok((folder, head))
            }
            None => Err(Failure::Work(anyhow!(
                "{0}: there is no data folder here\n  hint: make one with: quipu import --data-dir {0} ARCHIVES",
                path.display()
            ))),
        }
    }
}

/// The chain that a folder holds, as far as the folder knows it.
pub(crate) fn spec_of(folder: &DataFolder) -> anyhow::Result<ChainSpec> {
    let held = FolderFacts::read(folder, None, true)?;
    let Network { chain_id, genesis_hash, .. } = held.network;
    Ok(held.spec.unwrap_or_else(|| ChainSpec::bare("unknown", chain_id, genesis_hash)))
}

/// The same to prove blocks of the head by. A genesis.json that cannot be read is for those to tell
/// who need more of it.
pub(crate) fn proving_spec_of(folder: &DataFolder) -> ChainSpec {
    spec_of(folder).unwrap_or_else(|_| {
        let view = folder.store.view();
        let Network { chain_id, genesis_hash, .. } = view.manifest().network();
        ChainSpec::bare("unknown", *chain_id, *genesis_hash)
    })
}

/// The genesis.json that a folder keeps, if it is the one that its manifest records. A writer beside us
/// may replace both: then the folder is looked at again.
pub(crate) fn read_kept_genesis(folder: &DataFolder) -> Result<Option<Vec<u8>>, StoreError> {
    let read = || read_recorded_genesis(&*folder.disk, folder.store.view().manifest());
    match read() {
        Err(StoreError::GenesisFile { .. }) if folder.store.refresh()? => read(),
        found => found,
    }
}

/// What a folder says of its chain.
#[derive(Debug, Default)]
struct FolderFacts {
    place: String,
    network: Network,
    /// All that is known of it; `None` if it is nothing.
    spec: Option<ChainSpec>,
    /// The hash that block 0 has here.
    first_hash: Option<alloy_primitives::B256>,
    /// No block is held: what is known was left by an import that took nothing.
    is_empty: bool,
}

impl FolderFacts {
    /// Asks a folder. `named` is what the archives call a chain that the folder has no name for.
    fn read(folder: &DataFolder, named: Option<&str>, reads_genesis: bool) -> anyhow::Result<Self> {
        let view = folder.store.view();
        let network = view.manifest().network().clone();
        let genesis = if reads_genesis { read_kept_genesis(folder)? } else { None };
        let spec = match genesis {
            Some(text) => {
                let place = || format!("{}/{GENESIS_NAME}", folder.path.display());
                let name = network.name.as_deref().or(named);
                let spec = chain_choice::parse_genesis(&text, name)
                    .with_context(|| format!("{}: {GENESIS_REMEDY}", place()))?;
                if let Some((what, held, found)) = difference(&network, &spec) {
                    bail!(
                        "{}: has {what} {found}, the manifest says {held}: {GENESIS_REMEDY}",
                        place()
                    );
                }
                Some(spec)
            }
            None => known(&network),
        };
        let mut reader = Reader::new()?;
        let first_hash = block_on(view.read_hash(&mut reader, 0))?;
        let is_empty = view.coverage().is_empty() && !has_log(&*folder.disk)?;
        let place = folder.path.display().to_string();
        Ok(Self { place, network, spec, first_hash, is_empty })
    }

    /// The folder's own chain, or the one that the archives' names say.
    fn or_by_names(self, named: &BTreeSet<String>) -> Result<ChainSpec, Failure> {
        let listed = || named.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if named.len() > 1 {
            return Err(Failure::Usage(anyhow!(
                "archives of several networks: {}; import each network into a data folder of its \
                 own, or name one with --network, --genesis or --chain-id",
                listed()
            )));
        }
        if let (Some(held), Some(found)) = (self.network.name.as_deref(), only(named))
            && held != found
        {
            return Err(Failure::Usage(anyhow!(
                "{} holds {held}, the archives say {found}: give another --data-dir, or name the \
                 chain with --network, --genesis or --chain-id",
                self.place
            )));
        }
        let by_name = only(named).map(spec_by_name);
        self.spec.or(by_name).ok_or_else(|| {
            Failure::Usage(anyhow!(
                "no archive's name says its network: name it with --network, --genesis or --chain-id"
            ))
        })
    }

    /// Refuses flags that name another chain than the one that is held.
    fn refuse_other(&self, asked: &ChainSpec) -> Result<(), Failure> {
        let own = self.spec.as_ref();
        let known = Network {
            name: None,
            chain_id: own.and_then(ChainSpec::chain_id).or(self.network.chain_id),
            genesis_hash: self.first_hash.or_else(|| own.and_then(ChainSpec::genesis_hash)),
        };
        let Some((what, held, found)) = difference(&known, asked) else { return Ok(()) };
        let name = self.network.name.as_deref().unwrap_or("a chain");
        Err(Failure::Usage(anyhow!(
            "{} holds {name} with {what} {held}, the flags name {} with {what} {found}: give \
             another --data-dir",
            self.place,
            asked.name()
        )))
    }
}

/// Where two chains cannot be the same: what differs, and both values.
fn difference(held: &Network, found: &ChainSpec) -> Option<(&'static str, String, String)> {
    let chain_ids = held.chain_id.zip(found.chain_id()).filter(|(held, found)| held != found);
    let hashes = held.genesis_hash.zip(found.genesis_hash()).filter(|(held, found)| held != found);
    let chain_ids = chain_ids.map(|it| ("chain id", it.0.to_string(), it.1.to_string()));
    chain_ids.or_else(|| hashes.map(|it| ("genesis hash", it.0.to_string(), it.1.to_string())))
}

/// The chain that a manifest names. A known network's name alone is not enough: what the manifest
/// says of it must be the same.
fn known(network: &Network) -> Option<ChainSpec> {
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
