//! Time that only this thread or this process spent.
//!
//! On a machine that others use too, seconds on the wall measure the others. CPU time of the thread
//! leaves them out but for caches and clock rates, and the least of several rounds leaves out most
//! of that.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// CPU time of this thread so far.
#[must_use]
pub fn thread_cpu() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time of all threads of this process so far.
#[must_use]
pub fn process_cpu() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// The least CPU time of this thread in so many rounds, after one that does not count.
pub fn least_cpu<E>(
    rounds: usize,
    mut round: impl FnMut() -> Result<(), E>,
) -> Result<Duration, E> {
    round()?;
    let mut least = Duration::MAX;
    for _ in 0..rounds {
        let begun = thread_cpu();
        round()?;
        least = least.min(thread_cpu().saturating_sub(begun));
    }
    Ok(least)
}

/// The middle one.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_spends_no_more_than_the_process() {
        // The process is asked first and last: its time includes the thread's.
        let process = process_cpu();
        let thread = thread_cpu();
        std::hint::black_box((0..1_000_000_u64).fold(0, |sum: u64, it| sum.wrapping_mul(3) ^ it));
        let thread = thread_cpu().saturating_sub(thread);
        let process = process_cpu().saturating_sub(process);
        assert!(thread > Duration::ZERO && thread <= process);
    }

    #[test]
    fn the_median_is_the_middle_of_the_sorted() {
        let times = [5, 1, 9, 2, 3].map(Duration::from_secs).to_vec();
        assert_eq!(median(times), Duration::from_secs(3));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
