//! SIGHUP: keys, certificates, limits and the level of logs are read again while requests are served.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{anyhow, bail};
use rpc::http::{HttpSettings, RenewedIdentity, Server, Tls};
use rpc::{AdmissionSettings, Service, ServiceSettings};
use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

use super::admission::{ServerReach, put_in_force};
use super::last_reload::LastReload;
use super::log_level::{LogLevel, log_directives};
use super::supervisor::{tell_ready, tell_reloading};
use crate::Failure;
use crate::args::Command;
use crate::args::given::GivenSettings;
use crate::args::serve::ServeArgs;
use crate::config::parse_inner;
use crate::descriptors::{log_shares, share_with_clients};
use crate::output::Verbosity;

/// Flags whose values can change while requests are served, and hold at once.
const AT_ONCE: [&str; 18] = [
    "batch-bytes-max",
    "batch-items-max",
    "bytes-under-way-max",
    "filter-timeout",
    "filters-max",
    "logs-bytes-max",
    "logs-max",
    "logs-read-bytes-max",
    "logs-unindexed-blocks-max",
    "quiet",
    "rate-per-address",
    "require-key",
    "slow-request",
    "stop-timeout",
    "trusted-proxy",
    "unknown-hash",
    "verbose",
    "weight-per-address",
];

/// Flags whose values can change too, and hold for connections that begin afterwards. All others need a
/// restart.
const FOR_NEW_CONNECTIONS: [&str; 16] = [
    "answer-timeout",
    "body-bytes-max",
    "body-timeout",
    "connections-max",
    "connections-per-client-max",
    "cors-origin",
    "header-timeout",
    "allowed-host",
    "idle-timeout",
    "no-explorer",
    "ping-interval",
    "socket-requests-max",
    "streams-max",
    "subscriptions-max",
    "write-bytes-min",
    "write-timeout",
];

/// Flags that say how the server proves who it is. Their files are read again, and other files need a
/// restart.
const CERTIFICATES: [&str; 3] = ["tls-cert", "tls-client-ca", "tls-key"];

/// What a server was started with.
#[derive(Debug)]
pub(super) struct StartedWith {
    given: GivenSettings,
    admission: AdmissionSettings,
    log_level: LogLevel,
    verbosity: Verbosity,
}

impl StartedWith {
    pub(super) fn new(
        args: &ServeArgs,
        admission: AdmissionSettings,
        log_level: LogLevel,
        verbosity: Verbosity,
    ) -> Self {
        Self { given: args.given.clone(), admission, log_level, verbosity }
    }
}

/// What changes when settings do.
#[derive(Debug)]
pub(super) struct ReloadedParts {
    pub(super) server: Arc<Server>,
    pub(super) service: Arc<Service>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) reach: ServerReach,
    /// Whether other machines may ask without a key.
    pub(super) is_open: bool,
    pub(super) is_following: bool,
    /// Segments that are open at once.
    pub(super) segments: usize,
    /// Connections that may be open.
    pub(super) connections_max: usize,
    pub(super) last_reload: Arc<LastReload>,
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
    admission: AdmissionSettings,
    verbosity: Verbosity,
}

impl Reloader {
    pub(super) fn new(started: StartedWith, parts: ReloadedParts) -> Self {
        let StartedWith { given, admission, log_level, verbosity } = started;
        let (current, started) = (given.clone(), given);
        Self { parts, log_level, started, current, admission, verbosity }
    }

    /// Reads them; a mistake among them is logged, and changes nothing.
    fn reload(&mut self) {
        let outcome = self.try_reload();
        self.parts.last_reload.ended(outcome.is_ok());
        let Err(cause) = outcome else { return };
        error!("settings cannot be read again, and stay as they were: {cause:#}");
    }

    fn try_reload(&mut self) -> anyhow::Result<()> {
        let (args, verbosity) = self.read_args()?;
        let admission = args.admission.settings();
        let renewed = self.read_certificate(&args)?;
        let ReloadedParts {
            server,
            service,
            tls,
            reach,
            is_open,
            is_following,
            segments,
            connections_max,
            last_reload: _,
        } = &mut self.parts;
        // The last that can be refused.
        *is_open = put_in_force(server, admission.clone(), *reach, *is_open)?;
        let is_certificate_new = renewed.is_some();
        if let Some(tls) = tls {
            tls.install(renewed);
        }
        service.set_settings(ServiceSettings { is_following: *is_following, ..args.settings() });
        let http = args.http_settings();
        let shares = share_with_clients(*segments, http.connections_max);
        if shares.connections != *connections_max {
            log_shares(&shares, http.connections_max);
            *connections_max = shares.connections;
        }
        server.set_settings(HttpSettings { connections_max: shares.connections, ..http });
        // What is told is told at the louder of both levels.
        self.log_level.set(verbosity.max(self.verbosity));
        self.tell(&args, &admission, is_certificate_new);
        self.log_level.set(verbosity);
        (self.current, self.admission, self.verbosity) = (args.given, admission, verbosity);
        Ok(())
    }

