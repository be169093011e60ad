//! What the log is told of requests: slow ones, failed ones, and all of them where somebody debugs.
//!
//! A request has an id of its own only if a line about it is written.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{Level, debug, enabled, warn};

use crate::envelope::{Item, RequestBody, parse};

/// Of a method's name that a log shows: a client may send megabytes as one.
const NAME_CHARS_MAX: usize = 64;
/// Letters of an id that a client gives.
const ID_CHARS_MAX: usize = 64;
/// Lines of one kind that may follow each other at once.
const BURST: u32 = 10;
/// Then one line in so long.
const REFILL_EVERY: Duration = Duration::from_secs(10);

/// The header field by which a client names its request.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// An id that a client gave, if it is one that a log and a header can show.
pub(crate) fn sane_id(text: &[u8]) -> Option<&str> {
    let is_sane = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let fits = (1..=ID_CHARS_MAX).contains(&text.len());
    std::str::from_utf8(text).ok().filter(|_| fits && text.iter().all(is_sane))
}

/// What a request is called: as its client says, or as we do when it is first asked.
#[derive(Debug)]
pub(crate) struct RequestId<'a> {
    given: Option<&'a str>,
    made: OnceLock<String>,
    ids: &'a RequestIds,
}

/// The ids of a service's requests; those of another run are others.
#[derive(Debug, Default)]
struct RequestIds {
    seed: RandomState,
    count: AtomicU64,
}

impl RequestIds {
    fn next(&self) -> String {
        let [a, b, c, d, ..] =
            self.seed.hash_one(self.count.fetch_add(1, Ordering::Relaxed)).to_be_bytes();
        format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

impl RequestId<'_> {
    /// The id that we made, if a line has it.
    pub(crate) fn made(&self) -> Option<&str> {
        self.made.get().map(String::as_str)
    }
}

impl fmt::Display for RequestId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.given.unwrap_or_else(|| self.made.get_or_init(|| self.ids.next())))
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// With an answer, or with nothing to answer.
    Answered,
    /// A call was answered with -32603, or not at all by our fault.
    Failed,
    /// There was no room for the answer.
    Overloaded,
    /// Nobody waited for the answer any more.
    Cancelled,
}

/// A request that is over.
#[derive(Debug)]
pub(crate) struct FinishedRequest<'a> {
    pub(crate) id: &'a RequestId<'a>,
    /// None if it was not read.
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) body_bytes: usize,
    pub(crate) answer_bytes: usize,
    pub(crate) time: Duration,
    pub(crate) end: RequestEnd,
}

/// Writes the lines. Each kind has a limit of its own: none hides another.
#[derive(Debug)]
pub(crate) struct RequestLog {
    /// A request that takes so many microseconds is slow.
    slow_after: AtomicU64,
    ids: RequestIds,
    slow: LineLimit,
    failed: LineLimit,
    overloaded: LineLimit,
    cancelled: LineLimit,
}

impl RequestLog {
    /// Requests that take so long are logged as slow; without such a time none is.
    pub(crate) fn new(slow_after: Option<Duration>) -> Self {
        let log = Self {
            slow_after: AtomicU64::new(u64::MAX),
            ids: RequestIds::default(),
            slow: LineLimit::default(),
            failed: LineLimit::default(),
            overloaded: LineLimit::default(),
            cancelled: LineLimit::default(),
        };
        log.set_slow_after(slow_after);
        log
    }

