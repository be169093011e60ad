//! How many requests a node gets at a time: additive increase while it keeps up, half when it does not.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Questions at a time, before anything is known of a node.
const LIMIT_BEGIN: usize = 4;

/// The pace at which one node is asked.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<PaceState>,
    changed: Notify,
    limit_max: usize,
}

/// Where a question waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaceQueue {
    /// With all others.
    Common,
    /// Before them, and beside as many as are under way: a short question, such as for the tip, must
    /// not wait behind the long ones of a backfill. A time before which nothing is asked holds for it
    /// too.
    Ahead,
}

#[derive(Debug)]
struct PaceState {
    limit: usize,
    under_way: usize,
    /// Answers since the limit last changed.
    answered: usize,
    not_before: Option<Instant>,
    /// When the limit was last lowered: what was asked before says nothing of the new one.
    lowered_at: Option<Instant>,
}

impl Pace {
    pub(super) fn new(limit_max: usize) -> Self {
        let limit_max = limit_max.max(1);
        let state = PaceState {
            limit: LIMIT_BEGIN.min(limit_max),
            under_way: 0,
            answered: 0,
            not_before: None,
            lowered_at: None,
        };
        Self { state: Mutex::new(state), changed: Notify::new(), limit_max }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self, queue: PaceQueue) -> Turn<'_> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let wait = {
                let mut state = self.lock();
                let now = Instant::now();
                match state.not_before.filter(|time| *time > now) {
                    Some(time) => Some(time),
                    None if state.under_way < state.limit || queue == PaceQueue::Ahead => {
                        state.under_way = state.under_way.saturating_add(1);
                        return Turn { pace: self, begun: now };
                    }
                    None => None,
                }
            };
            match wait {
                Some(time) => sleep_until(time).await,
                None => changed.await,
            }
        }
    }

    /// Questions at a time.
    #[cfg(test)]
    fn limit(&self) -> usize {
        self.lock().limit
    }

    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to ask once. Dropping it lets another ask.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pace: &'a Pace,
    begun: Instant,
}

impl Turn<'_> {
    /// The node kept up.
    pub(super) fn answered(&self) {
        let mut state = self.pace.lock();
        state.answered = state.answered.saturating_add(1);
        if state.answered >= state.limit && state.limit < self.pace.limit_max {
            state.limit = state.limit.saturating_add(1);
            state.answered = 0;
        }
    }

    /// The node did not keep up, or said so.
    pub(super) fn pressed(&self, pause: Option<Duration>) {
        let mut state = self.pace.lock();
        let now = Instant::now();
        if let Some(time) = pause.and_then(|pause| now.checked_add(pause)) {
            state.not_before = Some(state.not_before.map_or(time, |before| before.max(time)));
        }
        // All that were asked at one pace say the same: it counts once.
        if state.lowered_at.is_none_or(|lowered| lowered <= self.begun) {
            state.limit = (state.limit / 2).max(1);
            state.answered = 0;
            state.lowered_at = Some(now);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.lock();
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        // All: one that is woken may find the limit lowered.
        self.pace.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_keeps_up_is_asked_more_at_a_time() {
        let pace = Pace::new(6);
        for _ in 0..100 {
            pace.turn(PaceQueue::Common).await.answered();
        }
        assert_eq!(pace.limit(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn one_wave_of_refusals_halves_the_pace_once() {
        let pace = Pace::new(16);
        let turns = [
            pace.turn(PaceQueue::Common).await,
            pace.turn(PaceQueue::Common).await,
            pace.turn(PaceQueue::Common).await,
        ];
        tokio::time::advance(Duration::from_millis(5)).await;
        for turn in &turns {
            turn.pressed(None);
        }
        assert_eq!(pace.limit(), LIMIT_BEGIN / 2);
        drop(turns);
        tokio::time::advance(Duration::from_millis(5)).await;
        for _ in 0..9 {
            pace.turn(PaceQueue::Common).await.pressed(None);
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        assert_eq!(pace.limit(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_asked_before_the_time_that_a_node_named() {
        let pace = Pace::new(4);
        let begun = Instant::now();
        pace.turn(PaceQueue::Common).await.pressed(Some(Duration::from_secs(7)));
        pace.turn(PaceQueue::Ahead).await.answered();
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_are_asked_at_a_time() {
        let pace = Pace::new(2);
        let first = pace.turn(PaceQueue::Common).await;
        let _second = pace.turn(PaceQueue::Common).await;
        let third = tokio::time::timeout(Duration::from_secs(1), pace.turn(PaceQueue::Common));
        assert!(third.await.is_err());
        // But for a short one, which waits for nobody.
        drop(pace.turn(PaceQueue::Ahead).await);
        drop(first);
        pace.turn(PaceQueue::Common).await.answered();
    }
}
