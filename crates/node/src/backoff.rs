//! Exponential backoff.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Pauses from the first to the longest.
#[derive(Clone, Copy, Debug)]
pub struct PauseRange {
    /// After the first failure.
    pub begin: Duration,
    /// The longest.
    pub max: Duration,
}

impl PauseRange {
    /// The pause after this many failures and one more.
    #[must_use]
    pub fn after(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.begin.saturating_mul(doubled).min(self.max)
    }
}

/// A random part of a pause, at least half of it: clients that failed together do not retry together.
#[must_use]
pub fn with_jitter(pause: Duration) -> Duration {
    // Pauses need no better source than the one that seeds hash maps.
    let random = std::hash::RandomState::new().build_hasher().finish();
    let share = f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX);
    pause.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = PauseRange { begin: Duration::from_secs(1), max: Duration::from_mins(1) };
        let seconds = [0, 1, 2, 5, 6, 31, 32, u32::MAX].map(|failures| pauses.after(failures));
        assert_eq!(seconds.map(|pause| pause.as_secs()), [1, 2, 4, 32, 60, 60, 60, 60]);
    }

    #[test]
    fn jitter_takes_half_of_a_pause_at_the_most() {
        for _ in 0..1000 {
            let pause = with_jitter(Duration::from_secs(2));
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&pause));
        }
    }
}
