//! Answers as JSON-RPC writes them: the envelope, and refusals in it.

use std::borrow::Cow;
use std::sync::Arc;

use chain::BlockRange;
use hyper::body::Bytes;

use crate::answered_range::AnsweredRange;
use crate::budget::{Budget, ByteLease, LeasedFor, OutOfBudget};
use crate::cache::{CacheEntry, CacheKey};
use crate::envelope::Id;
use crate::json::{Object, put_list, put_text};
use crate::refusal::Refusal;
use crate::spare;

/// Room of a buffer that stays empty; more is given back before the answer waits for its client.
pub(crate) const EMPTY_BYTES_MAX: usize = 64 * 1024;

/// A body in three parts: the middle one may be shared with other answers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    begin: Vec<u8>,
    middle: Bytes,
    end: Cow<'static, [u8]>,
    /// What the middle one is, if it is a result that is kept.
    shared: Option<CachedResult>,
    /// Its bytes, as the budget counts them.
    lease: ByteLease,
    status: ReplyStatus,
    /// Which blocks it is of, where that is told.
    answered_range: Option<AnsweredRange>,
    /// What the log calls its request, if that is an id of ours.
    request_id: Option<Box<str>>,
}

/// What a body is to the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyStatus {
    /// An answer, whatever it says.
    #[default]
    Answered,
    /// It stands for an answer that there was no room for.
    Overloaded,
    /// The caller has asked too much, and may ask again after so many seconds.
    RateLimited { seconds: u64 },
    /// The caller may not ask this method.
    Forbidden,
}

/// A result that is kept, and by which name.
#[derive(Clone, Debug)]
pub(crate) struct CachedResult {
    pub(crate) key: CacheKey,
    pub(crate) kept: CacheEntry,
}

impl Reply {
    /// A body of its own.
    pub(crate) fn of(begin: Vec<u8>) -> Self {
        Self { begin, ..Self::default() }
    }

    /// The answer to a call whose result is kept; all that comes before it has been written.
    pub(crate) fn shared(begin: Vec<u8>, shared: CachedResult) -> Self {
        let middle = shared.kept.result.clone();
        Self { begin, middle, end: Cow::Borrowed(b"}"), shared: Some(shared), ..Self::default() }
    }

    /// The answer to a call that a node was asked; all that comes before its value has been written.
    pub(crate) fn passed(begin: Vec<u8>, value: Bytes, lease: ByteLease) -> Self {
        Self { begin, middle: value, end: Cow::Borrowed(b"}"), lease, ..Self::default() }
    }

    /// A body of any three parts.
    pub(crate) fn joined(begin: Vec<u8>, middle: Bytes, end: Vec<u8>) -> Self {
        Self { begin, middle, end: Cow::Owned(end), ..Self::default() }
    }

    /// A body of its own whose bytes are counted already.
    pub(crate) fn leased(begin: Vec<u8>, lease: ByteLease) -> Self {
        Self { begin, lease, ..Self::default() }
    }

    /// The refusal of an answer that there is no room for.
    pub(crate) fn overloaded(begin: Vec<u8>, lease: ByteLease) -> Self {
        Self { begin, lease, status: ReplyStatus::Overloaded, ..Self::default() }
    }

    /// The same as something else than an answer.
    pub(crate) fn with_status(self, status: ReplyStatus) -> Self {
        Self { status, ..self }
    }

    /// The same with the blocks that it is of.
    pub(crate) fn with_answered_range(self, answered_range: Option<AnsweredRange>) -> Self {
        Self { answered_range, ..self }
    }

    /// Which blocks it is of, where that is told.
    pub(crate) fn answered_range(&self) -> Option<AnsweredRange> {
        self.answered_range
    }

    /// The same with the id that we gave its request, if we did.
    pub(crate) fn with_request_id(self, request_id: Option<&str>) -> Self {
        Self { request_id: request_id.map(Box::from), ..self }
    }

    /// The id that we gave its request.
    pub(crate) fn take_request_id(&mut self) -> Option<Box<str>> {
        self.request_id.take()
    }

    /// What it is to the transport.
    pub(crate) fn status(&self) -> ReplyStatus {
        self.status
    }

    /// The same with its bytes counted until it is dropped. What is kept for many answers counts with
    /// each: the cache may let go of it at any time.
    pub(crate) fn admit(mut self, budget: &Arc<Budget>) -> Result<Self, OutOfBudget> {
        give_back_room(&mut self.begin);
        let shared = self.middle.len().saturating_add(self.end.len());
        // The buffer that every request has is part of what every connection costs. Together with it a
        // short result that is kept would count, and be refused where one that is not kept is answered.
        let own = Some(self.begin.capacity()).filter(|own| *own > spare::BYTES);
        let bytes = own.unwrap_or_default().saturating_add(shared);
        self.lease.resize(budget, bytes, LeasedFor::Answer)?;
        Ok(self)
    }

