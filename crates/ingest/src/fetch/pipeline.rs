//! Many files: one is taken while the next one downloads.
//!
//! Knows: the order of files, what becomes of one that is refused, and when to end.
//! Never knows: what taking a file means.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::catalog::MirrorFile;
use super::download::Downloader;
use super::error::{DownloadError, MirrorFault};
use super::events::FetchEvent;
use super::mirror_state::MirrorRank;
use super::partial::remove_file;
use super::task::{FileTask, WholeDownload};

/// How often a file is left for another name of the same blocks. Then it is downloaded however long
/// that takes: all of them may be slow.
const LEAVES_MAX: u32 = 2;

/// Takes files that were downloaded.
pub trait FileTaker {
    /// Why no further file can be taken.
    type Error;

    /// Whether a file need not be had.
    fn is_held(&mut self, file: &MirrorFile) -> Result<bool, Self::Error>;

    /// Hears that a file is not downloaded because it is held.
    fn pass_over(&mut self, file: &MirrorFile);

    /// Takes a file.
    fn take(&mut self, file: &MirrorFile, path: &Path) -> Result<TakeVerdict, Self::Error>;
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeVerdict {
    /// It is taken.
    Taken,
    /// It is false: another mirror may have a true one.
    Refused(String),
    /// It was told to stop before it was taken.
    Stopped,
}

/// Why not all files were had.
#[derive(Debug, Error)]
pub enum FetchFailure<E> {
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// A file could not be downloaded.
    #[error(transparent)]
    Download(DownloadError),
    /// Files cannot be taken any more.
    #[error("{0}")]
    Taker(E),
}

impl<E> From<DownloadError> for FetchFailure<E> {
    fn from(error: DownloadError) -> Self {
        match error {
            DownloadError::Stopped => Self::Stopped,
            DownloadError::NoMirror { .. }
            | DownloadError::Quiet { .. }
            | DownloadError::Occupied { .. }
            | DownloadError::Locked { .. }
            | DownloadError::Disk { .. } => Self::Download(error),
        }
    }
}

/// Has files taken in their order; `runtime` downloads. A file that cannot be had ends it, unless
/// another one of its era takes its place: later files would link to nothing.
pub fn fetch_files<T: FileTaker>(
    downloader: &Arc<Downloader>,
    runtime: &Handle,
    files: Vec<MirrorFile>,
    taker: &mut T,
) -> Result<(), FetchFailure<T::Error>> {
    downloader.folder.clear_except(|name| files.iter().any(|file| file.name == name))?;
    let mut pipeline =
        Pipeline { downloader: Arc::clone(downloader), runtime, files, taker, ahead: None };
    let outcome = pipeline.run();
    pipeline.give_up_ahead();
    if outcome.is_ok() {
        downloader.folder.clear_except(|_| false)?;
        downloader.folder.remove_if_empty();
    }
    outcome
}

/// A task, and its file unless it was left for another name of the same blocks.
type DownloadEnd = (FileTask, Result<Option<WholeDownload>, DownloadError>);

/// How a file that is to be had ended.
enum FileEnd {
    /// It is taken.
    Taken,
    /// Another name for its blocks is better asked for.
    Left,
}

/// A download that is under way while another file is taken.
struct DownloadAhead {
    position: usize,
    download: JoinHandle<DownloadEnd>,
}

/// How many files each mirror did not have or sent false, of those that are alternatives.
#[derive(Debug, Default)]
struct MirrorFaultCounts(BTreeMap<usize, u32>);

impl MirrorFaultCounts {
    fn of(&self, mirror: usize) -> u32 {
        self.0.get(&mirror).copied().unwrap_or_default()
    }

    /// A file could not be had from any of its mirrors.
    fn add(&mut self, file: &MirrorFile) {
        for source in &file.sources {
            let count = self.0.entry(source.mirror).or_default();
            *count = count.saturating_add(1);
        }
    }
}

struct Pipeline<'a, T> {
    downloader: Arc<Downloader>,
    runtime: &'a Handle,
    files: Vec<MirrorFile>,
    taker: &'a mut T,
    ahead: Option<DownloadAhead>,
}

