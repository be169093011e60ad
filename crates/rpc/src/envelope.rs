//! JSON-RPC 2.0 requests: one or a batch, taken apart and not believed.

use std::borrow::Cow;

use crate::refusal::Refusal;
use crate::scan::{ScanEvent, Token, TokenKind, scan};

/// Method names longer than this are not looked up.
const METHOD_BYTES_MAX: usize = 2048;

/// What a body asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestBody<'a> {
    /// One request.
    Single(Item<'a>),
    /// Several, in order; never none.
    Batch(Batch<'a>),
}

/// A list of requests. They are taken apart one at a time: a body holds more of them than memory
/// should.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Batch<'a> {
    list: Token<'a>,
    count: usize,
}

impl<'a> Batch<'a> {
    /// How many there are.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// The requests, in order.
    pub(crate) fn items(self) -> impl Iterator<Item = Item<'a>> {
        self.list.items().map(item)
    }
}

/// One request.
#[derive(Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// To be answered.
    Call(Call<'a>),
    /// Without an id: nothing is run and nothing answered.
    Notification,
    /// Not a request; answered with this id.
    Invalid(Id<'a>, Refusal),
}

impl<'a> Item<'a> {
    /// The id of its answer.
    pub(crate) fn id(&self) -> Id<'a> {
        match self {
            Self::Call(call) => call.id,
            Self::Notification => Id::NULL,
            Self::Invalid(id, _) => *id,
        }
    }
}

/// A call.
#[derive(Debug, PartialEq)]
pub(crate) struct Call<'a> {
    pub(crate) id: Id<'a>,
    pub(crate) method: Cow<'a, str>,
    /// An array, or nothing.
    pub(crate) params: Option<Token<'a>>,
}

/// The id as it was written: a number, a string or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    pub(crate) const NULL: Self = Self("null");

    pub(crate) fn text(self) -> &'a str {
        self.0
    }
}

/// Takes a body apart; what is refused as a whole is answered with a null id.
pub(crate) fn parse(body: &[u8]) -> Result<RequestBody<'_>, Refusal> {
    let text = std::str::from_utf8(body).map_err(|_| Refusal::ParseError)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut parts, mut count) = (RequestMembers::default(), 0_usize);
    let token = scan(text, |part| match part {
        ScanEvent::Member(key, value) => parts.take(key, value),
        ScanEvent::Item => count = count.saturating_add(1),
    });
    let token = token.map_err(|_| Refusal::ParseError)?;
    match token.kind() {
        TokenKind::Object => Ok(RequestBody::Single(parts.into_item())),
        TokenKind::Array if count == 0 => Err(Refusal::EmptyBatch),
        TokenKind::Array => Ok(RequestBody::Batch(Batch { list: token, count })),
        TokenKind::String | TokenKind::Number | TokenKind::Bool | TokenKind::Null => {
            Err(Refusal::InvalidRequest)
        }
    }
}

/// The members that matter, each at most once.
#[derive(Default)]
struct RequestMembers<'a> {
    jsonrpc: Option<Token<'a>>,
    id: Option<Token<'a>>,
    method: Option<Token<'a>>,
    params: Option<Token<'a>>,
    is_repeated: bool,
    has_ids: bool,
}

impl<'a> RequestMembers<'a> {
    fn take(&mut self, key: Token<'a>, value: Token<'a>) {
        let Some(key) = key.string() else { return };
        let place = match &*key {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            _ => return,
        };
        let is_second = place.replace(value).is_some();
        self.is_repeated |= is_second;
        self.has_ids |= is_second && key == "id";
    }

