//! Many files: one is imported while the next ones download.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::catalog::MirrorFile;
use super::download::Downloader;
use super::error::DownloadError;
use super::mirrors::MirrorRank;
use super::task::{FileTask, WholeFile};

/// Downloads ahead of the import.
const AHEAD_MAX: usize = 2;
/// Groups of files among which the next downloads are looked for.
const AHEAD_GROUPS_MAX: usize = 64;

/// Imports files that were downloaded.
pub trait FileTaker {
    /// Why no further file can be imported.
    type Error;

    /// Whether a file is not needed.
    fn is_held(&mut self, file: &MirrorFile) -> Result<bool, Self::Error>;

    /// Notes a file that is not downloaded because it is held.
    fn pass_over(&mut self, file: &MirrorFile);

    /// Imports a file.
    fn take(&mut self, file: &MirrorFile, path: &Path) -> Result<TakeVerdict, Self::Error>;
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeVerdict {
    /// The file is imported.
    Taken,
    /// The file is invalid: another mirror may have a valid one.
    Refused(String),
    /// The import was stopped.
    Stopped,
}

/// Why not all files were imported.
#[derive(Debug, Error)]
pub enum FetchFailure<E> {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// A file could not be downloaded.
    #[error(transparent)]
    Download(DownloadError),
    /// No further file can be imported.
    #[error("{0}")]
    Taker(E),
}

impl<E> From<DownloadError> for FetchFailure<E> {
    fn from(error: DownloadError) -> Self {
        if matches!(error, DownloadError::Stopped) { Self::Stopped } else { Self::Download(error) }
    }
}

/// Downloads files on `runtime` and imports them in their order. A file that cannot be downloaded ends
/// it, unless another one of its era has its blocks: later files would link to nothing.
pub fn fetch_files<T: FileTaker>(
    downloader: &Arc<Downloader>,
    runtime: &Handle,
    files: &[MirrorFile],
    taker: &mut T,
) -> Result<(), FetchFailure<T::Error>> {
    downloader.folder.clear_except(|name| files.iter().any(|file| file.name == name))?;
    let groups: VecDeque<Vec<MirrorFile>> =
        files.chunk_by(MirrorFile::begins_with).map(<[MirrorFile]>::to_vec).collect();
    let era_max = files.iter().map(|file| file.archive.era).max().unwrap_or_default();
    let downloader = Arc::clone(downloader);
    let mut pipeline =
        Pipeline { downloader, runtime, groups, era_max, taker, ahead: VecDeque::new() };
    let outcome = pipeline.run();
    while let Some((_, download)) = pipeline.ahead.pop_front() {
        download.abort();
        let _ = runtime.block_on(download);
    }
    if outcome.is_ok() {
        pipeline.downloader.folder.clear_except(|_| false)?;
        pipeline.downloader.folder.remove_if_empty();
    }
    outcome
}

type DownloadEnd = (FileTask, Result<WholeFile, DownloadError>);
/// A file that was imported, or that no mirror gave.
type FileEnd = (FileTask, Result<(), DownloadError>);

struct Pipeline<'a, T> {
    downloader: Arc<Downloader>,
    runtime: &'a Handle,
    /// The files to come; those of one group begin with the same block, and one of them may be enough.
    groups: VecDeque<Vec<MirrorFile>>,
    /// The era in which the chain ends, as far as files say.
    era_max: u64,
    taker: &'a mut T,
    /// Downloads of later groups.
    ahead: VecDeque<(MirrorFile, JoinHandle<DownloadEnd>)>,
}

