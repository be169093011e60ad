//! One file from mirrors: asked for until it is whole, wherever it can be had.
//!
//! Knows: how a download goes on after a cut, elsewhere or anew, and when it is given up.
//! Never knows: what a file holds; whoever takes it says whether it is true.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use archive::hash_file;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::error::{DownloadError, MirrorFault};
use super::events::FetchEvent;
use super::http::{FileAnswer, FileBody};
use super::mirror_state::{MirrorChoice, PartOnDisk};
use super::mirrors::Mirrors;
use super::partial::{DownloadFolder, PartialFile, on_disk, remove_file};
use super::task::{FileTask, WholeDownload};
use crate::stop::until_stopped;
use crate::upstream::AskError;

/// A mirror that gave fewer bytes before it failed did not give anything: it rests the longer, and
/// patience ends. One that takes longer than the stall timeout for so many has stalled.
const PROGRESS_BYTES_MIN: u64 = 64 << 10;

/// Downloads files into a folder.
#[derive(Debug)]
pub struct Downloader {
    /// Who is asked.
    pub mirrors: Arc<Mirrors>,
    /// Where files go.
    pub folder: DownloadFolder,
    /// Raised when it shall stop.
    pub stop: watch::Receiver<bool>,
}

/// How one answer of a mirror ended.
#[derive(Debug)]
enum AnswerEnd {
    /// The file is whole, as far as the mirror says. Whether it said how long the file is.
    Whole { is_length_told: bool },
    /// The download goes on with this source.
    Moved(usize),
    /// Another mirror is better asked.
    Left,
    /// Another name for the same blocks is better asked for.
    Rival,
    /// Something is wrong.
    Fault(MirrorFault),
}

impl Downloader {
    /// Has a file on disk, whole, unless another name for its blocks is better asked for. What became of
    /// mirrors is noted in the task.
    pub(super) async fn download(
        &self,
        task: &mut FileTask,
    ) -> Result<Option<WholeDownload>, DownloadError> {
        tokio::select! {
            biased;
            () = until_stopped(Some(self.stop.clone())) => Err(DownloadError::Stopped),
            done = self.download_all(task) => done,
        }
    }

    async fn download_all(
        &self,
        task: &mut FileTask,
    ) -> Result<Option<WholeDownload>, DownloadError> {
        if let Some(found) = self.find_whole(task)? {
            return Ok(Some(found));
        }
        let patience = self.mirrors.limits.patience;
        let rival_patience = self.mirrors.limits.stall_timeout.min(patience);
        let mut begun: Option<PartialFile> = None;
        let mut quiet_since = Instant::now();
        // Bytes that come again after a new beginning are no progress, unless those before were false:
        // who sends such bytes is soon out.
        let mut bytes_most = 0;
        let mut next = None;
        loop {
            let there = begun
                .as_ref()
                .map(|part| PartOnDisk { sha256: part.expected(), bytes: part.bytes() });
            let chosen = next.take().map(MirrorChoice::Ask);
            let chosen =
                chosen.unwrap_or_else(|| self.mirrors.choose(task, there.unwrap_or_default()));
            let quiet_time = chosen.quiet_time(quiet_since);
            if quiet_time > rival_patience && self.mirrors.has_ready_rival(task) {
                return Ok(None);
            }
            let source = match chosen {
                // Of several that give nothing, one is always ready.
                MirrorChoice::Ask(_) | MirrorChoice::Rest(_) if quiet_time > patience => {
                    return Err(self.quiet(task));
                }
                MirrorChoice::Ask(source) => source,
                MirrorChoice::Rest(until) => {
                    sleep_until(until).await;
                    continue;
                }
                MirrorChoice::Nobody => return Err(self.nobody(task, begun)),
            };
            let mut part = self.part_for(task, source, begun.take())?;
            bytes_most = part.bytes().max(bytes_most);
            let end = self.ask(task, source, &mut part).await?;
            if part.bytes().saturating_sub(bytes_most) >= PROGRESS_BYTES_MIN {
                quiet_since = Instant::now();
                self.mirrors.note_success(task, source);
            }
            bytes_most = part.bytes().max(bytes_most);
            match end {
                AnswerEnd::Whole { is_length_told } => {
                    if self.is_right(task, source, &mut part, is_length_told)? {
                        return self.finish(task, source, &part, is_length_told).map(Some);
                    }
                    bytes_most = part.bytes();
                }
                AnswerEnd::Moved(to) => next = Some(to),
                AnswerEnd::Left => {}
                AnswerEnd::Rival => return Ok(None),
                AnswerEnd::Fault(fault) => {
                    self.note_fault(task, source, &fault);
                    if matches!(fault, MirrorFault::TooLarge { .. }) {
                        part.restart()?;
                        bytes_most = 0;
                    }
                }
            }
            begun = Some(part);
        }
    }

