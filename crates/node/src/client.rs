//! The client of one node: pace, retries, and batches where the node takes them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug;

use super::address::{Scheme, UpstreamUrl};
use super::answer_body::HasRoom;
use super::answers::{Answer, NodeCall, decode_answers, encode_calls, hide_address};
use super::ask_limits::AskLimits;
use super::error::AskError;
use super::http::Http;
use super::pace::{Pace, PaceQueue};
use super::retry::Tries;
use super::websocket::WebSocket;

/// Bytes of the answer to a short question: a block without its transactions in full, and to spare.
pub(super) const SHORT_BYTES_MAX: usize = 8 << 20;

/// A faster way to ask that a node refused is tried again after this: behind one address there may be
/// several nodes, or a newer one by then.
const AVOIDED_FOR: Duration = Duration::from_mins(5);

/// One node.
#[derive(Debug)]
pub struct Upstream {
    url: UpstreamUrl,
    wire: Wire,
    pace: Pace,
    limits: AskLimits,
    batches: FastWay,
    /// Why it asked to be left alone, and until when it is.
    busy: Mutex<Option<(Instant, AskError)>>,
    /// `eth_getBlockReceipts`.
    pub(super) block_receipts: FastWay,
}

#[derive(Debug)]
enum Wire {
    Http(Box<Http>),
    WebSocket(Box<WebSocket>),
}

impl Upstream {
    /// A node at an address. Nothing is asked yet.
    pub fn new(url: UpstreamUrl, limits: AskLimits) -> Result<Self, AskError> {
        let wire = match url.scheme {
            Scheme::Http => Wire::Http(Box::new(Http::new(url.clone(), limits)?)),
            Scheme::WebSocket => Wire::WebSocket(Box::new(WebSocket::new(url.clone(), limits))),
        };
        Ok(Self {
            url,
            wire,
            pace: Pace::new(limits.concurrency_max),
            limits,
            batches: FastWay::default(),
            busy: Mutex::default(),
            block_receipts: FastWay::default(),
        })
    }

    /// Host and port.
    #[must_use]
    pub fn name(&self) -> &str {
        self.url.name()
    }

    /// Why there is no answer in time: the node's own reason, if it asked us to wait.
    pub(super) fn late(&self, time: Duration) -> AskError {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let busy = busy.filter(|(until, _)| *until > Instant::now());
        busy.map_or(AskError::Late(time), |(_, error)| error)
    }

    fn set_busy(&self, error: &AskError) {
        let until = error.retry_after().and_then(|time| Instant::now().checked_add(time));
        if let Some(until) = until {
            let busy = Some((until, error.clone()));
            *self.busy.lock().unwrap_or_else(PoisonError::into_inner) = busy;
        }
    }

    /// Asks one question.
    pub(super) async fn ask_one(&self, call: NodeCall) -> Answer {
        let mut answers = self.ask_soon(std::slice::from_ref(&call)).await?;
        answers.pop().unwrap_or_else(|| Err(AskError::Malformed("no answer".to_owned())))
    }

    /// Bytes of one answer at the most.
    pub(super) fn answer_bytes_max(&self) -> usize {
        self.limits.answer_bytes_max
    }

    /// Asks several questions; in one message if the node takes that. What fails and may pass is
    /// asked again. All answers together have no more bytes than are left of the budget.
    pub(super) async fn ask_within(
        &self,
        calls: &[NodeCall],
        budget: &mut ByteBudget,
    ) -> Result<Vec<Answer>, AskError> {
        self.ask_in(PaceQueue::Common, calls, budget).await
    }

    /// The same for questions that are answered in a few bytes: they do not wait for others.
    pub(super) async fn ask_soon(&self, calls: &[NodeCall]) -> Result<Vec<Answer>, AskError> {
        self.ask_in(PaceQueue::Ahead, calls, &mut ByteBudget::new(self.limits.answer_bytes_max))
            .await
    }

