//! Work that gives way: it takes what others leave.
//!
//! Knows: how much less of a busy core it gets.
//! Never knows: what the work is.

use tracing::debug;

/// Steps below the usual, of 19. A busy core gives such a thread about a tenth of what it gives another.
const STEPS: i32 = 10;

/// Lowers the priority of this thread, and of those that it starts from here on. A server beside an
/// import then waits less for a core; an idle machine makes no difference.
pub(crate) fn give_way() {
    if let Err(cause) = rustix::process::nice(STEPS) {
        debug!(%cause, "cannot lower the priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_and_those_it_starts_give_way_and_others_do_not() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let usual = priority();
        let lowered = std::thread::spawn(move || {
            give_way();
            std::thread::spawn(priority).join().unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (usual + STEPS).min(19));
        assert_eq!(priority(), usual);
    }
}
