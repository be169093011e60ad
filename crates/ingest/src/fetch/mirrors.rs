//! The mirrors of a download: their lists, and how each stands.
//!
//! Knows: which lists a mirror may have, and what is said of mirrors.
//! Never knows: what becomes of files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use node::{AskError, LogLimit};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::catalog::{MirrorFile, join_lists};
use super::error::{ListError, MirrorFault, MirrorFaultKind};
use super::events::{FetchEvent, FetchWatch};
use super::http::MirrorClient;
use super::limits::FetchLimits;
use super::list::{MirrorList, of_archive, parse_sums, parse_urls};
use super::mirror_state::{
    MirrorChoice, MirrorMove, MirrorRank, MirrorState, PartOnDisk, can_others_resume, choose,
    find_better, find_slow, has_better_rival, has_ready_rival,
};
use super::mirror_url::{MirrorUrl, NamedPart, SUMS_NAME, URLS_NAME};
use super::task::FileTask;

/// Of how many files the length is requested to estimate that of all.
const LENGTHS_MAX: usize = 16;
/// How long their lengths are waited for: a download does not depend on them.
const LENGTHS_TIMEOUT: Duration = Duration::from_secs(5);

/// Mirrors, the preferred one first.
pub struct Mirrors {
    urls: Vec<MirrorUrl>,
    pub(super) client: MirrorClient,
    pub(super) limits: FetchLimits,
    pub(super) watch: Arc<dyn FetchWatch>,
    /// As many as there are addresses.
    states: Mutex<Vec<MirrorState>>,
    /// Mirrors that fail again and again fill no screen.
    log_limit: Mutex<LogLimit>,
}

