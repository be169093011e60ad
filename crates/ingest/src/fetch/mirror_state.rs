//! How mirrors stand, and which of them is asked next.
//!
//! Knows: rests after failures, rates, and who is set aside.
//! Never knows: how a mirror is asked.

use std::time::Duration;

use alloy_primitives::B256;
use node::{PauseRange, with_jitter};
use tokio::time::Instant;

use super::limits::FetchLimits;
use super::task::FileTask;

/// A mirror is slow if another one is so many times faster.
const SLOW_RATIO: u64 = 4;
/// A mirror that can go on where a download ended is not waited for after more failures than this: it
/// may be gone for good, while another one would send the file anew.
const RESUME_FAULTS_MAX: u32 = 6;

/// How one mirror stands.
#[derive(Clone, Debug, Default)]
pub(super) struct MirrorState {
    pub(super) standing: MirrorRank,
    /// Failures since the last success.
    fault_count: u32,
    rests_until: Option<Instant>,
    /// Bytes a second, as last measured.
    pub(super) rate: Option<u64>,
    /// Whether that was over a whole window: a short answer says little of a mirror.
    pub(super) is_rate_sure: bool,
    /// Whether it sends whole files whatever part is asked for.
    pub(super) ignores_ranges: bool,
    /// Whether it was told that it is slow and nobody is better asked.
    pub(super) is_slowness_told: bool,
}

/// Whether a mirror is asked like the others, from the best on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MirrorRank {
    #[default]
    Good,
    /// Asked when no good one can be.
    Slow,
    /// Asked when no other has the file.
    False,
}

/// Who is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorChoice {
    /// This source of the file.
    Ask(usize),
    /// Nobody before then.
    Rest(Instant),
    /// Nobody has it.
    Nobody,
}

impl MirrorChoice {
    /// How long nothing new has come by the time that somebody is asked.
    pub(super) fn quiet_time(self, since: Instant) -> Duration {
        match self {
            Self::Ask(_) => since.elapsed(),
            Self::Rest(until) => until.duration_since(since),
            Self::Nobody => Duration::ZERO,
        }
    }
}

/// What is on disk of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartOnDisk {
    pub(super) sha256: Option<B256>,
    pub(super) bytes: u64,
}

/// A download goes on elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MirrorMove {
    /// The source that it goes on with.
    pub(super) to: usize,
}

impl MirrorState {
    /// Rests after a failure: longer each time, or as long as the mirror asks. Until when comes back.
    pub(super) fn rest(
        &mut self,
        limits: &FetchLimits,
        asked: Option<Duration>,
        now: Instant,
    ) -> Instant {
        let pauses = PauseRange { begin: limits.pause_begin, max: limits.pause_max };
        let pause = with_jitter(pauses.after(self.fault_count)).max(asked.unwrap_or_default());
        self.fault_count = self.fault_count.saturating_add(1);
        let until = now.checked_add(pause).unwrap_or(now);
        self.rests_until = Some(until);
        until
    }

    /// It gave what it was asked for.
    pub(super) fn succeed(&mut self) {
        self.fault_count = 0;
        self.rests_until = None;
    }

    /// Whether it failed since it last gave something.
    pub(super) fn is_failing(&self) -> bool {
        self.fault_count > 0
    }

    fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| until > now)
    }

    /// When its rest ends, if that is worth waiting for.
    fn resumes_at(&self, now: Instant) -> Option<Instant> {
        let is_hoped_for = self.is_resting(now) && self.fault_count <= RESUME_FAULTS_MAX;
        self.rests_until.filter(|_| is_hoped_for)
    }
}

