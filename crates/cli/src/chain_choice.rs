//! Which chain the user means: flags, files and names become a `ChainSpec` and anchors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use alloy_genesis::Genesis;
use anyhow::{Context, anyhow};
use chain::ChainSpec;
use chain::accumulator::EpochRoots;
use chain::trust::{Anchor, Anchors};

use crate::Failure;
use crate::args::ChainArgs;

/// Names under which the list of epoch roots is found beside archives.
const EPOCH_ROOTS_FILES: [&str; 2] = ["mainnet-accumulators.bin", "accumulators.bin"];

/// The chain that the flags name; `None` leaves it to others. `name` is what a chain without a name
/// of its own is called, if it is called anything.
pub(crate) fn spec_by_flags(
    args: &ChainArgs,
    name: Option<&str>,
) -> Result<Option<ChainSpec>, Failure> {
    if let Some(name) = &args.network {
        return Ok(ChainSpec::known(name));
    }
    if let Some(path) = &args.genesis {
        let text = read_genesis(path).map_err(Failure::Usage)?;
        let spec = parse_genesis(&text, name).with_context(|| flag_text(path));
        return spec.map(Some).map_err(Failure::Usage);
    }
    Ok(args.chain_id.map(|chain_id| {
        let name = name.map_or_else(|| unnamed(chain_id), str::to_owned);
        ChainSpec::bare(&name, Some(chain_id), args.genesis_hash)
    }))
}

/// The chain that a file's name says, or one of which nothing is known.
pub(crate) fn spec_by_name(network: &str) -> ChainSpec {
    ChainSpec::known(network).unwrap_or_else(|| ChainSpec::bare(network, None, None))
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

/// Reads the list of epoch roots and believes it only if it hashes to the compiled-in root.
fn read_epoch_roots(path: &Path) -> anyhow::Result<EpochRoots> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    EpochRoots::parse(&bytes).with_context(|| path.display().to_string())
}

/// The list of epoch roots beside archives, if there is one.
fn find_epoch_roots(folder: &Path) -> anyhow::Result<Option<EpochRoots>> {
    let mut there = EPOCH_ROOTS_FILES.iter().map(|name| folder.join(name));
    there.find(|path| path.is_file()).map(|path| read_epoch_roots(&path)).transpose()
}

/// The text of the genesis.json that the flag names.
pub(crate) fn read_genesis(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| flag_text(path))
}

/// The chain of a genesis.json.
pub(crate) fn parse_genesis(text: &[u8], name: Option<&str>) -> anyhow::Result<ChainSpec> {
    let genesis: Genesis = serde_json::from_slice(text)?;
    let name = name.map_or_else(|| unnamed(genesis.config.chain_id), str::to_owned);
    Ok(ChainSpec::from_genesis(&name, &genesis)?)
}

/// Mainnet's epoch roots: from the flag, or from beside the archives. There is only one such list,
/// so the first that is found will do for all.
pub(crate) fn find_roots(
    args: &ChainArgs,
    paths: &[PathBuf],
    files: &[PathBuf],
) -> Result<Option<EpochRoots>, Failure> {
    if let Some(path) = &args.accumulators {
        return read_epoch_roots(path).map(Some).map_err(Failure::Usage);
    }
    let parents = files.iter().filter_map(|file| file.parent());
    let folders: BTreeSet<&Path> = paths.iter().map(PathBuf::as_path).chain(parents).collect();
    for folder in folders {
        match find_epoch_roots(folder) {
            Ok(Some(roots)) => return Ok(Some(roots)),
            Ok(None) => {}
            Err(error) => eprintln!("warning: not used: {error:#}"),
        }
    }
    Ok(None)
}

/// Says that the list of the flag is of no use to this chain.
pub(crate) fn warn_of_unused_roots(args: &ChainArgs) {
    if args.accumulators.is_some() {
        eprintln!(
            "warning: --accumulators is mainnet's list, and no file here is mainnet's by name or --network"
        );
    }
}

fn unnamed(chain_id: u64) -> String {
    format!("chain-{chain_id}")
}

fn flag_text(path: &Path) -> String {
    format!("--genesis {}", path.display())
}
