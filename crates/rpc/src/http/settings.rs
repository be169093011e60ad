//! Limits and manners of the HTTP server, and their defaults.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::write_progress::WriteLimit;

/// After the server was told to stop, for what clients had sent by then to arrive.
pub(super) const STOP_GRACE: Duration = Duration::from_millis(200);

/// Limits and manners of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Bytes of a request's body, decompressed.
    pub body_bytes_max: usize,
    /// Bytes of request bodies, decompressed bodies and answers that are under way at a time, over all
    /// connections; beyond it requests are answered 503 with Retry-After. One answer is always
    /// admitted, and buffers of up to 4 KiB are not counted.
    pub bytes_under_way_max: usize,
    /// Threads that serve; none for as many as the machine has cores.
    pub threads: Option<NonZeroUsize>,
    /// Connections at a time; one more is answered 503 with Retry-After.
    pub connections_max: usize,
    /// Connections of one client at a time; none turns the check off, as is right behind a proxy,
    /// where all clients have one address.
    pub connections_per_client_max: Option<usize>,
    /// For a request's head to arrive, from its first byte.
    pub header_timeout: Duration,
    /// For the first request, and for the next one on a connection that is kept: one that is silent
    /// for longer is closed before twice this time.
    pub idle_timeout: Duration,
    /// For a request's body to arrive.
    pub body_timeout: Duration,
    /// For an answer to be found, from when the request has come whole. Below the ten seconds that
    /// clients wait.
    pub answer_timeout: Duration,
    /// For a client to take `write_bytes_min` of an answer, or the rest of it. Nothing else that comes
    /// or goes on the connection moves this time.
    pub write_timeout: Duration,
    /// Bytes of an answer that must be taken within `write_timeout`.
    pub write_bytes_min: usize,
    /// Requests that are under way on one HTTP/2 connection at a time.
    pub streams_max: u32,
    /// Between two signs of life that a silent WebSocket is asked for; without any it is closed after
    /// `idle_timeout`.
    pub ping_interval: Duration,
    /// Messages of one WebSocket that are answered at the same time; more are not read meanwhile.
    pub socket_requests_max: usize,
    /// Subscriptions of one WebSocket.
    pub subscriptions_max: usize,
    /// For requests under way when the server is told to stop: it is to be gone within two seconds,
    /// whatever its clients do.
    pub stop_timeout: Duration,
    /// Origins that browsers may ask from: `*` for all; none turns it off.
    pub cors_origins: Vec<String>,
    /// Hosts that requests may name; none turns the check off.
    pub hosts: Vec<String>,
    /// Whether browsers get the explorer.
    pub has_explorer: bool,
}

impl HttpSettings {
    /// How long requests are read that come while the server stops: what was read takes its time too.
    pub(super) fn read_at_stop(&self) -> Duration {
        self.stop_timeout / 2
    }

    /// The slowest that a client may take an answer.
    pub(super) fn write_limit(&self) -> WriteLimit {
        WriteLimit { bytes: self.write_bytes_min, time: self.write_timeout }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            body_bytes_max: 5 << 20,
            bytes_under_way_max: 256 << 20,
            threads: None,
            connections_max: 10_000,
            connections_per_client_max: None,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(2),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(8),
            write_timeout: Duration::from_secs(30),
            write_bytes_min: 256 * 1024,
            streams_max: 32,
            ping_interval: Duration::from_secs(30),
            socket_requests_max: 32,
            subscriptions_max: 32,
            stop_timeout: Duration::from_millis(1500),
            cors_origins: vec!["*".to_owned()],
            hosts: Vec::new(),
            has_explorer: true,
        }
    }
}
