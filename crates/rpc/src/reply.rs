//! Answers as JSON-RPC writes them: the envelope, and refusals in it.
//!
//! Knows: which members an answer has, and that its id goes back as it came.
//! Never knows: what is answered.

use chain::BlockRange;

use crate::envelope::Id;
use crate::json::{Object, put_list, put_text};
use crate::refusal::Refusal;

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
