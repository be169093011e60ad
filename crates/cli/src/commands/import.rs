//! `quipu import`: archives into the data folder, proven.

pub(crate) mod report;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, bail};
use chain::accumulator::EpochRoots;
use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, ChainSpec};
use ingest::fetch::MirrorUrl;
use ingest::folder_chain::FolderChain;
use ingest::import::{ImportError, ImportSettings, Importer, Outcome, merge_next, order_files};
use ingest::prove::NoProgress;
use ingest::survey::{find_archives, refuse_unreadable};
use pool::threads_default;
use store::read::block_on;
use store::{Reader, Store, StoreError, View, Writer};

use crate::Failure;
use crate::args::import::{ImportArgs, SelectionArgs};
use crate::args::{ChainArgs, WorkArgs};
use crate::chain_choice;
use crate::commands::verify::no_archives;
use crate::data_folder::{DataFolder, locate};
use crate::folder_text::unlisted_segment;
use crate::free_space::{missing_archive_bytes, refuse_without_space, stored_bytes};
use crate::hints::folder_hint;
use crate::interrupt::on_interrupt;
use crate::output::{Verbosity, print_lines, verbosity};
use crate::priority::give_way;
use crate::progress::Watch;

use report::Tally;

pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    on_interrupt("files that were taken stay; the same command again takes up after them", || ())?;
    let settings = settings(&args.selection, &args.work);
    import(&locate(&args.data)?, &args.paths, &args.chain, settings).map(drop)
}

/// How archives are taken.
pub(crate) fn settings(selection: &SelectionArgs, work: &WorkArgs) -> ImportSettings {
    ImportSettings {
        is_unanchored_allowed: selection.unanchored,
        is_without_receipts_allowed: selection.without_receipts,
        is_without_log_index: selection.without_log_index,
        blocks: selection.blocks,
        threads: work.threads.unwrap_or_else(threads_default),
    }
}

/// Takes the archives that `paths` name into the data folder at `path`, which is made if it is not
/// there, and not before the command line has proven to make sense.
pub(crate) fn import(
    path: &Path,
    paths: &[PathBuf],
    chain_args: &ChainArgs,
    settings: ImportSettings,
) -> Result<DataFolder, Failure> {
    if let Some(url) = paths.iter().find(|path| MirrorUrl::is_meant(&path.to_string_lossy())) {
        return Err(Failure::Usage(anyhow!(
            "{}: not a file or folder\n  hint: quipu fetch --from downloads and imports archives",
            url.display()
        )));
    }
    refuse_unreadable(paths).map_err(|error| no_archives(&error))?;
    let files = find_archives(paths).map_err(|error| no_archives(&error))?;
    let opened = open_import(path, chain_args, &files, &settings)?;
    let OpenedImport { folder, mut writer, chain, anchors, genesis_before } = opened;
    resume_merges(&mut writer, chain.spec(), settings.threads);
    let needed = missing_archive_bytes(&files, &writer.view(), settings.blocks);
    let done = refuse_without_space(&*folder.disk, stored_bytes(needed))
        .and_then(|()| import_all(&mut writer, chain.spec(), &anchors, settings, files));
    let withdrawn = chain.withdraw(&folder.store, &mut writer, genesis_before.as_deref());
    done.and(withdrawn.map_err(|error| to_failure(&error)))?;
    Ok(folder)
}

/// A data folder that archives are taken into.
#[derive(Debug)]
pub(crate) struct OpenedImport {
    pub(crate) folder: DataFolder,
    pub(crate) writer: Writer,
    pub(crate) chain: FolderChain,
    pub(crate) anchors: Anchors,
    /// The genesis.json that was there before, for when nothing is taken.
    pub(crate) genesis_before: Option<Vec<u8>>,
}

/// Opens the data folder at `path` for archives of these names, made if it is not there.
pub(crate) fn open_import(
    path: &Path,
    chain_args: &ChainArgs,
    files: &[PathBuf],
    settings: &ImportSettings,
) -> Result<OpenedImport, Failure> {
    let choose =
        |held: Option<&Store>| chain_choice::folder_chain_of_files(chain_args, held, files);
    let opened = open_import_as(path, chain_args, settings, choose)?;
    warn_of_unaccounted(&opened.writer);
    Ok(opened)
}

/// Opens the data folder at `path` for blocks of the chain that `choose` names beside what is held. Segments
/// that nobody accounts for are left to the caller to tell, who may adopt them.
pub(crate) fn open_import_as(
    path: &Path,
    chain_args: &ChainArgs,
    settings: &ImportSettings,
    choose: impl FnOnce(Option<&Store>) -> Result<FolderChain, Failure>,
) -> Result<OpenedImport, Failure> {
    let found = DataFolder::find(path)?;
    let chain = choose(found.as_ref().map(DataFolder::store))?;
    let roots = EpochRoots::mainnet();
    let anchors = chain_choice::anchors(chain.spec(), &chain_args.anchors, Some(roots))?;
    let folder = DataFolder::create(path)?;
    folder.store.read_head(chain.spec().clone()).map_err(|error| to_failure(&error))?;
    let mut writer = open_silent_writer(&folder, chain.spec().clone())?;
    refuse_false_anchors(&writer.view(), &anchors)?;
    // One that is damaged is not put back.
    let genesis_before = folder.store.read_genesis().unwrap_or_default();
    chain.settle(&mut writer)?;
    if settings.is_without_log_index {
        writer.want_log_index(false).map_err(|error| to_failure(&error))?;
    }
    Ok(OpenedImport { folder, writer, chain, anchors, genesis_before })
}