    /// No mirror gives a file.
    fn nobody(&self, task: &FileTask, begun: Option<PartialFile>) -> DownloadError {
        // A refusal may pass: what came is there for the next run.
        let empty = begun.filter(|part| part.bytes() == 0);
        match empty.map_or(Ok(()), PartialFile::discard) {
            Ok(()) => {
                let (file, said) = (task.file.name.clone(), self.mirrors.said(task));
                DownloadError::NoMirror { file, said }
            }
            Err(error) => error,
        }
    }

    /// The end of patience.
    fn quiet(&self, task: &FileTask) -> DownloadError {
        let (file, patience) = (task.file.name.clone(), self.mirrors.limits.patience);
        DownloadError::Quiet { file, patience, said: self.mirrors.said(task) }
    }

    /// The part to go on with: what is there, if it is of the same file.
    fn part_for(
        &self,
        task: &FileTask,
        source: usize,
        begun: Option<PartialFile>,
    ) -> Result<PartialFile, DownloadError> {
        let wanted = task.file.sources.get(source);
        let (mirror, sum) = wanted.map_or((source, None), |it| (it.mirror, it.sha256));
        let mut part = match begun {
            Some(part) if part.expected() == sum => part,
            _ => self.folder.begin(&task.file.name, sum)?,
        };
        let is_too_long = part.bytes() > self.mirrors.limits.file_bytes_max;
        if is_too_long || (task.has_misfit && part.is_mixed_for(mirror)) {
            part.restart()?;
        }
        Ok(part)
    }

    /// Asks a source for what is missing, and takes what comes.
    async fn ask(
        &self,
        task: &FileTask,
        source: usize,
        part: &mut PartialFile,
    ) -> Result<AnswerEnd, DownloadError> {
        let Some(wanted) = task.file.sources.get(source) else { return Ok(AnswerEnd::Left) };
        let first = if self.mirrors.ignores_ranges(task, source) { 0 } else { part.bytes() };
        let body = match self.mirrors.client.open(&wanted.target, first).await {
            Ok(FileAnswer::Bytes(body)) => body,
            Ok(FileAnswer::Beyond(told)) => {
                if told == Some(part.bytes()) {
                    return Ok(AnswerEnd::Whole { is_length_told: true });
                }
                // More is there than the file has, or nobody says how much that is. The same one sends
                // it from the beginning: then no part is asked for, and none can be beyond the end.
                part.restart()?;
                return Ok(AnswerEnd::Moved(source));
            }
            Err(fault) => {
                if matches!(fault, MirrorFault::OtherPart(_)) {
                    self.mirrors.note_no_ranges(task, source);
                }
                return Ok(AnswerEnd::Fault(fault));
            }
        };
        let bytes_max = self.mirrors.limits.file_bytes_max;
        if body.file_bytes.is_some_and(|bytes| bytes > bytes_max) {
            return Ok(AnswerEnd::Fault(MirrorFault::TooLarge { bytes_max }));
        }
        if body.first != part.bytes() {
            // It sends the whole file. Where another one can go on, nothing is thrown away.
            if first > 0 && self.mirrors.note_no_ranges(task, source) {
                return Ok(AnswerEnd::Left);
            }
            part.restart()?;
        }
        self.receive(task, source, part, body).await
    }

    /// Takes the bytes of an answer.
    async fn receive(
        &self,
        task: &FileTask,
        source: usize,
        part: &mut PartialFile,
        mut body: FileBody,
    ) -> Result<AnswerEnd, DownloadError> {
        let limits = &self.mirrors.limits;
        let mirror = task.file.sources.get(source).map_or(source, |source| source.mirror);
        let (stall, bytes_max) = (limits.stall_timeout, limits.file_bytes_max);
        let is_length_told = body.file_bytes.is_some();
        let mut meter = RateMeter::begin(limits.rate_window);
        // Single bytes keep no download alive: so many have to come, or the rest of them.
        let (mut deadline, mut recent_bytes) = (Instant::now() + stall, 0_u64);
        loop {
            let bytes = match timeout_at(deadline, body.next()).await {
                Err(_) => return Ok(AnswerEnd::Fault(MirrorFault::Stalled(stall))),
                Ok(Err(fault)) => return Ok(AnswerEnd::Fault(fault)),
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => break,
            };
            let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if part.bytes().saturating_add(count) > bytes_max {
                return Ok(AnswerEnd::Fault(MirrorFault::TooLarge { bytes_max }));
            }
            part.append(mirror, &bytes)?;
            self.mirrors.watch.received(count);
            recent_bytes = recent_bytes.saturating_add(count);
            if recent_bytes >= PROGRESS_BYTES_MIN {
                (deadline, recent_bytes) = (Instant::now() + stall, 0);
            }
            let Some(rate) = meter.add(count) else { continue };
            if let Some(better) = self.mirrors.note_rate(task, source, rate) {
                return Ok(AnswerEnd::Moved(better.to));
            }
            if self.mirrors.has_better_rival(task, rate) {
                return Ok(AnswerEnd::Rival);
            }
            self.mirrors.tell_slow(task, source, rate);
        }
        if let Some(rate) = meter.short_rate() {
            self.mirrors.note_short_rate(task, source, rate);
        }
        if let Some(told) = body.file_bytes.filter(|told| *told != part.bytes()) {
            let said = format!("it ended after {} of {told} bytes", part.bytes());
            return Ok(AnswerEnd::Fault(AskError::Broken(said).into()));
        }
        Ok(AnswerEnd::Whole { is_length_told })
    }

