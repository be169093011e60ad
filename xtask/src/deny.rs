//! `cargo xtask deny`: licences, bans and sources of every dependency, by the rules of deny.toml.
//!
//! Advisories are left out: they need a database from the internet, and what they say changes
//! without a change of ours.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::succeed;
use crate::tools;

/// Pinned, so that a new release of the tool cannot fail an old commit.
const VERSION: &str = "0.20.2";

const DEV_WITHOUT_DEBUG: &str = "profile.dev.debug=0";

/// Checks the dependencies, after installing cargo-deny under `target/tools` where it is missing.
pub fn run(root: &Path) -> Result<()> {
    // Unoptimised it compiles in half the time, and its work here takes a second.
    let options = ["--no-default-features", "--profile", "dev", "--config", DEV_WITHOUT_DEBUG];
    let program = tools::provide_crate(root, "cargo-deny", VERSION, &options)?;
    let mut check = Command::new(program);
    check.current_dir(root).args(["--locked", "check", "--hide-inclusion-graph"]);
    check.args(["licenses", "bans", "sources"]);
    succeed(&mut check)
}
