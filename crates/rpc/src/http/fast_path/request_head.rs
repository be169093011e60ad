//! The head of a request: whether it is one for the fast path.

use httparse::Status;

use super::{HEAD_BYTES_MAX, HEADERS_MAX, Post, RequestHead};
use crate::http::compression::{self, Coding};
use crate::http::{HttpSettings, headers};
use crate::request_log::{REQUEST_ID, sane_id};

/// What the bytes so far are.
pub(super) fn read_head(bytes: &[u8], settings: &HttpSettings) -> RequestHead {
    let method = b"POST ";
    let begins = method.get(..bytes.len().min(method.len())).unwrap_or_default();
    if !bytes.starts_with(begins) {
        return RequestHead::Other;
    }
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let head_bytes = match request.parse(bytes) {
        Ok(Status::Complete(count)) => count,
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return RequestHead::Partial,
        Ok(Status::Partial) | Err(_) => return RequestHead::Other,
    };
    if request.version != Some(1) || !request.path.is_some_and(is_plain_path) {
        return RequestHead::Other;
    }
    let request_id = find_request_id(bytes, request.headers);
    match read_fields(request.headers, settings) {
        Some((body_bytes, coding)) => {
            RequestHead::Post(Post { head_bytes, body_bytes, coding, request_id })
        }
        None => RequestHead::Other,
    }
}

/// Where the first field lies that names the request, as hyper takes it, if it names it sanely.
fn find_request_id(bytes: &[u8], fields: &[httparse::Header<'_>]) -> Option<(usize, usize)> {
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(REQUEST_ID))?;
    sane_id(field.value)?;
    let begin = field.value.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    Some((begin, begin.checked_add(field.value.len())?))
}

/// Whether a target is a path of letters that no parser refuses. One that names a host itself is
/// compared with the Host field by hyper.
fn is_plain_path(target: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~?&=%".contains(&byte);
    target.starts_with('/') && target.bytes().all(is_plain)
}

/// The length of the body and how its answer may be packed; `None` if there is anything in the
/// head that asks for more than that.
fn read_fields(
    fields: &[httparse::Header<'_>],
    settings: &HttpSettings,
) -> Option<(usize, Option<Coding>)> {
    let (mut body_bytes, mut coding) = (None, None);
    let (mut has_host, mut has_type, mut has_accepted) = (false, false, false);
    let mut is_json = false;
    let mut is_host_named = false;
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        // What hyper takes for text, and no more.
        let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
        let value =
            || std::str::from_utf8(field.value).ok().filter(|_| field.value.iter().all(is_text));
        // By length first: most fields of most clients are none of these.
        match field.name.len() {
            4 if is("host") && has_host => return None,
            4 if is("host") => {
                has_host = true;
                let host = value()?;
                headers::host_name(host)?;
                let hosts = &settings.hosts;
                is_host_named = hosts.is_empty() || headers::is_host_named(host, hosts);
            }
            6 if is("expect") || is("origin") => return None,
            7 if is("upgrade") || is("trailer") => return None,
            10 if is("connection") && !value()?.eq_ignore_ascii_case("keep-alive") => return None,
            // Of two, hyper reads the first.
            12 if is("content-type") && has_type => return None,
            12 if is("content-type") => {
                has_type = true;
                let name = value()?.split(';').next()?.trim();
                is_json = name.eq_ignore_ascii_case("application/json");
            }
            14 if is("content-length") => {
                let is_first = body_bytes.is_none();
                let digits = value().filter(|text| text.bytes().all(|it| it.is_ascii_digit()))?;
                body_bytes = Some(digits.parse().ok().filter(|_| is_first)?);
            }
            15 if is("accept-encoding") && has_accepted => return None,
            15 if is("accept-encoding") => {
                has_accepted = true;
                coding = compression::choose(value()?);
            }
            16 if is("content-encoding") => return None,
            17 if is("transfer-encoding") => return None,
            _ => {}
        }
    }
    let body_bytes = body_bytes.filter(|count| *count <= settings.body_bytes_max)?;
    (is_json && is_host_named).then_some((body_bytes, coding))
}
