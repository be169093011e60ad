//! How long a connection may be silent: one time for the head of a request, another between requests.
//!
//! While a request is under way nothing is limited here: finding an answer has a time of its own. From
//! then on until its last byte has left, only the client's taking it counts as life: no PING, no
//! SETTINGS, no window, and no progress of another answer on the same connection.

use std::collections::BTreeMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::http::fast_path::HTTP2_PREFACE;
use crate::http::write_progress::{WriteLimit, WriteProgress};

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleLimits {
    /// From the first byte of a request's head to its last.
    pub(super) head: Duration,
    /// Before the first byte, and between an answer and the next request.
    pub(super) idle: Duration,
    /// While an answer is being taken.
    pub(super) write: WriteLimit,
}

/// What a connection does, and how long it may.
#[derive(Debug)]
pub(super) struct IdleTimer {
    limits: IdleLimits,
    state: Mutex<IdleState>,
}

#[derive(Debug)]
struct IdleState {
    /// Requests under way.
    requests: usize,
    /// Answers that are being taken, by their numbers.
    answers: BTreeMap<u64, WriteProgress>,
    answer_next: u64,
    /// Since when it waits for what it waits for.
    since: Instant,
    /// Whether the head of a request has begun.
    is_in_head: bool,
    protocol: Protocol,
}

/// What a client speaks, as far as its bytes tell: hyper decides by the same ones, however they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// So many bytes came, and HTTP/2 begins with them. Until it is decided, they begin a head.
    Undecided(usize),
    Http1,
    /// Bytes come between requests too: no head is waited for.
    Http2,
}

impl Protocol {
    /// What it is once these bytes came.
    fn after(self, bytes: &[u8]) -> Self {
        let Self::Undecided(count) = self else { return self };
        let expected = HTTP2_PREFACE.get(count..).unwrap_or_default();
        if bytes.starts_with(expected) {
            Self::Http2
        } else if expected.starts_with(bytes) {
            Self::Undecided(count.saturating_add(bytes.len()))
        } else {
            Self::Http1
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<IdleTimer>);

/// An answer that is being taken, until its last byte has left.
#[derive(Debug)]
pub(super) struct AnswerGuard {
    timer: Arc<IdleTimer>,
    number: u64,
}

impl IdleTimer {
    pub(super) fn new(limits: IdleLimits) -> Arc<Self> {
        let state = IdleState {
            requests: 0,
            answers: BTreeMap::new(),
            answer_next: 0,
            since: Instant::now(),
            is_in_head: false,
            protocol: Protocol::Undecided(0),
        };
        Arc::new(Self { limits, state: Mutex::new(state) })
    }

    /// A request has come, head and all; it is under way until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> RequestGuard {
        let mut state = self.state();
        state.requests = state.requests.saturating_add(1);
        state.is_in_head = false;
        RequestGuard(Arc::clone(self))
    }

    /// An answer has been found, and is to be taken.
    pub(super) fn begin_answer(self: &Arc<Self>) -> AnswerGuard {
        let mut state = self.state();
        let number = state.answer_next;
        state.answer_next = number.saturating_add(1);
        state.answers.insert(number, WriteProgress::new(self.limits.write));
        AnswerGuard { timer: Arc::clone(self), number }
    }

    /// Ends when the connection has been silent for too long. It is to be polled whenever the
    /// connection was: what moved there may have brought the end nearer.
    pub(super) async fn wait_until_lost(&self) {
        let mut timer = pin!(sleep_until(Instant::now()));
        poll_fn(|context| {
            while let Some(at) = self.lost_at() {
                if at <= Instant::now() {
                    return Poll::Ready(());
                }
                // One that fires too early is set again; most connections never get there.
                if timer.is_elapsed() || at < timer.deadline() {
                    timer.as_mut().reset(at);
                }
                ready!(timer.as_mut().poll(context));
            }
            Poll::Pending
        })
        .await;
    }

    /// When the time is over, if nothing moves until then. `None` while only requests are under way.
    fn lost_at(&self) -> Option<Instant> {
        let mut state = self.state();
        if !state.answers.is_empty() {
            return state.answers.values_mut().filter_map(WriteProgress::deadline).min();
        }
        let limit = if state.is_in_head { self.limits.head } else { self.limits.idle };
        // A time past the end of all clocks never comes.
        let far = Duration::from_hours(24 * 365);
        let is_idle = state.requests == 0;
        is_idle.then(|| state.since.checked_add(limit).unwrap_or(state.since + far))
    }

    /// Bytes came.
    pub(super) fn has_read(&self, bytes: &[u8]) {
        let mut state = self.state();
        let protocol = state.protocol.after(bytes);
        let is_decided = protocol != std::mem::replace(&mut state.protocol, protocol);
        let is_http2 = protocol == Protocol::Http2;
        let begins_head = !is_http2 && state.requests == 0 && !state.is_in_head;
        if begins_head || (is_http2 && is_decided) {
            state.is_in_head = begins_head;
            state.since = Instant::now();
        }
    }

    fn state(&self) -> MutexGuard<'_, IdleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests = state.requests.saturating_sub(1);
        state.since = Instant::now();
    }
}

impl AnswerGuard {
    /// So many bytes of it were taken.
    pub(super) fn advance(&self, count: usize) {
        if let Some(progress) = self.timer.state().answers.get_mut(&self.number) {
            progress.advance(count);
        }
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        let mut state = self.timer.state();
        state.answers.remove(&self.number);
        state.since = Instant::now();
    }
}
