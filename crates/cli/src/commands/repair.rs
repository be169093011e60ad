//! `quipu repair`: a manifest that was lost, rebuilt from the segments.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::{Context, anyhow};
use chain::accumulator::EpochRoots;
use chain::{BlockNumber, ChainSpec};
use ingest::epochs::find_epochs;
use ingest::folder_chain::{parse_genesis, proving_spec};
use ingest::import::network_of;
use ingest::repair::prove_next;
use pool::threads_default;
use store::disk::{Disk, Folder};
use store::manifest::{Manifest, Network};
use store::names::GENESIS_NAME;
use store::read::block_on;
use store::repair::{ChainFacts, Repair, RepairReport, UnlistedFile, is_data_folder};
use store::{Reader, StoreError};

use crate::Failure;
use crate::args::repair::RepairArgs;
use crate::chain_choice;
use crate::commands::import::{open_writer, to_failure};
use crate::data_folder::{DataFolder, irregular_files, locate};
use crate::folder_text::{head_loss, lost_blocks};
use crate::head_text::head_faults;
use crate::output::{counted, print_lines};
use crate::progress::Watch;
use crate::trust_text::verdict;

pub(crate) fn run(args: &RepairArgs) -> Result<(), Failure> {
    let path = locate(&args.data)?;
    let place = path.display();
    let no_folder = || {
        Failure::Work(anyhow!(
            "{place}: no file of a data folder is here\n  hint: give the folder with the segments as --data-dir"
        ))
    };
    if !path.is_dir() {
        return Err(no_folder());
    }
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(&path)?);
    if !is_data_folder(&*disk)? {
        return Err(no_folder());
    }
    let begun = Repair::begin(Arc::clone(&disk)).map_err(|error| refused(&error))?;
    let Some(mut repair) = begun else { return repair_beside(args, &place.to_string()) };
    let spec = choose_spec(args, &path, &repair)?;
    if let Some(spec) = &spec {
        let is_named = args.name.is_some() || ChainSpec::known(spec.name()).is_some();
        let network = network_of(spec);
        // A name that nobody gave is left to the next import, whose archives tell it.
        let network = Network { name: network.name.filter(|_| is_named), ..network };
        repair.learn(network).map_err(|error| refused(&error))?;
    }
    let is_told = spec.is_some();
    let spec = spec.unwrap_or_else(|| ChainSpec::bare("unknown", None, None));
    let anchors = chain_choice::anchors(&spec, &args.chain.anchors, Some(EpochRoots::mainnet()))?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let view = repair.view();
    let bytes = view.manifest().segments().iter().map(|entry| entry.bytes).sum();
    let watch = Watch::bytes("proving", bytes);
    while prove_next(&mut repair, &spec, threads, &watch).map_err(|error| refused(&error))? {
        if !is_told {
            refuse_unrecognised(repair.network().chain_id)?;
        }
    }
    watch.finish();
    let epochs = find_epochs(&repair.view(), &anchors)?;
    let genesis = args.chain.genesis.as_deref().map(chain_choice::read_genesis);
    let facts = ChainFacts {
        anchors: anchors.operator().collect(),
        epochs,
        genesis: genesis.transpose().map_err(Failure::Usage)?,
        is_unanchored_allowed: args.unanchored,
    };
    let repaired = repair.finish(&spec, &facts).map_err(|error| refused(&error))?;
    print_lines(&page(&place.to_string(), &repaired))?;
    let is_damaged = repaired.left_out.iter().any(|it| !it.is_superseded)
        || !repaired.manifest.lost().is_empty()
        || repaired.head.has_damage();
    if is_damaged { Err(still_damaged(&place.to_string())) } else { Ok(()) }
}

/// Why a repair that was done ends with 1.
fn still_damaged(place: &str) -> Failure {
    Failure::Work(anyhow!(
        "{place}: the lines above name files and blocks that cannot be repaired\n  hint: import or fetch the blocks again; quipu doctor --data-dir {place} shows what is \
         missing"
    ))
}