impl<T: FileTaker> Pipeline<'_, T> {
    fn run(&mut self) -> Result<(), FetchFailure<T::Error>> {
        let mut lost: Vec<(MirrorFile, DownloadError)> = Vec::new();
        while let Some(group) = self.groups.pop_front() {
            let era = group.first().map(|file| file.archive.era);
            // Another group of the era may have the blocks.
            if lost.first().is_some_and(|(file, _)| Some(file.archive.era) != era) {
                self.settle(std::mem::take(&mut lost))?;
            }
            self.fetch_group(group, &mut lost)?;
        }
        self.settle(lost)
    }

    /// Imports the blocks of a group. Each name is tried once before any is retried after pauses, so that
    /// a mirror with names of its own does not delay those of others.
    fn fetch_group(
        &mut self,
        group: Vec<MirrorFile>,
        lost: &mut Vec<(MirrorFile, DownloadError)>,
    ) -> Result<(), FetchFailure<T::Error>> {
        let is_alone = group.len() == 1;
        let mut tasks: Vec<FileTask> =
            group.into_iter().map(|file| FileTask::new(file, is_alone)).collect();
        let (mut failed_mirrors, mut failed, mut had) = (Vec::new(), Vec::new(), Vec::new());
        while !tasks.is_empty() {
            self.check_stop()?;
            let task = tasks.remove(self.choose(&tasks, &failed_mirrors));
            let ahead = self.ahead.iter().position(|(file, _)| file.name == task.file.name);
            let ahead = ahead.and_then(|position| self.ahead.remove(position));
            if self.taker.is_held(&task.file).map_err(FetchFailure::Taker)? {
                if let Some((_, download)) = ahead {
                    download.abort();
                    let _ = self.runtime.block_on(download);
                }
                self.taker.pass_over(&task.file);
                self.downloader.folder.remove(&task.file.name)?;
                had.push(task.file);
                continue;
            }
            let download = ahead.map_or_else(|| self.spawn(task), |(_, download)| download);
            match self.fetch(download)? {
                (task, Ok(())) => had.push(task.file),
                (mut task, Err(error)) => {
                    failed_mirrors.extend(task.file.sources.iter().map(|source| source.mirror));
                    if task.may_retry() {
                        task.is_patient = true;
                        tasks.push(task);
                    } else {
                        failed.push((task.file, error));
                    }
                }
            }
        }
        // A false name of the era in which the chain ends may promise blocks that do not exist.
        failed.retain(|(file, _)| {
            file.archive.era != self.era_max || !had.iter().any(|it| it.stands_for(file))
        });
        lost.extend(failed);
        Ok(())
    }

    /// Downloads one file and imports it; the error is of mirrors.
    fn fetch(
        &mut self,
        mut download: JoinHandle<DownloadEnd>,
    ) -> Result<FileEnd, FetchFailure<T::Error>> {
        loop {
            // It is aborted nowhere else, and a panic in it is one here.
            let ended =
                self.runtime.block_on(download).map_err(|error| match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => FetchFailure::Stopped,
                });
            let (mut task, whole) = ended?;
            let whole = match whole {
                Ok(whole) => whole,
                Err(error @ DownloadError::NoMirror { .. }) => return Ok((task, Err(error))),
                Err(error) => return Err(error.into()),
            };
            self.fill_ahead(task.file.archive.era)?;
            match self.taker.take(&task.file, &whole.path).map_err(FetchFailure::Taker)? {
                TakeVerdict::Taken => {
                    self.downloader.folder.remove(&task.file.name)?;
                    return Ok((task, Ok(())));
                }
                TakeVerdict::Stopped => return Err(FetchFailure::Stopped),
                TakeVerdict::Refused(said) => self.downloader.refuse(&mut task, whole, said)?,
            }
            download = self.spawn(task);
        }
    }

    /// The next file of a group: one that downloads already, else the one whose mirrors are best.
    fn choose(&self, tasks: &[FileTask], failed_mirrors: &[usize]) -> usize {
        let key = |(position, task): (usize, &FileTask)| {
            let is_ahead = self.ahead.iter().any(|(file, _)| file.name == task.file.name);
            let doubt = |mirror: usize| {
                let rank = self.downloader.mirrors.rank(mirror);
                let failures = failed_mirrors.iter().filter(|other| **other == mirror).count();
                (rank == MirrorRank::False, failures, rank)
            };
            let doubts = task.file.sources.iter().map(|source| doubt(source.mirror));
            (!is_ahead, task.is_patient, doubts.min(), position)
        };
        tasks.iter().enumerate().map(key).min().map_or(0, |(.., position)| position)
    }

    /// Begins downloads of the next files that are missing, one of each later era: the import of one may
    /// make others of its era superfluous.
    fn fill_ahead(&mut self, era: u64) -> Result<(), FetchFailure<T::Error>> {
        let mut begun = vec![era];
        begun.extend(self.ahead.iter().map(|(file, _)| file.archive.era));
        for position in 0..AHEAD_GROUPS_MAX {
            if self.ahead.len() >= AHEAD_MAX {
                return Ok(());
            }
            self.check_stop()?;
            let Some(group) = self.groups.get(position) else { return Ok(()) };
            if group.first().is_none_or(|file| begun.contains(&file.archive.era)) {
                continue;
            }
            let is_alone = group.len() == 1;
            let mut missing = Vec::new();
            for file in group {
                if !self.taker.is_held(file).map_err(FetchFailure::Taker)? {
                    missing.push(FileTask::new(file.clone(), is_alone));
                }
            }
            if !missing.is_empty() {
                let task = missing.swap_remove(self.choose(&missing, &[]));
                begun.push(task.file.archive.era);
                self.ahead.push_back((task.file.clone(), self.spawn(task)));
            }
        }
        Ok(())
    }

    fn spawn(&self, mut task: FileTask) -> JoinHandle<DownloadEnd> {
        let downloader = Arc::clone(&self.downloader);
        self.runtime.spawn(async move {
            let outcome = downloader.download(&mut task).await;
            (task, outcome)
        })
    }

    /// Files that could not be downloaded are an error unless their blocks are held by now.
    fn settle(
        &mut self,
        lost: Vec<(MirrorFile, DownloadError)>,
    ) -> Result<(), FetchFailure<T::Error>> {
        let mut missing = Vec::new();
        for (file, error) in lost {
            if !self.taker.is_held(&file).map_err(FetchFailure::Taker)? {
                missing.push(error);
            }
        }
        let mut missing = missing.into_iter();
        match missing.next() {
            None => Ok(()),
            Some(first) => Err(first.with_others(missing.as_slice()).into()),
        }
    }

    fn check_stop(&self) -> Result<(), FetchFailure<T::Error>> {
        if *self.downloader.stop.borrow() { Err(FetchFailure::Stopped) } else { Ok(()) }
    }
}
