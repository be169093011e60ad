//! Runs `quipu` and keeps what it said.

use std::path::Path;
use std::process::{Command, Stdio};

/// What a run left behind.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn quipu(args: &[&str]) -> Ran {
    ran(&mut command(args))
}

/// `quipu` with these arguments and none of the variables that it reads.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(args);
    without_settings(&mut command);
    command
}

/// Takes away what whoever runs the tests has configured.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("QUIPU_")) {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env("XDG_DATA_HOME", "/nonexistent");
}

#[test]
fn what_a_test_says_does_not_depend_on_the_log_level_of_whoever_runs_it() {
    let command = command(&[]);
    let mut changed = command.get_envs();
    assert!(changed.any(|change| change == ("RUST_LOG".as_ref(), None)));
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The exit code when whoever should read the output has left.
pub(crate) fn quipu_unread(args: &[&str]) -> Option<i32> {
    let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap().code()
}

impl Ran {
    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out.trim()).unwrap()
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A short sample chain in a folder.
pub(crate) fn sample(folder: &Path, format: &str) {
    let args = ["sample", "--to", text(folder), "--format", format];
    let size = ["--block-count", "100", "--txs-per-block", "1"];
    quipu(&[&args[..], &size[..]].concat()).ends_with(0);
}

/// The one archive in a folder.
pub(crate) fn archive(folder: &Path) -> std::path::PathBuf {
    let mut paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_archive = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|found| found == "ere" || found == "era1")
    };
    paths.find(is_archive).unwrap()
}