/// A folder whose manifest is intact may have lost its genesis.json, or the log of its head: the first
/// is given again, the loss of the second is accepted.
fn repair_beside(args: &RepairArgs, place: &str) -> Result<(), Failure> {
    let (folder, head) = DataFolder::open_without_head(&args.data)?;
    let mut lines = Vec::new();
    if args.chain.genesis.is_some()
        && let Some(chain) = chain_choice::folder_chain(&args.chain, Some(&folder.store))?
    {
        chain.settle(&mut open_writer(&folder, chain.spec().clone())?)?;
        lines.push(format!("{place}/{GENESIS_NAME}: the given one is kept"));
    }
    folder.store.read_genesis().map_err(|error| to_failure(&error))?;
    let lost_before = folder.store.view().lost();
    match head {
        Err(error @ StoreError::HeadLost { .. }) => {
            let mut writer = open_writer(&folder, proving_spec(&folder.store))?;
            writer.accept_head_loss().map_err(|error| to_failure(&error))?;
            drop(writer);
            folder
                .store
                .read_head(proving_spec(&folder.store))
                .map_err(|error| to_failure(&error))?;
            lines.push(format!(
                "{}\n{place}: the loss is accepted, and blocks that were not sealed are not held \
                 any more: `quipu serve --upstream` fetches them again",
                head_loss(&error)
            ));
        }
        head => {
            head?;
            if lines.is_empty() {
                lines.push(format!(
                    "{place}: the manifest is intact, and files have the lengths and footers that it \
                     says: nothing was changed; `quipu check` proves what is in them"
                ));
            }
        }
    }
    let view = folder.store.view();
    let lost = view.lost();
    lines.extend(lost.iter().map(|range| lost_blocks(*range, view.coverage())));
    let irregular = irregular_files(&*folder.disk)?;
    lines.extend(irregular.iter().cloned());
    print_lines(&lines)?;
    if lost == lost_before && irregular.is_empty() { Ok(()) } else { Err(still_damaged(place)) }
}

/// The chain id of a public network is no proof that the blocks are its own, and their rules are not
/// known without it.
fn refuse_unrecognised(chain_id: Option<u64>) -> Result<(), Failure> {
    let Some(known) = chain_id.and_then(ChainSpec::known_by_chain_id) else { return Ok(()) };
    let id = known.chain_id().unwrap_or_default();
    Err(Failure::Usage(anyhow!(
        "the transactions have chain id {id}, as those of {name} have, but block 0 is not held, which \
         would tell: give --network {name}, or --chain-id {id} --name NAME if it is another chain; \
         nothing was changed",
        name = known.name()
    )))
}

/// The hash that block 0 has here, if it is held. It is proven later.
fn first_hash(repair: &Repair) -> Result<Option<B256>, Failure> {
    let mut reader = Reader::new()?;
    // A segment that cannot be read is told when it is to be proven.
    Ok(block_on(repair.view().read_hash(&mut reader, BlockNumber(0))).ok().flatten())
}

/// The chain: by flags, by the folder's genesis.json, by the manifest if it can be read, or because
/// its block 0 is a known one. A name must not be that of another network.
fn choose_spec(
    args: &RepairArgs,
    path: &Path,
    repair: &Repair,
) -> Result<Option<ChainSpec>, Failure> {
    let first_hash = first_hash(repair)?;
    let own = repair.network();
    let name = args.name.as_deref().or(own.name.as_deref());
    let by_flags = chain_choice::spec_by_flags(&args.chain, name)?;
    let kept = if by_flags.is_some() {
        None
    } else {
        repair.read_genesis().map_err(|error| to_failure(&error))?
    };
    let spec = match (by_flags, kept) {
        (Some(spec), _) => Some(spec),
        (None, Some(text)) => {
            let place = || format!("{}/{GENESIS_NAME}", path.display());
            Some(parse_genesis(&text, name).with_context(place)?)
        }
        (None, None) => {
            let known = ChainSpec::known_names().iter().filter_map(|name| ChainSpec::known(name));
            let genesis_hash = first_hash.or(own.genesis_hash);
            let is_same = |spec: &ChainSpec| spec.genesis_hash() == genesis_hash;
            known.into_iter().filter(|_| genesis_hash.is_some()).find(is_same).or_else(|| {
                let name = name.filter(|name| ChainSpec::known(name).is_none())?;
                Some(ChainSpec::bare(name, own.chain_id, genesis_hash))
            })
        }
    };
    refuse_false_name(args.name.as_deref(), spec.as_ref())?;
    Ok(spec)
}

/// Refuses a name that is another chain's: later commands would take the folder for that chain.
fn refuse_false_name(name: Option<&str>, spec: Option<&ChainSpec>) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let built_in = |name: &str| ChainSpec::known(name);
    let genesis_hash = spec.and_then(ChainSpec::genesis_hash);
    let claimed = built_in(name).filter(|known| known.genesis_hash() != genesis_hash);
    let own = spec.filter(|spec| spec.name() != name && built_in(spec.name()).is_some());
    let said = match (claimed, own) {
        (Some(claimed), _) => format!(
            "--name {name} is the name of a network whose genesis is {}, which these files do not \
             show: give --network {name} if they are of it",
            claimed.genesis_hash().unwrap_or_default()
        ),
        (None, Some(own)) => format!("--name {name}, but the files are of {}", own.name()),
        (None, None) => return Ok(()),
    };
    Err(Failure::Usage(anyhow!("{said}; nothing was changed")))
}

