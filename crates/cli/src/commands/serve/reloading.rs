//! SIGHUP: keys, certificates, limits and the level of logs are read again while requests are served.
//!
//! Knows: which settings can change under way, that all of them change or none, and what the log is told.
//! Never knows: how a setting is kept, or what is served.

use std::sync::Arc;

use anyhow::anyhow;
use rpc::http::{HttpSettings, Server, Tls};
use rpc::{ApiKey, Service, ServiceSettings};
use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

use super::LogLevel;
use super::admission::{ServerReach, put_in_force};
use super::supervisor::{tell_ready, tell_reloading};
use crate::Failure;
use crate::args::Command;
use crate::args::given::GivenSettings;
use crate::args::serve::ServeArgs;
use crate::config::parse_inner;
use crate::descriptors::share_with_clients;

/// Flags whose values can change while requests are served; all others need a restart.
const RELOADED: [&str; 35] = [
    "answer-timeout",
    "batch-bytes-max",
    "batch-items-max",
    "body-bytes-max",
    "body-timeout",
    "bytes-under-way-max",
    "connections-max",
    "connections-per-client-max",
    "cors-origin",
    "filter-timeout",
    "filters-max",
    "header-timeout",
    "host",
    "idle-timeout",
    "jwt-public-key-file",
    "jwt-secret-file",
    "logs-bytes-max",
    "logs-max",
    "logs-read-bytes-max",
    "logs-unindexed-blocks-max",
    "ping-interval",
    "quiet",
    "rate-per-address",
    "require-key",
    "slow-request",
    "socket-requests-max",
    "stop-timeout",
    "streams-max",
    "subscriptions-max",
    "trusted-proxy",
    "unknown-hash",
    "verbose",
    "weight-per-address",
    "write-bytes-min",
    "write-timeout",
];

/// What a server was started with.
#[derive(Debug)]
pub(super) struct StartedWith {
    pub(super) given: GivenSettings,
    pub(super) keys: Vec<ApiKey>,
    pub(super) log_level: LogLevel,
}

impl StartedWith {
    pub(super) fn new(args: &ServeArgs, log_level: LogLevel) -> Self {
        Self { given: args.given.clone(), keys: args.admission.keys.clone(), log_level }
    }
}

/// What changes when settings do.
#[derive(Debug)]
pub(super) struct ReloadedParts {
    pub(super) server: Arc<Server>,
    pub(super) service: Arc<Service>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) reach: ServerReach,
    pub(super) is_following: bool,
    /// Segments that are open at once.
    pub(super) segments: usize,
}

/// Reads the settings of a server again.
#[derive(Debug)]
pub(super) struct Reloader {
    parts: ReloadedParts,
    log_level: LogLevel,
    /// What it was started by, which holds for all that needs a restart.
    started: GivenSettings,
    /// What holds for all else.
    current: GivenSettings,
    keys: Vec<ApiKey>,
}

impl Reloader {
    pub(super) fn new(started: StartedWith, parts: ReloadedParts) -> Self {
        let StartedWith { given, keys, log_level } = started;
        Self { parts, log_level, current: given.clone(), started: given, keys }
    }

    /// Reads them; a mistake among them is logged, and changes nothing.
    fn reload(&mut self) {
        tell_reloading();
        match self.try_reload() {
            Ok(()) => {}
            Err(Failure::Work(cause) | Failure::Usage(cause)) => {
                error!("settings cannot be read again, and stay as they were: {cause:#}");
            }
            Err(Failure::Told | Failure::Stopped(_)) => {
                error!("settings cannot be read again, and stay as they were");
            }
        }
        tell_ready();
    }

    fn try_reload(&mut self) -> Result<(), Failure> {
        let args = parse_inner(&self.current.typed)?;
        let verbosity = args.verbosity();
        let Command::Serve(args) = args.command else {
            return Err(Failure::Work(anyhow!("this is no server")));
        };
        args.limits.check()?;
        let admission = args.admission.settings()?;
        let ReloadedParts { server, service, tls, reach, is_following, segments } = &self.parts;
        let is_certificate_new = tls.as_ref().map(|tls| tls.reload()).transpose();
        let is_certificate_new = is_certificate_new.map_err(anyhow::Error::from)?;
        put_in_force(server, admission, *reach).map_err(anyhow::Error::from)?;
        // From here on nothing can fail.
        self.log_level.set(verbosity);
        service.set_settings(ServiceSettings { is_following: *is_following, ..args.settings() });
        let http = args.http_settings();
        let connections_max = share_with_clients(*segments, http.connections_max).connections;
        server.set_settings(HttpSettings { connections_max, ..http });
        self.tell(&args, is_certificate_new == Some(true));
        self.current = args.given;
        self.keys = args.admission.keys;
        Ok(())
    }

    /// Logs what has changed since the last time, and what only a restart changes.
    fn tell(&self, args: &ServeArgs, is_certificate_new: bool) {
        let is_reloaded = |(flag, _): &(&str, &str)| RELOADED.contains(flag);
        let own = self.current.changed_in(&args.given).filter(is_reloaded).map(|(_, name)| name);
        let others =
            [("keys", self.keys != args.admission.keys), ("the certificate", is_certificate_new)];
        let others = others.into_iter().filter(|(_, is_new)| *is_new).map(|(name, _)| name);
        let changed: Vec<&str> = own.chain(others).collect();
        let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
        info!(changed, "settings were read again");
        let needed = self.started.changed_in(&args.given).filter(|it| !is_reloaded(it));
        let needed: Vec<&str> = needed.map(|(_, name)| name).collect();
        if !needed.is_empty() {
            warn!(settings = needed.join(", "), "changes that need a restart are not in force");
        }
    }
}

/// Reads the settings of a server again whenever that is asked for.
pub(super) async fn reload_on(mut hangup: Signal, mut reloader: Option<Reloader>) {
    while hangup.recv().await.is_some() {
        let Some(mut own) = reloader.take() else {
            info!("SIGHUP: there is nothing to read again; serving goes on");
            continue;
        };
        // Files are read: nobody waits for a disk meanwhile.
        let working = tokio::task::spawn_blocking(move || {
            own.reload();
            own
        });
        match working.await {
            Ok(own) => reloader = Some(own),
            Err(cause) => error!(%cause, "reading settings again broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    /// Those that only a restart changes. A new setting is put here or among those that are reloaded.
    const RESTARTED: [&str; 34] = [
        "accumulators",
        "anchor",
        "backfill-to",
        "cache-bytes",
        "chain-id",
        "config",
        "data-dir",
        "finality-depth",
        "gap-max",
        "genesis",
        "genesis-hash",
        "heartbeat-every",
        "listen",
        "log-format",
        "metrics-listen",
        "network",
        "open-segments-max",
        "pass-through",
        "pass-through-requests-max",
        "pass-through-subscriptions-max",
        "pass-through-to",
        "poll-every",
        "quorum",
        "read-threads",
        "reads-max",
        "run-bytes-max",
        "serve-threads",
        "tail-bytes-max",
        "tls-cert",
        "tls-client-ca",
        "tls-key",
        "upstream",
        "upstream-concurrency",
        "upstream-timeout",
    ];

    #[test]
    fn every_setting_is_reloaded_or_needs_a_restart() {
        let args = ConfigFile::default().serve_args().unwrap();
        let Command::Serve(args) = args.command else { panic!("{args:?}") };
        let mut sorted: Vec<&str> = RESTARTED.into_iter().chain(RELOADED).collect();
        sorted.sort_unstable();
        assert_eq!(args.given.settings.keys().collect::<Vec<_>>(), sorted);
    }
}
