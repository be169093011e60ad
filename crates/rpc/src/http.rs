//! The HTTP server: JSON-RPC by POST and over WebSocket, and a few pages for machines and people by GET.
//!
//! - `accept` takes connections, limits them and gives each to a thread;
//! - `fast_path` answers the requests that nearly all clients send, straight from the socket;
//! - `hyper_path` answers every other HTTP request, HTTP/2 among them;
//! - `websocket` serves the connections that are upgraded;
//! - `compression`, `headers` and `response` are what they share.
//!
//! Knows: which of them there are.
//! Never knows: JSON-RPC beyond "a body in, a body out".

mod accept;
mod compression;
mod fast_path;
mod headers;
mod hyper_path;
mod response;
mod settings;
mod websocket;

use std::sync::Arc;

use crate::service::Service;

pub use accept::{Listener, ServeError};
pub use settings::HttpSettings;

/// Answers requests, on any number of connections.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    settings: HttpSettings,
}

impl Server {
    /// A server for a service.
    #[must_use]
    pub fn new(service: Arc<Service>, settings: HttpSettings) -> Self {
        Self { service, settings }
    }
}
