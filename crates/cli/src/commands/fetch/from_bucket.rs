//! Published history from a bucket into the data folder, every block verified.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use alloy_primitives::B256;
use anyhow::anyhow;
use chain::{BlockRange, ChainSpec};
use ingest::fetch::WORK_FOLDER_NAME;
use ingest::folder_chain::{FolderChain, NamedChain};
use ingest::import::{ImportError, ImportSettings, PublishedImporter, Unit};
use replica::{
    Bucket, BucketError, BucketFault, BucketSettings, CopiedFiles, CopyError, CopyOutcome,
    FileKind, Published, SealedFile, copy_ahead, listed_files, read_published,
};
use store::disk::{Disk, EmptyDisk, Folder};
use store::layout::{join_ranges, overlap, subtract};
use store::read::Inline;
use store::{Limits, LocalFiles, Store, View};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use super::FetchWork;
use super::progress::FetchProgress;
use super::stop::FetchStopSignal;
use crate::Failure;
use crate::bucket::{bucket_failure, nothing_published, published_history, read_bucket};
use crate::chain_choice;
use crate::commands::import::report::{Tally, imported_line, is_of_folder};
use crate::commands::import::{
    OpenedImport, open_import_as, resume_merges, settings, to_failure, warn_of_unaccounted,
};
use crate::free_space::{refuse_without_space, segment_bytes};
use crate::output::{counted, grouped, note, print_lines};
use crate::priority::give_way;

/// Below the data folder: copies of segments until their blocks are held.
const COPIES_FOLDER: &str = "segments";
/// How copies are called, and those that are not whole: nothing else there is touched.
const COPY_ENDINGS: [&str; 3] = [".segment", ".run", ".partial"];

/// The bucket at an address of the web, if one is published there. Anything else may be a mirror of
/// archives, which says why it cannot be read; an error is of an index that is there and cannot be used.
pub(super) async fn find_bucket(url: &str) -> Result<Option<Bucket>, BucketError> {
    let settings = BucketSettings { retries: 1, ..BucketSettings::default() };
    let Ok(bucket) = Bucket::open(url, settings) else { return Ok(None) };
    let published = match read_published(&bucket, &Published::default()).await {
        Ok(published) => published,
        Err(error @ (BucketError::Damaged { .. } | BucketError::TooMany { .. })) => {
            return Err(error);
        }
        Err(_) => return Ok(None),
    };
    let is_something = !published.manifests.is_empty() || !published.faults.is_empty();
    Ok(is_something.then(|| Bucket::open(url, BucketSettings::default()).ok()).flatten())
}

/// What is published, and where its files come.
struct BucketHistory<'a> {
    bucket: &'a Bucket,
    publisher: Arc<str>,
    view: Arc<View>,
    /// The files that manifests list, by name.
    listed: BTreeMap<String, SealedFile>,
    copies: Arc<dyn Disk>,
    copies_path: PathBuf,
}

/// What came of a bucket.
#[derive(Debug, Default)]
struct TakenUnits {
    tally: Tally,
    refused: Vec<BlockRange>,
}

impl TakenUnits {
    fn add(&mut self, blocks: u64, transactions: u64) {
        self.tally.block_count = self.tally.block_count.saturating_add(blocks);
        self.tally.transaction_count = self.tally.transaction_count.saturating_add(transactions);
    }
}

