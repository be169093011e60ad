//! Ctrl-C while a download runs: it ends cleanly, and at once the second time.

use std::io::{self, Write as _};

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::Failure;
use crate::interrupt::INTERRUPTED;

/// Hears Ctrl-C and SIGTERM from here on; the flag is raised at the first.
pub(super) fn hear_stop(runtime: &Runtime) -> Result<watch::Receiver<bool>, Failure> {
    let (raise, stop) = watch::channel(false);
    let _entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    runtime.spawn(async move {
        for is_second in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if is_second {
                std::process::exit(INTERRUPTED.into());
            }
            raise.send_replace(true);
            // Whoever read what is said may be gone.
            let said = "stopping: the file that is being proven is not taken, the others stay";
            let _ = writeln!(io::stderr(), "{said}");
        }
    });
    Ok(stop)
}
