//! `quipu fetch`: archives from mirrors into the data folder, proven.

mod from_bucket;
mod progress;
mod stop;
mod taker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use archive::{ArchiveName, Remedy};
use chain::BlockRange;
use ingest::fetch::{
    DownloadError, DownloadFolder, Downloader, FetchFailure, FetchLimits, MirrorFile, MirrorUrl,
    Mirrors, WORK_FOLDER_NAME, fetch_files, is_file_held,
};
use replica::Bucket;
use store::View;
use store::layout::{join_ranges, overlap, subtract};
use tokio::runtime::Runtime;

use crate::Failure;
use crate::args::fetch::FetchArgs;
use crate::bucket::open_bucket;
use crate::commands::backfill::runtime;
use crate::commands::import::report::Tally;
use crate::commands::import::{OpenedImport, open_import, resume_merges, settings, to_failure};
use crate::commands::verify::remedy_hint;
use crate::data_folder::{DataFolder, locate};
use crate::free_space::{refuse_without_space, stored_bytes};
use crate::hints::system_hint;
use crate::output::{counted, grouped, print_lines};

use from_bucket::find_bucket;
use progress::FetchProgress;
use stop::FetchStopSignal;
use taker::StoreTaker;

pub(crate) fn run(args: &FetchArgs) -> Result<(), Failure> {
    let path = locate(&args.data)?;
    let sources = sources(&args.from)?;
    let fetch = FetchWork { args, path: &path, progress: Arc::default() };
    // These threads answer for connections: they keep their priority.
    let runtime = runtime()?;
    let stop = FetchStopSignal::listen(&runtime)?;
    let done = fetch.run(sources, &runtime, &stop);
    runtime.shutdown_background();
    done
}

/// One address to fetch from.
enum FetchSource {
    /// An object store.
    Bucket(Bucket),
    /// A web server: of archives, or of what is published.
    Web(MirrorUrl, String),
}

fn sources(texts: &[String]) -> Result<Vec<FetchSource>, Failure> {
    let parse = |(position, text): (usize, &String)| {
        let which = || format!("mirror {}", position.saturating_add(1));
        let text = text.trim();
        if text.contains("://") && !MirrorUrl::is_meant(text) {
            return open_bucket("--from", text).map(FetchSource::Bucket);
        }
        let mirror = text.parse::<MirrorUrl>().with_context(which).map_err(Failure::Usage)?;
        Ok(FetchSource::Web(mirror, text.to_owned()))
    };
    texts.iter().enumerate().map(parse).collect()
}

/// What became of the sources.
#[derive(Debug, Default)]
struct SourceTally {
    count: usize,
    /// Those that could not be used.
    left_out: usize,
    /// Blocks that a source lists and did not give.
    missing: Vec<BlockRange>,
}

/// What is to be had, and from whom.
struct FetchWork<'a> {
    args: &'a FetchArgs,
    path: &'a Path,
    progress: Arc<FetchProgress>,
}

