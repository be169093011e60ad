//! `cargo xtask nightly`: the home of what takes longer than a change should wait.
//!
//! The plan is printed first, so that a log says what was meant to happen even if it breaks off.

use std::path::Path;

use anyhow::Result;

use crate::fuzz;
use crate::step::{CiStep, run_all};

/// Ten minutes a target: long enough for inputs that twenty seconds never reach.
pub const SECONDS_DEFAULT: u64 = 600;

/// Read by the tests that damage archives: every bit of every byte, not one bit of each.
const EVERY_BIT: &str = "QUIPU_FLIP_EVERY_BIT";

/// Read by the test that kills imports: how often.
const KILLS: (&str, &str) = ("QUIPU_KILLS", "100");

/// Read by the script that kills what takes blocks from a node: how often.
const NODE_KILLS: (&str, &str) = ("QUIPU_KILLS", "200");
const NODE_KILLS_SCRIPT: &str = "e2e/kills.sh";

/// Runs the long tests, then fuzzes the wanted targets.
pub fn run(root: &Path, request: &fuzz::FuzzArgs) -> Result<()> {
    println!("nightly plan:");
    let (kills, count) = KILLS;
    println!("  1. every test in release mode with {EVERY_BIT}=1 and {kills}={count}");
    let (node_kills, node_count) = NODE_KILLS;
    println!("  2. {NODE_KILLS_SCRIPT} with {node_kills}={node_count}");
    println!("  3. {} seconds of fuzzing each target", request.seconds);
    let tests = CiStep::cargo("long tests", &["test", "--workspace", "--locked", "--release"])
        .with_env(EVERY_BIT, "1")
        .with_env(kills, count);
    let kills_beside_a_node = CiStep::script("kills beside a node", root, NODE_KILLS_SCRIPT)
        .with_env(node_kills, node_count);
    let long_tests = run_all(root, vec![tests, kills_beside_a_node]);
    // A failing test must not cost the night's fuzzing.
    let fuzzing = fuzz::run(root, request);
    long_tests.and(fuzzing)
}
