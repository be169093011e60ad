//! Which chain the user means: flags, files and names become a `ChainSpec` and anchors.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use chain::ChainSpec;
use chain::accumulator::EpochRoots;
use chain::trust::{Anchor, Anchors};
use ingest::folder_chain::{FolderChain, FolderChainError, NamedChain};
use store::Store;
use store::names::GENESIS_NAME;

use crate::Failure;
use crate::args::ChainArgs;

/// What to do about a genesis.json that is damaged.
const GENESIS_REMEDY: &str = "`quipu repair --genesis FILE` puts the right one in its place";

/// What to give as a genesis.json.
const GENESIS_HINT: &str = "give the genesis.json that nodes of this chain are started with; a network \
                            that is built in needs none: --network NAME";

/// What the flags say of the chain; `None` leaves it to others.
pub(crate) fn named_chain(args: &ChainArgs) -> Result<Option<NamedChain>, Failure> {
    if let Some(name) = &args.network {
        return Ok(ChainSpec::known(name).map(Box::new).map(NamedChain::Known));
    }
    if let Some(path) = &args.genesis {
        let text = read_genesis(path).map_err(Failure::Usage)?;
        return Ok(Some(NamedChain::Genesis { text, place: flag_text(path) }));
    }
    let genesis_hash = args.genesis_hash;
    Ok(args.chain_id.map(|chain_id| NamedChain::Id { chain_id, genesis_hash }))
}

/// The chain that the flags name; `None` leaves it to others. `name` is what a chain without a name
/// of its own is called, if it is called anything.
pub(crate) fn spec_by_flags(
    args: &ChainArgs,
    name: Option<&str>,
) -> Result<Option<ChainSpec>, Failure> {
    let Some(named) = named_chain(args)? else { return Ok(None) };
    named.spec(name).map(Some).map_err(chain_failure)
}

/// The chain of an import of `files`: by the flags, by the folder if it is there, by the names of the
/// files.
pub(crate) fn folder_chain_of_files(
    args: &ChainArgs,
    store: Option<&Store>,
    files: &[PathBuf],
) -> Result<FolderChain, Failure> {
    FolderChain::of_archives(named_chain(args)?, store, files).map_err(chain_failure)
}

/// The chain by the flags or by the folder, if it is there; `None` if neither says it.
pub(crate) fn folder_chain(
    args: &ChainArgs,
    store: Option<&Store>,
) -> Result<Option<FolderChain>, Failure> {
    FolderChain::find(named_chain(args)?, store, None).map_err(chain_failure)
}

/// The same beside published history, which names the chain if nothing else does; `name` is what it calls
/// it.
pub(crate) fn folder_chain_beside(
    args: &ChainArgs,
    store: Option<&Store>,
    published: Option<NamedChain>,
    name: Option<&str>,
) -> Result<Option<FolderChain>, Failure> {
    let own = FolderChain::find(named_chain(args)?, store, name).map_err(chain_failure)?;
    if own.is_some() {
        return Ok(own);
    }
    FolderChain::find(published, store, name).map_err(chain_failure)
}

/// Why a chain was refused, with the flags that mend it.
pub(crate) fn chain_failure(error: FolderChainError) -> Failure {
    match error {
        FolderChainError::NamedGenesis { .. } => {
            Failure::Usage(anyhow!("{error}\n  hint: {GENESIS_HINT}"))
        }
        FolderChainError::KeptGenesis { .. } | FolderChainError::GenesisOfOther { .. } => {
            Failure::Work(anyhow!("{error}: {GENESIS_REMEDY}"))
        }
        FolderChainError::SeveralNetworks { .. } => Failure::Usage(anyhow!(
            "{error}; import each network into a data folder of its own, or name one with --network, \
             --genesis or --chain-id"
        )),
        FolderChainError::ArchivesOfOther { .. } => Failure::Usage(anyhow!(
            "{error}: give another --data-dir, or name the chain with --network, --genesis or \
             --chain-id"
        )),
        FolderChainError::NoNetworkName => {
            Failure::Usage(anyhow!("{error}: name it with --network, --genesis or --chain-id"))
        }
        FolderChainError::OtherChain { .. } => {
            Failure::Usage(anyhow!("{error}: give another --data-dir"))
        }
        FolderChainError::Store(error) => error.into(),
    }
}

/// What is trusted of a chain: its genesis, the operator's anchors, the epoch roots.
pub(crate) fn anchors(
    spec: &ChainSpec,
    operator: &[Anchor],
    epoch_roots: Option<EpochRoots>,
) -> Result<Anchors, Failure> {
    let mut anchors = Anchors::of(spec);
    for anchor in operator {
        anchors =
            anchors.with_operator(*anchor).map_err(|error| Failure::Usage(anyhow!("{error}")))?;
    }
    Ok(match epoch_roots {
        Some(roots) => anchors.with_epoch_roots(roots),
        None => anchors,
    })
}

/// The text of the genesis.json that the flag names.
pub(crate) fn read_genesis(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| flag_text(path))
}

/// The genesis.json that lies beside an archive, if there is one.
pub(crate) fn genesis_beside(archive: &Path) -> Option<PathBuf> {
    Some(archive.parent()?.join(GENESIS_NAME)).filter(|path| path.is_file())
}

fn flag_text(path: &Path) -> String {
    format!("--genesis {}", path.display())
}
