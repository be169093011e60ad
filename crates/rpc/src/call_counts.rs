//! Calls by method: how they ended, and how long they took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::methods::{METHODS, Method};
use crate::refusal::Refusal;

/// What calls are counted by: a row of the method table, or what stands for all other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSubject {
    /// A method that is served here.
    Served(Method),
    /// Any other that goes to a node.
    Forwarded,
    /// Any other.
    Unknown,
    /// What is no call.
    Invalid,
}

/// Subjects of calls.
const SUBJECTS: usize = METHODS.len() + 3;

impl CallSubject {
    fn index(self) -> usize {
        match self {
            Self::Served(method) => method.index(),
            Self::Forwarded => METHODS.len(),
            Self::Unknown => METHODS.len() + 1,
            Self::Invalid => METHODS.len() + 2,
        }
    }

    /// The names of all, by their index.
    fn names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|row| row.name).chain(["forwarded", "unknown", "invalid"])
    }
}

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// How a call ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CallOutcome {
            $($(#[$doc])* $name,)*
        }

        impl CallOutcome {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The label of metrics.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}
outcomes! {
    /// With a result.
    Result = "result",
    /// With `null`: what was asked for does not exist.
    Null = "null",
    /// It was no request, or none that is taken.
    InvalidRequest = "invalid_request",
    /// Its method is not served.
    UnknownMethod = "unknown_method",
    /// Its parameters are wrong.
    InvalidParams = "invalid_params",
    /// What was asked for is not held here.
    NotHeld = "not_held",
    /// A limit was exceeded.
    Limit = "limit",
    /// It took too long.
    Timeout = "timeout",
    /// It cannot be answered for another reason that is the client's or the chain's.
    Refused = "refused",
    /// The node that was asked in our place refused it, or did not answer.
    UpstreamError = "upstream_error",
    /// Whoever asked may not.
    Forbidden = "forbidden",
    /// Whoever asked has asked too much.
    RateLimited = "rate_limited",
    /// Something failed here.
    InternalError = "internal_error",
    /// There was no room for the answer.
    Overloaded = "overloaded",
    /// Nobody waited for the answer any more.
    Cancelled = "cancelled",
}

const OUTCOMES: usize = CallOutcome::ALL.len();

impl CallOutcome {
    #[expect(clippy::as_conversions, reason = "the position in a list of a dozen")]
    fn index(self) -> usize {
        self as usize
    }
}

impl From<&Refusal> for CallOutcome {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::ParseError
            | Refusal::InvalidRequest
            | Refusal::EmptyBatch
            | Refusal::MethodTooLong { .. } => Self::InvalidRequest,
            Refusal::UnknownMethod { .. }
            | Refusal::NoNotifications
            | Refusal::UnknownSubscription { .. } => Self::UnknownMethod,
            Refusal::NotPositional
            | Refusal::MissingParam { .. }
            | Refusal::BadParam { .. }
            | Refusal::InvalidBlockRange
            | Refusal::BlockRangeBeyondHead
            | Refusal::NoWayToAnchor { .. }
            | Refusal::PendingLogs => Self::InvalidParams,
            Refusal::BatchTooLarge
            | Refusal::ResponseTooLarge
            | Refusal::LogLimit { .. }
            | Refusal::TooManyFilters { .. }
            | Refusal::FiltersTooLarge
            | Refusal::TooManySubscriptions { .. } => Self::Limit,
            Refusal::MethodNotAllowed { .. } => Self::Forbidden,
            Refusal::RateLimited(_) => Self::RateLimited,
            Refusal::TimedOut => Self::Timeout,
            Refusal::BlockNotHeld { .. }
            | Refusal::HashNotHeld { .. }
            | Refusal::LookupMissing { .. }
            | Refusal::ReceiptsNotHeld { .. }
            | Refusal::AccessListNotHeld { .. } => Self::NotHeld,
            Refusal::ResourceNotFound { .. }
            | Refusal::UnknownBlock
            | Refusal::ChainIdUnknown
            | Refusal::NothingHeld
            | Refusal::BeyondHead { .. }
            | Refusal::TagUnknown { .. }
            | Refusal::ForksUnknown
            | Refusal::IssuanceUnknown
            | Refusal::BlobPriceUnknown { .. }
            | Refusal::NotAtTip
            | Refusal::Transport { .. }
            | Refusal::SubscriptionNotFound
            | Refusal::FilterNotFound
            | Refusal::FilterDropped { .. } => Self::Refused,
            Refusal::ByNode { .. } | Refusal::NotPassed { .. } | Refusal::UpstreamFailed => {
                Self::UpstreamError
            }
            Refusal::Internal => Self::InternalError,
        }
    }
}

