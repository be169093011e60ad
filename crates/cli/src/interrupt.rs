//! Ctrl-C and SIGTERM during work that may be left at any moment.

use std::io::{self, Write as _};
use std::process;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What shells take for the end by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// The same for SIGTERM.
pub(crate) const TERMINATED: u8 = 143;
/// For cleaning up.
const END_WITHIN: Duration = Duration::from_secs(2);

/// From here on a signal ends the process: first `clean_up` is called, then `said` is printed, which
/// tells what stays and what to do next. What `clean_up` gives is kept until the process has ended.
pub(crate) fn on_interrupt<T>(
    said: &'static str,
    clean_up: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<()> {
    let (tell, told) = sync_channel(1);
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let listening = runtime.and_then(|runtime| {
            let signals = {
                let _entered = runtime.enter();
                StopSignal::new()?
            };
            Ok((runtime, signals))
        });
        match listening {
            Ok((runtime, mut signals)) => {
                let _ = tell.send(Ok(()));
                let code = runtime.block_on(signals.wait());
                end(clean_up, said);
                process::exit(code.into());
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    let listening = told.recv().map_err(|_| anyhow!("the thread broke off"));
    listening.and_then(|listening| listening.map_err(Into::into)).context("signals")
}

/// Cleans up and says so, for a short while: whoever reads what is said may be gone or stand still, and
/// the process ends all the same.
fn end<T>(clean_up: impl FnOnce() -> T + Send + 'static, said: &'static str) {
    let (tell, told) = sync_channel(1);
    let ending = move || {
        let _kept = clean_up();
        // On a line of its own, whatever a progress bar has drawn.
        let _ = writeln!(io::stderr(), "\nstopped: {said}");
        let _ = tell.send(());
        // The process ends this thread.
        loop {
            thread::park();
        }
    };
    if thread::Builder::new().name("ending".to_owned()).spawn(ending).is_ok() {
        let _ = told.recv_timeout(END_WITHIN);
    }
}

/// Ctrl-C, or what a supervisor sends; heard from the moment it is made.
#[derive(Debug)]
pub(crate) struct StopSignal {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignal {
    pub(crate) fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// The exit code that goes with the signal, if there is nothing else to tell.
    pub(crate) async fn wait(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}