impl FetchWork<'_> {
    /// Takes what is published in a bucket and missing here; adds the blocks to `missing` that could not be
    /// taken, which is told.
    pub(super) fn take_bucket(
        &self,
        bucket: &Bucket,
        missing: &mut Vec<BlockRange>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<(), Failure> {
        let Some(published) = stop.or_stopped(runtime, read_bucket(bucket)) else {
            return Err(stop.failure());
        };
        let published = published?;
        if published.manifests.is_empty() {
            return Err(no_manifest(bucket, &published));
        }
        let settings = settings(&self.args.selection, &self.args.work);
        let choose = |held: Option<&Store>| self.choose_chain(bucket, &published, held);
        let opened = open_import_as(self.path, &self.args.chain, &settings, choose)?;
        let OpenedImport { folder, mut writer, chain, anchors, genesis_before } = opened;
        resume_merges(&mut writer, chain.spec(), settings.threads);
        let copies_path = folder.path.join(WORK_FOLDER_NAME).join(COPIES_FOLDER);
        let history = BucketHistory::open(bucket, &published, copies_path)?;
        let fits = history.check_chain(chain.spec());
        // From here on it is known what the source should give.
        let published = fits.is_ok().then(|| history.published(settings.blocks));
        let fits = fits.and_then(|()| history.check_sizes(self.args.file_bytes_max));
        let needed = history.missing_bytes(&writer.view(), &*folder.disk, &settings);
        let fits = fits.and_then(|()| refuse_without_space(&*folder.disk, needed));
        let taken = if let Err(failure) = fits {
            Err(failure)
        } else {
            warn_of_unaccounted(&writer);
            let units = PublishedImporter::plan(&writer.view(), &history.view, &anchors, &settings);
            self.progress.expect(units.iter().map(|unit| unit.range.count()).sum());
            let importer = PublishedImporter {
                writer: &mut writer,
                published: &history.view,
                publisher: &history.publisher,
                spec: chain.spec(),
                anchors: &anchors,
                settings,
                progress: &*self.progress,
                stop: Some(stop.flag.clone()),
            };
            history.take_all(importer, &units, &self.progress, runtime, stop)
        };
        if taken.is_err() {
            missing.extend(published.into_iter().flatten());
        }
        history.clean_up(taken.is_ok())?;
        let withdrawn = chain.withdraw(&folder.store, &mut writer, genesis_before.as_deref());
        let taken =
            taken.and_then(|taken| withdrawn.map(|()| taken).map_err(|e| to_failure(&e)))?;
        self.tell_bucket(&history, &taken, &settings, &writer.view())?;
        missing.extend(taken.refused);
        Ok(())
    }

    /// The chain by the flags or the folder; else the one that is published, if it is built in. A genesis
    /// is not taken from a bucket: it is what everything rests on.
    fn choose_chain(
        &self,
        bucket: &Bucket,
        published: &Published,
        held: Option<&Store>,
    ) -> Result<FolderChain, Failure> {
        let networks = || published.manifests.iter().map(|it| it.manifest.network());
        let chain_id = networks().find_map(|it| it.chain_id);
        // The name of a public network is not a publisher's to give to another chain.
        let name = networks().find_map(|it| it.name.as_deref());
        let name = name.filter(|name| ChainSpec::known(name).is_none());
        let known = chain_id.and_then(ChainSpec::known_by_chain_id);
        let known = known.map(|spec| NamedChain::Known(Box::new(spec)));
        let chain = chain_choice::folder_chain_beside(&self.args.chain, held, known, name)?;
        chain.ok_or_else(|| {
            let id = chain_id.map_or("unknown".to_owned(), |id| id.to_string());
            Failure::Usage(anyhow!(
                "{}: its chain id is {id}, which is not built in\n  hint: buckets are not asked for the \
                 genesis; name yours: --genesis FILE",
                bucket.place()
            ))
        })
    }

    fn tell_bucket(
        &self,
        history: &BucketHistory<'_>,
        taken: &TakenUnits,
        settings: &ImportSettings,
        view: &View,
    ) -> Result<(), Failure> {
        let (elapsed, bytes) = self.progress.finish();
        let tally = &taken.tally;
        let rate = crate::output::rate(tally.transaction_count, "transaction", elapsed);
        let mut lines = vec![format!(
            "{}: {} taken, {} in {:.1} s{rate}; downloaded: {} bytes",
            history.publisher,
            counted(tally.block_count, "block"),
            counted(tally.transaction_count, "transaction"),
            elapsed.as_secs_f64(),
            grouped(bytes)
        )];
        let is_wanted = |range: &BlockRange| match settings.blocks {
            Some(wanted) => overlap(*range, wanted),
            None => Some(*range),
        };
        let published = history.published(settings.blocks);
        // Receipts of blocks that are held without them.
        let with_receipts = history.view.coverage_receipts().iter().filter_map(is_wanted);
        let bare = subtract(view.coverage(), view.coverage_receipts());
        let bare =
            with_receipts.flat_map(|it| bare.iter().filter_map(move |own| overlap(*own, it)));
        let bare = join_ranges(bare);
        let is_all_held = subtract(&published, view.coverage()).is_empty() && bare.is_empty();
        if is_all_held && tally.block_count == 0 {
            lines = vec![format!("{}: nothing is published that is not held", history.publisher)];
        }
        let without = subtract(&published, history.view.coverage_receipts());
        let without = subtract(&without, view.coverage());
        if let Some(first) = without.first().filter(|_| !settings.is_without_receipts_allowed) {
            lines.push(format!(
                "left: blocks {first}{}, which are published without receipts\n  hint: \
                 --without-receipts takes them as they are",
                if without.len() > 1 { " and others" } else { "" }
            ));
        }
        let wanted: Vec<BlockRange> = settings.blocks.into_iter().collect();
        let left = subtract(&subtract(&wanted, view.coverage()), &without);
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        if !left.is_empty() {
            lines.push(format!("left: blocks {}, which are not held", left.join(", ")));
        }
        Ok(print_lines(&lines)?)
    }
}

