//! A rate limit for log lines that another party can cause.

use std::time::Duration;

use tokio::time::Instant;

/// Lines that may follow each other at once.
const BURST: u32 = 6;
/// Then one line in this time.
const REFILL_EVERY: Duration = Duration::from_mins(1);

/// How many lines may still be written.
#[derive(Debug)]
pub struct LogLimit {
    left: u32,
    refilled_at: Option<Instant>,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self { left: BURST, refilled_at: None }
    }
}

impl LogLimit {
    /// Whether a line may be written now; if so, it counts.
    pub fn allow(&mut self) -> bool {
        let now = Instant::now();
        let refilled_at = *self.refilled_at.get_or_insert(now);
        let periods = now.duration_since(refilled_at).as_secs() / REFILL_EVERY.as_secs();
        if let Ok(periods @ 1..) = u32::try_from(periods) {
            self.left = self.left.saturating_add(periods).min(BURST);
            self.refilled_at = Some(now);
        }
        let is_allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_few_lines_may_come_at_once_and_then_one_a_minute() {
        let mut limit = LogLimit::default();
        let mut count = |lines: u32| (0..lines).filter(|_| limit.allow()).count();
        assert_eq!(count(100), 6);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(count(100), 1);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(count(100), 6);
    }
}
