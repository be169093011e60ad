//! The HTTP server: JSON-RPC by POST and over WebSocket, and a few pages for machines and people by GET.
//!
//! - `accept` takes connections, limits them and gives each to a thread;
//! - `tls` encrypts them, where the server has a certificate;
//! - `fast_path` answers the requests that nearly all clients send, straight from the socket;
//! - `hyper_path` answers every other HTTP request, HTTP/2 among them;
//! - `metrics_listener` answers those who watch the server, on a port of their own;
//! - `websocket` serves the connections that are upgraded;
//! - `bulk_thread` works on long and compressed bodies, on a thread that serves no connection;
//! - `byte_stream`, `compression`, `headers`, `response` and `write_progress` are what they share.
//!
//! Knows: which of them there are.
//! Never knows: JSON-RPC beyond "a body in, a body out".

mod accept;
#[cfg(test)]
mod admission_tests;
mod bulk_thread;
mod byte_stream;
mod compression;
mod fast_path;
mod headers;
mod hyper_path;
mod metrics_listener;
mod response;
mod settings;
mod tls;
mod websocket;
mod write_progress;

use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tracing::warn;

use crate::admission::{Admission, AdmissionError, SharedAdmission};
use crate::budget::Budget;
use crate::http_counts::HttpCounters;
use crate::metrics_page::ServerCounts;
use crate::request_log::LineLimit;
use crate::service::Service;

use response::{HttpAnswer, overloaded};

pub use accept::{FirstReader, Listener, ServeError};
pub use metrics_listener::MetricsListener;
pub use settings::HttpSettings;
pub use tls::{Tls, TlsError, TlsFiles};

/// Answers requests, on any number of connections.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    settings: HttpSettings,
    /// None where connections are not encrypted.
    tls: Option<Arc<Tls>>,
    /// Of all connections and protocols.
    budget: Arc<Budget>,
    /// Who may ask.
    admission: SharedAdmission,
    /// Where long bodies are worked on, once connections are served.
    bulk_thread: OnceLock<Handle>,
    counters: Arc<HttpCounters>,
    /// For lines about requests that there is no room for.
    overload_lines: LineLimit,
}

impl Server {
    /// A server for a service.
    #[must_use]
    pub fn new(service: Arc<Service>, settings: HttpSettings) -> Self {
        let budget = Budget::new(settings.bytes_under_way_max);
        let (admission, bulk_thread, counters, overload_lines) = Default::default();
        Self {
            service,
            settings,
            tls: None,
            budget,
            admission,
            bulk_thread,
            counters,
            overload_lines,
        }
    }

    /// The same with encrypted connections, and no others.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Says who may ask from now on, also on connections that are open: each request, and each message
    /// over a `WebSocket`, is let in by the rules in force when it comes. Before the first time everybody
    /// may. Rules that would open a server which needs keys, and do not say so, are refused.
    pub fn set_admission(&self, admission: Admission) -> Result<(), AdmissionError> {
        self.admission.replace(admission)
    }

    /// The refusal of a request that there is no room for, which is logged.
    fn refuse_overloaded(&self) -> HttpAnswer {
        self.log_overload("no room for a request");
        overloaded()
    }

    /// Logs that somebody is refused for want of room, now and then.
    fn log_overload(&self, what: &str) {
        if let Some(left_out) = self.overload_lines.allow() {
            warn!(left_out, "{what}");
        }
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
