//! One file from mirrors: requested until it is whole, from one mirror after the other.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use archive::hash_file;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::catalog::MirrorSource;
use super::error::{DownloadError, FaultKind, MirrorFault};
use super::folder::{DownloadFolder, Part, on_disk, remove_file};
use super::http::FileAnswer;
use super::mirrors::Mirrors;
use super::task::{FileTask, WholeFile};
use crate::stop::until_stopped;

/// New bytes that count as progress.
const PROGRESS_BYTES_MIN: u64 = 64 << 10;
/// Bytes a second below which a mirror is left while another one has the file.
const SLOW_RATE: u64 = 50_000;
/// Bytes a second below which a connection has stalled, also of a mirror that is alone.
const STALL_RATE: u64 = 2_000;

/// Downloads files into a folder.
#[derive(Debug)]
pub struct Downloader {
    /// The mirrors.
    pub mirrors: Arc<Mirrors>,
    /// The folder of downloads.
    pub folder: DownloadFolder,
    /// Set to end downloads early.
    pub stop: watch::Receiver<bool>,
}

/// Why bytes ended early.
enum ReceiveError {
    Mirror(MirrorFault),
    Local(DownloadError),
}

impl From<MirrorFault> for ReceiveError {
    fn from(fault: MirrorFault) -> Self {
        Self::Mirror(fault)
    }
}

impl From<DownloadError> for ReceiveError {
    fn from(error: DownloadError) -> Self {
        Self::Local(error)
    }
}

impl Downloader {
    /// Downloads a file, unless it is on disk already.
    pub(super) async fn download(&self, task: &mut FileTask) -> Result<WholeFile, DownloadError> {
        tokio::select! {
            biased;
            () = until_stopped(Some(self.stop.clone())) => Err(DownloadError::Stopped),
            done = self.download_all(task) => done,
        }
    }

    async fn download_all(&self, task: &mut FileTask) -> Result<WholeFile, DownloadError> {
        if let Some(found) = self.find_whole(task)? {
            return Ok(found);
        }
        let mut begun: Option<Part> = None;
        // Bytes that come again are no progress.
        let mut bytes_most = 0;
        loop {
            let Some((source, ready_at)) = self.mirrors.choose(task) else {
                return Err(self.mirrors.no_mirror(task));
            };
            if let Some(ready_at) = ready_at {
                if !task.is_patient {
                    return Err(self.mirrors.no_mirror(task));
                }
                sleep_until(ready_at).await;
            }
            let Some(wanted) = task.file.sources.get(source).cloned() else {
                return Err(self.mirrors.no_mirror(task));
            };
            let mut part = self.part_for(task, &wanted, begun.take())?;
            bytes_most = part.bytes.max(bytes_most);
            let has_others = !task.is_patient || self.mirrors.has_others(task, source);
            let rate_min = if has_others { SLOW_RATE } else { STALL_RATE };
            let received = self.receive(&wanted, &mut part, rate_min).await;
            if part.bytes.saturating_sub(bytes_most) >= PROGRESS_BYTES_MIN {
                bytes_most = part.bytes;
                task.note_progress();
                self.mirrors.note_progress(wanted.mirror);
            }
            let checked = match received {
                Ok(is_length_known) => self.check(task, &wanted, &part, is_length_known),
                Err(ReceiveError::Mirror(fault)) => Err(Some(fault)),
                Err(ReceiveError::Local(error)) => return Err(error),
            };
            match checked {
                Ok(is_certain) => {
                    self.mirrors.note_progress(wanted.mirror);
                    let sha256 = part.sum();
                    let path = self.folder.finish(&part, &task.file.name)?;
                    return Ok(WholeFile { path, sha256, source, is_certain, is_found: false });
                }
                Err(fault) => {
                    let is_wrong = fault.as_ref().is_none_or(|it| it.kind == FaultKind::False);
                    if let Some(fault) = fault {
                        self.mirrors.note_fault(task, source, &fault);
                    }
                    if is_wrong {
                        part.restart()?;
                        bytes_most = 0;
                    }
                }
            }
            begun = Some(part);
        }
    }

    /// The part to go on with: the bytes on disk, if they are of the same file.
    fn part_for(
        &self,
        task: &FileTask,
        wanted: &MirrorSource,
        begun: Option<Part>,
    ) -> Result<Part, DownloadError> {
        let mut part = match begun {
            Some(part) if part.sha256 == wanted.sha256 => part,
            _ => self.folder.begin(&task.file.name, wanted.sha256)?,
        };
        let is_too_long = part.bytes > self.mirrors.limits.file_bytes_max;
        if is_too_long || (task.is_unmixed && part.is_mixed_for(wanted.mirror)) {
            part.restart()?;
        }
        Ok(part)
    }

