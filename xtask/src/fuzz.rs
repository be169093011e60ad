//! `cargo xtask fuzz`: every place where bytes come in against libFuzzer, on a stable compiler, for a
//! bounded time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::step::{cargo, host};

mod report;

use report::Report;

/// Enough for a smoke test of every target.
pub const SECONDS_DEFAULT: u64 = 20;

/// The target that must fail.
pub const CANARY: &str = "canary";
/// The canary falls within five seconds on a laptop core; this leaves room for a busy machine.
const CANARY_SECONDS: u64 = 120;

/// One input may take this long before it counts as a hang.
const INPUT_SECONDS_MAX: u64 = 10;
/// A decoder that needs more than this for a few kilobytes of input believes a length it read.
const MEMORY_MEBIBYTES_MAX: u64 = 2048;

/// What cargo-fuzz passes to a nightly compiler, less the address sanitizer, which stable does
/// not have and which safe Rust hardly needs: coverage counters, and comparisons, so that
/// libFuzzer can solve for magic numbers.
const RUST_FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "--cfg=fuzzing",
];

/// What to fuzz and for how long.
#[derive(Debug, PartialEq, Eq)]
pub struct FuzzArgs {
    /// Time for each target.
    pub seconds: u64,
    /// Names of targets; all when empty.
    pub targets: Vec<String>,
}

impl FuzzArgs {
    /// Reads `[--seconds N] [TARGET...]`.
    pub fn parse(arguments: &[String], seconds_default: u64) -> Result<Self> {
        let mut request = Self { seconds: seconds_default, targets: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--seconds" {
                let value = arguments.next().context("--seconds needs a number")?;
                request.seconds =
                    value.parse().with_context(|| format!("--seconds {value}: not a number"))?;
                // libFuzzer takes zero for "without end".
                ensure!(request.seconds > 0, "--seconds 0: must be at least 1");
            } else if argument.starts_with('-') {
                bail!("unknown option {argument}");
            } else {
                request.targets.push(argument.clone());
            }
        }
        Ok(request)
    }
}

/// Builds the targets and runs them, as many at a time as there are cores.
pub fn run(root: &Path, request: &FuzzArgs) -> Result<()> {
    let folder = root.join("fuzz");
    let executables = build(&folder)?;
    let wanted = choose(&executables, &request.targets)?;
    let workers = thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
    println!("fuzzing {} targets, {} s each, {workers} at a time", wanted.len(), request.seconds);
    let queue = Mutex::new(wanted.into_iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    // Bound to a name first: in the condition the lock would last for the body.
                    let next = queue.lock().ok().and_then(|mut queue| queue.next());
                    let Some((name, executable)) = next else { break };
                    match fuzz_one(&folder, name, executable, request.seconds) {
                        Ok(report) => println!("ok: {name}: {report}"),
                        Err(error) => {
                            println!("FAILED: {name}: {error:#}");
                            if let Ok(mut failed) = failed.lock() {
                                failed.push(name);
                            }
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { bail!("fuzzing failed: {}", failed.join(", ")) }
}

/// Compiles every target and returns where each executable is.
fn build(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut build = cargo();
    build.current_dir(folder).args(["build", "--release", "--locked", "--bins"]);
    build.arg("--message-format=json-render-diagnostics");
    // With a target named, build scripts and procedural macros are built without these flags.
    build.arg("--target").arg(host()?);
    build.env("CARGO_ENCODED_RUSTFLAGS", RUST_FLAGS.join("\x1f"));
    let output = build.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the fuzz targets do not build");
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not text")?;
    let mut executables = BTreeMap::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo's message is not JSON")?;
        let name = message.pointer("/target/name").and_then(Value::as_str);
        let executable = message.get("executable").and_then(Value::as_str);
        if let (Some(name), Some(executable)) = (name, executable) {
            executables.insert(name.to_owned(), PathBuf::from(executable));
        }
    }
    Ok(executables)
}

/// The named targets, or all; always with the canary, without which silence means nothing.
fn choose<'a>(
    executables: &'a BTreeMap<String, PathBuf>,
    names: &'a [String],
) -> Result<Vec<(&'a str, &'a Path)>> {
    for name in names {
        let known: Vec<&str> = executables.keys().map(String::as_str).collect();
        ensure!(executables.contains_key(name), "no target {name}; there are {}", known.join(", "));
    }
    ensure!(executables.contains_key(CANARY), "there is no canary target");
    let is_wanted = |name: &String| names.is_empty() || names.contains(name) || name == CANARY;
    let wanted = executables.iter().filter(|(name, _)| is_wanted(name));
    Ok(wanted.map(|(name, path)| (name.as_str(), path.as_path())).collect())
}

/// Runs one target to its end and judges what it printed.
fn fuzz_one(folder: &Path, name: &str, executable: &Path, seconds: u64) -> Result<Report> {
    let is_canary = name == CANARY;
    let artifacts = folder.join("artifacts").join(name);
    fs::create_dir_all(&artifacts).with_context(|| artifacts.display().to_string())?;
    let seconds = if is_canary { CANARY_SECONDS } else { seconds };
    let mut fuzzer = Command::new(executable);
    fuzzer.current_dir(folder);
    fuzzer.arg(format!("-max_total_time={seconds}"));
    fuzzer.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    fuzzer.arg(format!("-rss_limit_mb={MEMORY_MEBIBYTES_MAX}"));
    fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display()));
    fuzzer.arg("-print_final_stats=1");
    if is_canary {
        // From nothing and always the same way: what is tested here is the fuzzer.
        fuzzer.arg("-seed=1");
    } else {
        // Finds are kept beside the seeds, and git ignores them: the next run goes on from there.
        let corpus = folder.join("corpus").join(name);
        fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        fuzzer.arg(corpus);
    }
    let log = artifacts.join("log");
    let output = fuzzer.output().with_context(|| executable.display().to_string())?;
    fs::write(&log, &output.stderr).with_context(|| log.display().to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    judge(is_canary, output.status.success(), Report::parse(&text))
        .with_context(|| format!("{}see {}", report::reason(&text), log.display()))
}