/// What is counted of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallRecord {
    pub(crate) subject: CallSubject,
    pub(crate) outcome: CallOutcome,
}

impl CallRecord {
    /// A call that has just begun: its method is not looked at, and nothing has gone wrong.
    pub(crate) fn begun() -> Self {
        Self { subject: CallSubject::Unknown, outcome: CallOutcome::Result }
    }

    /// What is no call, and is refused.
    pub(crate) fn invalid(refusal: &Refusal) -> Self {
        Self { subject: CallSubject::Invalid, outcome: refusal.into() }
    }
}

/// The bound of the first bucket is so many microseconds, as a power of two.
const FIRST_BOUND_LOG: u32 = 3;
/// Buckets with a bound, each twice that of the one before: from 8 us to 8.4 s.
const BOUNDS: usize = 21;
/// And one for all that takes longer.
const BUCKETS: usize = BOUNDS + 1;

/// The bucket of a call that took so long.
fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    // The bits of the least power of two that is no less.
    let bits = u64::BITS.saturating_sub(micros.saturating_sub(1).leading_zeros());
    let place = bits.saturating_sub(FIRST_BOUND_LOG);
    usize::try_from(place).unwrap_or(BOUNDS).min(BOUNDS)
}

/// The bounds of the buckets in seconds; the last bucket has none.
fn bounds() -> impl Iterator<Item = f64> {
    (0..BOUNDS).scan(f64::from(1_u32 << FIRST_BOUND_LOG), |micros, _| {
        let bound = *micros / 1e6;
        *micros *= 2.0;
        Some(bound)
    })
}