    /// Requests what is missing and appends what comes. Returns whether the end is one for certain.
    async fn receive(
        &self,
        wanted: &MirrorSource,
        part: &mut Part,
        rate_min: u64,
    ) -> Result<bool, ReceiveError> {
        let mut body = loop {
            match self.mirrors.client.open(&wanted.target, part.bytes).await? {
                FileAnswer::Bytes(body) => break body,
                FileAnswer::Beyond(Some(length)) if length == part.bytes => return Ok(true),
                // The part is no beginning of this mirror's file, or the mirror cannot resume.
                FileAnswer::Beyond(_) => part.restart()?,
            }
        };
        let bytes_max = self.mirrors.limits.file_bytes_max;
        if body.file_bytes.is_some_and(|bytes| bytes > bytes_max) {
            return Err(MirrorFault::too_large(bytes_max).into());
        }
        if body.first != part.bytes {
            part.restart()?;
        }
        let mut meter = RateMeter::begin(self.mirrors.limits.window, rate_min);
        loop {
            let next = match timeout_at(meter.end, body.next()).await {
                Ok(next) => next?,
                Err(_) => Some(bytes::Bytes::new()),
            };
            let Some(bytes) = next else { break };
            let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if part.bytes.saturating_add(count) > bytes_max {
                return Err(MirrorFault::too_large(bytes_max).into());
            }
            part.append(wanted.mirror, &bytes)?;
            self.mirrors.watch.received(count);
            meter.add(count)?;
        }
        match body.file_bytes {
            Some(length) if length != part.bytes => {
                let text = format!("ended after {} of {length} bytes", part.bytes);
                Err(MirrorFault::new(FaultKind::Passing, text).into())
            }
            length => Ok(length.is_some()),
        }
    }

    /// Compares the checksum of a whole file with the one that its mirror lists. Returns whether the bytes
    /// are this mirror's for certain. An error without a fault is of parts that do not fit together.
    fn check(
        &self,
        task: &mut FileTask,
        wanted: &MirrorSource,
        part: &Part,
        is_length_known: bool,
    ) -> Result<bool, Option<MirrorFault>> {
        let is_mixed = part.is_mixed_for(wanted.mirror);
        let Some(expected) = wanted.sha256 else { return Ok(is_length_known && !is_mixed) };
        let found = part.sum();
        if found == expected {
            return Ok(true);
        }
        if is_mixed {
            task.is_unmixed = true;
            self.warn_again(task, &format!("SHA-256 is {found}, expected {expected}"));
            return Err(None);
        }
        Err(Some(if is_length_known {
            MirrorFault::checksum(found, expected)
        } else {
            // A cut connection looks like the end: the next request is for the rest.
            let text = format!("ended after {} bytes, which are not the file", part.bytes);
            MirrorFault::new(FaultKind::Passing, text)
        }))
    }

    /// The file if it is on disk: an earlier run ended before the import, or the user keeps it.
    fn find_whole(&self, task: &FileTask) -> Result<Option<WholeFile>, DownloadError> {
        let path = self.folder.file(&task.file.name);
        if !path.exists() {
            return Ok(None);
        }
        let sha256 = on_disk(&path, hash_file(&path))?;
        let sums: Vec<B256> = task.file.sources.iter().filter_map(|it| it.sha256).collect();
        let source = task.file.sources.iter().position(|it| it.sha256 == Some(sha256));
        if source.is_some() || sums.is_empty() {
            let (is_certain, source) = (source.is_some(), source.unwrap_or_default());
            return Ok(Some(WholeFile { path, sha256, source, is_certain, is_found: true }));
        }
        if self.folder.is_kept() {
            let listed = sums.first().map(ToString::to_string).unwrap_or_default();
            let said = format!("SHA-256 is {sha256}, they list {listed}");
            return Err(DownloadError::Occupied { path, said });
        }
        remove_file(&path)?;
        Ok(None)
    }

    /// Removes a file that the import refused; its mirror comes last from now on.
    pub(super) fn refuse(
        &self,
        task: &mut FileTask,
        whole: WholeFile,
        said: String,
    ) -> Result<(), DownloadError> {
        if whole.is_found && self.folder.is_kept() {
            return Err(DownloadError::Occupied { path: whole.path, said });
        }
        if whole.is_certain {
            let fault = MirrorFault::new(FaultKind::False, said);
            self.mirrors.note_fault(task, whole.source, &fault);
            task.refuse(whole.sha256);
        } else {
            // It may have been cut, or parts of several mirrors do not fit together.
            task.is_unmixed = true;
            self.warn_again(task, &said);
            task.note(whole.source, &MirrorFault::new(FaultKind::False, said));
        }
        remove_file(&whole.path)
    }

    fn warn_again(&self, task: &FileTask, why: &str) {
        self.mirrors.watch.warn(format!("{}: downloaded again: {why}", task.file.name));
    }
}

/// Requires a minimum of bytes in each window of time.
#[derive(Debug)]
struct RateMeter {
    window: Duration,
    bytes_min: u64,
    end: Instant,
    bytes: u64,
}

impl RateMeter {
    fn begin(window: Duration, rate_min: u64) -> Self {
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let bytes_min = rate_min.saturating_mul(millis) / 1000;
        Self { window, bytes_min, end: Instant::now() + window, bytes: 0 }
    }

    fn add(&mut self, bytes: u64) -> Result<(), MirrorFault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if Instant::now() < self.end {
            return Ok(());
        }
        if self.bytes < self.bytes_min {
            let text = format!("slow: {} bytes in {} s", self.bytes, self.window.as_secs());
            return Err(MirrorFault::new(FaultKind::Slow, text));
        }
        (self.bytes, self.end) = (0, Instant::now() + self.window);
        Ok(())
    }
}
