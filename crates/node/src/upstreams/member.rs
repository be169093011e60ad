//! One of several nodes, and how it is doing.
//!
//! Knows: failures, lies, which blocks it cannot give, and until when a node is left alone.
//! Never knows: what it was asked.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use tokio::time::Instant;
use tracing::{info, warn};

use super::{MemberIndex, RestLimits};
use crate::client::Upstream;
use crate::log_limit::LogLimit;
use crate::wanted_block::WantedBlock;

/// For so long a node is not asked again for a block of a fork that this build does not know. It may
/// offer raw headers by then.
const UNKNOWN_FORK_REST: Duration = Duration::from_mins(1);
/// For so long a node that said which chain it follows is not asked again because of a connection that
/// was made anew, if a connection could not be asked the last time. Servers that close every connection
/// would be asked with every question.
const IDENTITY_REST: Duration = Duration::from_secs(1);
/// After this long a node is asked again which chain it follows: behind a kept connection to a proxy it
/// may have been exchanged for another.
const IDENTITY_TIME: Duration = Duration::from_secs(30);

/// One of several nodes.
#[derive(Debug)]
pub struct Member {
    pub(super) upstream: Arc<Upstream>,
    state: Mutex<MemberState>,
    /// Held by whoever asks which chain it follows.
    pub(super) identifying: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct MemberState {
    rests_until: Option<Instant>,
    is_set_aside: bool,
    /// Where and when it said that it follows our chain.
    identified: Option<IdentityAnswer>,
    /// Failures since it last answered.
    failures: u32,
    /// When the first of them was.
    failing_since: Option<Instant>,
    failure_count: u64,
    lie_count: u64,
    /// How often it answered that it does not tell what it was asked, since it last told something.
    refusals: u32,
    /// When the first of them was logged.
    refusal_logged_at: Option<Instant>,
    last_error: Option<String>,
    unknown_fork: Option<UnknownBlock>,
    /// How often blocks did not come in time, since some did.
    block_delays: u32,
    /// Until then others are asked for blocks first.
    blocks_last_until: Option<Instant>,
    lacking: Option<LackingBlocks>,
    differing: Option<DifferingBlocks>,
    log: LogLimit,
    is_failure_logged: bool,
    is_delay_logged: bool,
}

/// When and how a node said that it follows our chain.
#[derive(Clone, Copy, Debug)]
struct IdentityAnswer {
    /// The connection on which news can come.
    connection: u64,
    /// Whether it said so on every connection.
    is_complete: bool,
    at: Instant,
}

/// Blocks that a node answers for but cannot give whole.
#[derive(Clone, Debug)]
struct LackingBlocks {
    /// The highest of them: all below it are of the same kind.
    last: u64,
    said: String,
    until: Instant,
    is_logged: bool,
}

/// That a node's blocks do not fit those that are held, or those of another node.
#[derive(Clone, Debug)]
struct DifferingBlocks {
    /// The other node, if it is one.
    against: Option<MemberIndex>,
    said: String,
    until: Instant,
    is_logged: bool,
}

/// The lowest block that a node gave of a fork that this build does not know.
#[derive(Clone, Debug)]
struct UnknownBlock {
    number: u64,
    hash: Option<B256>,
    said: String,
    until: Instant,
    is_logged: bool,
}

/// How a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberHealth {
    /// It answers, as far as it was asked.
    Well,
    /// It is asked, but failed the last time or answered nothing but errors.
    Failing,
    /// It failed, and is left alone for a while.
    Resting,
    /// It told what is not true, or follows another chain, and is left alone for long.
    SetAside,
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Host and port.
    pub name: String,
    /// How it is doing.
    pub health: MemberHealth,
    /// Why it last failed.
    pub last_error: Option<String>,
    /// How often it failed.
    pub failure_count: u64,
    /// How often it told what is not true.
    pub lie_count: u64,
    /// The block from which on it is on a fork that this build does not know.
    pub unknown_fork: Option<u64>,
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = match self.health {
            MemberHealth::Well => "well",
            MemberHealth::Failing => "failing",
            MemberHealth::Resting => "failing, to be retried",
            MemberHealth::SetAside => "set aside",
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
        let is_rested = self.is_rested();
        let state = self.lock();
        let is_failing = state.failures > 0 || state.refusals > 0;
        let health = match (is_rested, state.is_set_aside) {
            (true, _) if is_failing => MemberHealth::Failing,
            (true, _) => MemberHealth::Well,
            (false, false) => MemberHealth::Resting,
            (false, true) => MemberHealth::SetAside,
        };
        UpstreamStatus {
            name: self.upstream.name().to_owned(),
            health,
            last_error: state.last_error.clone(),
            failure_count: state.failure_count,
            lie_count: state.lie_count,
            unknown_fork: state.unknown_block().map(|block| block.number),
        }
    }

