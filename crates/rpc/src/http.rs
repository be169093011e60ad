//! The HTTP server: JSON-RPC by POST and over WebSocket, and a few pages for machines and people by GET.
//!
//! - `accept` takes connections, limits them and gives each to a thread;
//! - `tls` encrypts them, where the server has a certificate;
//! - `fast_path` answers the requests that nearly all clients send, straight from the socket;
//! - `hyper_path` answers every other HTTP request, HTTP/2 among them;
//! - `explorer_page` answers browsers with the page that is built in;
//! - `metrics_listener` answers those who watch the server, on a port of their own;
//! - `websocket` serves the connections that are upgraded;
//! - `bulk_thread` works on long and compressed bodies, on a thread that serves no connection;
//! - `byte_stream`, `compression`, `headers`, `response` and `write_progress` are what they share.

mod accept;
#[cfg(test)]
mod admission_tests;
mod bulk_thread;
mod byte_stream;
mod compression;
mod explorer_page;
mod fast_path;
mod headers;
mod hyper_path;
mod metrics_listener;
mod response;
mod settings;
mod tls;
mod unread_body;
mod websocket;
mod write_progress;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tracing::warn;

use crate::admission::{Admission, AdmissionError, SharedAdmission};
use crate::budget::Budget;
use crate::http_counts::HttpCounters;
use crate::metrics_page::ServerCounts;
use crate::request_log::LineLimit;
use crate::service::Service;

use response::{HttpAnswer, overloaded};

pub use accept::{FirstReader, Listener, NOT_ENCRYPTED, ServeError};
pub use metrics_listener::MetricsListener;
pub use settings::HttpSettings;
pub use tls::{RenewedIdentity, Tls, TlsError, TlsFiles};

/// Answers requests, on any number of connections. Its copies are one server: connections that begin
/// after it got other settings have a copy with those.
#[derive(Clone, Debug)]
pub struct Server {
    service: Arc<Service>,
    settings: Arc<HttpSettings>,
    /// For connections that begin from now on.
    next_settings: Arc<ArcSwap<HttpSettings>>,
    /// None where connections are not encrypted.
    tls: Option<Arc<Tls>>,
    /// Of all connections and protocols.
    budget: Arc<Budget>,
    /// Who may ask.
    admission: Arc<SharedAdmission>,
    /// Where long bodies are worked on, once connections are served.
    bulk_thread: Arc<OnceLock<Handle>>,
    counters: Arc<HttpCounters>,
    lines: Arc<ServerLines>,
}

impl Server {
    /// A server for a service.
    #[must_use]
    pub fn new(service: Arc<Service>, settings: HttpSettings) -> Self {
        let budget = Budget::new(settings.bytes_under_way_max);
        let (admission, bulk_thread, counters, lines) = Default::default();
        let settings = Arc::new(settings);
        Self {
            service,
            next_settings: Arc::new(ArcSwap::new(Arc::clone(&settings))),
            settings,
            tls: None,
            budget,
            admission,
            bulk_thread,
            counters,
            lines,
        }
    }

    /// The same with encrypted connections, and no others.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Connections that begin from now on have these settings, and bytes under way are limited by them
    /// on all. Threads stay as many as they are.
    pub fn set_settings(&self, settings: HttpSettings) {
        self.budget.set_bytes_max(settings.bytes_under_way_max);
        self.next_settings.store(Arc::new(settings));
    }

    /// The same server for connections that begin now, if its settings have changed since.
    fn renewed(&self) -> Option<Self> {
        let settings = self.next_settings.load();
        (!Arc::ptr_eq(&settings, &self.settings))
            .then(|| Self { settings: Arc::clone(&settings), ..self.clone() })
    }

    /// Says who may ask from now on, also on connections that are open: each request, and each message
    /// over a `WebSocket`, is let in by the rules in force when it comes. Before the first time everybody
    /// may. Rules that would open a server which needs keys, and do not say so, are refused.
    pub fn set_admission(&self, admission: Admission) -> Result<(), AdmissionError> {
        self.admission.replace(admission)
    }

    /// The refusal of a request that there is no room for, which is logged.
    fn refuse_overloaded(&self) -> HttpAnswer {
        self.budget.count_refusal();
        log_limited(&self.lines.requests, "no room for a request");
        overloaded()
    }

    /// What is counted of it and of its service.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        ServerCounts {
            http: self.counters.counts(),
            budget: self.budget.counts(),
            ..self.service.counts()
        }
    }

    /// What its clients take of memory and time.
    #[must_use]
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }
}

/// The limits of its log lines, one for each kind: none hides another.
#[derive(Debug, Default)]
struct ServerLines {
    /// About requests that there is no room for.
    requests: LineLimit,
    /// About connections that there is no room for.
    connections: LineLimit,
    /// About connections that the system did not give.
    accepts: LineLimit,
}

/// Logs what clients can cause, now and then.
fn log_limited(lines: &LineLimit, what: &str) {
    if let Some(left_out) = lines.allow() {
        warn!(left_out, "{what}");
    }
}
