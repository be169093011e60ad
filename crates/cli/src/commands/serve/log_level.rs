//! Which lines a server logs, and how.

use std::env;

use anyhow::Context as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, reload};

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
pub(crate) struct LogLevel(reload::Handle<Targets, Registry>);

impl LogLevel {
    /// Logs what goes with this verbosity from now on, unless `RUST_LOG` says what.
    pub(super) fn set(&self, verbosity: Verbosity) {
        // It fails only where nothing is logged any more.
        let _ = self.0.reload(targets(usual_level(verbosity)));
    }
}

/// The directives of `RUST_LOG`, such as `info,rpc=debug`, unless the variable is unset or empty.
pub(super) fn log_directives() -> Option<String> {
    env::var("RUST_LOG").ok().filter(|directives| !directives.is_empty())
}

fn targets(level: &str) -> Targets {
    let asked = log_directives().and_then(|directives| directives.parse().ok());
    // A client can make the HTTP/2 library warn about every frame, which would fill the disk. The
    // object store's library logs every retry; the server logs the outcome.
    let usual = || format!("{level},h2=error,object_store=warn").parse().unwrap_or_default();
    asked.unwrap_or_else(usual)
}

/// Writes logs to standard error: what `RUST_LOG` asks for, or else of this level.
pub(crate) fn begin_logs(is_json: bool, level: &str) -> Result<LogLevel, Failure> {
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal);
    let lines = if is_json { lines.json().boxed() } else { lines.boxed() };
    let (filter, handle) = reload::Layer::new(targets(level));
    let begun = tracing_subscriber::registry().with(filter).with(lines).try_init();
    begun.map_err(|error| anyhow::anyhow!("{error}")).context("logs")?;
    Ok(LogLevel(handle))
}
