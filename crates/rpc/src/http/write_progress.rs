//! How fast a client must take an answer.

use std::time::Duration;

use tokio::time::Instant;

/// The slowest that a client may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteLimit {
    /// For so many bytes, or the rest of an answer.
    pub(super) bytes: usize,
    /// This long.
    pub(super) time: Duration,
}

/// How far a client is with an answer.
#[derive(Debug)]
pub(super) struct WriteProgress {
    limit: WriteLimit,
    /// Taken since then.
    bytes: usize,
    /// When it was first waited for them. Answers that nobody waits for ask no clock.
    since: Option<Instant>,
}

impl WriteProgress {
    pub(super) fn new(limit: WriteLimit) -> Self {
        Self { limit, bytes: 0, since: None }
    }

    /// So many bytes were taken.
    pub(super) fn advance(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(count);
        if self.bytes >= self.limit.bytes {
            self.bytes = 0;
            self.since = None;
        }
    }

    /// When the client is too slow, if it takes too little until then. A time past the end of all
    /// clocks never comes.
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        self.since.get_or_insert_with(Instant::now).checked_add(self.limit.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_enough_bytes_move_the_deadline() {
        let limit = WriteLimit { bytes: 100, time: Duration::from_secs(30) };
        let mut progress = WriteProgress::new(limit);
        let first = progress.deadline().unwrap();
        // A byte now and then is no progress.
        for _ in 0..99 {
            progress.advance(1);
            assert_eq!(progress.deadline(), Some(first));
        }
        progress.advance(1);
        assert_eq!(progress.since, None);
        assert!(progress.deadline().unwrap() >= first);
    }
}