/// Who is asked next for a file of which something may be there. The best standing counts first, then
/// whether the download can go on where it ended, then the rate. Before a download is begun anew, who
/// can go on with it may rest for a while.
pub(super) fn choose(
    states: &[MirrorState],
    task: &FileTask,
    begun: PartOnDisk,
    now: Instant,
) -> MirrorChoice {
    let open = || {
        let sources = task.open_sources();
        sources.filter_map(|(source, mirror, sum)| Some((source, states.get(mirror)?, sum)))
    };
    let Some(best) = open().map(|(_, state, _)| state.standing).min() else {
        return MirrorChoice::Nobody;
    };
    // Who lied is not asked because others rest.
    let is_last_resort = best == MirrorRank::False;
    let asked =
        || open().filter(|(_, state, _)| state.standing < MirrorRank::False || is_last_resort);
    let ready = asked().filter(|(_, state, _)| !state.is_resting(now));
    let starts_anew = |state: &MirrorState, sum: Option<B256>| {
        begun.bytes > 0 && (state.ignores_ranges || sum != begun.sha256)
    };
    let chosen = ready.min_by_key(|(source, state, sum)| {
        (state.standing, starts_anew(state, *sum), std::cmp::Reverse(state.rate), *source)
    });
    if let Some((source, chosen, sum)) = chosen {
        let resuming = asked().filter(|(_, state, sum)| {
            state.standing <= chosen.standing && !starts_anew(state, *sum)
        });
        let wakes = resuming.filter_map(|(_, state, _)| state.resumes_at(now)).min();
        return match wakes {
            Some(until) if starts_anew(chosen, sum) => MirrorChoice::Rest(until),
            _ => MirrorChoice::Ask(source),
        };
    }
    let wakes = asked().filter_map(|(_, state, _)| state.rests_until).min();
    wakes.map_or(MirrorChoice::Nobody, MirrorChoice::Rest)
}

/// Whether a download at this rate goes on elsewhere: with a mirror that was not measured yet, or with
/// one that is far faster. Only a mirror that has the very same file and can go on where this one ends
/// comes into question.
pub(super) fn find_better(
    states: &[MirrorState],
    task: &FileTask,
    source: usize,
    rate: u64,
    now: Instant,
) -> Option<MirrorMove> {
    if task.has_misfit {
        return None;
    }
    let sum = task.file.sources.get(source)?.sha256;
    let others = task.open_sources().filter(|(other, _, found)| *other != source && *found == sum);
    let others = others.filter_map(|(other, mirror, _)| Some((other, states.get(mirror)?)));
    let others: Vec<(usize, &MirrorState)> = others
        .filter(|(_, state)| state.standing == MirrorRank::Good && !state.ignores_ranges)
        .filter(|(_, state)| !state.is_resting(now))
        .collect();
    let unmeasured = others.iter().find(|(_, state)| state.rate.is_none());
    if let Some((to, _)) = unmeasured {
        return Some(MirrorMove { to: *to });
    }
    let (to, fastest) = others.into_iter().max_by_key(|(_, state)| state.rate)?;
    is_far_slower(rate, fastest.rate?).then_some(MirrorMove { to })
}

/// Whether a mirror that has the same blocks under another name can be asked now.
pub(super) fn has_ready_rival(states: &[MirrorState], task: &FileTask, now: Instant) -> bool {
    ready_rivals(states, task, now).next().is_some()
}

/// Whether one of them is better asked than a mirror at this rate: it was not measured yet and did not
/// fail, or is far faster.
pub(super) fn has_better_rival(
    states: &[MirrorState],
    task: &FileTask,
    rate: u64,
    now: Instant,
) -> bool {
    ready_rivals(states, task, now)
        .any(|state| state.rate.map_or(!state.is_failing(), |other| is_far_slower(rate, other)))
}

fn ready_rivals<'a>(
    states: &'a [MirrorState],
    task: &'a FileTask,
    now: Instant,
) -> impl Iterator<Item = &'a MirrorState> {
    let rivals = task.rivals.iter().filter_map(|mirror| states.get(*mirror));
    rivals.filter(move |state| state.standing < MirrorRank::False && !state.is_resting(now))
}

/// The positions of mirrors that are far slower than the fastest, and the rate of that one. Only rates
/// over a whole window count: a short answer may have been in some cache.
pub(super) fn find_slow(states: &[MirrorState]) -> (Vec<usize>, u64) {
    let good = || states.iter().enumerate().filter(|(_, it)| it.standing == MirrorRank::Good);
    let sure = || {
        let sure = good().filter(|(_, state)| state.is_rate_sure);
        sure.filter_map(|(mirror, state)| Some((mirror, state.rate?)))
    };
    let fastest = sure().map(|(_, rate)| rate).max().unwrap_or(0);
    let slow = sure().filter(|(_, rate)| is_far_slower(*rate, fastest));
    (slow.map(|(mirror, _)| mirror).collect(), fastest)
}

