//! One of several nodes, and how it is doing.
//!
//! Knows: failures, lies, and until when a node is left alone.
//! Never knows: what it was asked.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::RestLimits;
use crate::upstream::client::Upstream;

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
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = match self.health {
            Health::Well => "well",
            Health::Resting => "resting",
            Health::SetAside => "set aside",
        };
        write!(f, "{} is {health}", self.name)?;
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

    pub(super) fn answered(&self) {
        let mut state = self.lock();
        // Answers to what was asked before it was set aside mend nothing.
        if !state.is_set_aside || state.rests_until.is_none_or(|time| time <= Instant::now()) {
            (state.failures, state.is_set_aside, state.rests_until) = (0, false, None);
        }
    }

    pub(super) fn failed(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        let doubled = 1_u32.checked_shl(state.failures).unwrap_or(u32::MAX);
        let pause = rest.failure_begin.saturating_mul(doubled).min(rest.failure_max);
        state.failures = state.failures.saturating_add(1);
        state.failure_count = state.failure_count.saturating_add(1);
        let until = Instant::now().checked_add(pause);
        state.rests_until = state.rests_until.max(until);
        state.last_error = Some(said.to_owned());
    }

    pub(super) fn lied(&self, said: &str, rest: RestLimits) {
        self.unable(said, rest);
        let mut state = self.lock();
        state.lie_count = state.lie_count.saturating_add(1);
    }

    pub(super) fn unable(&self, said: &str, rest: RestLimits) {
        let mut state = self.lock();
        state.is_set_aside = true;
        state.rests_until = Instant::now().checked_add(rest.set_aside);
        state.last_error = Some(said.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
