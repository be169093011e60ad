//! The commit that is built, for `quipu --version`.
//!
//! The variable `QUIPU_COMMIT` (a commit, or a commit and its date) is stronger than git, for builds
//! without a checkout. Where neither tells one, the version stands alone.

use std::env;
use std::path::Path;
use std::process::Command;

/// Where this package lies in the checkout. In any other place git speaks of another repository.
const PREFIX: &str = "crates/cli/";
/// Files of git of which at least one is written when another commit is checked out or made.
const WATCHED: [&str; 2] = ["HEAD", "logs/HEAD"];

fn main() {
    println!("cargo::rerun-if-env-changed=QUIPU_COMMIT");
    // Cargo would look at all files of the package, if none were named.
    println!("cargo::rerun-if-changed=build.rs");
    let told = env::var("QUIPU_COMMIT").ok().filter(|text| !text.trim().is_empty());
    let found = told.or_else(of_checkout).unwrap_or_default();
    let mut words = found.split_whitespace();
    let (commit, date) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match (commit, date) {
        ("", _) => version,
        (commit, "") => format!("{version} ({commit})"),
        (commit, date) => format!("{version} ({commit} {date})"),
    };
    // Not QUIPU_..., which are settings: cargo hands these on to what it runs.
    println!("cargo::rustc-env=BUILT_VERSION={version}");
    println!("cargo::rustc-env=BUILT_COMMIT={commit}");
    println!("cargo::rustc-env=BUILT_DATE={date}");
}

/// The commit and its date as git tells them, and cargo is told when to ask again.
fn of_checkout() -> Option<String> {
    if git(&["rev-parse", "--show-prefix"])? != PREFIX {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in WATCHED.into_iter().chain(branch.as_deref()) {
        // One that is not there would be taken for one that changes all the time.
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|it| is_there(it)) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--abbrev=12", "--format=%h %cs"])
}

fn is_there(path: &str) -> bool {
    Path::new(path).exists()
}

/// What git says; none if it is not there or has nothing to say.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let said = said.trim();
    (output.status.success() && !said.is_empty()).then(|| said.to_owned())
}
