//! One of several nodes, and how it is doing.
//!
//! Knows: failures, lies, and until when a node is left alone.
//! Never knows: what it was asked.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use tokio::time::Instant;
use tracing::{info, warn};

use super::RestLimits;
use crate::upstream::client::Upstream;
use crate::upstream::fetch::Which;

/// For so long a node is not asked again for a block of a fork that this build does not know. It may
/// offer raw headers by then.
const UNKNOWN_FORK_REST: Duration = Duration::from_mins(1);

/// One of several nodes.
#[derive(Debug)]
pub struct Member {
    pub(super) upstream: Arc<Upstream>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rests_until: Option<Instant>,
    is_set_aside: bool,
    is_identified: bool,
    /// Failures since it last answered.
    failures: u32,
    failure_count: u64,
    lie_count: u64,
    last_error: Option<String>,
    unknown_fork: Option<UnknownBlock>,
}

/// The lowest block that a node gave of a fork that this build does not know.
#[derive(Clone, Debug)]
struct UnknownBlock {
    number: u64,
    hash: Option<B256>,
    said: String,
    until: Instant,
}

/// How a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is asked.
    Well,
    /// It failed, and is left alone for a while.
    Resting,
    /// It told what is not true, or cannot tell what is needed, and is left alone for long.
    SetAside,
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Host and port.
    pub name: String,
    /// How it is doing.
    pub health: Health,
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
            Health::Well => "well",
            Health::Resting => "resting",
            Health::SetAside => "set aside",
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
        Self { upstream, state: Mutex::default() }
    }

    pub(super) fn status(&self) -> UpstreamStatus {
        let is_rested = self.is_rested();
        let state = self.lock();
        let health = match (is_rested, state.is_set_aside) {
            (true, _) => Health::Well,
            (false, false) => Health::Resting,
            (false, true) => Health::SetAside,
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

    pub(super) fn is_identified(&self) -> bool {
        self.lock().is_identified
    }

    pub(super) fn identified(&self) {
        self.lock().is_identified = true;
    }

    /// Whether it failed the last time.
    pub(super) fn is_failing(&self) -> bool {
        self.lock().failures > 0
    }

    pub(super) fn answered(&self) {
        let mut state = self.lock();
        if state.failures > 0 {
            info!(upstream = self.upstream.name(), failures = state.failures, "answers again");
        }
        // Answers to what was asked before it was set aside mend nothing.
        if !state.is_set_aside || state.rests_until.is_none_or(|time| time <= Instant::now()) {
            (state.failures, state.is_set_aside, state.rests_until) = (0, false, None);
        }
    }

    pub(super) fn failed(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        // Once: it is tried again until it answers, which is told too.
        if state.failures == 0 {
            warn!(upstream = self.upstream.name(), error = said, "does not answer");
        }
        let doubled = 1_u32.checked_shl(state.failures).unwrap_or(u32::MAX);
        let pause = rest.failure_begin.saturating_mul(doubled).min(rest.failure_max);
        state.failures = state.failures.saturating_add(1);
        state.failure_count = state.failure_count.saturating_add(1);
        let until = Instant::now().checked_add(pause);
        state.rests_until = state.rests_until.max(until);
        state.last_error = Some(said.to_owned());
    }

    /// Tells whether this is news: what was asked before it was set aside may come in after.
    pub(super) fn lied(&self, said: &str, rest: RestLimits) -> bool {
        if !self.is_rested() && self.lock().is_set_aside {
            return false;
        }
        self.unable(said, rest);
        let mut state = self.lock();
        state.lie_count = state.lie_count.saturating_add(1);
        true
    }

    pub(super) fn unable(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        state.is_set_aside = true;
        state.rests_until = Instant::now().checked_add(rest.set_aside);
        state.last_error = Some(said.to_owned());
    }

    /// A block that it gave is of a fork that this build does not know. Tells whether this is news.
    pub(super) fn left_known_forks(&self, number: u64, hash: Option<B256>, said: &str) -> bool {
        let mut state = self.lock();
        let before = state.unknown_fork.as_ref().map(|block| (block.number, block.hash));
        let until = Instant::now();
        let until = until.checked_add(UNKNOWN_FORK_REST).unwrap_or(until);
        state.unknown_fork = Some(UnknownBlock { number, hash, said: said.to_owned(), until });
        state.last_error = Some(said.to_owned());
        before != Some((number, hash))
    }

    /// The first of these blocks that it is known to give in no form that this build knows, and what
    /// was said of it.
    pub(super) fn unknown_among(&self, wanted: &[Which]) -> Option<(u64, String)> {
        let state = self.lock();
        let block = state.unknown_block()?;
        let is_unknown = |which: &&Which| match which {
            Which::Number(number) => *number >= block.number,
            Which::Hash { hash, .. } => Some(*hash) == block.hash,
        };
        Some((wanted.iter().find(is_unknown)?.number(), block.said.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unknown_block(&self) -> Option<&UnknownBlock> {
        self.unknown_fork.as_ref().filter(|block| block.until > Instant::now())
    }
}