/// Counters of one subject.
#[derive(Debug)]
struct SubjectCounters {
    outcomes: [AtomicU64; OUTCOMES],
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl SubjectCounters {
    const fn new() -> Self {
        Self {
            outcomes: [const { AtomicU64::new(0) }; OUTCOMES],
            nanos: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

/// Counters of all subjects.
#[derive(Debug)]
pub(crate) struct CallCounters([SubjectCounters; SUBJECTS]);

impl CallCounters {
    #[expect(clippy::large_stack_arrays, reason = "made once a thread, and boxed")]
    pub(crate) const fn new() -> Self {
        Self([const { SubjectCounters::new() }; SUBJECTS])
    }

    /// Counts a call that took so long.
    pub(crate) fn count(&self, CallRecord { subject, outcome }: CallRecord, time: Duration) {
        let Some(own) = self.0.get(subject.index()) else { return };
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        own.nanos.fetch_add(nanos, Ordering::Relaxed);
        let counters = [own.outcomes.get(outcome.index()), own.buckets.get(bucket(time))];
        for counter in counters.into_iter().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Calls of one method since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodCounts {
    /// Its name; `forwarded`, `unknown` or `invalid` for those that are not in the method table.
    pub method: &'static str,
    /// How they ended, in the order of [`CallOutcome::ALL`].
    pub outcomes: [u64; OUTCOMES],
    /// How long they took.
    pub times: CallTimes,
}

/// How long calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTimes {
    /// Seconds of all calls together.
    pub seconds: f64,
    counts: [u64; BUCKETS],
}

impl CallTimes {
    /// Each bound in seconds with the number of calls that took no longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0_u64;
        bounds().zip(self.counts).map(move |(bound, count)| {
            sum = sum.saturating_add(count);
            (bound, sum)
        })
    }

    /// Within how many seconds this share of the calls ended that were counted after `earlier`: a bound
    /// of a bucket. `None` if there were none, or if more than the others took longer than all bounds.
    #[must_use]
    pub fn quantile_since(&self, earlier: &Self, share: f64) -> Option<f64> {
        let count = self.count().saturating_sub(earlier.count());
        let wanted = (as_float(count) * share).ceil().max(1.0);
        let newer = self.cumulative().zip(earlier.cumulative());
        let mut found = newer.filter_map(|((bound, all), (_, before))| {
            (count > 0 && as_float(all.saturating_sub(before)) >= wanted).then_some(bound)
        });
        found.next()
    }

    /// Adds those of other calls.
    pub(crate) fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.saturating_add(count);
        }
    }

    /// All calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The nearest number with a point: counts of calls are far below what it holds exactly.
fn as_float(count: u64) -> f64 {
    Duration::from_secs(count).as_secs_f64()
}

impl MethodCounts {
    /// How many calls ended so.
    #[must_use]
    pub fn ended(&self, outcome: CallOutcome) -> u64 {
        self.outcomes.get(outcome.index()).copied().unwrap_or_default()
    }

    /// The sums of several counters, by method.
    pub(crate) fn sum(counters: &[&CallCounters]) -> Vec<Self> {
        let sum = |index: usize, counter: &dyn Fn(&SubjectCounters) -> Option<&AtomicU64>| {
            let of_subject = counters.iter().filter_map(|all| counter(all.0.get(index)?));
            of_subject.fold(0_u64, |sum, it| sum.saturating_add(it.load(Ordering::Relaxed)))
        };
        let counts = |(index, method)| Self {
            method,
            outcomes: std::array::from_fn(|place| sum(index, &|own| own.outcomes.get(place))),
            times: CallTimes {
                seconds: Duration::from_nanos(sum(index, &|own| Some(&own.nanos))).as_secs_f64(),
                counts: std::array::from_fn(|place| sum(index, &|own| own.buckets.get(place))),
            },
        };
        CallSubject::names().enumerate().map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        for (nanos, expected) in [
            (0, 0),
            (1, 0),
            (8_000, 0),
            (8_001, 1),
            (16_000, 1),
            (16_001, 2),
            (8_388_608_000, 20),
            (8_388_608_001, 21),
            (u64::MAX, 21),
        ] {
            let time = Duration::from_nanos(nanos);
            assert_eq!(bucket(time), expected, "{nanos}");
            let by_bounds = bounds().position(|bound| time.as_secs_f64() <= bound);
            assert_eq!(by_bounds.unwrap_or(BOUNDS), expected, "{nanos}");
        }
    }

    #[test]
    fn a_share_of_the_newer_calls_ended_within_a_bound() {
        let counters = Box::new(CallCounters::new());
        let record = CallRecord::begun();
        let times = || {
            let mut sum = CallTimes::default();
            for it in MethodCounts::sum(&[&counters]) {
                sum.add(&it.times);
            }
            sum
        };
        counters.count(record, Duration::from_secs(1));
        let before = times();
        assert_eq!(times().quantile_since(&before, 0.5), None);
        for _ in 0..98 {
            counters.count(record, Duration::from_micros(10));
        }
        counters.count(record, Duration::from_millis(1));
        counters.count(record, Duration::from_mins(1));
        for (share, expected) in [
            (0.0, Some(16e-6)),
            (0.5, Some(16e-6)),
            (0.98, Some(16e-6)),
            (0.99, Some(1_024e-6)),
            (1.0, None),
        ] {
            assert_eq!(times().quantile_since(&before, share), expected, "{share}");
        }
    }

    #[test]
    fn counts_of_several_threads_are_summed_by_method() {
        let all = [(); 2].map(|()| Box::new(CallCounters::new()));
        let served = CallSubject::Served(Method::BlockByHash);
        for (counters, outcome) in all.iter().zip([CallOutcome::Result, CallOutcome::Null]) {
            let record = CallRecord { subject: served, outcome };
            counters.count(record, Duration::from_millis(1));
            counters.count(CallRecord::invalid(&Refusal::ParseError), Duration::ZERO);
        }
        let sums = MethodCounts::sum(&all.each_ref().map(|it| &**it));
        assert_eq!(sums.len(), SUBJECTS);
        for counts in sums {
            let (result, null) =
                (counts.ended(CallOutcome::Result), counts.ended(CallOutcome::Null));
            let found = (result, null, counts.times.count());
            let expected = match counts.method {
                "eth_getBlockByHash" => (1, 1, 2),
                "invalid" => (0, 0, 2),
                _ => (0, 0, 0),
            };
            assert_eq!(found, expected, "{}", counts.method);
            let below: Vec<u64> = counts.times.cumulative().map(|(_, count)| count).collect();
            assert!(below.is_sorted() && below.last() == Some(&expected.2), "{below:?}");
        }
    }
}