    /// The same from now on.
    pub(crate) fn set_slow_after(&self, slow_after: Option<Duration>) {
        let micros = slow_after.and_then(|time| u64::try_from(time.as_micros()).ok());
        self.slow_after.store(micros.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What a request is called whose client may have given it an id.
    pub(crate) fn id<'a>(&'a self, given: Option<&'a str>) -> RequestId<'a> {
        RequestId { given, made: OnceLock::new(), ids: &self.ids }
    }

    /// Tells of a request that is over. Whoever writes the line escapes what a client wrote.
    pub(crate) fn tell(&self, request: &FinishedRequest<'_>) {
        let FinishedRequest { id, body, body_bytes, answer_bytes, time, end } = *request;
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let is_slow = micros >= self.slow_after.load(Ordering::Relaxed);
        let (limit, what) = match end {
            RequestEnd::Failed => (&self.failed, "a request failed"),
            RequestEnd::Overloaded => (&self.overloaded, "no room for an answer"),
            RequestEnd::Answered if is_slow => (&self.slow, "a request was slow"),
            RequestEnd::Cancelled if is_slow => (&self.cancelled, "a slow request was cancelled"),
            RequestEnd::Answered | RequestEnd::Cancelled => {
                if enabled!(Level::DEBUG) {
                    let what = if end == RequestEnd::Answered { "answered" } else { "cancelled" };
                    let asked = asked_in(body);
                    debug!(request_id = %id, asked, body_bytes, answer_bytes, micros, "{what}");
                }
                return;
            }
        };
        if let Some(left_out) = limit.allow() {
            let asked = asked_in(body);
            warn!(request_id = %id, asked, body_bytes, answer_bytes, micros, left_out, "{what}");
        }
    }
}

/// What a body asks for, in a few words.
fn asked_in(body: Option<&[u8]>) -> String {
    let Some(body) = body else { return "a body that was not read".to_owned() };
    match parse(body) {
        Ok(RequestBody::Single(Item::Call(call))) => {
            call.method.chars().take(NAME_CHARS_MAX).collect()
        }
        Ok(RequestBody::Single(Item::Notification)) => "a notification".to_owned(),
        Ok(RequestBody::Batch(batch)) => format!("a batch of {}", batch.count()),
        Ok(RequestBody::Single(Item::Invalid(..))) | Err(_) => "no request".to_owned(),
    }
}

/// A limit for lines that clients can cause: a few at once, then one in a while.
#[derive(Debug, Default)]
pub(crate) struct LineLimit(Mutex<LineCount>);

#[derive(Debug)]
struct LineCount {
    left: u32,
    refilled_at: Option<Instant>,
    /// Lines that were not written since the last one that was.
    left_out: u64,
}

impl Default for LineCount {
    fn default() -> Self {
        Self { left: BURST, refilled_at: None, left_out: 0 }
    }
}

impl LineLimit {
    /// Whether a line may be written now; if so it counts, and how many before it were left out is
    /// told.
    pub(crate) fn allow(&self) -> Option<u64> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let refilled_at = *count.refilled_at.get_or_insert(now);
        let periods = now.duration_since(refilled_at).as_secs() / REFILL_EVERY.as_secs();
        if let Ok(periods @ 1..) = u32::try_from(periods) {
            count.left = count.left.saturating_add(periods).min(BURST);
            // What is left of a period counts for the next.
            count.refilled_at = refilled_at.checked_add(REFILL_EVERY.saturating_mul(periods));
        }
        if count.left == 0 {
            count.left_out = count.left_out.saturating_add(1);
            return None;
        }
        count.left = count.left.saturating_sub(1);
        Some(std::mem::take(&mut count.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_as_it_came_if_a_log_can_show_it_and_made_otherwise() {
        for (text, is_sane) in [
            ("a", true),
            ("Trace-1.2_3", true),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
            ("", false),
            ("a b", false),
            ("a\u{1b}[31m", false),
            ("\u{e9}", false),
        ] {
            assert_eq!(sane_id(text.as_bytes()), is_sane.then_some(text), "{text:?}");
        }
        let log = RequestLog::new(None);
        let (given, first, second) = (log.id(Some("a")), log.id(None), log.id(None));
        assert_eq!(given.to_string(), "a");
        let texts = [&first, &first, &second].map(ToString::to_string);
        assert!(texts.iter().all(|text| text.len() == 8), "{texts:?}");
        assert!(texts[0] == texts[1] && texts[1] != texts[2], "{texts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_lines_may_come_at_once_and_those_left_out_are_counted() {
        let limit = LineLimit::default();
        let count = |lines: u32| (0..lines).filter_map(|_| limit.allow()).collect::<Vec<_>>();
        assert_eq!(count(100), [0; 10]);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(count(100), [90]);
        // The second beyond ten is not lost.
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(count(1), [99]);
        tokio::time::advance(Duration::from_hours(1)).await;
        let told = count(100);
        assert_eq!((told.len(), told[0], told[1]), (10, 0, 0));
    }
}
