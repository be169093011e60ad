//! Rates: how many calls and how much weight a second, for one key or one address.
//!
//! Knows: that a caller may use up a second's worth at once, and that what it used beyond that is a debt
//! which time pays.
//! Never knows: whose limits they are.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
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

    /// Takes so many calls, and the first unit of their weight, or nothing. Calls beyond a second's
    /// worth are a debt, or a batch of them could never be asked.
    pub(crate) fn take(&self, calls: u32, whose: &'static str) -> Result<(), ExceededRate> {
        if let Some(bucket) = &self.calls {
            bucket.take(calls).map_err(|wait| bucket.exceeded("calls", whose, wait))?;
        }
        if let Some(bucket) = &self.weight {
            bucket.take(1).map_err(|wait| {
                self.calls.iter().for_each(|calls_bucket| calls_bucket.give_back(calls));
                bucket.exceeded("units of weight", whose, wait)
            })?;
        }
        Ok(())
    }

    /// Gives back what was taken for so many calls, which another limit refuses: a refusal costs
    /// nothing.
    pub(crate) fn give_back(&self, calls: u32) {
        self.calls.iter().for_each(|bucket| bucket.give_back(calls));
        self.weight.iter().for_each(|bucket| bucket.give_back(1));
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

/// One limit. governor decides by GCRA; the time until which its tokens are used up is held here, for
/// governor lets nobody use more than there is, and a debt is more.
#[derive(Debug)]
struct TokenBucket {
    per_second: NonZeroU32,
    /// In which one token comes back.
    interval: u64,
    limiter: RateLimiter<NotKeyed, UsedUntil, BucketClock>,
    used_until: UsedUntil,
    clock: BucketClock,
}

impl TokenBucket {
    fn new(per_second: NonZeroU32) -> Self {
        let quota = Quota::per_second(per_second);
        let interval = quota.replenish_interval().as_nanos();
        let (used_until, clock) = (UsedUntil::default(), BucketClock { begun: Instant::now() });
        Self {
            per_second,
            interval: u64::try_from(interval).unwrap_or(u64::MAX).max(1),
            limiter: RateLimiter::new(quota, used_until.clone(), clock),
            used_until,
            clock,
        }
    }

    /// Takes tokens, or tells how long to wait.
    fn take(&self, count: u32) -> Result<(), Duration> {
        let Some(at_once) = NonZeroU32::new(count.min(self.per_second.get())) else {
            return Ok(());
        };
        match self.limiter.check_n(at_once) {
            Ok(Ok(())) => {}
            Ok(Err(until)) => return Err(until.wait_time_from(self.clock.now())),
            // It is never more than a second's worth.
            Err(_) => return Err(Duration::ZERO),
        }
        self.charge(count.saturating_sub(at_once.get()).into());
        Ok(())
    }

    /// Undoes a take of so many tokens. A debt that was cut to the longest one began with a full bucket,
    /// and a full one is what it becomes again.
    fn give_back(&self, count: u32) {
        let nanos = u64::from(count).saturating_mul(self.interval);
        let used = |until: u64| Some(until.saturating_sub(nanos));
        let _ = self.used_until.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, used);
    }

    /// Uses tokens whether they are there or not.
    fn charge(&self, count: u64) {
        if count == 0 {
            return;
        }
        let now = self.clock.now().as_u64();
        let longest = u64::try_from(DEBT_MAX.as_nanos()).unwrap_or(u64::MAX);
        let used = |until: u64| {
            let until = until.max(now).saturating_add(count.saturating_mul(self.interval));
            Some(until.min(now.saturating_add(longest)))
        };
        let _ = self.used_until.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, used);
    }

    /// How long to wait for one token; none if it is there.
    fn wait(&self) -> Option<Duration> {
        let burst = u64::from(self.per_second.get()).saturating_sub(1);
        let used_until = self.used_until.0.load(Ordering::Acquire);
        let free_from = used_until.saturating_sub(burst.saturating_mul(self.interval));
        let now = self.clock.now().as_u64();
        (free_from > now).then(|| Duration::from_nanos(free_from.saturating_sub(now)))
    }

    /// How a client is told.
    fn exceeded(&self, unit: &'static str, whose: &'static str, wait: Duration) -> ExceededRate {
        // The next whole second: whoever comes a moment too early is refused again.
        let seconds = wait.as_secs().saturating_add(1);
        ExceededRate { per_second: self.per_second.get(), unit, whose, seconds }
    }

    fn is_full(&self) -> bool {
        self.used_until.0.load(Ordering::Acquire) <= self.clock.now().as_u64()
    }
}

/// Nanoseconds of the bucket's clock; GCRA's theoretical arrival time.
#[derive(Clone, Debug, Default)]
struct UsedUntil(Arc<AtomicU64>);

impl StateStore for UsedUntil {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _key: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut before = self.0.load(Ordering::Acquire);
        loop {
            let (outcome, after) = decide(Some(before).filter(|it| *it > 0).map(Nanos::from))?;
            let after = after.as_u64();
            match self.0.compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(outcome),
                Err(found) => before = found,
            }
        }
    }
}

/// The time since a bucket was made. Tests can stop it.
#[derive(Clone, Copy, Debug)]
struct BucketClock {
    begun: Instant,
}

impl Clock for BucketClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
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
    async fn a_batch_beyond_a_second_s_worth_is_taken_when_nothing_is_used_and_paid_by_time() {
        let limits = limits(10, 0);
        limits.take(100, "it").unwrap();
        let exceeded = ExceededRate { per_second: 10, unit: "calls", whose: "it", seconds: 10 };
        assert_eq!(limits.take(1, "it"), Err(exceeded));
        // A refused call costs nothing.
        advance(Duration::from_secs(9)).await;
        assert!(limits.take(1, "it").is_err());
        advance(Duration::from_millis(101)).await;
        limits.take(1, "it").unwrap();
        assert!(limits.take(100, "it").is_err());
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
        let limits = limits(10, 1);
        limits.charge(1);
        for calls in [1, 5, 100, u32::MAX] {
            assert_eq!(limits.take(calls, "it").unwrap_err().unit, "units of weight");
        }
        advance(Duration::from_millis(1001)).await;
        // All ten are there: a batch of ten and its unit are taken at once.
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
        let begun = limits.calls.as_ref().unwrap().clock.begun;
        let sum: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| taken(&limits))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Other threads have no part in the stopped clock: what came back meanwhile may be taken too.
        let came_back = usize::try_from(begun.into_std().elapsed().as_millis()).unwrap() / 2 + 1;
        assert!((500..=500 + came_back).contains(&sum), "{sum} taken, {came_back} came back");
    }
}
