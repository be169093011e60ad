//! The mirrors of a fetch: their lists, their state, and their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::catalog::{MirrorFile, join_lists};
use super::error::{DownloadError, FaultKind, ListError, MirrorFault};
use super::http::MirrorClient;
use super::list::{MirrorList, of_archive, parse_sums, parse_urls};
use super::mirror_url::{MirrorUrl, NamedPart, SUMS_NAME, URLS_NAME};
use super::task::FileTask;
use super::{FetchLimits, FetchWatch};

/// Files whose length is requested to estimate that of all.
const LENGTHS_MAX: usize = 16;
/// Time for these requests: a download does not depend on them.
const LENGTHS_TIMEOUT: Duration = Duration::from_secs(5);
const LIST_TRIES_MAX: u32 = 3;
/// The pause doubles no more often.
const PAUSE_DOUBLINGS_MAX: u32 = 6;

/// Mirrors, the preferred one first.
pub struct Mirrors {
    urls: Vec<MirrorUrl>,
    pub(super) client: MirrorClient,
    pub(super) limits: FetchLimits,
    pub(super) watch: Arc<dyn FetchWatch>,
    /// One for each address.
    states: Mutex<Vec<MirrorState>>,
}

/// How a mirror behaved in this run: the better ones are asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MirrorRank {
    #[default]
    Good,
    Slow,
    /// It sent wrong bytes.
    False,
}

#[derive(Clone, Copy, Debug, Default)]
struct MirrorState {
    rank: MirrorRank,
    /// Failures in a row that may pass.
    failures: u32,
    /// The end of its pause.
    ready_at: Option<Instant>,
}

