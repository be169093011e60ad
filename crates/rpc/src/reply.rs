//! Answers as JSON-RPC writes them: the envelope, and refusals in it.
//!
//! Knows: which members an answer has, that its id goes back as it came, and that what is kept for
//! many answers is not copied into each.
//! Never knows: what is answered.

use std::borrow::Cow;

use chain::BlockRange;
use hyper::body::Bytes;

use crate::cache::{CacheEntry, CacheKey};
use crate::envelope::Id;
use crate::json::{Object, put_list, put_text};
use crate::refusal::Refusal;
use crate::spare;

/// A body in three parts: the middle one may be shared with other answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    begin: Vec<u8>,
    middle: Bytes,
    end: Cow<'static, [u8]>,
    /// What the middle one is, if it is a result that is kept.
    shared: Option<CachedResult>,
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
        Self { begin, middle, end: Cow::Borrowed(b"}"), shared: Some(shared) }
    }

    /// A body of any three parts.
    pub(crate) fn joined(begin: Vec<u8>, middle: Bytes, end: Vec<u8>) -> Self {
        Self { begin, middle, end: Cow::Owned(end), shared: None }
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

    /// One piece of all parts.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.begin.extend_from_slice(&self.middle);
        self.begin.extend_from_slice(&self.end);
        self.begin
    }
}

/// An answer that is only a refusal, for bodies that never reach the service.
#[must_use]
pub fn refusal_body(refusal: &Refusal) -> Vec<u8> {
    let mut out = Vec::new();
    put_refusal(&mut out, Id::NULL, refusal);
    out
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
    error.end();
    out.push(b'}');
}

/// Appends both ends of a range.
pub(crate) fn put_range(out: &mut Vec<u8>, range: &BlockRange) {
    out.extend_from_slice(format!("[{},{}]", range.first(), range.last()).as_bytes());
}
