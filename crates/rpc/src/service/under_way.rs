//! Requests and calls that are being answered: each is counted once, however it ends.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt as _};
use tokio::time::Instant;

use super::batch::BatchAnswer;
use super::{BatchContext, RequestLimits, Service};
use crate::budget::OutOfBudget;
use crate::call_counts::{CallOutcome, CallRecord, CallSubject};
use crate::reply::{Reply, ReplyStatus};
use crate::request_log::{FinishedRequest, RequestEnd};
use crate::traffic::{AnsweredRequest, Traffic};

/// How a call ends whose answer is given up: by our failure, by its time, or because nobody waits for
/// it.
fn outcome_of_given_up(until: Option<Instant>) -> CallOutcome {
    if thread::panicking() {
        CallOutcome::InternalError
    } else if until.is_some_and(|until| until <= Instant::now()) {
        CallOutcome::Timeout
    } else {
        CallOutcome::Cancelled
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct RequestUnderWay<'a> {
    service: &'a Service,
    asked: &'a BatchContext<'a>,
    body: &'a [u8],
    pub(super) calls: usize,
    has_ended: bool,
}

impl<'a> RequestUnderWay<'a> {
    /// One whose calls were not looked at yet.
    pub(super) fn new(service: &'a Service, asked: &'a BatchContext<'a>, body: &'a [u8]) -> Self {
        Self { service, asked, body, calls: 1, has_ended: false }
    }

    /// Counts it, charges it to whoever asked, and logs it. It took until a time.
    pub(super) fn end(mut self, at: Instant, reply: Option<Reply>) -> Option<Reply> {
        self.has_ended = true;
        let asked = self.asked;
        let answer_bytes = reply.as_ref().map_or(0, Reply::len);
        let status = reply.as_ref().map_or(ReplyStatus::Answered, Reply::status);
        // A refusal weighs nothing, or whoever asks again and again would never be let in.
        let is_refused = matches!(status, ReplyStatus::RateLimited { .. });
        if let Some(caller) = asked.limits.caller.filter(|_| !is_refused) {
            caller.charge_answer(answer_bytes);
        }
        if status == ReplyStatus::Overloaded {
            asked.limits.budget.count_refusal();
        }
        let end = if asked.has_failed.load(Ordering::Relaxed) {
            RequestEnd::Failed
        } else if status == ReplyStatus::Overloaded {
            RequestEnd::Overloaded
        } else {
            RequestEnd::Answered
        };
        self.record(at, answer_bytes, end);
        reply.map(|reply| reply.with_request_id(asked.id.made()))
    }

    fn record(&self, at: Instant, answer_bytes: usize, end: RequestEnd) {
        let Self { service, asked, body, calls, .. } = *self;
        let (is_socket, body_bytes) = (asked.channel.is_some(), body.len());
        service.traffic.count(AnsweredRequest { is_socket, calls, body_bytes, answer_bytes });
        let time = at.saturating_duration_since(asked.limits.begun);
        let (id, body) = (&asked.id, Some(body));
        let finished = FinishedRequest { id, body, body_bytes, answer_bytes, time, end };
        service.request_log.tell(&finished);
    }
}

impl Drop for RequestUnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let end = if thread::panicking() { RequestEnd::Failed } else { RequestEnd::Cancelled };
            self.record(Instant::now(), 0, end);
        }
    }
}

/// A call that is being answered.
#[derive(Debug)]
pub(super) struct CallUnderWay<'a> {
    traffic: &'a Traffic,
    until: Option<Instant>,
    begun: Instant,
    /// What it is counted as when it ends.
    pub(super) record: CallRecord,
    has_ended: bool,
}

impl<'a> CallUnderWay<'a> {
    /// One that began at a time and has to end until another.
    pub(super) fn new(traffic: &'a Traffic, begun: Instant, until: Option<Instant>) -> Self {
        Self { traffic, until, begun, record: CallRecord::begun(), has_ended: false }
    }

    /// Counts it; tells when it ended.
    pub(super) fn end(mut self) -> Instant {
        self.has_ended = true;
        let now = Instant::now();
        self.traffic.count_call(self.record, now.saturating_duration_since(self.begun));
        now
    }

    /// It was a notification, which is not counted; tells when it began.
    pub(super) fn dismiss(mut self) -> Instant {
        self.has_ended = true;
        self.begun
    }
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let record = CallRecord { outcome: outcome_of_given_up(self.until), ..self.record };
            self.traffic.count_call(record, self.begun.elapsed());
        }
    }
}

/// The answer to a call that went to a node, and what it is counted as once it is taken.
#[derive(Debug)]
pub(super) struct ForwardedAnswer<'a> {
    pub(super) made: Result<BatchAnswer<'a>, OutOfBudget>,
    pub(super) record: CallRecord,
    pub(super) time: Duration,
}

/// Calls of a batch that are on their way to a node at the same time, in the batch's order.
#[derive(Debug)]
pub(super) struct ForwardedCalls<'a, F: Future> {
    traffic: &'a Traffic,
    until: Option<Instant>,
    answers: FuturesOrdered<F>,
    /// When those began that are not counted yet.
    begun: VecDeque<Instant>,
}

impl<'a, 'b, F: Future<Output = ForwardedAnswer<'b>>> ForwardedCalls<'a, F> {
    /// None yet; they have to end until a time.
    pub(super) fn new(traffic: &'a Traffic, until: Option<Instant>) -> Self {
        Self { traffic, until, answers: FuturesOrdered::new(), begun: VecDeque::new() }
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.answers.len()
    }

    /// One more, which begins now.
    pub(super) fn push(&mut self, answering: F) {
        self.begun.push_back(Instant::now());
        self.answers.push_back(answering);
    }

    /// The answer to the first of them, which is counted.
    pub(super) async fn next(&mut self) -> Option<Result<BatchAnswer<'b>, OutOfBudget>> {
        let ForwardedAnswer { made, record, time } = self.answers.next().await?;
        self.begun.pop_front();
        self.traffic.count_call(record, time);
        Some(made)
    }

    /// The first of them is refused instead, and so is whatever follows it: nothing more is waited for.
    /// Tells when it began, if it did.
    pub(super) fn refuse_first(&mut self) -> Option<Instant> {
        self.answers = FuturesOrdered::new();
        self.begun.pop_front()
    }
}

impl<F: Future> Drop for ForwardedCalls<'_, F> {
    fn drop(&mut self) {
        let outcome = outcome_of_given_up(self.until);
        for begun in self.begun.drain(..) {
            let record = CallRecord { subject: CallSubject::Forwarded, outcome };
            self.traffic.count_call(record, begun.elapsed());
        }
    }
}

impl Service {
    /// Counts and logs a request whose body nobody has read: its time was over, or its client left,
    /// before it was its turn. It is a call of whoever sent it.
    pub(crate) fn record_unread(
        &self,
        limits: RequestLimits<'_>,
        is_socket: bool,
        body_bytes: usize,
    ) {
        // Who has asked too much is not told twice.
        let _ = limits.caller.map(|caller| caller.take(1));
        let (time, outcome) = (limits.begun.elapsed(), outcome_of_given_up(limits.until));
        self.traffic.count_call(CallRecord { subject: CallSubject::Unknown, outcome }, time);
        let (calls, answer_bytes) = (1, 0);
        self.traffic.count(AnsweredRequest { is_socket, calls, body_bytes, answer_bytes });
        let (id, end) = (&self.request_log.id(limits.request_id), RequestEnd::Cancelled);
        let finished = FinishedRequest { id, body: None, body_bytes, answer_bytes, time, end };
        self.request_log.tell(&finished);
    }
}
