//! `quipu backfill`: ranges of blocks from nodes into the data folder, proven.

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use chain::BlockRange;
use chain::trust::{Anchor, Anchors};
use ingest::backfill::{BackfillError, BackfillSettings, Backfiller};
use ingest::folder_chain::FolderChain;
use ingest::import::{ImportError, Unit, plan_units};
use node::{HeaderClaim, Upstreams, UpstreamsError};
use pool::threads_default;
use store::{View, Writer};
use tokio::runtime::Runtime;
use tracing::info;

use crate::Failure;
use crate::args::backfill::BackfillArgs;
use crate::chain_choice;
use crate::commands::import::report::imported_line;
use crate::commands::import::{open_writer, refuse_false_anchors, resume_merges, to_failure};
use crate::commands::serve::begin_logs;
use crate::data_folder::{DataFolder, locate};
use crate::interrupt::on_interrupt;
use crate::output::{counted, print_lines, rate};
use crate::priority::lower_priority;
use crate::progress::{ByBlock, Watch};
use crate::upstream_args::PATIENCE;

pub(crate) fn run(args: &BackfillArgs) -> Result<(), Failure> {
    begin_logs(false, "warn")?;
    on_interrupt("what was taken stays; the same command again takes up after it", || ())?;
    lower_priority();
    let path = locate(&args.data)?;
    let runtime = runtime()?;
    let found = DataFolder::find(&path)?;
    let held = found.as_ref().map(DataFolder::store);
    let chain = if let Some(chain) = chain_choice::folder_chain(&args.chain, held)? {
        chain
    } else {
        let nodes = args.upstream.unknown_nodes()?;
        FolderChain::of(runtime.block_on(args.upstream.ask_spec(&nodes))?)
    };
    let nodes = args.upstream.nodes(chain.spec())?;
    // Before any node is asked: whoever else writes to the folder is told at once.
    let opened = found.is_some().then(|| open(&path, &chain)).transpose()?;
    let wanted = wanted(args, opened.as_ref().map(Writer::view).as_deref())?;
    runtime.block_on(nodes.introduce())?;
    let finalized = runtime.block_on(args.upstream.fetch_final(&nodes))?;
    let anchors = chain_choice::anchors(chain.spec(), &args.chain.anchors, None)?;
    let anchors = runtime.block_on(with_finalized(anchors, &nodes, finalized));
    let left = left(wanted, finalized.number);
    let last = wanted.last().min(finalized.number);
    let Some(wanted) = BlockRange::from_ends(wanted.first(), last) else {
        return Ok(print_lines(&left.into_iter().collect::<Vec<_>>())?);
    };
    let mut writer = match opened {
        Some(opened) => opened,
        None => open(&path, &chain)?,
    };
    refuse_false_anchors(&writer.view(), &anchors)?;
    chain.settle(&mut writer)?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    resume_merges(&mut writer, chain.spec(), threads);
    let units = plan_units(wanted, writer.view().coverage_receipts(), &anchors);
    let total = units.iter().map(|unit| unit.range.count()).sum();
    let watch = Watch::blocks("backfilling", total);
    let backfiller = Backfiller {
        drafting: writer.drafting(),
        upstreams: nodes,
        runtime: runtime.handle().clone(),
        spec: chain.spec(),
        anchors: &anchors,
        settings: BackfillSettings {
            is_unanchored_allowed: args.unanchored,
            threads,
            patience: PATIENCE,
            finalized: Some(finalized),
        },
        progress: &ByBlock(&watch),
        stop: None,
    };
    let outcome = fill(&backfiller, &mut writer, &units, &watch);
    let elapsed = watch.finish();
    let lines: Vec<String> = [outcome.sum(wanted, elapsed)].into_iter().chain(left).collect();
    print_lines(&lines)?;
    outcome.failure.map_or(Ok(()), |error| Err(refused(&error)))
}

/// The folder to write to, made if it is not there.
fn open(path: &Path, chain: &FolderChain) -> Result<Writer, Failure> {
    let folder = DataFolder::create(path)?;
    folder.store.read_head(chain.spec().clone()).map_err(|error| to_failure(&error))?;
    open_writer(&folder, chain.spec().clone())
}