    async fn ask_in(
        &self,
        queue: PaceQueue,
        calls: &[NodeCall],
        budget: &mut ByteBudget,
    ) -> Result<Vec<Answer>, AskError> {
        let mut tries = Tries::new(&self.limits, self.name());
        loop {
            // What came of a try that failed is gone again.
            let mut left = *budget;
            let error = match self.ask_once(queue, calls, &mut left).await {
                Ok(answers) => match answers.iter().find_map(pressure) {
                    Some(error) if !tries.is_last() => error,
                    _ => {
                        *budget = left;
                        return Ok(answers);
                    }
                },
                Err(error) => error,
            };
            tries.wait_after(error).await?;
        }
    }

    /// The newest notification of the node, if it can send any.
    pub(super) fn news(&self) -> Option<watch::Receiver<Option<Bytes>>> {
        match &self.wire {
            Wire::Http(_) => None,
            Wire::WebSocket(socket) => Some(socket.news()),
        }
    }

    /// Whether a connection is there on which news can come.
    pub(super) fn is_connected(&self) -> bool {
        match &self.wire {
            Wire::Http(_) => false,
            Wire::WebSocket(socket) => socket.is_connected(),
        }
    }

    /// How many connections were made so far: a new one may lead to another node.
    #[must_use]
    pub fn connection_count(&self) -> u64 {
        match &self.wire {
            Wire::Http(http) => http.connection_count(),
            Wire::WebSocket(socket) => socket.connection_count(),
        }
    }

    /// Posts a body that changes nothing, with retries. Needs HTTP or HTTPS, like [`Self::post_once`].
    pub async fn post(&self, body: Vec<u8>) -> Result<Bytes, AskError> {
        let (http, body) = (self.http()?, Bytes::from(body));
        let mut tries = Tries::new(&self.limits, self.name());
        loop {
            match http.ask(body.clone(), self.limits.answer_bytes_max).await {
                Ok(answer) => return Ok(answer),
                Err(error) => tries.wait_after(error).await?,
            }
        }
    }

    /// Posts a body once. The response has at most this many bytes, and `has_room` is called before
    /// it takes more memory.
    pub async fn post_once(
        &self,
        body: Bytes,
        bytes_max: usize,
        has_room: HasRoom<'_>,
    ) -> Result<Vec<u8>, AskError> {
        self.http()?.ask_with_room(body, bytes_max, has_room).await
    }

    fn http(&self) -> Result<&Http, AskError> {
        match &self.wire {
            Wire::Http(http) => Ok(http),
            Wire::WebSocket(_) => Err(AskError::Connect(format!(
                "{} must be reached over http or https",
                self.name()
            ))),
        }
    }

    /// The answers to questions that belong together: in one message, or one after the other, so that
    /// they go over one connection.
    pub(super) async fn ask_together(&self, calls: &[NodeCall]) -> Result<Vec<Answer>, AskError> {
        if self.batches.is_open() {
            return self.ask_soon(calls).await;
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.extend(self.ask_soon(std::slice::from_ref(call)).await?);
        }
        Ok(answers)
    }

    async fn ask_once(
        &self,
        queue: PaceQueue,
        calls: &[NodeCall],
        budget: &mut ByteBudget,
    ) -> Result<Vec<Answer>, AskError> {
        if calls.len() < 2 {
            return budget.take(self.send(queue, calls).await?);
        }
        if self.batches.is_open() {
            match self.send(queue, calls).await {
                // Half of it may be small enough.
                Err(AskError::TooLarge { .. }) => {
                    return self.ask_halves(queue, calls, budget).await;
                }
                Err(error) if is_batch_refusal(&error) => {
                    debug!(upstream = %self.name(), %error, "the node takes no batches");
                    self.batches.refuse();
                }
                answered => return budget.take(answered?),
            }
        }
        // As many at a time as fit, each as large as it may be: answers are counted before more are
        // requested.
        let mut answers = Vec::with_capacity(calls.len());
        let mut rest = calls;
        while !rest.is_empty() {
            let room = budget.room(self.single_bytes_max(queue));
            let (now, later) =
                rest.split_at(room.min(self.limits.concurrency_max).clamp(1, rest.len()));
            let singles = now.iter().map(|call| self.send(queue, std::slice::from_ref(call)));
            for answered in join_all(singles).await {
                answers.extend(budget.take(answered?)?);
            }
            rest = later;
        }
        Ok(answers)
    }

