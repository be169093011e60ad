//! How reading settings went the last time, for metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::unix_time::since_1970;

/// How it went.
#[derive(Debug)]
pub(super) struct LastReload {
    is_successful: AtomicBool,
    /// Since 1970, when all of them were last put in force.
    success_seconds: AtomicU64,
}

impl LastReload {
    /// They were read at the start, at this time since 1970.
    pub(super) fn at_start(at: Duration) -> Self {
        Self { is_successful: true.into(), success_seconds: at.as_secs().into() }
    }

    pub(super) fn ended(&self, is_successful: bool) {
        self.is_successful.store(is_successful, Ordering::Relaxed);
        if is_successful {
            self.success_seconds.store(since_1970().as_secs(), Ordering::Relaxed);
        }
    }

    pub(super) fn is_successful(&self) -> bool {
        self.is_successful.load(Ordering::Relaxed)
    }

    /// Since 1970, when all of them were last put in force.
    pub(super) fn success_seconds(&self) -> u64 {
        self.success_seconds.load(Ordering::Relaxed)
    }
}