/// What is said of blocks that are not taken because they may still change.
fn left(wanted: BlockRange, finalized: u64) -> Option<String> {
    let first = wanted.first().max(finalized.saturating_add(1));
    let left = BlockRange::from_ends(first, wanted.last())?;
    Some(format!(
        "left: blocks {left}, which are not final: the upstream's finalised block is {finalized}\n  \
         hint: `quipu serve --upstream` follows them; --finality-depth N says how far below the \
         tip blocks are final"
    ))
}

/// The threads that ask nodes.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A finalised block that several nodes agree on is trusted as an anchor is.
async fn with_finalized(anchors: Anchors, nodes: &Upstreams, finalized: HeaderClaim) -> Anchors {
    let HeaderClaim { number, hash, .. } = finalized;
    if nodes.quorum() < 2 || !nodes.is_agreed(finalized).await {
        return anchors;
    }
    info!(number, %hash, quorum = nodes.quorum(), "trusted: the upstreams agree that it is final");
    // One that contradicts an anchor of the operator is found out when its block is proven.
    anchors.clone().with_operator(Anchor { number, hash }).unwrap_or(anchors)
}

/// The blocks to have: those that were named, or all below the highest that is held.
fn wanted(args: &BackfillArgs, view: Option<&View>) -> Result<BlockRange, Failure> {
    if let Some(blocks) = args.blocks {
        return Ok(blocks);
    }
    let tip = view.and_then(highest_sought);
    let tip = tip.ok_or_else(|| {
        Failure::Usage(anyhow!("nothing is held yet, so there is no gap: give --blocks A..B"))
    })?;
    let first = args.backfill_to.unwrap_or(0);
    BlockRange::from_ends(first, tip).ok_or_else(|| {
        Failure::Usage(anyhow!("--backfill-to {first} is above the highest block, {tip}"))
    })
}

/// The highest block that may be missing: above it there is only the head, which has no gaps and whose
/// newest blocks are not final.
fn highest_sought(view: &View) -> Option<u64> {
    let sealed = view.manifest().segments().last().map(|entry| entry.range.last());
    sealed.max(view.coverage().last().map(BlockRange::first))
}

/// What became of a backfill.
#[derive(Debug, Default)]
struct Filled {
    block_count: u64,
    transaction_count: u64,
    failure: Option<BackfillError>,
}

impl Filled {
    fn sum(&self, wanted: BlockRange, elapsed: Duration) -> String {
        if self.block_count == 0 && self.failure.is_none() {
            return format!("blocks {wanted} are held already");
        }
        format!(
            "{} of {wanted} taken, {} in {:.1} s{}",
            counted(self.block_count, "block"),
            counted(self.transaction_count, "transaction"),
            elapsed.as_secs_f64(),
            rate(self.block_count, "block", elapsed)
        )
    }
}

fn fill(backfiller: &Backfiller<'_>, writer: &mut Writer, units: &[Unit], watch: &Watch) -> Filled {
    let mut filled = Filled::default();
    for unit in units {
        let taken = backfiller.take(unit, &mut |segments, facts| writer.commit(segments, facts));
        match taken {
            Ok(imported) => {
                filled.block_count += imported.range.count();
                filled.transaction_count += imported.transaction_count;
                // A line that cannot be printed does not undo what is held.
                let _ = watch.print(imported_line(&imported));
            }
            Err(error) => {
                filled.failure = Some(error);
                break;
            }
        }
    }
    filled
}

/// Why it ended early, and what to do about it.
fn refused(error: &BackfillError) -> Failure {
    let hint = match error {
        BackfillError::Import(ImportError::Store(error)) => return to_failure(error),
        BackfillError::Import(ImportError::Unanchored { .. }) => {
            "take what lies between it and what is held, give --anchor NUMBER:HASH, or take it as it \
             is with --unanchored"
        }
        BackfillError::Import(ImportError::Contradiction { .. })
        | BackfillError::Upstreams(UpstreamsError::OtherBranch { .. }) => {
            "one of the two is not of this chain: ask another upstream, or give another --data-dir"
        }
        BackfillError::Upstreams(UpstreamsError::UnknownFork { .. }) => {
            "blocks below it can be taken with --blocks; the others when Quipu is upgraded, or from a \
             node that offers debug_getRawHeader"
        }
        BackfillError::Import(_) | BackfillError::Upstreams(_) => {
            "run the same command again when an upstream is well; what was taken stays"
        }
    };
    Failure::Work(anyhow!("{error}\n  hint: {hint}"))
}