/// The folder's writer. Segments that nobody accounts for are told, and stay.
pub(crate) fn open_writer(folder: &DataFolder, spec: ChainSpec) -> Result<Writer, Failure> {
    let writer = open_silent_writer(folder, spec)?;
    warn_of_unaccounted(&writer);
    Ok(writer)
}

fn open_silent_writer(folder: &DataFolder, spec: ChainSpec) -> Result<Writer, Failure> {
    Writer::open(Arc::clone(&folder.store), spec).map_err(|error| to_failure(&error))
}

/// Warns of segments in the folder that neither the manifest nor the journal lists.
pub(crate) fn warn_of_unaccounted(writer: &Writer) {
    for name in writer.unaccounted() {
        eprintln!("warning: {}", unlisted_segment(name));
    }
}

/// Merges the slots that an earlier command completed and left in pieces. One that cannot be merged
/// stays as it is, and is told.
pub(crate) fn resume_merges(writer: &mut Writer, spec: &ChainSpec, threads: NonZeroUsize) {
    let begins = |blocks: BlockRange| eprintln!("merging blocks {blocks} into one segment");
    let mut merge = || give_way(|| merge_next(writer, spec, threads, &NoProgress, &begins));
    let merged = loop {
        match merge() {
            Ok(true) => {}
            done => break done,
        }
    };
    if let Err(error) = merged {
        eprintln!("warning: not merged: {error}\n  hint: `quipu check` tells more");
    }
}

/// A trusted hash that a held block does not have: one of the two is false, and no file can mend it.
pub(crate) fn refuse_false_anchors(view: &View, anchors: &Anchors) -> anyhow::Result<()> {
    let mut reader = Reader::new()?;
    for anchor in anchors.operator() {
        let held = block_on(view.read_hash(&mut reader, BlockNumber(anchor.number)))?;
        if let Some(held) = held.filter(|held| *held != anchor.hash) {
            bail!(
                "anchor {anchor} contradicts the data folder, where block {} is {held}\n  hint: see \
                 which of the two is false; if it is the folder, import into another --data-dir",
                anchor.number
            );
        }
    }
    Ok(())
}

/// Takes every file that can be taken. A file that fails does not keep the others out; a data
/// folder that fails ends the work, because it would fail them all.
fn import_all(
    writer: &mut Writer,
    spec: &ChainSpec,
    anchors: &Anchors,
    settings: ImportSettings,
    files: Vec<PathBuf>,
) -> Result<(), Failure> {
    let files = order_files(files, writer.view().coverage(), anchors);
    let sizes: Vec<u64> = files.iter().map(|path| file_bytes(path)).collect();
    let watch = Watch::bytes("importing", sizes.iter().sum());
    let mut tally = Tally::default();
    let mut reached = 0_u64;
    let mut broken = None;
    let file_count = files.len();
    for ((path, bytes), number) in files.iter().zip(sizes).zip(1..) {
        let begun = Instant::now();
        let is_verbose = verbosity() == Verbosity::Verbose;
        if is_verbose {
            watch.say(&report::begin(path, bytes, number, file_count));
        }
        let mut importer = Importer { writer, spec, anchors, settings, progress: &watch };
        match give_way(|| importer.import_file(path)) {
            Ok(outcome) => {
                watch.print(report::line(path, &outcome, settings.blocks))?;
                if let Outcome::Imported(imported) = &outcome
                    && is_verbose
                {
                    watch.say(&report::pace(path, imported.transaction_count, begun.elapsed()));
                }
                tally.add(&outcome, bytes);
            }
            Err(ImportError::Store(error)) if report::is_of_folder(&error) => {
                broken = Some(error);
                break;
            }
            Err(error) => {
                watch.say(&report::refusal(path, &error, spec.genesis_hash().is_some()));
                tally.refused_count += 1;
            }
        }
        // Held files are passed over, and no block tells of a file's index.
        reached = reached.saturating_add(bytes);
        watch.reach(reached);
    }
    let elapsed = watch.finish();
    print_lines(&tally.lines(&writer.view(), elapsed))?;
    match broken {
        Some(error) => Err(to_failure(&error)),
        None if tally.refused_count > 0 => Err(Failure::Told),
        None => Ok(()),
    }
}

/// A failure of the folder, with what to do about it.
pub(crate) fn to_failure(error: &StoreError) -> Failure {
    Failure::Work(anyhow!("{error}\n  hint: {}", folder_hint(error)))
}

/// Nothing is known of a file that is not there; proving it says so.
fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome, archive_bytes: u64) {
        match outcome {
            Outcome::Imported(imported) => {
                self.imported_count += 1;
                self.block_count += imported.range.count();
                self.transaction_count += imported.transaction_count;
                self.archive_bytes += archive_bytes;
            }
            Outcome::Held { .. } => {
                self.held_count += 1;
                self.archive_bytes += archive_bytes;
            }
            Outcome::Outside => self.outside_count += 1,
        }
    }
}
