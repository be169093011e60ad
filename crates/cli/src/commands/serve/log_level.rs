//! Which lines a server logs, and how.
//!
//! Knows: levels, `RUST_LOG`, text for people and JSON for programs.
//! Never knows: what is logged.

use std::env;

use anyhow::Context as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use crate::Failure;
use crate::output::Verbosity;

/// The level of logs, unless `RUST_LOG` says another.
pub(super) fn usual_level(verbosity: Verbosity) -> &'static str {
    match verbosity {
        Verbosity::Quiet => "warn",
        Verbosity::Usual => "info",
        Verbosity::Verbose => "debug",
    }
}

/// Which lines are logged, which can change.
#[derive(Debug)]
pub(crate) struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Logs what goes with this verbosity from now on, unless `RUST_LOG` says what.
    pub(super) fn set(&self, verbosity: Verbosity) {
        // It fails only where nothing is logged any more.
        let _ = self.0.reload(env_filter(usual_level(verbosity)));
    }
}

/// What `RUST_LOG` asks for, or else this level.
fn env_filter(level: &str) -> EnvFilter {
    // A client can have the HTTP/2 library warn of every frame: the disk would be its to fill. The
    // object store's library tells of every repeated request, and we tell of what comes of them.
    let usual = || EnvFilter::new(format!("{level},h2=error,object_store=warn"));
    // A variable that is set to nothing is one that is not set.
    let is_set = env::var_os(EnvFilter::DEFAULT_ENV).is_some_and(|asked| !asked.is_empty());
    let asked = is_set.then(EnvFilter::try_from_default_env);
    asked.and_then(Result::ok).unwrap_or_else(usual)
}

/// Writes logs to standard error: what `RUST_LOG` asks for, or else of this level.
pub(crate) fn begin_logs(is_json: bool, level: &str) -> Result<LogLevel, Failure> {
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal);
    let lines = if is_json { lines.json().boxed() } else { lines.boxed() };
    let (filter, handle) = reload::Layer::new(env_filter(level));
    let begun = tracing_subscriber::registry().with(filter).with(lines).try_init();
    begun.map_err(|error| anyhow::anyhow!("{error}")).context("logs")?;
    Ok(LogLevel(handle))
}