fn is_far_slower(rate: u64, fastest: u64) -> bool {
    fastest >= rate.saturating_mul(SLOW_RATIO).max(1)
}

/// Whether another mirror that is well can go on where a download ended.
pub(super) fn can_others_resume(
    states: &[MirrorState],
    task: &FileTask,
    source: usize,
    now: Instant,
) -> bool {
    let sum = task.file.sources.get(source).and_then(|source| source.sha256);
    task.open_sources().any(|(other, mirror, found)| {
        let state = states.get(mirror);
        let is_well = state.is_some_and(|it| {
            it.standing == MirrorRank::Good && !it.ignores_ranges && !it.is_resting(now)
        });
        other != source && found == sum && is_well
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::catalog::join_lists;
    use crate::fetch::error::MirrorFault;
    use crate::fetch::list::parse_urls;

    fn task(mirror_count: usize) -> FileTask {
        let url = "http://a.example/".parse().unwrap();
        let list = |_| parse_urls(&url, b"x-00000-00000000.ere").unwrap();
        let files = join_lists((0..mirror_count).map(list).enumerate().collect());
        FileTask::new(files[0].clone())
    }

    fn rated(rate: Option<u64>) -> MirrorState {
        MirrorState { rate, ..MirrorState::default() }
    }

    const NONE: PartOnDisk = PartOnDisk { sha256: None, bytes: 0 };
    const SOME: PartOnDisk = PartOnDisk { sha256: None, bytes: 9 };

    #[tokio::test(start_paused = true)]
    async fn the_fastest_is_asked_and_before_anything_is_known_the_first() {
        let now = Instant::now();
        let mut states = vec![MirrorState::default(); 3];
        assert_eq!(choose(&states, &task(3), NONE, now), MirrorChoice::Ask(0));
        states[1].rate = Some(7);
        states[2].rate = Some(9);
        assert_eq!(choose(&states, &task(3), NONE, now), MirrorChoice::Ask(2));
        // What is begun goes on where it can.
        states[2].ignores_ranges = true;
        assert_eq!(choose(&states, &task(3), SOME, now), MirrorChoice::Ask(1));
        assert_eq!(choose(&states, &task(3), NONE, now), MirrorChoice::Ask(2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_failed_rests_longer_each_time_and_others_are_asked_meanwhile() {
        let (limits, now) = (FetchLimits::default(), Instant::now());
        let mut states = vec![MirrorState::default(); 2];
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            states[0].rest(&limits, None, now);
            longest = longest.max(states[0].rests_until.unwrap() - now);
        }
        assert!(longest <= limits.pause_max && longest >= limits.pause_max / 2, "{longest:?}");
        assert_eq!(choose(&states, &task(2), NONE, now), MirrorChoice::Ask(1));
        states[1].rest(&limits, Some(Duration::from_secs(7)), now);
        let until = now + Duration::from_secs(7);
        assert_eq!(choose(&states, &task(2), NONE, now), MirrorChoice::Rest(until));
        assert_eq!(choose(&states, &task(2), NONE, until), MirrorChoice::Ask(1));
        states[0].succeed();
        assert_eq!(choose(&states, &task(2), NONE, now), MirrorChoice::Ask(0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_is_asked_when_others_rest_and_who_lied_when_there_are_no_others() {
        let (limits, now) = (FetchLimits::default(), Instant::now());
        let mut states = vec![MirrorState::default(); 3];
        states[0].standing = MirrorRank::False;
        states[1].standing = MirrorRank::Slow;
        let mut task = task(3);
        assert_eq!(choose(&states, &task, NONE, now), MirrorChoice::Ask(2));
        states[2].rest(&limits, None, now);
        assert_eq!(choose(&states, &task, NONE, now), MirrorChoice::Ask(1));
        states[1].rest(&limits, None, now);
        assert!(matches!(choose(&states, &task, NONE, now), MirrorChoice::Rest(_)));
        let missing = MirrorFault::Missing { status: 404 };
        task.note(1, &missing);
        task.note(2, &missing);
        assert_eq!(choose(&states, &task, NONE, now), MirrorChoice::Ask(0));
        task.note(0, &missing);
        assert_eq!(choose(&states, &task, NONE, now), MirrorChoice::Nobody);
    }

    #[tokio::test(start_paused = true)]
    async fn who_can_go_on_is_waited_for_a_while_before_a_download_is_begun_anew() {
        let (limits, now) = (FetchLimits::default(), Instant::now());
        let mut states = vec![MirrorState::default(); 2];
        states[1].ignores_ranges = true;
        let until = states[0].rest(&limits, None, now);
        assert_eq!(choose(&states, &task(2), SOME, now), MirrorChoice::Rest(until));
        assert_eq!(choose(&states, &task(2), NONE, now), MirrorChoice::Ask(1));
        assert_eq!(choose(&states, &task(2), SOME, until), MirrorChoice::Ask(0));
        // One that fails again and again is not.
        for _ in 0..RESUME_FAULTS_MAX {
            states[0].rest(&limits, None, now);
        }
        assert_eq!(choose(&states, &task(2), SOME, now), MirrorChoice::Ask(1));
    }

    #[tokio::test(start_paused = true)]
    async fn another_name_is_better_asked_for_if_its_mirror_is_unknown_or_far_faster() {
        let (limits, now) = (FetchLimits::default(), Instant::now());
        let mut task = task(1);
        let better = |task: &FileTask, rival: &MirrorState| {
            has_better_rival(&[rated(Some(100)), rival.clone()], task, 100, now)
        };
        assert!(!better(&task, &rated(None)), "it has no other name");
        task.rivals = vec![1];
        assert!(better(&task, &rated(None)));
        assert!(better(&task, &rated(Some(400))) && !better(&task, &rated(Some(399))));
        let slow = MirrorState { standing: MirrorRank::Slow, ..rated(Some(400)) };
        let lying = MirrorState { standing: MirrorRank::False, ..rated(Some(400)) };
        assert!(better(&task, &slow) && !better(&task, &lying));
        let mut failed = rated(None);
        let until = failed.rest(&limits, None, now);
        let states = [rated(None), failed];
        assert!(!has_ready_rival(&states, &task, now) && has_ready_rival(&states, &task, until));
        assert!(!has_better_rival(&states, &task, 100, until), "it may give nothing");
    }

    #[test]
    fn who_is_slow_beyond_doubt_is_found() {
        let sure = |rate| MirrorState { is_rate_sure: true, ..rated(Some(rate)) };
        assert_eq!(find_slow(&[sure(100), sure(400), rated(None)]), (vec![0], 400));
        assert_eq!(find_slow(&[sure(100), rated(Some(400))]), (vec![], 100));
        assert_eq!(find_slow(&[sure(101), sure(400)]), (vec![], 400));
        assert_eq!(find_slow(&[rated(Some(100)), sure(400)]), (vec![], 400));
        assert_eq!(find_slow(&[sure(0)]), (vec![], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_download_moves_to_be_measured_elsewhere_and_away_from_a_slow_mirror() {
        let now = Instant::now();
        let better = |states: &[MirrorState], rate| find_better(states, &task(2), 0, rate, now);
        let states = [rated(Some(100)), rated(None)];
        assert_eq!(better(&states, 100), Some(MirrorMove { to: 1 }));
        let states = [rated(Some(100)), rated(Some(399))];
        assert_eq!(better(&states, 100), None);
        let mut states = [rated(Some(100)), rated(Some(400))];
        assert_eq!(better(&states, 100), Some(MirrorMove { to: 1 }));
        assert_eq!(better(&states, 0), Some(MirrorMove { to: 1 }));
        assert!(can_others_resume(&states, &task(2), 0, now));
        states[1].ignores_ranges = true;
        assert_eq!(better(&states, 100), None);
        assert!(!can_others_resume(&states, &task(2), 0, now));
        assert!(find_better(&[rated(None)], &task(1), 0, 0, now).is_none());
    }
}
