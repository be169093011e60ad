//! How long an abuse goes on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Whatever has not come about by then never will.
const LIMIT: Duration = Duration::from_mins(2);

/// One abuse's time. All threads look at it: nobody can be stopped from outside.
#[derive(Debug)]
pub(crate) struct AbusePace {
    begun: Instant,
    time: Duration,
    answers_min: u64,
    answers: AtomicU64,
    has_ended: AtomicBool,
}

impl AbusePace {
    /// Begins now. It takes at least this time, and at least until so many answers came.
    pub(crate) fn begin(time: Duration, answers_min: u64) -> Self {
        Self {
            begun: Instant::now(),
            time,
            answers_min,
            answers: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Whether another round is begun.
    pub(crate) fn goes_on(&self) -> bool {
        let is_enough = self.begun.elapsed() >= self.time
            && self.answers.load(Ordering::Relaxed) >= self.answers_min;
        !is_enough && !self.is_late()
    }

    /// Whether what is under way is given up.
    pub(crate) fn is_late(&self) -> bool {
        self.begun.elapsed() >= LIMIT
    }

    /// The well-behaved client got a right answer.
    pub(crate) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// The abuse is over: the well-behaved client may rest.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abuse_goes_on_until_enough_was_answered_beside_it() {
        let pace = AbusePace::begin(Duration::ZERO, 2);
        assert!(pace.goes_on() && !pace.is_late() && !pace.has_ended());
        pace.count_answer();
        assert!(pace.goes_on());
        pace.count_answer();
        assert!(!pace.goes_on());
        pace.end();
        assert!(pace.has_ended());
        assert!(AbusePace::begin(LIMIT, 0).goes_on());
    }
}