impl FetchWork<'_> {
    /// Takes from buckets first, one after the other, and what they have not from mirrors of archives.
    fn run(
        &self,
        sources: Vec<FetchSource>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<(), Failure> {
        let (mut buckets, mut mirrors) = (Vec::new(), Vec::new());
        for source in sources {
            match source {
                FetchSource::Bucket(bucket) => buckets.push(bucket),
                FetchSource::Web(mirror, _) if mirror.names_file() => mirrors.push(mirror),
                FetchSource::Web(mirror, text) => {
                    match stop.or_stopped(runtime, find_bucket(&text)) {
                        None => return Err(stop.failure()),
                        Some(Ok(Some(bucket))) => buckets.push(bucket),
                        Some(Ok(None)) => mirrors.push(mirror),
                        Some(Err(error)) => {
                            self.progress.say(&format!(
                                "warning: {error}\n  it is asked for archives instead"
                            ));
                            mirrors.push(mirror);
                        }
                    }
                }
            }
        }
        if self.args.keep.is_some() && !buckets.is_empty() {
            return Err(Failure::Usage(anyhow!(
                "--keep: archives are kept there; of a published bucket there are none"
            )));
        }
        // All mirrors of archives are one source: each file comes from whoever has it.
        let count = buckets.len().saturating_add(usize::from(!mirrors.is_empty()));
        let mut sources = SourceTally { count, ..SourceTally::default() };
        for bucket in &buckets {
            let taken = self.take_bucket(bucket, &mut sources.missing, runtime, stop);
            self.use_source(taken, &mut sources)?;
        }
        if !mirrors.is_empty() {
            let listed = self.list_archives(mirrors, runtime, stop);
            if let Some((mirrors, files)) = self.use_source(listed, &mut sources)? {
                self.take_archives(mirrors, files, runtime, stop)?;
            }
        }
        self.judge(sources)
    }

    /// Goes on without a source that cannot be used, unless it is the only one.
    fn use_source<T>(
        &self,
        used: Result<T, Failure>,
        sources: &mut SourceTally,
    ) -> Result<Option<T>, Failure> {
        match used {
            Err(Failure::Work(error) | Failure::Usage(error)) if sources.count > 1 => {
                sources.left_out = sources.left_out.saturating_add(1);
                self.progress.say(&format!("warning: {error:#}\n  this --from is left out"));
                Ok(None)
            }
            used => used.map(Some),
        }
    }

    /// Whether all is held that was to be had, whoever had it and in whichever order they were named. What a
    /// source would have that could not be asked, nobody knows: only wanted blocks are missed then.
    fn judge(&self, mut sources: SourceTally) -> Result<(), Failure> {
        if sources.left_out > 0 && sources.left_out == sources.count {
            return Err(Failure::Work(anyhow!("no --from could be used")));
        }
        let wanted = self.args.selection.blocks.filter(|_| sources.left_out > 0);
        sources.missing.extend(wanted);
        // What one had not, or had false, another may have had.
        let held = DataFolder::find(self.path)?.map(|folder| folder.store.view());
        let held = held.as_ref().map_or(&[][..], |view| view.coverage());
        let left = subtract(&join_ranges(sources.missing), held);
        if left.is_empty() {
            return Ok(());
        }
        if sources.left_out == 0 {
            return Err(Failure::Told);
        }
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        Err(Failure::Work(anyhow!(
            "blocks {} are not held, and a --from was left out\n  hint: run the same command again when \
             it can be used, or give another one; what was taken stays",
            left.join(", ")
        )))
    }

    /// The wanted files that mirrors list.
    fn list_archives(
        &self,
        urls: Vec<MirrorUrl>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<(Arc<Mirrors>, Vec<MirrorFile>), Failure> {
        let limits = FetchLimits {
            file_bytes_max: u64::try_from(self.args.file_bytes_max).unwrap_or(u64::MAX),
            ..FetchLimits::default()
        };
        let watch = Arc::<FetchProgress>::clone(&self.progress);
        let mirrors = Arc::new(Mirrors::new(urls, limits, watch)?);
        let Some(files) = runtime.block_on(self.list(&mirrors, stop))? else {
            return Err(stop.failure());
        };
        Ok((mirrors, self.choose(files)?))
    }

    fn take_archives(
        &self,
        mirrors: Arc<Mirrors>,
        files: Vec<MirrorFile>,
        runtime: &Runtime,
        stop: &FetchStopSignal,
    ) -> Result<(), Failure> {
        let names: Vec<PathBuf> = files.iter().map(|file| PathBuf::from(&file.name)).collect();
        let settings = settings(&self.args.selection, &self.args.work);
        let opened = open_import(self.path, &self.args.chain, &names, &settings)?;
        let OpenedImport { folder, mut writer, chain, anchors, genesis_before } = opened;
        resume_merges(&mut writer, chain.spec(), settings.threads);
        let files = MirrorFile::order(files, writer.view().coverage(), &anchors);
        let missing = self.missing(&files, &writer.view())?;
        if let Err(refused) = check_space(&mirrors, &missing, &folder, runtime, stop) {
            let withdrawn = chain.withdraw(&folder.store, &mut writer, genesis_before.as_deref());
            return withdrawn.map_err(|error| to_failure(&error)).and(Err(refused));
        }
        self.progress.expect(self.count_blocks(&missing));
        let downloads = self.downloads(&folder.path.join(WORK_FOLDER_NAME))?;
        let downloader =
            Arc::new(Downloader { mirrors, folder: downloads, stop: stop.flag.clone() });
        let mut taker = StoreTaker {
            writer: &mut writer,
            spec: chain.spec(),
            anchors: &anchors,
            settings,
            progress: &self.progress,
            stop: stop.flag.clone(),
            tally: Tally::default(),
            reached: 0,
            distrusted: BTreeSet::new(),
        };
        let outcome = fetch_files(&downloader, runtime.handle(), &files, &mut taker);
        let (tally, distrusted) = (taker.tally, taker.distrusted);
        print_lines(&self.sum(tally, &writer.view()))?;
        let outcome = outcome.map_err(|failure| match failure {
            FetchFailure::Stopped => stop.failure(),
            FetchFailure::Download(error) => {
                let is_distrusted = matches!(&error, DownloadError::NoMirror { file, .. }
                    if era_of(file).is_some_and(|era| distrusted.contains(&era)));
                refused(&error, is_distrusted)
            }
            FetchFailure::Taker(failure) => failure,
        });
        let withdrawn = chain.withdraw(&folder.store, &mut writer, genesis_before.as_deref());
        outcome.and(withdrawn.map_err(|error| to_failure(&error)))
    }

    /// Where files go: into the work folder, or into the user's.
    fn downloads(&self, work: &Path) -> Result<DownloadFolder, Failure> {
        let Some(keep) = &self.args.keep else {
            return DownloadFolder::temporary(work.to_owned())
                .map_err(|error| refused(&error, false));
        };
        if is_inside(keep, work)? {
            // What is kept there would be taken for what an earlier run left.
            return Err(Failure::Usage(anyhow!(
                "--keep: this is where fetch works; give another folder"
            )));
        }
        let kept = DownloadFolder::kept(keep.clone()).map_err(|error| refused(&error, false))?;
        // A run that kept nothing may have been stopped before.
        DownloadFolder::discard(work).map_err(|error| refused(&error, false))?;
        Ok(kept)
    }

    /// What the mirrors list; `None` if it was told to stop before they did.
    async fn list(
        &self,
        mirrors: &Mirrors,
        stop: &FetchStopSignal,
    ) -> Result<Option<Vec<MirrorFile>>, Failure> {
        let mut flag = stop.flag.clone();
        let listed = tokio::select! {
            listed = mirrors.list() => listed,
            _ = flag.wait_for(|is_stopped| *is_stopped) => return Ok(None),
        };
        listed.map(Some).map_err(|refused| {
            let said: Vec<String> =
                refused.iter().map(|(mirror, error)| format!("{mirror} {error}")).collect();
            let said = said.join("\n  ");
            Failure::Work(anyhow!(
                "no mirror says which archives it has\n  {said}\n  hint: give the address of a folder \
                 that has checksums_sha256.txt or urls.txt beside its archives, or of a published bucket"
            ))
        })
    }

    /// The files that are wanted: of the named network, with a wanted block.
    fn choose(&self, mut files: Vec<MirrorFile>) -> Result<Vec<MirrorFile>, Failure> {
        if let Some(network) = &self.args.chain.network {
            let found: BTreeSet<String> =
                files.iter().map(|file| file.archive.network.clone()).collect();
            files.retain(|file| file.archive.network == *network);
            if files.is_empty() {
                let found = found.into_iter().collect::<Vec<_>>().join(", ");
                return Err(Failure::Usage(anyhow!(
                    "no mirror lists an archive of {network}; they list archives of {found}"
                )));
            }
        }
        if !self.args.selection.without_receipts
            && files.iter().any(|it| !it.archive.is_without_receipts)
        {
            files.retain(|file| !file.archive.is_without_receipts);
        }
        let Some(wanted) = self.args.selection.blocks else { return Ok(files) };
        files.retain(|file| {
            file.named_range().is_some_and(|named| overlap(named, wanted).is_some())
        });
        if files.is_empty() {
            return Err(Failure::Work(anyhow!("no mirror lists an archive of blocks {wanted}")));
        }
        Ok(files)
    }

    /// The files that are not held, one of those that begin with the same block.
    fn missing(&self, files: &[MirrorFile], view: &View) -> Result<Vec<MirrorFile>, Failure> {
        let mut missing = BTreeMap::new();
        for file in files {
            let is_held = is_file_held(view, &file.archive, self.args.selection.blocks);
            if !is_held.map_err(|error| to_failure(&error))? {
                let first = file.named_range().map(|range| range.first());
                missing.entry(first).or_insert_with(|| file.clone());
            }
        }
        Ok(missing.into_values().collect())
    }

    /// The wanted blocks that the names of files speak of.
    fn count_blocks(&self, files: &[MirrorFile]) -> u64 {
        let named = files.iter().filter_map(MirrorFile::named_range);
        let wanted = self.args.selection.blocks;
        let blocks = named.filter_map(|named| overlap(named, wanted.unwrap_or(named)));
        join_ranges(blocks).iter().map(BlockRange::count).sum()
    }

    /// What came of it.
    fn sum(&self, mut tally: Tally, view: &View) -> Vec<String> {
        let (elapsed, bytes) = self.progress.finish();
        // Nothing was looked at of them: only their names were.
        let held = std::mem::take(&mut tally.held_count);
        let mut lines = tally.lines(view, elapsed);
        let mut line = format!("downloaded: {} bytes", grouped(bytes));
        if held > 0 {
            line = format!("{line}; {} held already", counted(held, "file"));
        }
        lines.push(line);
        let wanted: Vec<BlockRange> = self.args.selection.blocks.into_iter().collect();
        let left = subtract(&wanted, view.coverage());
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        if !left.is_empty() {
            lines.push(format!("left: blocks {}, which are not held", left.join(", ")));
        }
        lines
    }
}

/// Refuses what the disk has no space for, by the lengths that mirrors report.
fn check_space(
    mirrors: &Mirrors,
    missing: &[MirrorFile],
    folder: &DataFolder,
    runtime: &Runtime,
    stop: &FetchStopSignal,
) -> Result<(), Failure> {
    match stop.or_stopped(runtime, mirrors.estimate_bytes(missing)) {
        None => Err(stop.failure()),
        Some(None) => Ok(()),
        Some(Some(bytes)) => refuse_without_space(&*folder.disk, stored_bytes(bytes)),
    }
}

/// Whether a folder is another one or in it, whatever links lead there. Neither need be there yet.
fn is_inside(folder: &Path, other: &Path) -> io::Result<bool> {
    let resolve = |path: &Path| {
        let path = path::absolute(path)?;
        let there = path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
        let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
        Ok::<_, io::Error>(there.canonicalize()?.join(rest))
    };
    Ok(resolve(folder)?.starts_with(resolve(other)?))
}

/// The era of a file.
fn era_of(name: &str) -> Option<u64> {
    ArchiveName::parse(Path::new(name)).map(|archive| archive.era)
}

/// Why a file could not be had, and what to do about it. One that contradicts what is trusted may have
/// come from a mirror that is right.
fn refused(error: &DownloadError, is_distrusted: bool) -> Failure {
    let hint = match error {
        DownloadError::NoMirror { .. } => {
            "give another mirror with --from, leave out one that lists what nobody has, or leave these \
             blocks out with --blocks; what was taken stays"
        }
        DownloadError::Occupied { .. } => "move it away, or give another folder to --keep",
        DownloadError::Locked { .. } => "wait for the other one, or give another folder to --keep",
        DownloadError::Disk { cause, .. } => system_hint(cause.kind())
            .unwrap_or("check the disk and run the same command again; what was taken stays"),
        DownloadError::Stopped => "run the same command again; what was taken stays",
    };
    let trust = remedy_hint(Remedy::CompareTrust).filter(|_| is_distrusted);
    let trust = trust.map_or(String::new(), |hint| format!("\n  hint: {hint}"));
    Failure::Work(anyhow!("{error}{trust}\n  hint: {hint}"))
}