    fn into_item(self) -> Item<'a> {
        let id = match self.id.map(id_of) {
            None => None,
            Some(Some(id)) if !self.has_ids => Some(id),
            // Neither of two, nor what is none, goes back to anyone.
            Some(_) => return Item::Invalid(Id::NULL, Refusal::InvalidRequest),
        };
        let invalid = || Item::Invalid(id.unwrap_or(Id::NULL), Refusal::InvalidRequest);
        let is_version = self.jsonrpc.and_then(Token::string).is_some_and(|text| text == "2.0");
        let Some(method) = self.method.and_then(Token::string) else { return invalid() };
        if self.is_repeated || !is_version {
            return invalid();
        }
        let Some(id) = id else { return Item::Notification };
        if method.len() > METHOD_BYTES_MAX {
            let (bytes, bytes_max) = (method.len(), METHOD_BYTES_MAX);
            return Item::Invalid(id, Refusal::MethodTooLong { bytes, bytes_max });
        }
        let params = match self.params.map(|params| (params.kind(), params)) {
            None | Some((TokenKind::Null, _)) => None,
            Some((TokenKind::Array, params)) => Some(params),
            Some(_) => return Item::Invalid(id, Refusal::NotPositional),
        };
        Item::Call(Call { id, method, params })
    }
}

fn item(token: Token<'_>) -> Item<'_> {
    let mut parts = RequestMembers::default();
    token.members().for_each(|(key, value)| parts.take(key, value));
    parts.into_item()
}

/// A number, a string or null as it was written. A string with half a character is not repeated:
/// readers that are strict would refuse the whole answer.
fn id_of(token: Token<'_>) -> Option<Id<'_>> {
    let is_id = match token.kind() {
        TokenKind::Number | TokenKind::Null => true,
        TokenKind::String => token.string().is_some(),
        TokenKind::Object | TokenKind::Array | TokenKind::Bool => false,
    };
    is_id.then(|| Id(token.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body is taken for, in short.
    fn shown(body: &str) -> String {
        let item = |item: &Item<'_>| match item {
            Item::Call(call) => {
                let params = call.params.map_or("-", Token::text);
                format!("{} {} {params}", call.id.text(), call.method)
            }
            Item::Notification => "notification".to_owned(),
            Item::Invalid(id, refusal) => format!("{} {}", id.text(), refusal.code()),
        };
        match parse(body.as_bytes()) {
            Ok(RequestBody::Single(single)) => item(&single),
            Ok(RequestBody::Batch(batch)) => {
                let items: Vec<String> = batch.items().map(|found| item(&found)).collect();
                assert_eq!(items.len(), batch.count());
                format!("[{}]", items.join("; "))
            }
            Err(refusal) => format!("null {}", refusal.code()),
        }
    }

    #[test]
    fn requests_are_taken_apart() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "1 m [1]"),
            (r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, "\"a\" m -"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#, "null m -"),
            (r#"{"jsonrpc":"2.0","id":-1.5e3,"method":"m","params":[]}"#, "-1.5e3 m []"),
            (
                r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"m"}"#,
                "99999999999999999999 m -",
            ),
            (r#"{"jsonrpc":"2.0","\u0069d":1,"m\u0065thod":"\u006d"}"#, "1 m -"),
            ("\u{feff} {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n", "1 m -"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","extra":{}}"#, "1 m -"),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_id() {
        for (body, expected) in [
            ("", "null -32700"),
            ("{", "null -32700"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}x"#, "null -32700"),
            ("1", "null -32600"),
            ("null", "null -32600"),
            ("[]", "null -32600"),
            (r#"{"id":7,"method":"m"}"#, "7 -32600"),
            (r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#, "7 -32600"),
            (r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#, "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":7}"#, "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":7,"result":5}"#, "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#, "1 -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#, "null -32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, "1 -32602"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":3}"#, "1 -32602"),
            (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification"),
            (r#"[1,{"jsonrpc":"2.0","id":2,"method":"m"}]"#, "[null -32600; 2 m -]"),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
        assert_eq!(parse(b"\"\xff\""), Err(Refusal::ParseError));
        let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(2049));
        assert_eq!(shown(&long), "1 -32600");
    }
}