    /// Whether a file that is said to be whole has the checksum that its mirror lists, if any.
    fn is_right(
        &self,
        task: &mut FileTask,
        source: usize,
        part: &mut PartialFile,
        is_length_told: bool,
    ) -> Result<bool, DownloadError> {
        let found = part.sum();
        let Some(expected) = part.expected().filter(|expected| *expected != found) else {
            return Ok(true);
        };
        let mirror = task.file.sources.get(source).map_or(source, |source| source.mirror);
        if part.is_mixed_for(mirror) {
            // Nobody can say which part is false.
            let why = format!(
                "SHA-256 is {found}, expected {expected}, and its parts came at different times"
            );
            let file = task.file.name.clone();
            self.mirrors.watch.heard(&FetchEvent::Anew { file, why });
            task.has_misfit = true;
            part.restart()?;
            return Ok(false);
        }
        if !is_length_told && task.doubt_end(source) {
            // Without a length a cut looks like an end. The next answer tells which it was.
            let said = format!("it ended after {} bytes, which are not the file", part.bytes());
            self.note_fault(task, source, &AskError::Broken(said).into());
            return Ok(false);
        }
        self.note_fault(task, source, &MirrorFault::Checksum { found, expected });
        part.restart()?;
        Ok(false)
    }

    fn finish(
        &self,
        task: &FileTask,
        source: usize,
        part: &PartialFile,
        is_length_told: bool,
    ) -> Result<WholeDownload, DownloadError> {
        self.mirrors.note_success(task, source);
        let mirror = task.file.sources.get(source).map_or(source, |source| source.mirror);
        let is_certain = part.expected().is_some() || !part.is_mixed_for(mirror);
        let is_end_told = is_length_told || part.expected().is_some();
        let sha256 = part.sum();
        let path = self.folder.finish(part, &task.file.name)?;
        Ok(WholeDownload { path, sha256, source, is_certain, is_end_told, is_found: false })
    }

    /// The file if it is there already: an earlier run ended before it was taken, or it was kept.
    fn find_whole(&self, task: &FileTask) -> Result<Option<WholeDownload>, DownloadError> {
        let path = self.folder.file(&task.file.name);
        if !path.exists() {
            return Ok(None);
        }
        let sha256 = on_disk(&path, hash_file(&path))?;
        let sums: Vec<B256> = task.file.sources.iter().filter_map(|it| it.sha256).collect();
        let source = task.file.sources.iter().position(|it| it.sha256 == Some(sha256));
        if source.is_some() || sums.is_empty() {
            let (is_certain, source) = (source.is_some(), source.unwrap_or_default());
            let (is_end_told, is_found) = (true, true);
            let found = WholeDownload { path, sha256, source, is_certain, is_end_told, is_found };
            return Ok(Some(found));
        }
        if self.folder.is_kept() {
            let listed = sums.first().map(ToString::to_string).unwrap_or_default();
            let said = format!("SHA-256 is {sha256}, they list {listed}");
            return Err(DownloadError::Occupied { path, said });
        }
        remove_file(&path)?;
        Ok(None)
    }

    /// Notes a failure in the task and of the mirror.
    pub(super) fn note_fault(&self, task: &mut FileTask, source: usize, fault: &MirrorFault) {
        task.note(source, fault);
        self.mirrors.note_fault(task, source, fault);
    }
}

/// Measures how fast bytes come, window after window.
#[derive(Debug)]
struct RateMeter {
    window: Duration,
    begun: Instant,
    bytes: u64,
    is_first: bool,
}

impl RateMeter {
    fn begin(window: Duration) -> Self {
        Self { window, begun: Instant::now(), bytes: 0, is_first: true }
    }

    /// Counts bytes; bytes a second, at the end of a window.
    fn add(&mut self, count: u64) -> Option<u64> {
        self.bytes = self.bytes.saturating_add(count);
        if self.begun.elapsed() < self.window {
            return None;
        }
        let rate = self.rate();
        *self = Self { is_first: false, ..Self::begin(self.window) };
        Some(rate)
    }

    /// Bytes a second of an answer that ended before its first window did, unless it was too short to
    /// say anything.
    fn short_rate(&self) -> Option<u64> {
        (self.is_first && self.bytes >= PROGRESS_BYTES_MIN).then(|| self.rate())
    }

    fn rate(&self) -> u64 {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        self.bytes.saturating_mul(1000) / millis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_told_once_a_window() {
        let mut meter = RateMeter::begin(Duration::from_secs(5));
        assert_eq!(meter.add(1000), None);
        assert_eq!(meter.short_rate(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(meter.add(99_000), None);
        assert_eq!(meter.short_rate(), Some(100_000));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(meter.add(100_000), Some(20_000));
        assert_eq!(meter.add(100_000), None);
        assert_eq!(meter.short_rate(), None);
    }
}
