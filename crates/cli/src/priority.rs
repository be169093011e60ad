//! Thread priority of background work: nice, and `SCHED_IDLE`.

use std::thread;

use tracing::debug;

/// Steps below the usual, of 19. A busy core gives such a thread about a tenth of what it gives another.
const STEPS: i32 = 10;

/// Lowers the priority of this thread, and of those that it starts from here on. A server beside it
/// then waits less for a core; an idle machine makes no difference.
pub(crate) fn lower_priority() {
    if let Err(cause) = rustix::process::nice(STEPS) {
        debug!(%cause, "cannot lower the priority");
    }
}

/// Does a piece of background work, some seconds to minutes of it, on a thread of its own that yields
/// the cores to others.
///
/// The thread has `SCHED_IDLE` where the system knows it: a thread whose priority is merely lowered
/// runs on for milliseconds after another wakes, which a server's clients wait for. On a machine
/// without an idle core such a thread hardly runs at all, and it cannot go back: so a piece of work
/// first measures what is left of the cores, at most every ten seconds, and only has its priority
/// lowered if that is too little. A priority that the operator chose for this process is kept.
///
/// Not for threads whose locks others wait for, nor for work that somebody waits for at the other end
/// of a connection.
pub(crate) fn give_way<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let work = || {
        yield_cores(idle::has_enough);
        work()
    };
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Lets this thread, and those that it starts from here on, have what others leave of the cores, or a
/// lower priority where that is not enough.
fn yield_cores(has_enough: impl FnOnce() -> bool) {
    if rustix::process::getpriority_process(None) != Ok(0) || !idle::is_usual() {
        return;
    }
    if has_enough() {
        match idle::take() {
            Ok(()) => return,
            Err(cause) => debug!(%cause, "cannot leave the cores to others"),
        }
    }
    lower_priority();
}

#[cfg(target_os = "linux")]
mod idle {
    use std::io;
    use std::sync::{Mutex, PoisonError};
    use std::thread;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    /// What a thread with `SCHED_IDLE` must get of a core ...
    const ENOUGH_CPU: Duration = Duration::from_millis(20);
    /// ... within this time: a tenth, about what a lowered priority gets beside busy threads.
    const ENOUGH_WITHIN: Duration = Duration::from_millis(200);

    /// How long a measurement counts: an import of small files must not spend its time on measuring.
    const COUNTS_FOR: Duration = Duration::from_secs(10);

    /// Whether others leave enough of the cores to work with that.
    pub(super) fn has_enough() -> bool {
        static LAST: Mutex<Option<(Duration, bool)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = now(ClockId::Monotonic);
        match *last {
            Some((at, has_enough)) if begun.saturating_sub(at) < COUNTS_FOR => has_enough,
            _ => {
                let has_enough = thread::spawn(measure).join().unwrap_or(false);
                *last = Some((begun, has_enough));
                has_enough
            }
        }
    }

    fn measure() -> bool {
        let begun = now(ClockId::Monotonic);
        if take().is_err() {
            return false;
        }
        while now(ClockId::ThreadCPUTime) < ENOUGH_CPU {
            if now(ClockId::Monotonic).saturating_sub(begun) > ENOUGH_WITHIN {
                return false;
            }
        }
        true
    }

    fn now(clock: ClockId) -> Duration {
        Duration::try_from(clock_gettime(clock)).unwrap_or_default()
    }

    /// Whether nobody has chosen how this thread shares the cores.
    pub(super) fn is_usual() -> bool {
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        // SAFETY: no memory is involved; zero is this thread.
        let found = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        found == libc::c_long::from(libc::SCHED_OTHER)
    }

    /// Makes this thread one of those that run when no other wants to.
    pub(super) fn take() -> io::Result<()> {
        let priority: libc::c_int = 0;
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        // SAFETY: the priority outlives the call, which only reads it; zero is this thread. The C
        // libraries' functions stand for whole processes, and musl's only fail.
        let outcome = unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority)
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod idle {
    use std::io;

    pub(super) fn is_usual() -> bool {
        true
    }

    pub(super) fn has_enough() -> bool {
        false
    }

    /// Other systems have no such threads.
    pub(super) fn take() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[test]
    fn a_thread_and_those_it_starts_give_way_and_others_do_not() {
        let usual = priority();
        let lowered = thread::spawn(move || {
            lower_priority();
            thread::spawn(priority).join().unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (usual + STEPS).min(19));
        assert_eq!(priority(), usual);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_has_what_others_leave_or_a_lower_priority_if_that_is_too_little() {
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        fn scheduling() -> (i32, i32) {
            // SAFETY: no memory is involved.
            (unsafe { libc::sched_getscheduler(0) }, priority())
        }
        let before = scheduling();
        // Somebody may have chosen for the tests, too.
        let is_usual = before == (libc::SCHED_OTHER, 0);
        for (has_enough, taken) in
            [(true, (libc::SCHED_IDLE, 0)), (false, (libc::SCHED_OTHER, STEPS))]
        {
            let found = thread::spawn(move || {
                yield_cores(|| has_enough);
                // Threads that it starts have the same.
                thread::spawn(scheduling).join().unwrap()
            });
            assert_eq!(found.join().unwrap(), if is_usual { taken } else { before });
        }
        let found = give_way(scheduling);
        assert!(!is_usual || found != before, "{found:?}");
        assert_eq!(scheduling(), before);
        let chosen = thread::spawn(|| {
            rustix::process::nice(3).unwrap();
            yield_cores(|| true);
            scheduling()
        });
        assert_eq!(chosen.join().unwrap(), (before.0, (before.1 + 3).min(19)));
    }
}
