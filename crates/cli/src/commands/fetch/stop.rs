//! Ctrl-C and SIGTERM while a download runs: it ends cleanly, and at once the second time.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::Failure;
use crate::interrupt::{INTERRUPTED, TERMINATED};

/// Whether a signal has come, and which.
#[derive(Clone, Debug)]
pub(super) struct FetchStopSignal {
    /// Raised by the first signal.
    pub(super) flag: watch::Receiver<bool>,
    /// The exit code of the first signal, set before the flag is raised.
    code: Arc<OnceLock<u8>>,
}

impl FetchStopSignal {
    /// Hears Ctrl-C and SIGTERM from here on.
    pub(super) fn listen(runtime: &Runtime) -> Result<Self, Failure> {
        let (raise, flag) = watch::channel(false);
        let code = Arc::<OnceLock<u8>>::default();
        let first_code = Arc::clone(&code);
        let _entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("signals")?;
        runtime.spawn(async move {
            for is_second in [false, true] {
                let code = tokio::select! {
                    _ = interrupt.recv() => INTERRUPTED,
                    _ = terminate.recv() => TERMINATED,
                };
                if is_second {
                    std::process::exit(code.into());
                }
                let _ = first_code.set(code);
                raise.send_replace(true);
                // Whoever read what is said may be gone.
                let said = "stopping: the file that is being proven is not taken, the others stay";
                let _ = writeln!(io::stderr(), "{said}");
            }
        });
        Ok(Self { flag, code })
    }

    /// What comes of some work, unless a signal comes before its end.
    pub(super) fn or_stopped<T>(
        &self,
        runtime: &Runtime,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut flag = self.flag.clone();
        runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                _ = flag.wait_for(|is_stopped| *is_stopped) => None,
            }
        })
    }

    /// The end by the signal that came.
    pub(super) fn failure(&self) -> Failure {
        // Whoever read what is said may be gone.
        let said = "stopped: the same command again goes on where this one ended";
        let _ = writeln!(io::stderr(), "{said}");
        Failure::Stopped(self.code.get().copied().unwrap_or(INTERRUPTED))
    }
}
