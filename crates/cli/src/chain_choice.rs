//! Which chain the user means: flags, files and names become a `ChainSpec` and anchors.

use std::fs;
use std::path::Path;

use alloy_genesis::Genesis;
use anyhow::{Context, anyhow};
use chain::ChainSpec;
use chain::accumulator::EpochRoots;
use chain::trust::{Anchor, Anchors};

use crate::Failure;
use crate::args::ChainArgs;

/// Names under which the list of epoch roots is found beside archives.
const EPOCH_ROOTS_FILES: [&str; 2] = ["mainnet-accumulators.bin", "accumulators.bin"];

/// The chain that the flags name; `None` leaves it to each file's name.
pub(crate) fn spec_by_flags(args: &ChainArgs) -> Result<Option<ChainSpec>, Failure> {
    if let Some(name) = &args.network {
        return Ok(ChainSpec::known(name));
    }
    if let Some(path) = &args.genesis {
        let spec = read_genesis(path).map_err(Failure::Usage)?;
        return Ok(Some(spec));
    }
    Ok(args.chain_id.map(|chain_id| {
        let name = format!("chain {chain_id}");
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
pub(crate) fn read_epoch_roots(path: &Path) -> anyhow::Result<EpochRoots> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    EpochRoots::parse(&bytes).with_context(|| path.display().to_string())
}

/// The list of epoch roots beside archives, if there is one.
pub(crate) fn find_epoch_roots(folder: &Path) -> anyhow::Result<Option<EpochRoots>> {
    let mut there = EPOCH_ROOTS_FILES.iter().map(|name| folder.join(name));
    there.find(|path| path.is_file()).map(|path| read_epoch_roots(&path)).transpose()
}

fn read_genesis(path: &Path) -> anyhow::Result<ChainSpec> {
    let context = || format!("--genesis {}", path.display());
    let text = fs::read(path).with_context(context)?;
    let genesis: Genesis = serde_json::from_slice(&text).with_context(context)?;
    let name = format!("chain {}", genesis.config.chain_id);
    ChainSpec::from_genesis(&name, &genesis).with_context(context)
}
