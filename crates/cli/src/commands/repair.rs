//! `quipu repair`: a manifest that was lost, rebuilt from the segments.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::{Context, anyhow};
use chain::ChainSpec;
use ingest::pool::threads_default;
use ingest::repair::{find_epochs, prove_all};
use store::disk::{Disk, Folder};
use store::genesis_file::{GENESIS_NAME, read_genesis};
use store::manifest::{Manifest, Network};
use store::read::block_on;
use store::repair::{ChainFacts, LeftOut, Repair, Repaired, is_data_folder};
use store::{Reader, StoreError};

use crate::Failure;
use crate::args::{ChainArgs, DataArgs, WorkArgs};
use crate::chain_choice;
use crate::commands::import::told;
use crate::data_folder::locate;
use crate::output::{counted, print_lines};
use crate::progress::Watch;
use crate::trust_text::verdict;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu repair --data-dir data
  quipu repair --data-dir data --network mainnet --accumulators mainnet-accumulators.bin
  quipu repair --data-dir data --name my-chain --anchor 100:0x56a9bb0302da44b8c0b3df540781424684c3af04d0b7a38d72842b762076a664

Exits with 0 if the manifest is there, with 1 if a segment was false and had to be left out.";

#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// What a chain that is not built in is called [default: chain-ID]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    chain: ChainArgs,
}

pub(crate) fn run(args: &RepairArgs) -> Result<(), Failure> {
    let path = locate(&args.data)?;
    let place = path.display();
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(&path)?);
    if !is_data_folder(&*disk)? {
        return Err(Failure::Work(anyhow!(
            "{place}: no file of a data folder is here\n  hint: give the folder with the segments as --data-dir"
        )));
    }
    let begun = Repair::begin(Arc::clone(&disk)).map_err(|error| refused(&error))?;
    let Some(mut repair) = begun else {
        let line = format!("{place}: the manifest is intact: nothing was changed");
        return Ok(print_lines(&[line])?);
    };
    let spec = choose_spec(args, &path, &*disk, first_hash(&repair)?)?;
    if let Some(spec) = &spec {
        repair.learn(network_of(spec)).map_err(|error| refused(&error))?;
    }
    let roots = chain_choice::find_roots(&args.chain, &[], &[])?;
    let unknown = || ChainSpec::bare("unknown", None, None);
    let spec = spec.unwrap_or_else(unknown);
    let anchors = chain_choice::anchors(&spec, &args.chain.anchors, roots)?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let view = repair.view();
    let bytes = view.manifest().segments().iter().map(|entry| entry.bytes).sum();
    let watch = Watch::bytes("proving", bytes);
    let proven = prove_all(&mut repair, &spec, threads, &watch);
    watch.finish();
    proven.map_err(|error| refused(&error))?;
    let epochs = find_epochs(&repair.view(), &anchors)?;
    let facts = ChainFacts { anchors: anchors.operator().collect(), epochs };
    let repaired = repair.finish(facts).map_err(|error| refused(&error))?;
    print_lines(&page(&place.to_string(), &repaired))?;
    let is_damaged = repaired.left_out.iter().any(|it| !it.is_superseded);
    if is_damaged { Err(Failure::Told) } else { Ok(()) }
}

/// The hash that block 0 has here, if it is held. It is proven later.
fn first_hash(repair: &Repair) -> Result<Option<B256>, Failure> {
    let mut reader = Reader::new()?;
    // A segment that cannot be read is told when it is to be proven.
    Ok(block_on(repair.view().read_hash(&mut reader, 0)).ok().flatten())
}

/// The chain: by flags, by the folder's genesis.json, or because its block 0 is a known one.
fn choose_spec(
    args: &RepairArgs,
    path: &Path,
    disk: &dyn Disk,
    first_hash: Option<B256>,
) -> Result<Option<ChainSpec>, Failure> {
    let name = args.name.as_deref();
    if let Some(spec) = chain_choice::spec_by_flags(&args.chain, name)? {
        return Ok(Some(spec));
    }
    if let Some(text) = read_genesis(disk)? {
        let spec = chain_choice::parse_genesis(&text, name);
        let place = || format!("{}/{GENESIS_NAME}", path.display());
        return Ok(Some(spec.with_context(place)?));
    }
    let mut known = ChainSpec::known_names().iter().filter_map(|name| ChainSpec::known(name));
    let has_block = |spec: &ChainSpec| first_hash.is_some() && spec.genesis_hash() == first_hash;
    let found = known.find(has_block);
    Ok(found.or_else(|| name.map(|name| ChainSpec::bare(name, None, None))))
}

fn network_of(spec: &ChainSpec) -> Network {
    Network {
        name: Some(spec.name().to_owned()),
        chain_id: spec.chain_id(),
        genesis_hash: spec.genesis_hash(),
    }
}

/// What was found, what was left out, and what cannot be known any more.
fn page(place: &str, repaired: &Repaired) -> Vec<String> {
    let Repaired { manifest, left_out } = repaired;
    let text =
        |LeftOut { file_name, reason, .. }: &LeftOut| format!("left out {file_name}: {reason}");
    let mut lines: Vec<String> = left_out.iter().map(text).collect();
    if !left_out.is_empty() {
        lines.push(
            "what was left out stays until the next command that writes: move it away to keep it"
                .to_owned(),
        );
    }
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
        lines.push(verdict(&manifest.statuses()));
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
        below.is_some_and(|below| manifest.find_segment(below).is_none())
    });
    let unknown = begins.filter(|entry| !entry.difficulty.is_zero());
    let text = |number: u64| {
        format!(
            "the total difficulty before block {number} is not known any more: exports of what \
             follows need the blocks below it"
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
    if matches!(error, StoreError::NothingProven { .. }) {
        return Failure::Work(anyhow!(
            "{error}\n  hint: name the chain that these files are of with --network, --genesis or \
             --chain-id; nothing was changed"
        ));
    }
    told(error)
}
