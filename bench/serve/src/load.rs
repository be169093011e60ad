//! Load: what is sent where for how long, and what came of it.

pub mod h2load;
pub mod oha;
pub mod wrk;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

/// For a load generator to end after its time, its connections included.
pub(crate) const SLACK: Duration = Duration::from_mins(2);

/// What is sent, to whichever server.
#[derive(Clone, Debug)]
pub struct Load {
    /// The bodies, one a line; each request takes any of them.
    pub bodies: PathBuf,
    /// How many there are.
    pub body_count: usize,
    /// Headers beside the type of the content.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Connections at a time.
    pub connections: u32,
    /// Threads of the load generator.
    pub threads: u32,
    /// How long.
    pub time: Duration,
}

/// Where it is sent.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address and the path.
    pub url: String,
    /// Whether the bodies are left away, because a file is asked for.
    pub is_get: bool,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadOutcome {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests in a second.
    pub per_second: f64,
    /// Bytes of an answer, its head included.
    pub bytes: f64,
    /// Half of the answers came within these microseconds.
    pub p50: f64,
    /// All but one of a hundred did.
    pub p99: f64,
}

/// Only whole rounds count.
pub(crate) fn flawless(errors: u64, requests: u64, url: &str) -> Result<()> {
    ensure!(requests > 0, "{url}: no request was answered");
    ensure!(errors == 0, "{url}: {errors} of {requests} requests failed");
    Ok(())
}
