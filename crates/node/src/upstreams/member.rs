//! The health of one upstream node, and the blocks that it cannot give.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::{MemberIndex, RestLimits};
use crate::client::Upstream;
use crate::log_limit::LogLimit;
use crate::wanted_block::WantedBlock;

/// After this long a node is asked again which chain it follows: behind a kept connection to a proxy it
/// may have been replaced.
const IDENTITY_TIME: Duration = Duration::from_secs(30);
/// This often in a row a node may lack a block below its own tip: behind one address there may be
/// several nodes, one of which is ahead.
const UNSERVED_TIPS_MAX: u32 = 3;

/// One of several nodes.
#[derive(Debug)]
pub struct Member {
    pub(super) upstream: Arc<Upstream>,
    state: Mutex<MemberState>,
    /// Held while the node is asked which chain it follows.
    pub(super) identifying: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct MemberState {
    health: Health,
    /// Why it last failed.
    reason: Option<String>,
    /// Whether the log says that it is not healthy.
    is_logged: bool,
    log: LogLimit,
    failure_count: u64,
    invalid_count: u64,
    /// On which connection it said that it follows our chain, and when.
    identified: Option<(u64, Instant)>,
    exclusions: Vec<Exclusion>,
    /// How often in a row its blocks were late, and until when other nodes are asked for blocks first.
    late_blocks: Option<(u32, Instant)>,
    /// How often in a row it lacked a block below its own tip.
    unserved_tips: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum Health {
    #[default]
    Healthy,
    BackingOff {
        failures: u32,
        since: Instant,
        until: Instant,
    },
    Quarantined {
        until: Instant,
    },
}

/// Blocks that a node does not give, though it gives others.
#[derive(Debug)]
struct Exclusion {
    blocks: ExcludedBlocks,
    reason: String,
    until: Instant,
    is_logged: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ExcludedBlocks {
    /// This block and, by number, all above it: their fork is unknown to this build.
    UnknownFork { number: u64, hash: Option<B256> },
    /// All up to this one: their receipts lack the post-state roots.
    UpTo(u64),
    /// All that are requested by number: they do not fit those of the data folder, or of another node.
    ByNumber { against: Option<MemberIndex> },
}

impl ExcludedBlocks {
    fn contains(self, wanted: &WantedBlock) -> bool {
        match (self, wanted) {
            (Self::UnknownFork { number, .. }, WantedBlock::Number(wanted)) => *wanted >= number,
            (Self::UnknownFork { hash, .. }, WantedBlock::Hash { hash: wanted, .. }) => {
                hash == Some(*wanted)
            }
            (Self::UpTo(last), wanted) => wanted.number() <= last,
            (Self::ByNumber { .. }, wanted) => wanted.hash().is_none(),
        }
    }
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberHealth {
    /// Its last answer was one.
    Healthy,
    /// It failed the last time; it is asked again after a pause.
    BackingOff,
    /// It gave an invalid response or follows another chain, and is not asked for long.
    Quarantined,
}

/// Status of a node for logs, metrics and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Host and port.
    pub name: String,
    /// Its state.
    pub health: MemberHealth,
    /// Why it last failed.
    pub last_error: Option<String>,
    /// How often it failed.
    pub failure_count: u64,
    /// How many of its responses were invalid.
    pub invalid_count: u64,
    /// The first block of its fork, if that is unknown to this build.
    pub unknown_fork: Option<u64>,
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = match self.health {
            MemberHealth::Healthy => "healthy",
            MemberHealth::BackingOff => "backing off",
            MemberHealth::Quarantined => "quarantined",
        };
        write!(f, "{} is {health}", self.name)?;
        if let Some(number) = self.unknown_fork {
            write!(f, " and from block {number} on a fork that this build does not know")?;
        }
        match &self.last_error {
            Some(error) => write!(f, " ({error})"),
            None => Ok(()),
        }
    }
}

impl Member {
    pub(super) fn new(upstream: Arc<Upstream>) -> Self {
        Self { upstream, state: Mutex::default(), identifying: tokio::sync::Mutex::default() }
    }

    pub(super) fn status(&self) -> UpstreamStatus {
        let state = self.lock();
        let health = match state.health {
            Health::Healthy => MemberHealth::Healthy,
            Health::Quarantined { .. } if state.is_quarantined() => MemberHealth::Quarantined,
            Health::BackingOff { .. } | Health::Quarantined { .. } => MemberHealth::BackingOff,
        };
        let unknown_fork =
            state.current_exclusions().find_map(|exclusion| match exclusion.blocks {
                ExcludedBlocks::UnknownFork { number, .. } => Some(number),
                ExcludedBlocks::UpTo(_) | ExcludedBlocks::ByNumber { .. } => None,
            });
        UpstreamStatus {
            name: self.upstream.name().to_owned(),
            health,
            last_error: state.reason.clone(),
            failure_count: state.failure_count,
            invalid_count: state.invalid_count,
            unknown_fork,
        }
    }

    /// Whether it may be asked now.
    pub(super) fn is_available(&self) -> bool {
        self.rests_until().is_none_or(|until| until <= Instant::now())
    }

    /// When it may be asked again.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.lock().rests_until()
    }

    /// Until then it is not asked for blocks, or others are asked first.
    pub(super) fn blocks_rest_until(&self) -> Option<Instant> {
        let state = self.lock();
        state.rests_until().max(state.late_blocks.map(|(_, until)| until))
    }

    pub(super) fn is_quarantined(&self) -> bool {
        self.lock().is_quarantined()
    }

    pub(super) fn is_failing(&self) -> bool {
        matches!(self.lock().health, Health::BackingOff { .. })
    }

    pub(super) fn has_failed_for(&self, time: Duration) -> bool {
        let Health::BackingOff { since, .. } = self.lock().health else { return false };
        since.elapsed() >= time
    }

    /// Whether other nodes are asked for blocks first.
    pub(super) fn is_late_with_blocks(&self) -> bool {
        self.lock().late_blocks.is_some_and(|(_, until)| until > Instant::now())
    }

    /// Whether it said recently, and on its newest connection, that it follows our chain.
    pub(super) fn is_identified(&self) -> bool {
        self.lock().identified.is_some_and(|(connection, at)| {
            connection == self.upstream.connection_count() && at.elapsed() < IDENTITY_TIME
        })
    }

    pub(super) fn identified(&self) {
        self.lock().identified = Some((self.upstream.connection_count(), Instant::now()));
    }

    /// Whether a line about it may be logged: their rate is limited.
    pub(super) fn may_log(&self) -> bool {
        self.lock().log.allow()
    }

    pub(super) fn answered(&self) {
        let mut state = self.lock();
        // A late answer does not lift a quarantine, nor does the tip of a node that does not serve it.
        if state.is_quarantined() || state.unserved_tips >= UNSERVED_TIPS_MAX {
            return;
        }
        state.health = Health::Healthy;
        if std::mem::take(&mut state.is_logged) {
            info!(upstream = self.upstream.name(), "upstream healthy again");
        }
    }

    pub(super) fn failed(&self, reason: &str, rest: RestLimits) {
        let mut state = self.lock();
        state.failure_count = state.failure_count.saturating_add(1);
        // Another node may answer at this address next.
        state.identified = None;
        if state.is_quarantined() {
            return;
        }
        let now = Instant::now();
        let (failures, since) = match state.health {
            Health::BackingOff { failures, since, .. } => (failures, since),
            Health::Healthy | Health::Quarantined { .. } => (0, now),
        };
        let until = now.checked_add(rest.failure_pause(failures)).unwrap_or(now);
        let until = state.rests_until().map_or(until, |before| before.max(until));
        let failures = failures.saturating_add(1);
        state.health = Health::BackingOff { failures, since, until };
        state.reason = Some(reason.to_owned());
        if !state.is_logged && state.log.allow() {
            state.is_logged = true;
            warn!(upstream = self.upstream.name(), reason, "upstream backing off");
        }
    }

    /// It refused a request that other nodes can answer. It may be asked again at once.
    pub(super) fn refused(&self, reason: &str) {
        let mut state = self.lock();
        debug!(upstream = self.upstream.name(), reason, "upstream refused a request");
        state.reason = Some(reason.to_owned());
        if matches!(state.health, Health::Healthy) {
            let now = Instant::now();
            state.health = Health::BackingOff { failures: 0, since: now, until: now };
        }
    }

    /// It is not asked anything for long. Logged and, if a response was invalid, counted once.
    pub(super) fn quarantine(&self, reason: &str, is_invalid: bool, rest: RestLimits) {
        let mut state = self.lock();
        // Responses to requests from before the quarantine may arrive after it.
        if state.is_quarantined() {
            return;
        }
        let now = Instant::now();
        state.health =
            Health::Quarantined { until: now.checked_add(rest.quarantine).unwrap_or(now) };
        state.reason = Some(reason.to_owned());
        state.identified = None;
        state.is_logged = true;
        state.invalid_count = state.invalid_count.saturating_add(u64::from(is_invalid));
        error!(upstream = self.upstream.name(), reason, "upstream quarantined");
    }

    /// Its blocks were late or absent, though it may answer other requests.
    pub(super) fn late_with_blocks(&self, reason: &str, rest: RestLimits) {
        let mut state = self.lock();
        let count = state.late_blocks.map_or(0, |(count, _)| count);
        if count == 0 && state.log.allow() {
            warn!(
                upstream = self.upstream.name(),
                reason, "upstream gives no blocks, to be retried"
            );
        }
        let now = Instant::now();
        let until = now.checked_add(rest.failure_pause(count)).unwrap_or(now);
        state.late_blocks = Some((count.saturating_add(1), until));
        state.reason = Some(reason.to_owned());
    }

    /// Blocks came in time.
    pub(super) fn gave_blocks(&self) {
        self.lock().late_blocks = None;
    }

    /// It lacks a block below its own tip. Returns whether that happened too often in a row.
    pub(super) fn missed_below_tip(&self) -> bool {
        let mut state = self.lock();
        state.unserved_tips = state.unserved_tips.saturating_add(1);
        state.unserved_tips >= UNSERVED_TIPS_MAX
    }

    /// It has the blocks below its tip.
    pub(super) fn served_tip(&self) {
        self.lock().unserved_tips = 0;
    }

    /// It is not asked for these blocks for some time.
    pub(super) fn exclude(&self, mut blocks: ExcludedBlocks, reason: &str, time: Duration) {
        let mut state = self.lock();
        let kind = std::mem::discriminant(&blocks);
        let position = state
            .exclusions
            .iter()
            .position(|exclusion| std::mem::discriminant(&exclusion.blocks) == kind);
        let before = position.map(|position| state.exclusions.swap_remove(position));
        if let (ExcludedBlocks::UpTo(last), Some(ExcludedBlocks::UpTo(before))) =
            (&mut blocks, before.as_ref().map(|it| it.blocks))
        {
            *last = before.max(*last);
        }
        let was_logged = before.is_some_and(|it| it.is_logged && it.reason == reason);
        let is_logged = was_logged || state.log.allow();
        if is_logged && !was_logged {
            warn!(
                upstream = self.upstream.name(),
                reason,
                ?blocks,
                "upstream not asked for blocks"
            );
        }
        let now = Instant::now();
        let until = now.checked_add(time).unwrap_or(now);
        state.reason = Some(reason.to_owned());
        state.exclusions.push(Exclusion { blocks, reason: reason.to_owned(), until, is_logged });
    }

    /// Why it is not asked for these blocks, with the first of them; `None` if it is.
    pub(super) fn excluded_among(
        &self,
        wanted: &[WantedBlock],
    ) -> Option<(ExcludedBlocks, u64, String)> {
        let state = self.lock();
        state.current_exclusions().find_map(|Exclusion { blocks, reason, .. }| {
            let first = wanted.iter().find(|it| blocks.contains(it))?;
            Some((*blocks, first.number(), reason.clone()))
        })
    }

    /// Asks for blocks again that did not fit those of a node which itself turned out not to fit.
    pub(super) fn fits_without(&self, other: MemberIndex) {
        let is_against = |blocks| matches!(blocks, ExcludedBlocks::ByNumber { against } if against == Some(other));
        self.lock().exclusions.retain(|exclusion| !is_against(exclusion.blocks));
    }

    fn lock(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemberState {
    fn rests_until(&self) -> Option<Instant> {
        match self.health {
            Health::Healthy => None,
            Health::BackingOff { until, .. } | Health::Quarantined { until } => Some(until),
        }
    }

    fn is_quarantined(&self) -> bool {
        matches!(self.health, Health::Quarantined { until } if until > Instant::now())
    }

    fn current_exclusions(&self) -> impl Iterator<Item = &Exclusion> {
        let now = Instant::now();
        self.exclusions.iter().filter(move |exclusion| exclusion.until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AskLimits;

    fn member() -> Member {
        let url = "http://127.0.0.1:1".parse().unwrap();
        Member::new(Arc::new(Upstream::new(url, AskLimits::default()).unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_healthy_only_if_its_last_answer_was_one() {
        let member = member();
        let state = || (member.status().health, member.is_available());
        assert_eq!(state(), (MemberHealth::Healthy, true));
        member.refused("-32000: try again later");
        assert_eq!(state(), (MemberHealth::BackingOff, true));
        let said = member.status().to_string();
        assert!(said.contains("is backing off (-32000"), "{said}");
        member.answered();
        assert_eq!(state(), (MemberHealth::Healthy, true));
        member.failed("no answer", RestLimits::default());
        assert_eq!(state(), (MemberHealth::BackingOff, false));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(state(), (MemberHealth::BackingOff, true));
        member.answered();
        assert_eq!(state(), (MemberHealth::Healthy, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_does_not_lift_a_quarantine_and_time_does() {
        let (member, rest) = (member(), RestLimits::default());
        member.quarantine("wrong root", true, rest);
        member.quarantine("wrong root", true, rest);
        member.answered();
        member.failed("late", rest);
        let status = member.status();
        assert_eq!((status.health, status.invalid_count), (MemberHealth::Quarantined, 1));
        assert_eq!(status.last_error.as_deref(), Some("wrong root"));
        tokio::time::advance(rest.quarantine).await;
        assert!(member.is_available());
        member.answered();
        assert_eq!(member.status().health, MemberHealth::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_whose_tip_cannot_be_reached_backs_off_until_it_can() {
        let (member, rest) = (member(), RestLimits::default());
        assert!(!member.missed_below_tip() && !member.missed_below_tip());
        member.served_tip();
        assert!(!member.missed_below_tip() && !member.missed_below_tip());
        assert!(member.missed_below_tip());
        member.failed("no block 7", rest);
        member.answered();
        assert_eq!(member.status().health, MemberHealth::BackingOff);
        member.served_tip();
        member.answered();
        assert_eq!(member.status().health, MemberHealth::Healthy);
    }

    /// Seen: an outage that began while the log was limited never left a line, however long it lasted.
    #[tokio::test(start_paused = true)]
    async fn what_the_limit_kept_out_of_the_log_is_logged_when_it_lasts() {
        let rest = RestLimits::default();
        let fail = |member: &Member| {
            member.failed("x", rest);
            member.lock().is_logged
        };
        let exclude = |member: &Member| {
            member.exclude(ExcludedBlocks::UpTo(1), "x", rest.quarantine);
            member.lock().exclusions[0].is_logged
        };
        let failures: [&dyn Fn(&Member) -> bool; 2] = [&fail, &exclude];
        for fail in failures {
            let member = member();
            while member.may_log() {}
            assert!(!fail(&member), "the limit holds");
            tokio::time::advance(Duration::from_secs(61)).await;
            assert!(fail(&member), "it lasts, and nothing was logged of it");
        }
    }
}