/// What was found, what was left out, and what cannot be known any more.
fn page(place: &str, repaired: &RepairReport) -> Vec<String> {
    let RepairReport { manifest, left_out, head_loss: loss, head, is_manifest_lost } = repaired;
    let text = |UnlistedFile { file_name, reason, .. }: &UnlistedFile| {
        format!("left out {file_name}: {reason}")
    };
    let mut lines: Vec<String> = left_out.iter().map(text).collect();
    if !left_out.is_empty() {
        lines.push(
            "what was left out stays where it is, and no command removes it: remove it if you do not \
             want it"
                .to_owned(),
        );
    }
    let accepted = |error| format!("{}\n{place}: the loss is accepted", head_loss(error));
    lines.extend(loss.iter().map(accepted));
    lines.extend(head_faults(head));
    let held = manifest.coverage();
    lines.extend(manifest.lost().iter().map(|range| lost_blocks(*range, &held)));
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let network = manifest.network();
    let name = network.name.as_deref().unwrap_or("a chain without a name");
    let chain_id = network.chain_id.map_or(String::new(), |id| format!(", chain id {id}"));
    let ranges: Vec<String> = manifest.coverage().iter().map(ToString::to_string).collect();
    let held = if ranges.is_empty() { "no block".to_owned() } else { ranges.join(", ") };
    lines.push(format!(
        "{place}: the manifest is rebuilt: {name}{chain_id}, blocks {held}, {}, {}",
        counted(count(manifest.segments().len()), "segment"),
        counted(count(manifest.runs().len()), "lookup run"),
    ));
    if !ranges.is_empty() {
        lines.push(manifest.statuses().map_or_else(|it| it.to_string(), |it| verdict(&it)));
    }
    if !ranges.is_empty() && *is_manifest_lost {
        lines.push(
            "anchors of earlier commands are not known any more, but for those given now: \
             --anchor gives them again"
                .to_owned(),
        );
    }
    lines.extend(unknown_difficulties(manifest));
    lines
}

/// Where blocks of proof of work have no total difficulty any more.
fn unknown_difficulties(manifest: &Manifest) -> Vec<String> {
    let segments = manifest.segments().iter();
    let begins = segments.filter(|entry| {
        let below = entry.range.first().checked_sub(1);
        below.is_some_and(|below| manifest.find_segment(BlockNumber(below)).is_none())
    });
    let unknown = begins
        .filter(|entry| !entry.difficulty.is_zero() && manifest.difficulty_before(entry).is_none());
    let text = |number: u64| {
        format!(
            "the total difficulty before block {number} is not known any more, and exports need it: \
             import an archive again that begins at or below it and tells it (era1, or ere with \
             total difficulties)"
        )
    };
    unknown.map(|entry| text(entry.range.first())).collect()
}

/// Why nothing was written, and what to do about it.
fn refused(error: &StoreError) -> Failure {
    if matches!(error, StoreError::Conflict(_) | StoreError::Differs { .. }) {
        return Failure::Work(anyhow!(
            "{error}\n  hint: these files are of different chains, or one is left over: move one of \
             them out of the folder and run the same command again; nothing was changed"
        ));
    }
    if matches!(error, StoreError::Unlinked { .. }) {
        return Failure::Work(anyhow!(
            "{error}\n  hint: give --anchor NUMBER:HASH, list them as they are with --unanchored, or \
             move the files of one of them out of the folder; nothing was changed"
        ));
    }
    if matches!(error, StoreError::NoSegment { .. }) {
        return Failure::Work(anyhow!(
            "{error}\n  hint: give the folder with the segments as --data-dir, or import the archives \
             into an empty folder; nothing was changed"
        ));
    }
    if matches!(error, StoreError::NothingProven { .. }) {
        return Failure::Work(anyhow!(
            "{error}\n  hint: if these files are of another chain than the one that was named, name \
             theirs with --network, --genesis or --chain-id; if they are damaged, bring them back from \
             a copy, or import the blocks again into another folder; nothing was changed"
        ));
    }
    to_failure(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_id_of_a_public_network_alone_is_no_answer() {
        for chain_id in [None, Some(20_260_101)] {
            assert!(refuse_unrecognised(chain_id).is_ok(), "{chain_id:?}");
        }
        let Err(Failure::Usage(error)) = refuse_unrecognised(Some(11_155_111)) else {
            panic!("sepolia's blocks may be another chain's")
        };
        assert!(error.to_string().contains("give --network sepolia"), "{error}");
    }
}