impl<'a> BucketHistory<'a> {
    fn open(bucket: &'a Bucket, published: &Published, path: PathBuf) -> Result<Self, Failure> {
        let copies: Arc<dyn Disk> = Arc::new(Folder::create(&path)?);
        let near = LocalFiles::new(Arc::clone(&copies), Arc::new(Inline));
        let store = Store::open_beside(
            Arc::new(EmptyDisk),
            Arc::new(Inline),
            Arc::new(near),
            Limits::default(),
        )?;
        store.show_published(&published_history(published));
        let view = store.view();
        for it in view.missing() {
            note(&format!("{}: {} is set aside: {}", bucket.place(), it.file_name, it.reason));
        }
        // As the manifests say which are shown: one that was set aside may say something else.
        let shown: BTreeSet<(&str, u64, B256)> = view
            .segments()
            .map(|it| (it.file_name.as_str(), it.bytes, it.digest))
            .chain(view.runs().map(|it| (it.file_name.as_str(), it.bytes, it.digest)))
            .collect();
        let manifests = published.manifests.iter();
        let sealed_files: BTreeMap<String, SealedFile> = manifests
            .flat_map(|it| listed_files(&it.manifest))
            .filter(|file| shown.contains(&(file.name.as_str(), file.bytes, file.digest)))
            .map(|file| (file.name.clone(), file))
            .collect();
        // What an earlier run left, and nobody asks for any more. The folder's lock is held.
        let is_ours = |name: &&String| COPY_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let left = copies.list()?;
        for name in left.iter().filter(is_ours).filter(|name| !sealed_files.contains_key(*name)) {
            copies.remove(name)?;
        }
        Ok(Self {
            bucket,
            publisher: Arc::from(bucket.place()),
            view,
            listed: sealed_files,
            copies,
            copies_path: path,
        })
    }

    /// The published blocks, of those that are wanted.
    fn published(&self, wanted: Option<BlockRange>) -> Vec<BlockRange> {
        let published = self.view.coverage().iter();
        published.filter_map(|it| overlap(*it, wanted.unwrap_or(*it))).collect()
    }

    /// How many bytes the segments with blocks have that are to be taken, but for those that an
    /// earlier run copied, or moved into the folder.
    fn missing_bytes(&self, held: &View, folder: &dyn Disk, settings: &ImportSettings) -> u64 {
        let published = self.published(settings.blocks);
        let mut others = held.coverage().to_vec();
        if !settings.is_without_receipts_allowed {
            others.extend(subtract(&published, self.view.coverage_receipts()));
        }
        let missing = subtract(&published, &join_ranges(others));
        segment_bytes(&self.view, &missing, &[&*self.copies, folder])
    }

