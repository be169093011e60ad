//! Which requests may be answered, by their headers: content types, origins, hosts.

use std::net::Ipv6Addr;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_TYPE, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};

use crate::answered_range::ANSWERED;
use crate::request_log::REQUEST_ID;

const JSON_TYPES: [&str; 3] =
    ["application/json", "application/json-rpc", "application/jsonrequest"];

/// Whether a body may be JSON by its type, whatever parameters it has. No type and plain text are
/// taken too, as `curl -d` sends them; but not from a browser's page where origins are restricted:
/// such a request is sent without asking us first.
pub(super) fn is_json_type(headers: &HeaderMap, is_open: bool) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return is_open || !is_browser(headers) };
    let Ok(text) = value.to_str() else { return false };
    let name = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if JSON_TYPES.contains(&name.as_str()) {
        return true;
    }
    let is_curl = ["text/plain", "application/x-www-form-urlencoded"].contains(&name.as_str());
    is_curl && (is_open || !is_browser(headers))
}

fn is_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN)
}

/// Lets a browser's page read the answer, if its origin is one of those that may.
pub(super) fn allow_origin(
    answer: &mut HeaderMap,
    origin: Option<&HeaderValue>,
    allowed: &[String],
) {
    let Some(origin) = origin.filter(|origin| is_origin_named(origin, allowed)) else { return };
    let value = if is_open(allowed) { HeaderValue::from_static("*") } else { origin.clone() };
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, value);
    answer.append(VARY, HeaderValue::from_static("origin"));
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS"),
        // The asterisk does not stand for this one.
        (ACCESS_CONTROL_ALLOW_HEADERS, "*, authorization"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        answer.insert(name, HeaderValue::from_static(value));
    }
    // What a page may read: which blocks were answered for, when to come again, and what the log calls
    // the request.
    if let Ok(exposed) = HeaderValue::try_from(format!("{ANSWERED}, retry-after, {REQUEST_ID}")) {
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Whether pages of this origin may ask.
pub(super) fn is_origin_named(origin: &HeaderValue, allowed: &[String]) -> bool {
    let is_named = |origin| allowed.iter().any(|name| name == origin);
    is_open(allowed) || origin.to_str().is_ok_and(is_named)
}

/// Whether a page of this origin came from the host that the request names. Which of the two schemes it
/// has is not compared: whoever ends TLS before us has another one than we do.
pub(super) fn is_own_origin(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let (Ok(origin), Some(Ok(host))) = (origin.to_str(), host.map(HeaderValue::to_str)) else {
        return false;
    };
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|it| !it.is_empty() && it.eq_ignore_ascii_case(host))
}

fn is_open(allowed: &[String]) -> bool {
    allowed.iter().any(|name| name == "*")
}

/// The name in a Host field, without its port and brackets; none if the field is invalid (RFC 9110,
/// 7.2; RFC 3986, 3.2.2). It may be empty.
pub(super) fn host_name(host: &str) -> Option<&str> {
    let (name, rest) = if let Some(bracketed) = host.strip_prefix('[') {
        bracketed.split_once(']').filter(|(name, _)| name.parse::<Ipv6Addr>().is_ok())?
    } else {
        let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte);
        let is_escape = |text: &str| {
            text.get(..2).is_some_and(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()))
        };
        let is_name = name.bytes().all(is_plain) && name.split('%').skip(1).all(is_escape);
        is_name.then_some((name, rest))?
    };
    let is_port = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let is_valid = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    is_valid.then_some(name)
}

/// Whether a Host field names one of these hosts; ports do not matter.
pub(super) fn is_host_named(host: &str, hosts: &[String]) -> bool {
    let is_name = |name: &str| hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    host_name(host).is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(content_type: Option<&str>, origin: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        if origin {
            headers.insert(ORIGIN, HeaderValue::from_static("https://page.example"));
        }
        headers
    }

    #[test]
    fn json_types_are_taken_with_any_parameters() {
        for name in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json-rpc",
            "application/jsonrequest;x=1",
        ] {
            assert!(is_json_type(&typed(Some(name), true), false), "{name}");
        }
        for name in ["text/html", "application/xml", "application/jsonp"] {
            assert!(!is_json_type(&typed(Some(name), false), true), "{name}");
        }
    }

    #[test]
    fn what_curl_sends_is_taken_but_not_from_a_page_of_another_origin() {
        for name in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            assert!(is_json_type(&typed(name, false), false), "{name:?}");
            assert!(is_json_type(&typed(name, true), true), "{name:?}");
            assert!(!is_json_type(&typed(name, true), false), "{name:?}");
        }
    }

    #[test]
    fn origins_are_allowed_by_name_or_all() {
        let answer = |allowed: &[&str]| {
            let mut headers = HeaderMap::new();
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            let origin = HeaderValue::from_static("https://page.example");
            allow_origin(&mut headers, Some(&origin), &allowed);
            headers.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(answer(&["*"]).as_deref(), Some("*"));
        assert_eq!(answer(&["https://page.example"]).as_deref(), Some("https://page.example"));
        assert_eq!(answer(&["https://other.example"]), None);
        assert_eq!(answer(&[]), None);
    }

    #[test]
    fn an_own_page_is_of_the_host_and_port_that_is_asked() {
        let is_own = |origin: &str, host: &str| {
            let [origin, host] = [origin, host].map(|text| HeaderValue::from_str(text).unwrap());
            is_own_origin(&origin, Some(&host))
        };
        assert!(is_own("http://localhost:8545", "localhost:8545"));
        assert!(is_own("https://RPC.example", "rpc.example"));
        for (origin, host) in [
            ("http://localhost:8546", "localhost:8545"),
            ("http://localhost", "localhost:8545"),
            ("http://evil.example", "localhost:8545"),
            ("http://localhost:8545.evil.example", "localhost:8545"),
            ("null", "null"),
            ("http://", ""),
            ("file://localhost", "localhost"),
        ] {
            assert!(!is_own(origin, host), "{origin} {host}");
        }
        assert!(!is_own_origin(&HeaderValue::from_static("http://a"), None));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for (host, expected) in [
            ("", Some("")),
            ("a", Some("a")),
            ("a_b.example:8545", Some("a_b.example")),
            ("192.0.2.1:", Some("192.0.2.1")),
            ("[2001:db8::1]:8545", Some("2001:db8::1")),
            ("a%2db", Some("a%2db")),
            ("a b", None),
            ("a/b", None),
            ("a?b", None),
            ("user@a", None),
            ("a:b", None),
            ("a:80:80", None),
            ("2001:db8::1", None),
            ("[2001:db8::1", None),
            ("[a]", None),
            ("[::1]a", None),
            ("a%2", None),
            ("a%zz", None),
            ("a,b\u{e9}", None),
        ] {
            assert_eq!(host_name(host), expected, "{host}");
        }
    }

    #[test]
    fn hosts_are_compared_without_their_ports() {
        let hosts = ["localhost".to_owned(), "::1".to_owned()];
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8545", true),
            ("[::1]:8545", true),
            ("evil.example", false),
            ("localhost.evil.example:8545", false),
        ] {
            assert_eq!(is_host_named(host, &hosts), expected, "{host}");
        }
    }
}