impl std::fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirrors").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl Mirrors {
    /// Mirrors that nobody was asked of yet.
    pub fn new(
        urls: Vec<MirrorUrl>,
        limits: FetchLimits,
        watch: Arc<dyn FetchWatch>,
    ) -> Result<Self, AskError> {
        let client = MirrorClient::new(urls.iter().any(MirrorUrl::is_secure), limits)?;
        let states = Mutex::new(vec![MirrorState::default(); urls.len()]);
        Ok(Self { urls, client, limits, watch, states, log_limit: Mutex::default() })
    }

    /// Reads the lists of all mirrors at the same time. One whose list cannot be had, or comes long after
    /// another's, is left out and told; if none can be had, what each said comes back.
    pub async fn list(&self) -> Result<Vec<MirrorFile>, Vec<(String, ListError)>> {
        let ask = async |(position, url): (usize, &MirrorUrl)| (position, self.list_one(url).await);
        let mut asked: FuturesUnordered<_> = self.urls.iter().enumerate().map(ask).collect();
        let grace = self.limits.list_grace;
        let mut lists: Vec<Option<Result<MirrorList, ListError>>> =
            self.urls.iter().map(|_| None).collect();
        let begun = Instant::now();
        let patience = self.limits.patience;
        // A time that no clock can tell never comes.
        let mut notice = begun.checked_add(self.limits.list_notice);
        let mut until = begun.checked_add(patience);
        let mut is_any_read = false;
        loop {
            let wake = [notice, until].into_iter().flatten().min();
            let ended = match wake {
                Some(wake) => timeout_at(wake, asked.next()).await,
                None => Ok(asked.next().await),
            };
            let (position, list) = match ended {
                Ok(Some(ended)) => ended,
                Err(_) if wake == notice && notice != until => {
                    notice = None;
                    let late = self.urls.iter().zip(&lists).filter(|(_, list)| list.is_none());
                    for (url, _) in late {
                        let mirror = url.to_string();
                        self.watch.heard(&FetchEvent::Waiting { mirror });
                    }
                    continue;
                }
                Ok(None) | Err(_) => break,
            };
            // The address of an archive is no list: nobody answered for it yet.
            let url = self.urls.get(position);
            let is_read = !matches!(url.and_then(MirrorUrl::named), Some(NamedPart::Archive(_)));
            if list.is_ok() && is_read && !is_any_read {
                is_any_read = true;
                until = [until, Instant::now().checked_add(grace)].into_iter().flatten().min();
            }
            if let Some(place) = lists.get_mut(position) {
                *place = Some(list);
            }
        }
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        for (position, (url, list)) in self.urls.iter().zip(lists).enumerate() {
            let time = if is_any_read { grace } else { patience };
            let late = || ListError::Late { time, is_after: is_any_read };
            match list.unwrap_or_else(|| Err(late())) {
                Ok(list) => {
                    if let count @ 1.. = list.surplus_count {
                        let mirror = url.to_string();
                        self.watch.heard(&FetchEvent::Surplus { mirror, count });
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
            self.watch.heard(&FetchEvent::LeftOut { mirror, fault: error.to_string() });
        }
        Ok(join_lists(found))
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

    async fn list_one(&self, url: &MirrorUrl) -> Result<MirrorList, ListError> {
        let names: &[&str] = match url.named() {
            Some(NamedPart::Archive(name)) => return Ok(of_archive(url, name)?),
            Some(NamedPart::List(name)) if name == URLS_NAME => &[URLS_NAME],
            Some(NamedPart::List(_)) => &[SUMS_NAME],
            None => &[SUMS_NAME, URLS_NAME],
        };
        let mut refused = None;
        for name in names {
            let read = self.read_list(url, name).await.and_then(|bytes| {
                let parse = if *name == SUMS_NAME { parse_sums } else { parse_urls };
                Ok(parse(url, &bytes)?)
            });
            match read {
                Ok(list) => return Ok(list),
                Err(ListError::Mirror { fault: MirrorFault::Missing { .. }, .. }) => {}
                // What is wrong with the better list says more.
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        Err(refused.unwrap_or(ListError::NoList))
    }

    async fn read_list(
        &self,
        url: &MirrorUrl,
        name: &str,
    ) -> Result<hyper::body::Bytes, ListError> {
        let target = url.file(name).ok_or(ListError::NoList)?;
        let mut state = MirrorState::default();
        let mut tries = 1;
        loop {
            let fault = match self.client.read(&target).await {
                Ok(bytes) => return Ok(bytes),
                Err(fault) => fault,
            };
            if fault.kind() != MirrorFaultKind::Passing || tries >= self.limits.list_tries {
                return Err(ListError::Mirror { list: name.to_owned(), fault });
            }
            tries = tries.saturating_add(1);
            let until = state.rest(&self.limits, fault.retry_after(), Instant::now());
            sleep_until(until).await;
        }
    }

    /// Who is asked next for a file.
    pub(super) fn choose(&self, task: &FileTask, begun: PartOnDisk) -> MirrorChoice {
        choose(&self.lock(), task, begun, Instant::now())
    }

    /// Notes the rate of a source over a whole window, and says whether the download goes on
    /// elsewhere.
    pub(super) fn note_rate(
        &self,
        task: &FileTask,
        source: usize,
        rate: u64,
    ) -> Option<MirrorMove> {
        self.change(task, source, |state| (state.rate, state.is_rate_sure) = (Some(rate), true));
        let better = find_better(&self.lock(), task, source, rate, Instant::now());
        self.set_slow_aside();
        better
    }

    /// Tells once of a mirror that it is slow, though nobody is better asked: the user may know another.
    pub(super) fn tell_slow(&self, task: &FileTask, source: usize, rate: u64) {
        if rate >= self.limits.slow_rate {
            return;
        }
        let mut is_told = true;
        self.change(task, source, |state| {
            is_told = std::mem::replace(&mut state.is_slowness_told, true);
        });
        if !is_told {
            let mirror = self.name(task, source);
            self.watch.heard(&FetchEvent::Slow { mirror, rate: rate / 1000 });
        }
    }

    /// Notes the rate of a short answer.
    pub(super) fn note_short_rate(&self, task: &FileTask, source: usize, rate: u64) {
        self.change(task, source, |state| {
            if !state.is_rate_sure {
                state.rate = Some(rate);
            }
        });
        self.set_slow_aside();
    }

    /// Mirrors that are far slower than another are asked when no other can be.
    fn set_slow_aside(&self) {
        let (slow, fastest) = find_slow(&self.lock());
        for mirror in slow {
            let rate = self.lock().get(mirror).and_then(|state| state.rate).unwrap_or(0);
            let [rate, fastest] = [rate, fastest].map(|rate| rate / 1000);
            let why = format!("slow: {rate} kB/s, another mirror has {fastest} kB/s");
            self.set_aside(mirror, MirrorRank::Slow, why);
        }
    }

    /// A source sends whole files whatever part is asked for. Whether another one is better asked.
    pub(super) fn note_no_ranges(&self, task: &FileTask, source: usize) -> bool {
        self.change(task, source, |state| state.ignores_ranges = true);
        can_others_resume(&self.lock(), task, source, Instant::now())
    }

    /// Whether a source sends whole files whatever part is asked for.
    pub(super) fn ignores_ranges(&self, task: &FileTask, source: usize) -> bool {
        let mut ignores_ranges = false;
        self.change(task, source, |state| ignores_ranges = state.ignores_ranges);
        ignores_ranges
    }

    /// A source gave what it was asked for.
    pub(super) fn note_success(&self, task: &FileTask, source: usize) {
        self.change(task, source, MirrorState::succeed);
    }

    /// A source failed.
    pub(super) fn note_fault(&self, task: &FileTask, source: usize, fault: &MirrorFault) {
        match fault.kind() {
            MirrorFaultKind::Lasting => self.say_failed(task, source, fault),
            MirrorFaultKind::Passing => {
                self.change(task, source, |state| {
                    let _ = state.rest(&self.limits, fault.retry_after(), Instant::now());
                });
                self.say_failed(task, source, fault);
            }
            MirrorFaultKind::False => {
                let why = format!("{}: {fault}", task.file.name);
                if let Some(source) = task.file.sources.get(source) {
                    self.set_aside(source.mirror, MirrorRank::False, why);
                }
            }
        }
    }

    /// How little is hoped for from a mirror: how it stands, and whether it failed last.
    pub(super) fn doubt(&self, mirror: usize) -> (MirrorRank, bool) {
        let states = self.lock();
        states.get(mirror).map(|state| (state.standing, state.is_failing())).unwrap_or_default()
    }

    /// Whether a mirror that has the same blocks under another name can be asked now.
    pub(super) fn has_ready_rival(&self, task: &FileTask) -> bool {
        has_ready_rival(&self.lock(), task, Instant::now())
    }

    /// Whether one of them is better asked than a mirror at this rate.
    pub(super) fn has_better_rival(&self, task: &FileTask, rate: u64) -> bool {
        has_better_rival(&self.lock(), task, rate, Instant::now())
    }

    /// What became of each mirror of a file.
    pub(super) fn said(&self, task: &FileTask) -> Vec<String> {
        let name = |mirror: usize| self.urls.get(mirror).map(ToString::to_string);
        let said = task.said();
        said.filter_map(|(mirror, said)| Some(format!("{}: {said}", name(mirror)?))).collect()
    }

    /// A mirror is asked after the others from now on, which is told once.
    fn set_aside(&self, mirror: usize, standing: MirrorRank, why: String) {
        let is_new = self.lock().get_mut(mirror).is_some_and(|state| {
            let is_new = state.standing < standing;
            state.standing = state.standing.max(standing);
            is_new
        });
        if is_new {
            let mirror = self.urls.get(mirror).map(ToString::to_string).unwrap_or_default();
            self.watch.heard(&FetchEvent::SetAside { mirror, why });
        }
    }

    fn say_failed(&self, task: &FileTask, source: usize, fault: &MirrorFault) {
        if self.log_limit.lock().unwrap_or_else(PoisonError::into_inner).allow() {
            let (mirror, file) = (self.name(task, source), task.file.name.clone());
            self.watch.heard(&FetchEvent::Failed { mirror, file, fault: fault.to_string() });
        }
    }

    fn name(&self, task: &FileTask, source: usize) -> String {
        let mirror = task.file.sources.get(source).map(|source| source.mirror);
        mirror.and_then(|mirror| self.urls.get(mirror)).map(ToString::to_string).unwrap_or_default()
    }

    fn change(&self, task: &FileTask, source: usize, change: impl FnOnce(&mut MirrorState)) {
        let Some(mirror) = task.file.sources.get(source).map(|source| source.mirror) else {
            return;
        };
        if let Some(state) = self.lock().get_mut(mirror) {
            change(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<MirrorState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