    /// Whether this is the chain that is wanted.
    fn check_chain(&self, spec: &ChainSpec) -> Result<(), Failure> {
        let told = self.view.network();
        let ids = told.chain_id.zip(spec.chain_id()).filter(|(found, wanted)| found != wanted);
        let said =
            ids.map(|(found, wanted)| format!("chain {found} is published, {wanted} wanted"));
        let hashes = told.genesis_hash.zip(spec.genesis_hash());
        let hashes = hashes.filter(|(found, wanted)| found != wanted).map(|(found, wanted)| {
            format!(
                "the genesis of what is published is {found}, that of the wanted chain {wanted}"
            )
        });
        match said.or(hashes) {
            None => Ok(()),
            Some(said) => Err(Failure::Usage(anyhow!(
                "{}: {said}\n  hint: give the address of another bucket, or another --data-dir",
                self.publisher
            ))),
        }
    }

    /// A publisher decides what is listed, not how much of a disk it takes.
    fn check_sizes(&self, bytes_max: usize) -> Result<(), Failure> {
        let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        match self.view.segments().find(|it| it.bytes > bytes_max) {
            None => Ok(()),
            Some(it) => Err(Failure::Work(anyhow!(
                "{}: {} is listed with {} bytes, at most {} are taken\n  hint: --file-bytes-max says \
                 how many",
                self.publisher,
                it.file_name,
                grouped(it.bytes),
                grouped(bytes_max)
            ))),
        }
    }

    /// The files that hold some of these blocks.
    fn files_of(&self, blocks: BlockRange) -> Vec<SealedFile> {
        let concerned = self.view.segments().filter(|it| overlap(it.range, blocks).is_some());
        concerned.filter_map(|it| self.listed.get(&it.file_name).cloned()).collect()
    }

