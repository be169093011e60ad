//! `cargo xtask deny`: licences, bans and sources of every dependency, by the rules of deny.toml.
//!
//! Advisories are left out: they need a database from the internet, and what they say changes
//! without a change of ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{cargo, succeed};

/// Pinned, so that a new release of the tool cannot fail an old commit.
const VERSION: &str = "0.20.2";

/// Checks the dependencies, after installing cargo-deny under `target/tools` where it is missing.
pub fn run(root: &Path) -> Result<()> {
    let program = match find(root) {
        Some(program) => program,
        None => install(root)?,
    };
    let mut check = Command::new(program);
    check.current_dir(root).args(["--locked", "check", "--hide-inclusion-graph"]);
    check.args(["licenses", "bans", "sources"]);
    succeed(&mut check)
}

/// The pinned version, ours or the one on the search path.
fn find(root: &Path) -> Option<PathBuf> {
    let candidates = [tools(root).join("bin/cargo-deny"), PathBuf::from("cargo-deny")];
    candidates.into_iter().find(|program| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).trim() == format!("cargo-deny {VERSION}")
        })
    })
}

fn install(root: &Path) -> Result<PathBuf> {
    println!("installing cargo-deny {VERSION} into target/tools");
    let mut install = cargo();
    install.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--root"]);
    // Unoptimised it compiles in half the time, and its work here takes a second.
    install.arg(tools(root)).args(["--no-default-features", "--profile", "dev", "--quiet"]);
    install.env("CARGO_PROFILE_DEV_DEBUG", "0");
    succeed(&mut install).context("cannot install cargo-deny")?;
    Ok(tools(root).join("bin/cargo-deny"))
}

fn tools(root: &Path) -> PathBuf {
    root.join("target/tools")
}
