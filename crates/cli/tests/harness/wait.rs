//! Waiting for what a server or another process does and says to nobody: it is looked at again and
//! again.

use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits for what must happen, but not forever. `look` gives `None` until it did; `what` says what
/// there was instead.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>, what: impl Fn() -> String) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "it never happened: {}", what());
        thread::sleep(LOOK_EVERY);
    }
}

/// The next line with a text, of what a server logs; the others before it are kept in `passed`.
pub(crate) fn wait_for_line(
    log: &Receiver<String>,
    part: &str,
    passed: &mut Vec<String>,
) -> String {
    loop {
        let line = log.recv_timeout(DEADLINE);
        let line = line.unwrap_or_else(|_| panic!("no line with {part:?} among {passed:#?}"));
        if line.contains(part) {
            return line;
        }
        passed.push(line);
    }
}

/// The same for what is so or is not.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    wait_for(|| is_so().then_some(()), String::new);
}