    /// Takes one unit after the other while the files of the next ones come. A unit that is refused does
    /// not keep the others out.
    fn take_all(
        &self,
        mut importer: PublishedImporter<'_>,
        units: &[Unit],
        progress: &Arc<FetchProgress>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<TakenUnits, Failure> {
        let mut taken = TakenUnits::default();
        let batches: Vec<Vec<SealedFile>> =
            units.iter().map(|unit| self.files_of(unit.range)).collect();
        let mut last_uses = BTreeMap::new();
        for (position, batch) in batches.iter().enumerate() {
            last_uses.extend(batch.iter().map(|file| (file.name.as_str(), position)));
        }
        let watch = Arc::<FetchProgress>::clone(progress);
        let wanted = each_once(&batches);
        let mut copied = copy_ahead(self.bucket, wanted, &self.copies, watch, runtime.handle())?;
        let mut faulty = BTreeSet::new();
        let mut reached = 0_u64;
        for (position, unit) in units.iter().enumerate() {
            let copied = self.next_copied(&mut copied, runtime, stop)?;
            faulty.extend(self.tell_faults(&copied.faults, progress));
            let lost = self.lost_blocks(&faulty, unit.range);
            // What lies beside a file that could not be had does not need it.
            for range in subtract(&[unit.range], &lost) {
                let unit = Unit { range };
                let done = give_way(|| importer.take(&unit));
                match done.map_err(|error| refusal(range, error)) {
                    Ok(report) => {
                        progress.print(imported_line(&report))?;
                        taken.add(report.range.count(), report.transaction_count);
                    }
                    Err(UnitRefusal::Folder(failure)) => return Err(failure),
                    Err(UnitRefusal::Stopped) => return Err(stop.failure()),
                    Err(UnitRefusal::Unit(said)) => {
                        progress.say(&said);
                        taken.refused.push(range);
                    }
                }
            }
            taken.refused.extend(lost);
            reached = reached.saturating_add(unit.range.count());
            progress.reach(reached);
            for file in batches.get(position).into_iter().flatten() {
                if last_uses.get(&*file.name) == Some(&position) {
                    self.forget_copy(&file.name)?;
                }
            }
        }
        Ok(taken)
    }

    /// Tells of files that could not be had; gives their names.
    fn tell_faults(&self, faults: &[BucketFault], progress: &FetchProgress) -> Vec<String> {
        for fault in faults {
            let BucketFault { object, reason } = fault;
            let blocks = match self.listed.get(file_name_of(fault)).map(|it| &it.kind) {
                Some(FileKind::Segment(held)) => format!("blocks {}", held.range),
                _ => "these blocks".to_owned(),
            };
            progress.say(&format!(
                "error: {}: {object}: {reason}\n  hint: the others are taken; give another --from for \
                 {blocks}",
                self.publisher
            ));
        }
        faults.iter().map(|it| file_name_of(it).to_owned()).collect()
    }

    /// The blocks of a range that files hold which could not be had.
    fn lost_blocks(&self, faulty: &BTreeSet<String>, of: BlockRange) -> Vec<BlockRange> {
        let faulty = self.view.segments().filter(|it| faulty.contains(&it.file_name));
        join_ranges(faulty.filter_map(|it| overlap(it.range, of)))
    }

    /// Waits for the next files; an error is of the bucket as a whole.
    fn next_copied(
        &self,
        copied: &mut Receiver<CopyOutcome>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<CopiedFiles, Failure> {
        let Some(next) = stop.or_stopped(runtime, copied.recv()) else {
            return Err(stop.failure());
        };
        match next {
            Some(Ok(copied)) => Ok(copied),
            Some(Err(CopyError::Bucket(error))) => Err(bucket_failure(&error)),
            Some(Err(error)) => Err(error.into()),
            None => Err(Failure::Work(anyhow!("{}: the copying has ended", self.publisher))),
        }
    }

    /// Removes a copy that nobody needs any more.
    fn forget_copy(&self, name: &str) -> Result<(), Failure> {
        match self.copies.remove(name) {
            Err(error) if !error.is_missing() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes the folder of copies. What a stop left is used the next time.
    fn clean_up(&self, is_done: bool) -> Result<(), Failure> {
        let left = if is_done { self.copies.list()? } else { Vec::new() };
        let is_listed = |name: &&String| self.listed.contains_key(*name);
        left.iter().filter(is_listed).try_for_each(|name| self.forget_copy(name))?;
        let _ = std::fs::remove_dir(&self.copies_path);
        let _ = self.copies_path.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

fn refusal(blocks: BlockRange, error: ImportError) -> UnitRefusal {
    let hint = match error {
        ImportError::Store(store::StoreError::Stopped) => return UnitRefusal::Stopped,
        ImportError::Store(error) if is_of_folder(&error) => {
            return UnitRefusal::Folder(to_failure(&error));
        }
        ImportError::Published { .. } => {
            "what is published is false or damaged: give another --from for these blocks"
        }
        ImportError::Unanchored { .. } => {
            "take what lies between it and what is known, give --anchor NUMBER:HASH, or take it \
             as it is with --unanchored"
        }
        ImportError::Archive(_)
        | ImportError::Store(_)
        | ImportError::Upstream(_)
        | ImportError::NoReceipts { .. }
        | ImportError::Contradiction { .. } => {
            "one of the two is not of this chain: give another --from, or another --data-dir"
        }
    };
    UnitRefusal::Unit(format!("error: blocks {blocks}: {error}\n  hint: {hint}"))
}

/// The file that is at fault.
fn file_name_of(fault: &BucketFault) -> &str {
    fault.object.rsplit('/').next().unwrap_or_default()
}

/// Every file in the first batch that needs it: no two copies of one are made at a time.
fn each_once(batches: &[Vec<SealedFile>]) -> Vec<Vec<SealedFile>> {
    let mut named = BTreeSet::new();
    let mut once = |batch: &Vec<SealedFile>| {
        batch.iter().filter(|file| named.insert(file.name.clone())).cloned().collect()
    };
    batches.iter().map(&mut once).collect()
}

/// Why a unit was not taken.
enum UnitRefusal {
    /// It is refused, and told why.
    Unit(String),
    /// The data folder fails.
    Folder(Failure),
    /// Somebody asked to stop.
    Stopped,
}

fn no_manifest(bucket: &Bucket, published: &Published) -> Failure {
    let place = bucket.place();
    match published.faults.first() {
        Some(BucketFault { object, reason }) => {
            Failure::Work(anyhow!("{place}: no manifest can be used; {object}: {reason}"))
        }
        None => nothing_published(bucket, "--from"),
    }
}