    /// What its middle part is, if it is a result that is kept.
    pub(crate) fn source(&self) -> Option<&CachedResult> {
        self.shared.as_ref()
    }

    /// The parts, to be written one after the other.
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        [&self.begin, &self.middle, &self.end]
    }

    /// Bytes of all parts.
    pub(crate) fn len(&self) -> usize {
        self.parts().iter().fold(0, |sum, part| part.len().saturating_add(sum))
    }

    /// Whether nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It has been written: its own buffer is for the next one.
    pub(crate) fn give_back(self) {
        spare::give(self.begin);
    }

    /// One piece of all parts, and what it is counted as.
    pub(crate) fn into_bytes(mut self) -> (Vec<u8>, ByteLease) {
        self.begin.extend_from_slice(&self.middle);
        self.begin.extend_from_slice(&self.end);
        (self.begin, self.lease)
    }
}

/// Gives back what a buffer has too much, before it waits for its client.
pub(crate) fn give_back_room(buffer: &mut Vec<u8>) {
    if buffer.capacity().saturating_sub(buffer.len()) > EMPTY_BYTES_MAX {
        buffer.shrink_to_fit();
    }
}

/// An answer that is only a refusal, for bodies that never reach the service.
#[must_use]
pub fn refusal_body(refusal: &Refusal) -> Vec<u8> {
    let mut out = Vec::new();
    put_refusal(&mut out, Id::NULL, refusal);
    out
}

/// Why an answer or a body is refused that there is no room for.
pub(crate) fn overload_refusal() -> Refusal {
    Refusal::Transport { reason: "too many bytes under way; try again".to_owned() }
}

/// Begins an answer: what follows is a comma, and its result or error.
pub(crate) fn put_envelope(out: &mut Vec<u8>, id: Id<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.text().as_bytes());
}

/// Appends an answer that is a refusal.
pub(crate) fn put_refusal(out: &mut Vec<u8>, id: Id<'_>, refusal: &Refusal) {
    put_envelope(out, id);
    out.extend_from_slice(b",\"error\":");
    let mut error = Object::begin(out);
    error.raw("code", &refusal.code().to_string());
    put_text(error.member("message"), &refusal.message());
    if let Some(held) = refusal.held() {
        let mut data = Object::begin(error.member("data"));
        put_list(data.member("held"), held, put_range);
        data.end();
    }
    if let Refusal::LogLimit { exceeded, fits } = refusal {
        let mut data = Object::begin(error.member("data"));
        data.quantity("from", fits.first());
        data.quantity("to", fits.last());
        data.raw("limit", &exceeded.value().to_string());
        data.end();
    }
    error.end();
    out.push(b'}');
}

/// Appends both ends of a range.
pub(crate) fn put_range(out: &mut Vec<u8>, range: &BlockRange) {
    out.extend_from_slice(format!("[{},{}]", range.first(), range.last()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::ExceededLogLimit;

    #[test]
    fn too_many_logs_are_refused_with_the_range_that_fits() {
        let fits = BlockRange::from_ends(0x00bd_e5f8_u64, 0x00bd_ffff_u64).unwrap();
        let exceeded = ExceededLogLimit::Logs(10_000);
        let found = refusal_body(&Refusal::LogLimit { exceeded, fits });
        let expected = concat!(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"query returned more "#,
            r#"than 10000 results (--logs-max). Try with this block range [0xbde5f8, 0xbdffff]. In decimal: "#,
            r#"retry with the range 12445176-12451839.","data":{"from":"0xbde5f8","to":"0xbdffff","#,
            r#""limit":10000}}}"#,
        );
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }

    /// Seen: with the budget full, transactions of 700 bytes were refused once they were kept.
    #[test]
    fn a_short_answer_is_admitted_whether_its_result_is_kept_or_not() {
        let budget = Budget::new(0);
        let own = |count| Reply::of([spare::take(), vec![b' '; count]].concat());
        let kept = |count: usize| {
            Reply::joined(spare::take(), Bytes::from(vec![b' '; count]), b"}".to_vec())
        };
        let short = [own(700), kept(700), kept(spare::BYTES - 1)];
        let admitted = short.map(|reply| reply.admit(&budget).unwrap());
        assert_eq!(budget.bytes(), 0);
        let long = kept(spare::BYTES).admit(&budget).unwrap();
        assert_eq!(budget.bytes(), spare::BYTES + 1);
        drop((admitted, long));
        assert_eq!(budget.bytes(), 0);
    }
}