    /// All settings, each by itself and together without a mistake.
    fn read_args(&self) -> anyhow::Result<(ServeArgs, Verbosity)> {
        let args = parse_inner(&self.current.typed).map_err(to_error)?;
        let verbosity = args.verbosity();
        let Command::Serve(args) = args.command else { bail!("this is no server") };
        // Without it everything would have its default.
        if let (Some(file), None) = (&self.started.file, &args.given.file) {
            bail!("{}: it was there at the start, and is gone", file.display());
        }
        args.check().map_err(to_error)?;
        Ok((*args, verbosity))
    }

    /// The certificate, if its files hold another one by now.
    fn read_certificate(&self, args: &ServeArgs) -> anyhow::Result<Option<RenewedIdentity>> {
        let mut changed = self.started.changed_in(&args.given);
        // Files that are not named any more may be gone.
        let is_other = changed.any(|(flag, _)| CERTIFICATES.contains(&flag));
        let tls = self.parts.tls.as_ref().filter(|_| !is_other);
        Ok(tls.map(|tls| tls.read_again()).transpose()?.flatten())
    }

    /// Logs what has changed since the last time, and what only a restart changes.
    fn tell(&self, args: &ServeArgs, admission: &AdmissionSettings, is_certificate_new: bool) {
        // The variable is stronger than both, and does not change.
        let is_by_variable = log_directives().is_some();
        let is_level = |flag: &str| ["quiet", "verbose"].contains(&flag);
        let changed_among = |flags: &'static [&str]| {
            let changed = self.current.changed_in(&args.given);
            let changed = changed.filter(move |(flag, _)| {
                flags.contains(flag) && !(is_by_variable && is_level(flag))
            });
            changed.map(|(_, name)| name).collect::<Vec<_>>()
        };
        let mut at_once = changed_among(&AT_ONCE);
        let others = [
            ("keys", self.admission.keys != admission.keys),
            ("the certificate", is_certificate_new),
        ];
        at_once.extend(others.into_iter().filter(|(_, is_new)| *is_new).map(|(name, _)| name));
        let for_new_connections = changed_among(&FOR_NEW_CONNECTIONS).join(", ");
        let changed = if at_once.is_empty() { "nothing".to_owned() } else { at_once.join(", ") };
        info!(changed, for_new_connections, "settings were read again");
        let is_reloaded = |flag| AT_ONCE.contains(&flag) || FOR_NEW_CONNECTIONS.contains(&flag);
        let needed = self.started.changed_in(&args.given).filter(|(flag, _)| !is_reloaded(*flag));
        let needed: Vec<&str> = needed.map(|(_, name)| name).collect();
        if !needed.is_empty() {
            warn!(settings = needed.join(", "), "changes that need a restart are not in force");
        }
    }
}

/// What is wrong with a setting; nothing else can go wrong where one is read.
fn to_error(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Work(cause) | Failure::Usage(cause) => cause,
        Failure::Told | Failure::Stopped(_) => anyhow!("{failure:?}"),
    }
}

/// Reads the settings of a server again whenever that is asked for.
pub(super) async fn reload_on(mut hangup: Signal, reloader: Option<Reloader>) {
    let reloader = reloader.map(|own| Arc::new(Mutex::new(own)));
    while hangup.recv().await.is_some() {
        let Some(own) = reloader.clone() else {
            info!("SIGHUP: there is nothing to read again; serving goes on");
            continue;
        };
        tell_reloading();
        // Files are read: nobody waits for a disk meanwhile.
        let working = tokio::task::spawn_blocking(move || {
            own.lock().unwrap_or_else(PoisonError::into_inner).reload();
        });
        if let Err(cause) = working.await {
            error!(%cause, "reading settings again broke off");
        }
        tell_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    /// Those that only a restart changes. A new setting is put here or among those that are reloaded.
    const RESTARTED: [&str; 40] = [
        "anchor",
        "backfill-to",
        "cache-bytes",
        "cache-dir",
        "cache-disk-bytes",
        "cache-memory-bytes",
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
        "pin",
        "poll-every",
        "publish",
        "quorum",
        "read-threads",
        "reads-max",
        "run-bytes-max",
        "serve-threads",
        "source",
        "source-every",
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
        let reloaded = AT_ONCE.into_iter().chain(FOR_NEW_CONNECTIONS);
        let mut sorted: Vec<&str> = RESTARTED.into_iter().chain(reloaded).collect();
        sorted.sort_unstable();
        assert_eq!(args.given.settings.keys().collect::<Vec<_>>(), sorted);
    }
}
