//! Rates: how many calls and how much weight a second, for one key or one address.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::refusal::ExceededRate;

/// The longest that a caller has to wait, however much it has asked.
const DEBT_MAX: Duration = Duration::from_hours(1);

/// How much may be asked in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rates {
    /// Calls; each of a batch is one. None for any number.
    pub calls: Option<NonZeroU32>,
    /// Weight: a unit for each call, for each KiB that is answered, for each page that is read and for
    /// each lookup in an index. None for any amount.
    pub weight: Option<NonZeroU32>,
}

impl Rates {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }
}

/// What one caller has asked lately.
#[derive(Debug)]
pub(crate) struct RateLimits {
    rates: Rates,
    calls: Option<TokenBucket>,
    weight: Option<TokenBucket>,
}

impl RateLimits {
    pub(crate) fn new(rates: Rates) -> Self {
        let bucket = |rate: Option<NonZeroU32>| rate.map(TokenBucket::new);
        Self { rates, calls: bucket(rates.calls), weight: bucket(rates.weight) }
    }

    pub(crate) fn rates(&self) -> Rates {
        self.rates
    }

    /// Calls that can be taken at once: a second's worth, for each weighs a unit.
    pub(crate) fn calls_max(&self) -> u32 {
        let rates = [self.rates.calls, self.rates.weight].into_iter().flatten();
        rates.map(NonZeroU32::get).min().unwrap_or(u32::MAX)
    }

    /// Takes calls, each with a unit of weight, or nothing.
    pub(crate) fn take(&self, calls: u32, whose: &'static str) -> Result<(), ExceededRate> {
        if let Some(bucket) = &self.calls {
            bucket.take(calls).map_err(|wait| bucket.exceeded("calls", whose, wait))?;
        }
        if let Some(bucket) = &self.weight {
            bucket.take(calls).map_err(|wait| {
                self.calls.iter().for_each(|calls_bucket| calls_bucket.give_back(calls));
                bucket.exceeded("units of weight", whose, wait)
            })?;
        }
        Ok(())
    }

    /// Gives back what was taken for calls that another limit refuses: a refusal costs nothing.
    pub(crate) fn give_back(&self, calls: u32) {
        [&self.calls, &self.weight].into_iter().flatten().for_each(|it| it.give_back(calls));
    }

    /// Whether a call would be taken. None is.
    pub(crate) fn check(&self, whose: &'static str) -> Result<(), ExceededRate> {
        let limits = [("calls", &self.calls), ("units of weight", &self.weight)];
        for (unit, bucket) in limits {
            if let Some(bucket) = bucket
                && let Some(wait) = bucket.wait()
            {
                return Err(bucket.exceeded(unit, whose, wait));
            }
        }
        Ok(())
    }

    /// Adds weight that is known only now.
    pub(crate) fn charge(&self, weight: u64) {
        if let Some(bucket) = &self.weight {
            bucket.charge(weight);
        }
    }

    /// Whether it is as if nothing had been asked.
    pub(crate) fn is_idle(&self) -> bool {
        [&self.calls, &self.weight].into_iter().flatten().all(TokenBucket::is_full)
    }
}

/// One limit, by the generic cell rate algorithm (GCRA): when all tokens will be back says how many
/// there are now.
#[derive(Debug)]
struct TokenBucket {
    per_second: NonZeroU32,
    /// Nanoseconds in which one token comes back.
    interval: u64,
    begun: Instant,
    /// When all tokens are back, in nanoseconds since the beginning.
    full_at: AtomicU64,
}

impl TokenBucket {
    fn new(per_second: NonZeroU32) -> Self {
        let interval = (1_000_000_000_u64 / NonZeroU64::from(per_second)).max(1);
        Self { per_second, interval, begun: Instant::now(), full_at: AtomicU64::new(0) }
    }