impl std::fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirrors").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl Mirrors {
    /// Mirrors that were not asked yet.
    pub fn new(
        urls: Vec<MirrorUrl>,
        limits: FetchLimits,
        watch: Arc<dyn FetchWatch>,
    ) -> Result<Self, reqwest::Error> {
        let client = MirrorClient::new(urls.iter().any(MirrorUrl::is_secure), limits)?;
        let states = Mutex::new(vec![MirrorState::default(); urls.len()]);
        Ok(Self { urls, client, limits, watch, states })
    }

    /// Reads the lists of all mirrors at the same time. A mirror without one is left out with a warning;
    /// if there is none at all, the error of each mirror is returned.
    pub async fn list(&self) -> Result<Vec<MirrorFile>, Vec<(String, ListError)>> {
        let time = self.limits.timeout;
        let lists = self.urls.iter().map(|url| timeout(time, self.list_one(url)));
        let lists = join_all(lists).await;
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        for (position, (url, list)) in self.urls.iter().zip(lists).enumerate() {
            match list.unwrap_or(Err(ListError::Late(time))) {
                Ok(list) => {
                    if let count @ 1.. = list.surplus_count {
                        self.watch.warn(format!(
                            "mirror {url} lists too many names for the same blocks: {count} are ignored"
                        ));
                    }
                    found.push((position, list));
                }
                Err(error) => refused.push((url.to_string(), error)),
            }
        }
        if found.is_empty() {
            return Err(refused);
        }
        for (mirror, error) in refused {
            self.watch.warn(format!("mirror {mirror} is left out: {error}"));
        }
        Ok(join_lists(found))
    }

    async fn list_one(&self, url: &MirrorUrl) -> Result<MirrorList, ListError> {
        let names: &[&'static str] = match url.named() {
            Some(NamedPart::Archive(name)) => return Ok(of_archive(url, name)?),
            Some(NamedPart::UrlList) => &[URLS_NAME],
            Some(NamedPart::SumList) => &[SUMS_NAME],
            None => &[SUMS_NAME, URLS_NAME],
        };
        let mut refused = None;
        for list in names {
            let parse = if *list == SUMS_NAME { parse_sums } else { parse_urls };
            let read = match self.read_list(url, list).await {
                Ok(bytes) => parse(url, &bytes).map_err(ListError::from),
                Err(fault) if fault.is_missing => continue,
                Err(fault) => Err(ListError::Mirror { list, fault }),
            };
            match read {
                Ok(list) => return Ok(list),
                // The error of the better list says more.
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        Err(refused.unwrap_or(ListError::NoList))
    }

    async fn read_list(&self, url: &MirrorUrl, name: &str) -> Result<Vec<u8>, MirrorFault> {
        let mut tries = 1;
        loop {
            match self.client.read(&url.file(name)).await {
                Err(fault) if fault.kind == FaultKind::Passing && tries < LIST_TRIES_MAX => {
                    let pause = self.limits.pause.saturating_mul(tries);
                    sleep(fault.retry_after.unwrap_or(pause).min(self.limits.timeout)).await;
                    tries = tries.saturating_add(1);
                }
                read => return read,
            }
        }
    }

    /// How many bytes these files have together, by the lengths that mirrors report of some of them. `None`
    /// if they report none in time.
    pub async fn estimate_bytes(&self, files: &[MirrorFile]) -> Option<u64> {
        let step = files.len().div_ceil(LENGTHS_MAX).max(1);
        let some = files.iter().skip(step / 2).step_by(step);
        let lengths = some.filter_map(|file| file.sources.first());
        let lengths = join_all(lengths.map(|source| self.client.file_bytes(&source.target)));
        let lengths = timeout(LENGTHS_TIMEOUT, lengths).await.ok()?;
        // A longer file is not taken.
        let is_taken = |length: &u64| *length <= self.limits.file_bytes_max;
        let lengths: Vec<u64> = lengths.into_iter().flatten().filter(is_taken).collect();
        let sum = lengths.iter().copied().fold(0, u64::saturating_add);
        let mean = sum.checked_div(u64::try_from(lengths.len()).ok()?)?;
        Some(mean.saturating_mul(u64::try_from(files.len()).ok()?))
    }

    /// The next source to ask for a file, and the end of its pause: mirrors that sent wrong bytes last,
    /// those that pause after the others, slow ones after faster ones, else in the given order.
    pub(super) fn choose(&self, task: &FileTask) -> Option<(usize, Option<Instant>)> {
        let (states, now) = (self.lock(), Instant::now());
        let order = |(position, mirror): (usize, usize)| {
            let state = states.get(mirror).copied().unwrap_or_default();
            let ready_at = state.ready_at.filter(|ready| *ready > now);
            (state.rank == MirrorRank::False, ready_at, state.rank, mirror, position)
        };
        let open = task.open_sources().map(|(position, source)| (position, source.mirror));
        open.map(order).min().map(|(_, ready_at, .., position)| (position, ready_at))
    }

    /// Whether a file has other open sources that never sent wrong bytes.
    pub(super) fn has_others(&self, task: &FileTask, source: usize) -> bool {
        let others = task.open_sources().filter(|(position, _)| *position != source);
        others.map(|(_, other)| self.rank(other.mirror)).any(|rank| rank < MirrorRank::False)
    }

    pub(super) fn rank(&self, mirror: usize) -> MirrorRank {
        self.lock().get(mirror).map(|state| state.rank).unwrap_or_default()
    }

    /// Notes that a mirror gave what was requested.
    pub(super) fn note_progress(&self, mirror: usize) {
        if let Some(state) = self.lock().get_mut(mirror) {
            (state.failures, state.ready_at) = (0, None);
        }
    }

    /// Notes a failure of a source in its task and in its mirror's state.
    pub(super) fn note_fault(&self, task: &mut FileTask, source: usize, fault: &MirrorFault) {
        let Some(mirror) = task.file.sources.get(source).map(|source| source.mirror) else {
            return;
        };
        let is_new = task.note(source, fault);
        let mut is_demoted = false;
        if let Some(state) = self.lock().get_mut(mirror) {
            let rank = match fault.kind {
                FaultKind::Passing | FaultKind::Lasting => state.rank,
                FaultKind::Slow => MirrorRank::Slow,
                FaultKind::False => MirrorRank::False,
            };
            is_demoted = rank > state.rank;
            state.rank = rank.max(state.rank);
            if fault.kind == FaultKind::Passing {
                let doublings = state.failures.min(PAUSE_DOUBLINGS_MAX);
                let pause = self.limits.pause.saturating_mul(1 << doublings);
                let pause = pause.max(fault.retry_after.unwrap_or_default());
                state.failures = state.failures.saturating_add(1);
                state.ready_at = Instant::now().checked_add(pause);
            }
        }
        if is_new || is_demoted {
            let consequence =
                if is_demoted { "; other mirrors come first from now on" } else { "" };
            let (name, url) = (&task.file.name, self.name(mirror));
            self.watch.warn(format!("mirror {url}: {name}: {fault}{consequence}"));
        }
    }

    /// The error of a file that no mirror gives.
    pub(super) fn no_mirror(&self, task: &FileTask) -> DownloadError {
        let said = task.said().map(|(mirror, said)| format!("{}: {said}", self.name(mirror)));
        DownloadError::NoMirror { file: task.file.name.clone(), said: said.collect() }
    }

    fn name(&self, mirror: usize) -> String {
        self.urls.get(mirror).map(ToString::to_string).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<MirrorState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
