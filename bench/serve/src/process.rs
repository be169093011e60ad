//! Programs that a run starts, and that end with it whatever happens.
//!
//! A program ends when its [`Running`] is dropped. A signal to the benchmark ends all of them first,
//! which is why every one is on a list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// For a program to end by itself once it was told to.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// The same where stopping is what is tested, on a machine that is busy with other things.
const STOP_WELL_WITHIN: Duration = Duration::from_mins(1);
/// Between two looks at a program that was told to stop; no event tells it to a waiting parent.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What runs now, and the folder that goes with the run.
static LIVE: Mutex<Live> = Mutex::new(Live { ids: BTreeSet::new(), folder: None });

#[derive(Debug)]
struct Live {
    ids: BTreeSet<u32>,
    folder: Option<PathBuf>,
}

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that runs until this is dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
}

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = program_name(command);
        // Held while it starts, so that a signal cannot come between the start and the list.
        let mut live = live();
        let child = command.spawn().with_context(|| cannot_start(&name))?;
        live.ids.insert(child.id());
        Ok(Self { name, child })
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("a child's state")?.is_none())
    }

    /// Lets it stand still until [`Running::resume`].
    pub fn pause(&self) {
        signal(self.id(), Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        signal(self.id(), Signal::CONT);
    }

    /// Tells it to stop, as a supervisor does. One that does not end in time, or ends with any status but
    /// zero, is an error.
    pub fn stop(mut self) -> Result<()> {
        ensure!(self.is_running()?, "{} has ended before it was told to", self.name);
        tell_to_stop(self.id());
        let deadline = Instant::now().checked_add(STOP_WELL_WITHIN).unwrap_or_else(Instant::now);
        ensure!(self.wait_until(deadline), "{} does not stop", self.name);
        let status = self.child.wait().with_context(|| self.name.clone())?;
        ensure!(status.success(), "{}: {status}", self.name);
        Ok(())
    }

    fn wait_until(&mut self, deadline: Instant) -> bool {
        loop {
            if !self.is_running().unwrap_or(false) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        tell_to_stop(self.id());
        let deadline = Instant::now().checked_add(STOP_WITHIN).unwrap_or_else(Instant::now);
        if !self.wait_until(deadline) {
            eprintln!("{} (process {}) does not stop: killed", self.name, self.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        live().ids.remove(&self.child.id());
    }
}

/// Runs a program to its end, and gives what it printed; any exit status but zero is an error. One
/// that takes longer than `limit` is ended.
pub fn output_of(command: &mut Command, limit: Duration) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = program_name(command);
    let mut running = Running::start(command)?;
    let stdout = running.child.stdout.take().context("no pipe")?;
    let stderr = running.child.stderr.take().context("no pipe")?;
    // Both are read while it runs, or a full pipe would stop it.
    let [stdout, stderr] = [read_all(stdout), read_all(stderr)];
    let deadline = Instant::now().checked_add(limit).unwrap_or_else(Instant::now);
    ensure!(running.wait_until(deadline), "{name} runs for more than {} s", limit.as_secs());
    let status = running.child.wait().with_context(|| name.clone())?;
    let [stdout, stderr] = [stdout, stderr].map(|it| it.join().unwrap_or_default());
    if !status.success() {
        bail!("{name}: {status}: {}", String::from_utf8_lossy(&stderr).trim());
    }
    Ok(Output { status, stdout, stderr })
}

fn read_all(mut pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// One that stands still hears it only when it goes on.
fn tell_to_stop(id: u32) {
    signal(id, Signal::TERM);
    signal(id, Signal::CONT);
}

fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that has ended already is just as well.
        let _ = kill_process(pid, signal);
    }
}

fn program_name(command: &Command) -> String {
    let path = Path::new(command.get_program());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn cannot_start(name: &str) -> String {
    format!("cannot start {name}: `cargo xtask bench serve` installs what is missing")
}

/// A program that may use these cores, as `taskset` names them; all if none is named.
#[must_use]
pub fn command_on(cores: Option<&str>, program: &Path) -> Command {
    let Some(cores) = cores else { return Command::new(program) };
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", cores]).arg(program);
    taskset
}

/// Leaves these cores to others: this process and what it starts from now on use the rest.
pub fn leave_core(core: usize) -> Result<()> {
    let count = thread::available_parallelism()?.get();
    ensure!(count > core.saturating_add(1), "--apart needs a core for the server and another");
    let rest = format!("{}-{}", core.saturating_add(1), count.saturating_sub(1));
    let mut taskset = Command::new("taskset");
    // Of all threads, should there be others.
    taskset.args(["-a", "-p", "-c", &rest, &std::process::id().to_string()]);
    output_of(&mut taskset, Duration::from_mins(1)).map(drop)
}

/// Ends everything and removes the run's folder when a signal comes, which [`Drop`] cannot.
pub fn end_all_on_signal(folder: &Path) -> Result<()> {
    live().folder = Some(folder.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(signal_comes());
        let live = live();
        live.ids.iter().copied().for_each(tell_to_stop);
        if let Some(folder) = &live.folder {
            let _ = fs::remove_dir_all(folder);
        }
        eprintln!("interrupted");
        std::process::exit(130);
    })?;
    Ok(())
}

async fn signal_comes() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_ends_with_its_guard_even_if_it_stands_still() {
        let running = Running::start(Command::new("sleep").arg("600")).unwrap();
        let folder = PathBuf::from(format!("/proc/{}", running.id()));
        assert!(folder.exists());
        running.pause();
        drop(running);
        assert!(!folder.exists());
    }

    #[test]
    fn a_program_stops_well_only_if_it_ends_by_itself_with_success() {
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdout(Stdio::piped());
            let mut running = Running::start(&mut command).unwrap();
            // It has its traps once it says something.
            let mut stdout = running.child().stdout.take().unwrap();
            std::io::Read::read_exact(&mut stdout, &mut [0]).unwrap();
            running
        };
        let waiting = "echo; while :; do sleep 0.01; done";
        start(&format!("trap 'exit 0' TERM; {waiting}")).stop().unwrap();
        let error = start(&format!("trap 'exit 3' TERM; {waiting}")).stop().unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        let mut ended = start("echo");
        ended.child().wait().unwrap();
        let error = ended.stop().unwrap_err().to_string();
        assert_eq!(error, "sh has ended before it was told to");
    }

    #[test]
    fn a_program_that_fails_or_takes_too_long_is_an_error() {
        let limit = Duration::from_mins(1);
        let failed = output_of(Command::new("ls").arg("/there/is/no/such/folder"), limit);
        assert!(failed.unwrap_err().to_string().contains("no/such/folder"));
        let endless = output_of(Command::new("sleep").arg("600"), Duration::from_millis(1));
        assert!(endless.unwrap_err().to_string().starts_with("sleep runs for more than"));
        let output = output_of(Command::new("echo").arg("said"), limit).unwrap();
        assert_eq!(output.stdout, b"said\n");
    }
}