/// The canary must have died of its bug; every other target must have survived. Who survives without
/// coverage was not looked at: its inputs were changed blindly. What broke a target counts before that:
/// a seed does it before any coverage is told.
fn judge(is_canary: bool, survived: bool, report: Report) -> Result<Report> {
    match (is_canary, survived) {
        (_, true) if report.coverage.is_none() => {
            bail!("no coverage reported: not instrumented? {report}")
        }
        (true, false) if report.crashed && report.coverage.is_some() => Ok(report),
        (true, _) => bail!("the planted bug was not found, so the fuzzer is blind: {report}"),
        (false, true) => Ok(report),
        (false, false) => bail!("an input broke it: {report}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], expected: Option<(u64, &[&str])>) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let request = FuzzArgs::parse(&arguments, 20).ok();
        let expected = expected.map(|(seconds, targets)| FuzzArgs {
            seconds,
            targets: targets.iter().map(ToString::to_string).collect(),
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn a_request_names_seconds_and_targets() {
        check(&[], Some((20, &[])));
        check(&["body", "--seconds", "5", "header"], Some((5, &["body", "header"])));
        check(&["--seconds"], None);
        check(&["--seconds", "soon"], None);
        check(&["--seconds", "0"], None);
        check(&["--minutes"], None);
    }

    #[test]
    fn only_the_canary_must_die() {
        let report = |crashed| {
            let end = if crashed { "deadly signal" } else { "" };
            Report::parse(&format!("#1\tINITED cov: 2\n{end}"))
        };
        assert!(judge(false, true, report(false)).is_ok());
        assert!(judge(false, false, report(true)).is_err());
        assert!(judge(true, false, report(true)).is_ok());
        assert!(judge(true, true, report(false)).is_err());
        // It ended badly, but not of its bug: out of memory, say.
        assert!(judge(true, false, report(false)).is_err());
    }

    /// It was told that the target was not instrumented, and nothing of the seed.
    #[test]
    fn a_seed_that_breaks_a_target_is_told_as_such() {
        let text = "INFO: seed corpus: files: 3 min: 1b max: 9b total: 12b rss: 30Mb\n\
                    thread '<unnamed>' panicked at fuzz_targets/body.rs:9:5:\n\
                    ==1== ERROR: libFuzzer: deadly signal\n\
                    artifact_prefix='a/'; Test unit written to a/crash-01\n";
        let told = judge(false, false, Report::parse(text)).unwrap_err().to_string();
        assert_eq!(told, "an input broke it: 0 runs, bug found");
        assert!(report::reason(text).contains("Test unit written to a/crash-01"));
        // Without any bug it is the fuzzer that does not look.
        let told = judge(false, true, Report::parse("#7\tDONE exec/s: 3")).unwrap_err().to_string();
        assert!(told.contains("not instrumented"), "{told}");
    }

    #[test]
    fn the_canary_is_always_chosen() {
        let executables: BTreeMap<String, PathBuf> =
            ["body", "canary", "header"].map(|name| (name.to_owned(), PathBuf::new())).into();
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            choose(&executables, &names)
                .map(|chosen| chosen.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "))
                .ok()
        };
        assert_eq!(chosen(&[]).as_deref(), Some("body canary header"));
        assert_eq!(chosen(&["header"]).as_deref(), Some("canary header"));
        assert_eq!(chosen(&["footer"]), None);
    }
}