    /// Bytes of the answer to one question, as opposed to several in one message.
    fn single_bytes_max(&self, queue: PaceQueue) -> usize {
        match queue {
            PaceQueue::Common => self.limits.answer_bytes_max,
            PaceQueue::Ahead => self.limits.answer_bytes_max.min(SHORT_BYTES_MAX),
        }
    }

    async fn ask_halves(
        &self,
        queue: PaceQueue,
        calls: &[NodeCall],
        budget: &mut ByteBudget,
    ) -> Result<Vec<Answer>, AskError> {
        let (first, second) = calls.split_at(calls.len() / 2);
        let mut answers = Box::pin(self.ask_once(queue, first, budget)).await?;
        answers.extend(Box::pin(self.ask_once(queue, second, budget)).await?);
        Ok(answers)
    }

    /// Sends one message when it is its turn.
    async fn send(&self, queue: PaceQueue, calls: &[NodeCall]) -> Result<Vec<Answer>, AskError> {
        let turn = self.pace.turn(queue).await;
        let bytes_max = match calls {
            [_] => self.single_bytes_max(queue),
            _ => self.limits.answer_bytes_max,
        };
        let answered = match &self.wire {
            Wire::Http(http) => match http.ask(encode_calls(calls, 1).into(), bytes_max).await {
                Ok(body) => decode_answers(&body, calls.len()),
                Err(error) => Err(error),
            },
            Wire::WebSocket(socket) => socket.ask(calls, bytes_max).await,
        };
        let answered = hide_address(answered, &self.url);
        let pressed = match &answered {
            Ok(answers) => answers.iter().find_map(pressure),
            Err(error) => Some(error.clone()).filter(AskError::is_pressure),
        };
        match pressed {
            Some(error) => {
                self.set_busy(&error);
                turn.pressed(error.retry_after());
            }
            None if answered.is_ok() => turn.answered(),
            None => {}
        }
        answered
    }
}

/// A way to ask with fewer messages, which some nodes refuse.
#[derive(Debug, Default)]
pub(super) struct FastWay(Mutex<Option<Instant>>);

impl FastWay {
    /// Whether it is to be tried.
    pub(super) fn is_open(&self) -> bool {
        let refused_at = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused_at.is_none_or(|time| time.elapsed() >= AVOIDED_FOR)
    }

    /// The node refused it. Returns whether that is the first time.
    pub(super) fn refuse(&self) -> bool {
        let mut refused_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused_at.replace(Instant::now()).is_none()
    }
}

/// Bytes that the answers to several questions may still have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteBudget {
    left: usize,
    bytes_max: usize,
}

impl ByteBudget {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { left: bytes_max, bytes_max }
    }

    /// How many answers of this size fit.
    fn room(&self, bytes: usize) -> usize {
        self.left.checked_div(bytes).unwrap_or(self.left)
    }

    /// Takes answers if they fit.
    fn take(&mut self, answers: Vec<Answer>) -> Result<Vec<Answer>, AskError> {
        let bytes = answers.iter().filter_map(|answer| Some(answer.as_ref().ok()?.as_ref()?.len()));
        let left = self.left.checked_sub(bytes.sum());
        self.left = left.ok_or(AskError::TooLarge { bytes_max: self.bytes_max })?;
        Ok(answers)
    }
}

/// The refusal that says that a node is asked too much, if it is one.
fn pressure(answer: &Answer) -> Option<AskError> {
    answer.as_ref().err().filter(|error| error.is_pressure()).cloned()
}

/// Whether a node refused a message because it held several questions.
fn is_batch_refusal(error: &AskError) -> bool {
    match error {
        AskError::Refused { .. } => !error.is_pressure(),
        AskError::Status { status, .. } => [400, 405, 413, 415, 422].contains(status),
        AskError::Connect(_)
        | AskError::Late(_)
        | AskError::Broken(_)
        | AskError::TooLarge { .. }
        | AskError::NoRoom
        | AskError::Malformed(_) => false,
    }
}
