//! One command of a task: what it is called, what it runs, how it went.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A command to be run at the root of the repository.
#[derive(Debug)]
pub struct CiStep {
    name: String,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Command(Command),
    Function(fn(&Path) -> Result<()>),
}

impl CiStep {
    /// A step that runs cargo with these arguments.
    #[must_use]
    pub fn cargo(name: &str, arguments: &[&str]) -> Self {
        let mut command = cargo();
        command.args(arguments);
        Self { name: name.to_owned(), work: Work::Command(command) }
    }

    /// A step that runs a script of the repository.
    #[must_use]
    pub fn script(name: &str, root: &Path, script: &str) -> Self {
        Self { name: name.to_owned(), work: Work::Command(self::script(root, script)) }
    }

    /// The same step with these arguments.
    #[must_use]
    pub fn with_args(mut self, arguments: &[&str]) -> Self {
        if let Work::Command(command) = &mut self.work {
            command.args(arguments);
        }
        self
    }

    /// A step that is one of our own functions.
    #[must_use]
    pub fn function(name: &str, function: fn(&Path) -> Result<()>) -> Self {
        Self { name: name.to_owned(), work: Work::Function(function) }
    }

    /// The same step with a variable set in its environment.
    #[must_use]
    pub fn with_env(mut self, key: &str, value: &str) -> Self {
        if let Work::Command(command) = &mut self.work {
            command.env(key, value);
        }
        self
    }

    fn run(&mut self, root: &Path) -> Result<()> {
        match &mut self.work {
            Work::Command(command) => succeed(command.current_dir(root)),
            Work::Function(function) => function(root),
        }
    }
}

/// Runs every step, also after one has failed: a person wants all the news at once.
pub fn run_all(root: &Path, steps: Vec<CiStep>) -> Result<()> {
    let mut failed = Vec::new();
    for mut step in steps {
        println!("==> {}", step.name);
        let started = Instant::now();
        let outcome = step.run(root);
        let seconds = started.elapsed().as_secs_f32();
        match outcome {
            Ok(()) => println!("==> {}: ok in {seconds:.1} s", step.name),
            Err(error) => {
                println!("==> {}: FAILED after {seconds:.1} s: {error:#}", step.name);
                failed.push(step.name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Runs a command to its end; any exit status but zero is an error.
pub fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if status.success() { Ok(()) } else { bail!("{program}: {status}") }
}

/// The cargo that runs us, so that a chosen toolchain stays chosen.
#[must_use]
pub fn cargo() -> Command {
    undescribed(&env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// A script of the repository.
#[must_use]
pub fn script(root: &Path, name: &str) -> Command {
    undescribed(root.join(name).as_os_str())
}

/// A program that is not told which package we are. Some build scripts look at that, and whatever depends
/// on theirs would be built again, for us and then for the next person who runs cargo by hand.
fn undescribed(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The target triple of the compiler itself.
pub fn host() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let version = String::from_utf8_lossy(&output.stdout);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Where cargo puts what it builds.
#[must_use]
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Where the repository is: cargo says where this package lies, and it lies one folder below.
pub fn repository() -> Result<PathBuf> {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.context("run me as `cargo xtask`: CARGO_MANIFEST_DIR is not set")?;
    let root = package.parent().context("the xtask package lies at the root of the file system")?;
    Ok(root.to_path_buf())
}