impl<T: FileTaker> Pipeline<'_, T> {
    fn run(&mut self) -> Result<(), FetchFailure<T::Error>> {
        let mut failed: Vec<(MirrorFile, DownloadError)> = Vec::new();
        let mut next = 0;
        while let Some(first) = self.files.get(next) {
            // Those that failed are of one era: the others were settled.
            if failed.first().is_some_and(|(other, _)| other.archive.era != first.archive.era) {
                self.settle(std::mem::take(&mut failed))?;
            }
            let group = alternatives_at(&self.files, next);
            next = group.end;
            self.fetch_one_of(group, &mut failed)?;
        }
        self.settle(failed)
    }

    /// Has the blocks of alternatives taken, from as many of them as that needs. A mirror whose file
    /// could not be had is asked for its next one after the others: however many names of one era it
    /// lists, they do not keep the files of others waiting. Nor does a name that comes slowly: it is left
    /// for another mirror's, and asked for again if that one was not enough.
    fn fetch_one_of(
        &mut self,
        group: Range<usize>,
        failed: &mut Vec<(MirrorFile, DownloadError)>,
    ) -> Result<(), FetchFailure<T::Error>> {
        let after = group.end;
        let mut left: Vec<usize> = group.collect();
        let mut faults = MirrorFaultCounts::default();
        let mut leaves: BTreeMap<usize, u32> = BTreeMap::new();
        let (mut had, mut lost) = (Vec::new(), Vec::new());
        while let Some(position) = self.choose(&left, &faults) {
            self.check_stop()?;
            left.retain(|other| *other != position);
            let Some(file) = self.files.get(position).cloned() else { break };
            if self.taker.is_held(&file).map_err(FetchFailure::Taker)? {
                self.taker.pass_over(&file);
                if self.ahead.as_ref().is_some_and(|ahead| ahead.position == position) {
                    self.give_up_ahead();
                }
                if leaves.contains_key(&position) {
                    self.downloader.folder.remove_parts(&file.name)?;
                }
                had.push(file);
                continue;
            }
            let mut task = FileTask::new(file.clone());
            if leaves.get(&position).is_none_or(|count| *count < LEAVES_MAX) {
                task.rivals = self.rivals(&file, &left);
            }
            // What is being taken may make the others needless: nothing is downloaded meanwhile.
            let ahead_from = left.is_empty().then_some(after);
            match self.fetch(position, task, ahead_from) {
                Ok(FileEnd::Taken) => had.push(file),
                Ok(FileEnd::Left) => {
                    faults.add(&file);
                    let count = leaves.entry(position).or_default();
                    *count = count.saturating_add(1);
                    left.push(position);
                }
                Err(FetchFailure::Download(error)) if error.file_of_mirrors().is_some() => {
                    faults.add(&file);
                    lost.push((file, error));
                }
                Err(failure) => return Err(failure),
            }
        }
        // A false name of the era in which the chain ends has blocks that nobody can hold. Of any other
        // era it is seen whether its blocks are held, and a mirror that rests may have the longer file.
        let era_max = self.files.iter().map(|file| file.archive.era).max();
        let is_false = |(file, error): &(MirrorFile, DownloadError)| {
            Some(file.archive.era) == era_max
                && matches!(error, DownloadError::NoMirror { .. })
                && had.iter().any(|held: &MirrorFile| held.stands_for(file))
        };
        lost.retain(|it| !is_false(it));
        failed.extend(lost);
        Ok(())
    }

    fn check_stop(&self) -> Result<(), FetchFailure<T::Error>> {
        if *self.downloader.stop.borrow() { Err(FetchFailure::Stopped) } else { Ok(()) }
    }

    /// The mirrors of other names that do not have a file under its own name.
    fn rivals(&self, file: &MirrorFile, others: &[usize]) -> Vec<usize> {
        let is_own = |mirror: usize| file.sources.iter().any(|source| source.mirror == mirror);
        let others = others.iter().filter_map(|position| self.files.get(*position));
        let mirrors = others.flat_map(|other| other.sources.iter().map(|source| source.mirror));
        let mirrors: BTreeSet<usize> = mirrors.filter(|mirror| !is_own(*mirror)).collect();
        mirrors.into_iter().collect()
    }

    /// Which of these files comes next: the one that is under way, or else the first one of the mirror
    /// that failed least.
    fn choose(&self, left: &[usize], faults: &MirrorFaultCounts) -> Option<usize> {
        let under_way = self.ahead.as_ref().map(|ahead| ahead.position);
        if let Some(position) = under_way.filter(|position| left.contains(position)) {
            return Some(position);
        }
        let likely = |position: &usize| {
            let sources = self.files.get(*position).map(|file| file.sources.iter());
            let mirrors = sources.into_iter().flatten().map(|source| source.mirror);
            // A slow one is better than one that fails: its name was left for the slow one's.
            let doubt = |mirror| {
                let (rank, is_failing) = self.downloader.mirrors.doubt(mirror);
                (rank == MirrorRank::False, is_failing, faults.of(mirror), rank)
            };
            mirrors.map(doubt).min()
        };
        left.iter().copied().min_by_key(|position| (likely(position), *position))
    }

    /// Files that could not be had are none to speak of if their blocks are held by now.
    fn settle(
        &mut self,
        failed: Vec<(MirrorFile, DownloadError)>,
    ) -> Result<(), FetchFailure<T::Error>> {
        let mut missing = Vec::new();
        for (file, error) in failed {
            self.check_stop()?;
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

    /// Has one file taken, from whichever mirror has a true one. The next one that is missing from a
    /// position on downloads meanwhile, if one is given.
    fn fetch(
        &mut self,
        position: usize,
        mut task: FileTask,
        ahead_from: Option<usize>,
    ) -> Result<FileEnd, FetchFailure<T::Error>> {
        loop {
            let (back, outcome) = self.download(position, task)?;
            task = back;
            let Some(whole) = outcome? else { return Ok(FileEnd::Left) };
            let file = &task.file;
            if let Some(next) = ahead_from {
                self.begin_ahead(next, file.archive.era)?;
            }
            match self.taker.take(file, &whole.path).map_err(FetchFailure::Taker)? {
                TakeVerdict::Taken => {
                    self.downloader.folder.let_go(&whole.path)?;
                    return Ok(FileEnd::Taken);
                }
                TakeVerdict::Stopped => return Err(FetchFailure::Stopped),
                TakeVerdict::Refused(said) => self.refuse(&mut task, &whole, said)?,
            }
        }
    }

    /// A file that was refused goes, and whoever sent it is set aside.
    fn refuse(
        &self,
        task: &mut FileTask,
        whole: &WholeDownload,
        said: String,
    ) -> Result<(), DownloadError> {
        let folder = &self.downloader.folder;
        if whole.is_found && folder.is_kept() {
            return Err(DownloadError::Occupied { path: whole.path.clone(), said });
        }
        if !whole.is_end_told && task.doubt_end(whole.source) {
            // Without a length and a checksum a cut looks like an end.
            let file = task.file.name.clone();
            self.downloader.mirrors.watch.heard(&FetchEvent::Anew { file, why: said });
            return remove_file(&whole.path);
        }
        if whole.is_certain {
            let fault = MirrorFault::Refused(said.clone());
            self.downloader.mirrors.note_fault(task, whole.source, &fault);
        }
        task.refuse(whole, &said);
        remove_file(&whole.path)
    }

    /// The download of a file, which may be under way or done.
    fn download(
        &mut self,
        position: usize,
        task: FileTask,
    ) -> Result<DownloadEnd, FetchFailure<T::Error>> {
        let download = match self.ahead.take_if(|ahead| ahead.position == position) {
            Some(ahead) => ahead.download,
            None => self.spawn(task),
        };
        // It is aborted nowhere else, and a panic in it is one here.
        self.runtime.block_on(download).map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => FetchFailure::Stopped,
        })
    }

    /// Begins to download the next file that is missing from a position on, unless it is of this era:
    /// what is being taken may make it needless.
    fn begin_ahead(&mut self, from: usize, era: u64) -> Result<(), FetchFailure<T::Error>> {
        if self.ahead.is_some() {
            return Ok(());
        }
        let mut next = from;
        while let Some(first) = self.files.get(next) {
            if first.archive.era == era {
                return Ok(());
            }
            self.check_stop()?;
            let group = alternatives_at(&self.files, next);
            next = group.end;
            let mut missing = Vec::new();
            for position in group {
                let Some(file) = self.files.get(position) else { break };
                if !self.taker.is_held(file).map_err(FetchFailure::Taker)? {
                    missing.push(position);
                }
            }
            let chosen = self.choose(&missing, &MirrorFaultCounts::default());
            if let Some((position, file)) = chosen.and_then(|it| Some((it, self.files.get(it)?))) {
                let mut task = FileTask::new(file.clone());
                task.rivals = self.rivals(file, &missing);
                let download = self.spawn(task);
                self.ahead = Some(DownloadAhead { position, download });
                return Ok(());
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

    /// Ends a download that nobody waits for any more; what came of it stays for the next run.
    fn give_up_ahead(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.download.abort();
            let _ = self.runtime.block_on(ahead.download);
        }
    }
}

/// The files from a position on that begin with the same block: one of them is enough.
fn alternatives_at(files: &[MirrorFile], position: usize) -> Range<usize> {
    let rest = files.get(position..).unwrap_or_default();
    let count = rest.chunk_by(MirrorFile::begins_with).next().map_or(0, <[MirrorFile]>::len);
    position..position.saturating_add(count)
}
