//! Many files: one is taken while the next one downloads.
//!
//! Knows: the order of files, what becomes of one that is refused, and when to end.
//! Never knows: what taking a file means.

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::catalog::MirrorFile;
use super::download::Downloader;
use super::error::{DownloadError, MirrorFault};
use super::partial::remove_file;
use super::task::{FileTask, WholeDownload};

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

type DownloadEnd = (FileTask, Result<WholeDownload, DownloadError>);

/// A download that is under way while another file is taken.
struct DownloadAhead {
    position: usize,
    download: JoinHandle<DownloadEnd>,
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
        let mut failed: Option<(MirrorFile, DownloadError)> = None;
        for position in 0..self.files.len() {
            let Some(file) = self.files.get(position).cloned() else { break };
            let other = failed.take_if(|(failed, _)| failed.archive.era != file.archive.era);
            self.settle(other)?;
            if self.taker.is_held(&file).map_err(FetchFailure::Taker)? {
                self.taker.pass_over(&file);
                if self.ahead.as_ref().is_some_and(|ahead| ahead.position == position) {
                    self.give_up_ahead();
                }
                continue;
            }
            match self.fetch(position, &file) {
                Err(FetchFailure::Download(error)) if is_of_mirrors(&error) => {
                    failed = failed.or(Some((file, error)));
                }
                outcome => outcome?,
            }
        }
        self.settle(failed)
    }

    /// A file that could not be had is none to speak of if its blocks are held by now.
    fn settle(
        &mut self,
        failed: Option<(MirrorFile, DownloadError)>,
    ) -> Result<(), FetchFailure<T::Error>> {
        match failed {
            Some((file, error)) if !self.taker.is_held(&file).map_err(FetchFailure::Taker)? => {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// Has one file taken, from whichever mirror has a true one.
    fn fetch(&mut self, position: usize, file: &MirrorFile) -> Result<(), FetchFailure<T::Error>> {
        let mut task = FileTask::new(file.clone());
        loop {
            let (back, outcome) = self.download(position, task)?;
            task = back;
            let whole = outcome?;
            self.begin_ahead(position)?;
            match self.taker.take(file, &whole.path).map_err(FetchFailure::Taker)? {
                TakeVerdict::Taken => {
                    return self.downloader.folder.let_go(&whole.path).map_err(Into::into);
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

    /// Begins to download the next file that is missing, unless it is of the same era: what is being
    /// taken may make it needless.
    fn begin_ahead(&mut self, position: usize) -> Result<(), FetchFailure<T::Error>> {
        if self.ahead.is_some() {
            return Ok(());
        }
        let era = self.files.get(position).map(|file| file.archive.era);
        for (next, file) in self.files.iter().enumerate().skip(position.saturating_add(1)) {
            if Some(file.archive.era) == era {
                return Ok(());
            }
            if !self.taker.is_held(file).map_err(FetchFailure::Taker)? {
                let download = self.spawn(FileTask::new(file.clone()));
                self.ahead = Some(DownloadAhead { position: next, download });
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

/// Whether a file was not had because of mirrors, not because of this machine.
fn is_of_mirrors(error: &DownloadError) -> bool {
    match error {
        DownloadError::NoMirror { .. } | DownloadError::Quiet { .. } => true,
        DownloadError::Occupied { .. }
        | DownloadError::Locked { .. }
        | DownloadError::Disk { .. }
        | DownloadError::Stopped => false,
    }
}