    pub(super) fn is_rested(&self) -> bool {
        self.lock().rests_until.is_none_or(|time| time <= Instant::now())
    }

    /// When it may be asked again.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.lock().rests_until
    }

    /// Until then it is not asked for blocks, or others are asked first.
    pub(super) fn blocks_rest_until(&self) -> Option<Instant> {
        let state = self.lock();
        state.rests_until.max(state.blocks_last_until)
    }

    pub(super) fn is_set_aside(&self) -> bool {
        let state = self.lock();
        state.is_set_aside && state.rests_until.is_some_and(|time| time > Instant::now())
    }

    /// Forgets which chain it follows after [`IDENTITY_TIME`], so that it is asked again.
    pub(super) fn forget_old_identity(&self) {
        let mut state = self.lock();
        if state.identified.is_some_and(|identified| identified.at.elapsed() >= IDENTITY_TIME) {
            state.identified = None;
            self.upstream.forget_identity();
        }
    }

    /// Whether it said that it follows our chain: on every connection that carried an answer or, where
    /// those cannot be asked, a moment ago.
    pub(super) fn is_identified(&self) -> bool {
        let identified = self.lock().identified;
        identified.is_some_and(|IdentityAnswer { connection, is_complete, at }| {
            self.upstream.is_identified_on(connection)
                || (!is_complete && at.elapsed() < IDENTITY_REST)
        })
    }

    /// `connection` is the one on which news could come before it was asked.
    pub(super) fn identified(&self, connection: u64, is_complete: bool) {
        let at = Instant::now();
        self.lock().identified = Some(IdentityAnswer { connection, is_complete, at });
    }

    /// Whether it failed the last time.
    pub(super) fn is_failing(&self) -> bool {
        self.lock().failures > 0
    }

    /// Whether it has failed for so long.
    pub(super) fn has_failed_for(&self, time: Duration) -> bool {
        self.lock().failing_since.is_some_and(|since| since.elapsed() >= time)
    }

    /// Whether a line about it may be logged: whatever it does, its lines are few.
    pub(super) fn may_log(&self) -> bool {
        self.lock().log.allow()
    }

    pub(super) fn answered(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_failure_logged) {
            info!(
                upstream = self.upstream.name(),
                failures = state.failures,
                "the node answers again"
            );
        }
        state.refusals = 0;
        // Answers to what was asked before it was set aside mend nothing.
        if !state.is_set_aside || state.rests_until.is_none_or(|time| time <= Instant::now()) {
            (state.failures, state.failing_since) = (0, None);
            (state.is_set_aside, state.rests_until) = (false, None);
        }
    }

    pub(super) fn failed(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        // Once: it is tried again until it answers, which is told too.
        if !state.is_failure_logged && state.log.allow() {
            warn!(upstream = self.upstream.name(), error = said, "the node does not answer");
            state.is_failure_logged = true;
        }
        let pause = rest.failure_pause(state.failures);
        let now = Instant::now();
        state.failures = state.failures.saturating_add(1);
        state.failing_since.get_or_insert(now);
        state.failure_count = state.failure_count.saturating_add(1);
        state.rests_until = state.rests_until.max(now.checked_add(pause));
        state.last_error = Some(said.to_owned());
        // Whoever answers next at this address may be another.
        state.identified = None;
        self.upstream.forget_identity();
    }

    /// It answered that it does not tell what it was asked. That is said once: a node may refuse some and
    /// answer others for as long as it runs.
    pub(super) fn refused(&self, said: &str) {
        let mut state = self.lock();
        if state.refusal_logged_at.is_none() && state.log.allow() {
            let name = self.upstream.name();
            warn!(
                upstream = name,
                error = said,
                "the node answers with an error; it is asked again"
            );
            state.refusal_logged_at = Some(Instant::now());
        }
        state.refusals = state.refusals.saturating_add(1);
        state.last_error = Some(said.to_owned());
    }

    /// Blocks did not come in time, though it may answer other questions.
    pub(super) fn delayed_blocks(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        if !state.is_delay_logged && state.log.allow() {
            state.is_delay_logged = true;
            let name = self.upstream.name();
            warn!(
                upstream = name,
                error = said,
                "the node gives no blocks now; it is asked again later"
            );
        }
        let pause = rest.failure_pause(state.block_delays);
        state.block_delays = state.block_delays.saturating_add(1);
        state.blocks_last_until = Instant::now().checked_add(pause);
        state.last_error = Some(said.to_owned());
    }

    /// Blocks came in time.
    pub(super) fn gave_blocks(&self) {
        let mut state = self.lock();
        (state.block_delays, state.blocks_last_until) = (0, None);
        state.is_delay_logged = false;
    }

    /// Whether others are asked for blocks first.
    pub(super) fn is_late_with_blocks(&self) -> bool {
        self.lock().blocks_last_until.is_some_and(|time| time > Instant::now())
    }

    /// It cannot give blocks up to and including this one, though it does not lie. Tells whether that is
    /// to be logged.
    pub(super) fn lacks_blocks(&self, last: u64, said: &str, rest: RestLimits) -> bool {
        let mut state = self.lock();
        let before = state.lacking_blocks().map(|it| (it.last, it.is_logged));
        let was_logged = before.is_some_and(|(_, is_logged)| is_logged);
        let is_logged = was_logged || state.log.allow();
        let now = Instant::now();
        let until = now.checked_add(rest.set_aside).unwrap_or(now);
        let last = before.map_or(last, |(before, _)| before.max(last));
        state.lacking = Some(LackingBlocks { last, said: said.to_owned(), until, is_logged });
        state.last_error = Some(said.to_owned());
        is_logged && !was_logged
    }

    /// What was said of the first of these blocks that it cannot give, if there is one.
    pub(super) fn lacking_among(&self, wanted: &[WantedBlock]) -> Option<String> {
        let state = self.lock();
        let lacking = state.lacking_blocks()?;
        let is_lacking = wanted.iter().any(|which| which.number() <= lacking.last);
        is_lacking.then(|| lacking.said.clone())
    }

    /// Its blocks do not fit, though nothing proves that it lies. Tells whether that is to be logged.
    pub(super) fn differs(
        &self,
        against: Option<MemberIndex>,
        said: &str,
        rest: RestLimits,
    ) -> bool {
        let mut state = self.lock();
        let was_logged = state.differing_blocks().is_some_and(|it| it.is_logged);
        let is_logged = was_logged || state.log.allow();
        let now = Instant::now();
        let until = now.checked_add(rest.set_aside).unwrap_or(now);
        let said = said.to_owned();
        state.last_error = Some(said.clone());
        state.differing = Some(DifferingBlocks { against, said, until, is_logged });
        is_logged && !was_logged
    }

    /// What was said of its blocks, if they do not fit and some are asked for that it chooses: one that
    /// is asked for by its hash is that block or none.
    pub(super) fn differing_among(&self, wanted: &[WantedBlock]) -> Option<String> {
        let state = self.lock();
        let differing = state.differing_blocks()?;
        let is_chosen = wanted.iter().any(|which| which.hash().is_none());
        is_chosen.then(|| differing.said.clone())
    }

    /// Forgets that its blocks do not fit those of this node, which do not fit themselves.
    pub(super) fn fits_without(&self, other: MemberIndex) {
        let mut state = self.lock();
        if state.differing.as_ref().is_some_and(|it| it.against == Some(other)) {
            state.differing = None;
        }
    }

    /// Tells whether this is news: what was asked before it was set aside may come in after.
    pub(super) fn lied(&self, said: &str, rest: RestLimits) -> bool {
        if !self.is_rested() && self.lock().is_set_aside {
            return false;
        }
        self.set_aside(said, rest);
        let mut state = self.lock();
        state.lie_count = state.lie_count.saturating_add(1);
        true
    }

    /// It is not asked anything for long.
    pub(super) fn set_aside(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        state.is_set_aside = true;
        state.rests_until = Instant::now().checked_add(rest.set_aside);
        state.last_error = Some(said.to_owned());
        state.identified = None;
        self.upstream.forget_identity();
    }

    /// A block that it gave is of a fork that this build does not know. Tells whether that is to be
    /// logged.
    pub(super) fn left_known_forks(&self, number: u64, hash: Option<B256>, said: &str) -> bool {
        let mut state = self.lock();
        let is_same = |block: &&UnknownBlock| (block.number, block.hash) == (number, hash);
        let before = state.unknown_fork.as_ref().filter(is_same);
        let was_logged = before.is_some_and(|block| block.is_logged);
        let is_logged = was_logged || state.log.allow();
        let until = Instant::now();
        let until = until.checked_add(UNKNOWN_FORK_REST).unwrap_or(until);
        let said = said.to_owned();
        state.last_error = Some(said.clone());
        state.unknown_fork = Some(UnknownBlock { number, hash, said, until, is_logged });
        is_logged && !was_logged
    }

    /// The first of these blocks that it is known to give in no form that this build knows, and what
    /// was said of it.
    pub(super) fn unknown_among(&self, wanted: &[WantedBlock]) -> Option<(u64, String)> {
        let state = self.lock();
        let block = state.unknown_block()?;
        let is_unknown = |which: &&WantedBlock| match which {
            WantedBlock::Number(number) => *number >= block.number,
            WantedBlock::Hash { hash, .. } => Some(*hash) == block.hash,
        };
        Some((wanted.iter().find(is_unknown)?.number(), block.said.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemberState {
    fn unknown_block(&self) -> Option<&UnknownBlock> {
        self.unknown_fork.as_ref().filter(|block| block.until > Instant::now())
    }

    fn differing_blocks(&self) -> Option<&DifferingBlocks> {
        self.differing.as_ref().filter(|differing| differing.until > Instant::now())
    }

    fn lacking_blocks(&self) -> Option<&LackingBlocks> {
        self.lacking.as_ref().filter(|lacking| lacking.until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AskLimits;

    /// Lets something fail, and tells whether it is to be logged.
    type Failure<'a> = &'a dyn Fn(&Member) -> bool;

    fn member() -> Member {
        let url = "http://127.0.0.1:1".parse().unwrap();
        Member::new(Arc::new(Upstream::new(url, AskLimits::default()).unwrap()))
    }

    /// Seen: a node that answered nothing but errors was called well, also while that was the reason why
    /// nothing could be followed.
    #[tokio::test(start_paused = true)]
    async fn a_node_is_well_only_if_its_last_answer_was_one() {
        let member = member();
        let health = || member.status().health;
        assert_eq!(health(), MemberHealth::Well);
        member.refused("-32000: try again later");
        assert_eq!(health(), MemberHealth::Failing);
        let said = member.status().to_string();
        assert!(said.contains("is failing (-32000"), "{said}");
        member.answered();
        assert_eq!(health(), MemberHealth::Well);
        member.failed("no answer", RestLimits::default());
        assert_eq!(health(), MemberHealth::Resting);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(health(), MemberHealth::Failing);
        member.answered();
        assert_eq!(health(), MemberHealth::Well);
    }

    /// Seen: an outage that began while the log was limited never left a line, however long it lasted.
    #[tokio::test(start_paused = true)]
    async fn what_the_limit_kept_out_of_the_log_is_logged_when_it_lasts() {
        let rest = RestLimits::default();
        let fork = |member: &Member| member.left_known_forks(1, None, "x");
        let lack = |member: &Member| member.lacks_blocks(1, "x", rest);
        let fail = |member: &Member| {
            let is_logged = member.lock().is_failure_logged;
            member.failed("x", rest);
            !is_logged && member.lock().is_failure_logged
        };
        let failures: [(&str, Failure<'_>); 3] =
            [("fork", &fork), ("blocks", &lack), ("answer", &fail)];
        for (name, fail) in failures {
            let member = member();
            while member.may_log() {}
            assert!(!fail(&member), "{name}: the limit holds");
            tokio::time::advance(Duration::from_secs(61)).await;
            assert!(fail(&member), "{name}: it lasts, and nothing was logged of it");
            assert!(!fail(&member), "{name}: once");
        }
    }
}
