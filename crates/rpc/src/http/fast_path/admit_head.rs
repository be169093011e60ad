//! Whether the caller that a head names may ask.

use super::HEADERS_MAX;
use crate::admission::{CallerHead, ConnectionCaller};
use crate::http::Server;

/// Lets in whoever sent a head, which is looked into only if it is another one or the rules are.
pub(super) fn admit_head(
    server: &Server,
    caller: &mut ConnectionCaller,
    head_number: u64,
    head: &[u8],
) -> bool {
    if caller.admit_again(&server.admission, head_number) {
        return true;
    }
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    // It has been read before.
    let (Ok(_), Some(path)) = (request.parse(head), request.path) else { return false };
    let fields = request.headers.iter().map(|field| (field.name, field.value));
    caller.admit_head(&server.admission, &CallerHead::read(path, fields), head_number)
}
