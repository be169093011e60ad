//! Thread priority of background work: nice, and `SCHED_IDLE`.
//!
//! Knows: how much less of a busy core it gets.
//! Never knows: what the work is.

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

/// The same, and more: only what nobody else wants of a core is taken, and given back at once. A
/// thread that is merely lowered runs on for milliseconds after another wakes, which a server's
/// clients wait for.
///
/// Not for threads whose locks others wait for, nor for work that somebody waits for at the other end
/// of a connection: on a machine without an idle core they hardly run at all. Whoever has chosen
/// another priority for this process knows why, and is left alone.
pub(crate) fn use_idle_scheduling() {
    if rustix::process::getpriority_process(None) != Ok(0) || !idle::is_usual() {
        return;
    }
    if let Err(cause) = idle::take() {
        debug!(%cause, "cannot leave the cores to others");
        lower_priority();
    }
}

#[cfg(target_os = "linux")]
mod idle {
    use std::io;

    /// Whether nobody has chosen how this thread shares the cores.
    pub(super) fn is_usual() -> bool {
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        // SAFETY: no memory is involved; zero is this thread.
        let found = unsafe { libc::sched_getscheduler(0) };
        found == libc::SCHED_OTHER
    }

    /// Makes this thread one of those that run when no other wants to.
    pub(super) fn take() -> io::Result<()> {
        let parameters = libc::sched_param { sched_priority: 0 };
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        // SAFETY: the parameters outlive the call, which only reads them; zero is this thread.
        let outcome =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod idle {
    use std::io;

    pub(super) fn is_usual() -> bool {
        true
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
        let lowered = std::thread::spawn(move || {
            lower_priority();
            std::thread::spawn(priority).join().unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (usual + STEPS).min(19));
        assert_eq!(priority(), usual);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn leftovers_are_taken_by_a_thread_and_those_it_starts_unless_somebody_chose_otherwise() {
        #[expect(unsafe_code, reason = "the system's own function has no safe one")]
        fn scheduling() -> (i32, i32) {
            // SAFETY: no memory is involved.
            (unsafe { libc::sched_getscheduler(0) }, priority())
        }
        let before = scheduling();
        let taken = std::thread::spawn(|| {
            use_idle_scheduling();
            std::thread::spawn(scheduling).join().unwrap()
        });
        // Somebody may have chosen for the tests, too.
        let is_usual = before == (libc::SCHED_OTHER, 0);
        let expected = if is_usual { (libc::SCHED_IDLE, 0) } else { before };
        assert_eq!(taken.join().unwrap(), expected);
        assert_eq!(scheduling(), before);
        let chosen = std::thread::spawn(|| {
            rustix::process::nice(3).unwrap();
            use_idle_scheduling();
            scheduling()
        });
        assert_eq!(chosen.join().unwrap(), (before.0, (before.1 + 3).min(19)));
    }
}
