//! Connections and refusals of the transport, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use hyper::StatusCode;

/// Codes that refusals have; any other is counted as none of them.
const CODES: [u16; 11] = [400, 401, 403, 404, 405, 408, 413, 415, 429, 500, 503];

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionProtocol {
    Http1,
    Http2,
    WebSocket,
}

impl ConnectionProtocol {
    const LABELS: [&str; 3] = ["http1", "http2", "websocket"];

    fn index(self) -> u8 {
        match self {
            Self::Http1 => 0,
            Self::Http2 => 1,
            Self::WebSocket => 2,
        }
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    accepted: AtomicU64,
    open: [AtomicU64; ConnectionProtocol::LABELS.len()],
    full: AtomicU64,
    client_full: AtomicU64,
    failed: AtomicU64,
    refusals: [AtomicU64; CODES.len()],
    other_refusals: AtomicU64,
}

/// Connections and refusals since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpCounts {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Those that are open, by protocol.
    pub open: Vec<(&'static str, u64)>,
    /// Those that were not served, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Refusals of the transport, by status code.
    pub refusals: Vec<(String, u64)>,
}

/// A connection that is counted while it is open.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    counters: Arc<HttpCounters>,
    protocol: AtomicU8,
}

impl HttpCounters {
    /// Counts a connection, of HTTP/1.1 until another protocol is spoken.
    pub(crate) fn open(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let protocol = ConnectionProtocol::Http1.index();
        if let Some(count) = self.open_of(protocol) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        OpenConnection { counters: Arc::clone(self), protocol: AtomicU8::new(protocol) }
    }

    /// Counts a connection that there is no room for.
    pub(crate) fn count_full(&self) {
        self.full.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection of a client that has all that it may.
    pub(crate) fn count_client_full(&self) {
        self.client_full.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that the system did not give.
    pub(crate) fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer, if it is a refusal.
    pub(crate) fn count_answer(&self, status: StatusCode) {
        if status.as_u16() >= 400 {
            let place = CODES.iter().position(|code| *code == status.as_u16());
            let counter = place.and_then(|place| self.refusals.get(place));
            counter.unwrap_or(&self.other_refusals).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts now.
    pub(crate) fn counts(&self) -> HttpCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let codes = CODES.iter().map(ToString::to_string).zip(self.refusals.iter().map(load));
        let other = ("other".to_owned(), load(&self.other_refusals));
        HttpCounts {
            accepted: load(&self.accepted),
            open: ConnectionProtocol::LABELS.into_iter().zip(self.open.iter().map(load)).collect(),
            refused: vec![
                ("server_limit", load(&self.full)),
                ("client_limit", load(&self.client_full)),
                ("accept_error", load(&self.failed)),
            ],
            refusals: codes.chain([other]).collect(),
        }
    }

    fn open_of(&self, protocol: u8) -> Option<&AtomicU64> {
        self.open.get(usize::from(protocol))
    }
}

impl OpenConnection {
    /// From now on this is spoken on it.
    pub(crate) fn speaks(&self, protocol: ConnectionProtocol) {
        let before = self.protocol.swap(protocol.index(), Ordering::Relaxed);
        if before != protocol.index() {
            let (from, to) =
                (self.counters.open_of(before), self.counters.open_of(protocol.index()));
            if let (Some(from), Some(to)) = (from, to) {
                to.fetch_add(1, Ordering::Relaxed);
                from.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(count) = self.counters.open_of(self.protocol.load(Ordering::Relaxed)) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_counted_by_what_is_spoken_on_it_while_it_is_open() {
        let counters = Arc::<HttpCounters>::default();
        let (first, second) = (counters.open(), counters.open());
        second.speaks(ConnectionProtocol::WebSocket);
        second.speaks(ConnectionProtocol::WebSocket);
        assert_eq!(counters.counts().open, [("http1", 1), ("http2", 0), ("websocket", 1)]);
        drop((first, second));
        let counts = counters.counts();
        assert_eq!(counts.open, [("http1", 0), ("http2", 0), ("websocket", 0)]);
        assert_eq!(counts.accepted, 2);
    }

    #[test]
    fn refusals_are_counted_by_code_and_a_code_without_a_count_as_other() {
        let counters = HttpCounters::default();
        for code in [200, 204, 404, 404, 503, 418] {
            counters.count_answer(StatusCode::from_u16(code).unwrap());
        }
        let counts = counters.counts().refusals;
        let counted: Vec<(&str, u64)> =
            counts.iter().filter(|it| it.1 > 0).map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(counted, [("404", 2), ("503", 1), ("other", 1)]);
    }
}