    /// Takes tokens, or returns how long to wait for them.
    fn take(&self, count: u32) -> Result<(), Duration> {
        let now = nanos(self.begun.elapsed());
        let taken = |full_at| {
            let is_there = self.wait_nanos(full_at, count, now) == 0;
            is_there.then(|| self.full_after(full_at, count.into(), now))
        };
        let before = self.full_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken);
        let wait = |full_at| Duration::from_nanos(self.wait_nanos(full_at, count, now));
        before.map(drop).map_err(wait)
    }

    /// Undoes a take of this many tokens.
    fn give_back(&self, count: u32) {
        let nanos = u64::from(count).saturating_mul(self.interval);
        let back = |full_at: u64| Some(full_at.saturating_sub(nanos));
        let _ = self.full_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, back);
    }

    /// Uses tokens whether they are there or not.
    fn charge(&self, count: u64) {
        let now = nanos(self.begun.elapsed());
        let used = |full_at| Some(self.full_after(full_at, count, now));
        let _ = self.full_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, used);
    }

    /// How long to wait for one token; none if it is there.
    fn wait(&self) -> Option<Duration> {
        let full_at = self.full_at.load(Ordering::Acquire);
        let wait = self.wait_nanos(full_at, 1, nanos(self.begun.elapsed()));
        (wait > 0).then(|| Duration::from_nanos(wait))
    }

    fn wait_nanos(&self, full_at: u64, count: u32, now: u64) -> u64 {
        let others = u64::from(self.per_second.get().saturating_sub(count));
        full_at.saturating_sub(others.saturating_mul(self.interval)).saturating_sub(now)
    }

    /// When all tokens are back once more of them are used; a debt is cut to the longest.
    fn full_after(&self, full_at: u64, count: u64, now: u64) -> u64 {
        let used = full_at.max(now).saturating_add(count.saturating_mul(self.interval));
        used.min(now.saturating_add(nanos(DEBT_MAX)))
    }

    /// The refusal for a client.
    fn exceeded(&self, unit: &'static str, whose: &'static str, wait: Duration) -> ExceededRate {
        // The next whole second: a client that comes a moment too early is refused again.
        let seconds = wait.as_secs().saturating_add(1);
        ExceededRate { per_second: self.per_second.get(), unit, whose, seconds }
    }

    fn is_full(&self) -> bool {
        self.full_at.load(Ordering::Acquire) <= nanos(self.begun.elapsed())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn limits(calls: u32, weight: u32) -> RateLimits {
        RateLimits::new(Rates { calls: NonZeroU32::new(calls), weight: NonZeroU32::new(weight) })
    }

    /// How many calls are taken one after the other, until one is not.
    fn taken(limits: &RateLimits) -> usize {
        std::iter::repeat_with(|| limits.take(1, "it")).take(1000).take_while(Result::is_ok).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_s_worth_is_taken_at_once_and_comes_back_with_time() {
        let limits = limits(10, 0);
        assert_eq!(taken(&limits), 10);
        assert!(!limits.is_idle());
        advance(Duration::from_millis(500)).await;
        assert_eq!(taken(&limits), 5);
        // However long nobody asks, no more is there than a second's worth.
        advance(Duration::from_mins(1)).await;
        assert!(limits.is_idle());
        assert_eq!(taken(&limits), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_a_batch_are_taken_together_or_not_at_all() {
        let limits = limits(10, 20);
        assert_eq!(limits.calls_max(), 10);
        limits.take(7, "it").unwrap();
        let exceeded = ExceededRate { per_second: 10, unit: "calls", whose: "it", seconds: 1 };
        assert_eq!(limits.take(4, "it"), Err(exceeded));
        limits.take(3, "it").unwrap();
        // Seven come back, and a refused call costs nothing.
        advance(Duration::from_millis(701)).await;
        assert_eq!(limits.take(8, "it"), Err(exceeded));
        limits.take(7, "it").unwrap();
        assert!(limits.take(1, "it").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn weight_is_a_debt_that_time_pays() {
        let limits = limits(0, 10);
        limits.take(1, "it").unwrap();
        limits.charge(39);
        let exceeded = limits.take(1, "it").unwrap_err();
        assert_eq!((exceeded.unit, exceeded.seconds), ("units of weight", 4));
        advance(Duration::from_millis(3099)).await;
        assert!(limits.take(1, "it").is_err());
        advance(Duration::from_millis(2)).await;
        limits.take(1, "it").unwrap();
        assert!(limits.take(1, "it").is_err());
        // Nobody is locked out for ever.
        limits.charge(u64::MAX);
        assert_eq!(limits.take(1, "it").unwrap_err().seconds, DEBT_MAX.as_secs());
    }

    /// The calls of a request that was refused for its weight were taken, and those of the next as well.
    #[tokio::test(start_paused = true)]
    async fn who_is_refused_by_one_limit_has_taken_nothing_of_the_other() {
        let limits = limits(10, 10);
        limits.charge(10);
        for calls in [1, 5, 10] {
            assert_eq!(limits.take(calls, "it").unwrap_err().unit, "units of weight");
        }
        advance(Duration::from_millis(1001)).await;
        // All ten are there.
        limits.take(10, "it").unwrap();
        assert_eq!(limits.take(1, "it").unwrap_err().unit, "calls");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_takes_nothing_and_tells_what_taking_would() {
        let limits = limits(3, 2);
        for milliseconds in [0, 0, 0, 0, 100, 300, 400, 500, 1000, 0, 0, 0] {
            advance(Duration::from_millis(milliseconds)).await;
            let looked = limits.check("it");
            assert_eq!(looked, limits.check("it"));
            assert_eq!(looked, limits.take(1, "it"), "after {milliseconds} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_rates_nothing_is_counted() {
        let limits = limits(0, 0);
        assert_eq!(taken(&limits), 1000);
        limits.charge(u64::MAX);
        assert!(limits.take(u32::MAX, "it").is_ok() && limits.is_idle());
    }

    /// No two threads take the same token.
    #[tokio::test(start_paused = true)]
    async fn threads_together_take_no_more_than_there_is() {
        let limits = limits(500, 0);
        let begun = limits.calls.as_ref().unwrap().begun;
        let sum: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| taken(&limits))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Other threads have no part in the stopped clock: what came back meanwhile may be taken too.
        let came_back = usize::try_from(begun.into_std().elapsed().as_millis()).unwrap() / 2 + 1;
        assert!((500..=500 + came_back).contains(&sum), "{sum} taken, {came_back} came back");
    }
}
