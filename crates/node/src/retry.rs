//! Retries of one request.

use tokio::time::sleep;
use tracing::debug;

use super::ask_limits::AskLimits;
use super::error::AskError;
use crate::backoff::{PauseRange, with_jitter};

/// The tries of one question.
#[derive(Debug)]
pub(super) struct Tries<'a> {
    limits: &'a AskLimits,
    upstream: &'a str,
    /// The one that is under way counts.
    count: u32,
}

impl<'a> Tries<'a> {
    /// Before the first try.
    pub(super) fn new(limits: &'a AskLimits, upstream: &'a str) -> Self {
        Self { limits, upstream, count: 1 }
    }

    /// Whether the try that is under way is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.count >= self.limits.tries_max
    }

    /// Pauses after a try that failed. The error comes back if there shall be no other.
    pub(super) async fn wait_after(&mut self, error: AskError) -> Result<(), AskError> {
        if self.is_last() || !error.is_passing() {
            return Err(error);
        }
        let AskLimits { pause_begin: begin, pause_max: max, .. } = *self.limits;
        let pause = with_jitter(PauseRange { begin, max }.after(self.count.saturating_sub(1)));
        debug!(upstream = self.upstream, tries = self.count, %error, ?pause, "the node will be asked again");
        sleep(pause).await;
        self.count = self.count.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// How often a question is tried whose tries end so, and what comes of it.
    async fn check(
        outcomes: &[Result<(), AskError>],
        tries_max: u32,
    ) -> (usize, Result<(), AskError>) {
        let limits = AskLimits { tries_max, ..AskLimits::default() };
        let mut tries = Tries::new(&limits, "node");
        for (before, outcome) in outcomes.iter().enumerate() {
            let count = before + 1;
            assert_eq!(tries.is_last(), count == usize::try_from(tries_max).unwrap());
            let Err(error) = outcome.clone() else { return (count, Ok(())) };
            if let Err(error) = tries.wait_after(error).await {
                return (count, Err(error));
            }
        }
        panic!("asked for ever")
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_tried_again_and_not_for_ever() {
        let broken = || Err(AskError::Broken("reset".to_owned()));
        let lasting = || Err(AskError::TooLarge { bytes_max: 1 });
        assert!(matches!(check(&[Ok(())], 3).await, (1, Ok(()))));
        assert!(matches!(check(&[broken(), Ok(())], 3).await, (2, Ok(()))));
        assert!(matches!(
            check(&[broken(), lasting()], 3).await,
            (2, Err(AskError::TooLarge { .. }))
        ));
        let always = [broken(), broken(), broken()];
        assert!(matches!(check(&always, 3).await, (3, Err(AskError::Broken(_)))));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_the_longest() {
        let limits = AskLimits::default();
        let begun = Instant::now();
        let always = vec![Err(AskError::Broken("reset".to_owned())); 5];
        assert!(check(&always, limits.tries_max).await.1.is_err());
        // 200, 400, 800 and 1600 milliseconds, each by a chance as short as half.
        let (least, most) = (Duration::from_millis(1500), Duration::from_millis(3010));
        assert!((least..=most).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }
}
