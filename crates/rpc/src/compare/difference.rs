//! Where two answers differ, member by member.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use thiserror::Error;

/// Letters of a value that are shown.
const SHOWN_MAX: usize = 120;

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerKind {
    /// This, which may be null.
    Result(Value),
    /// No.
    Refused {
        /// The error's code.
        code: i64,
        /// The error's message.
        message: String,
    },
}

/// What came back is no answer to one call.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("no JSON-RPC answer: {begin}")]
pub struct NotAnAnswer {
    /// How it begins.
    pub begin: String,
}

impl AnswerKind {
    /// Reads the body of an answer to one call.
    pub fn parse(body: &[u8]) -> Result<Self, NotAnAnswer> {
        let refuse = || NotAnAnswer { begin: shortened(&String::from_utf8_lossy(body)) };
        let answer: Value = serde_json::from_slice(body).map_err(|_| refuse())?;
        let Value::Object(mut answer) = answer else { return Err(refuse()) };
        match (answer.remove("error").filter(|error| !error.is_null()), answer.remove("result")) {
            (Some(error), _) => {
                let code = error.get("code").and_then(Value::as_i64).ok_or_else(refuse)?;
                let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                Ok(Self::Refused { code, message: message.to_owned() })
            }
            (None, Some(result)) => Ok(Self::Result(result)),
            (None, None) => Err(refuse()),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Result(value) => shown(Some(value)),
            Self::Refused { code, message } => shortened(&format!("error {code}: {message}")),
        }
    }
}

/// A place where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way to it, such as `result.logs.3.data`.
    pub path: String,
    /// The same with a star for every position in a list.
    pub pattern: String,
    /// Our value, for people.
    pub ours: String,
    /// Theirs.
    pub theirs: String,
}

/// Every place where two answers differ. Refusals are compared by their codes: the messages are
/// each server's own.
#[must_use]
pub fn differences(ours: &AnswerKind, theirs: &AnswerKind) -> Vec<Difference> {
    let mut walk = DifferenceWalk::default();
    match (ours, theirs) {
        (AnswerKind::Result(ours), AnswerKind::Result(theirs)) => {
            walk.steps.push(PathStep::Member("result"));
            walk.values(Some(ours), Some(theirs));
        }
        (
            AnswerKind::Refused { code: our_code, .. },
            AnswerKind::Refused { code: their_code, .. },
        ) => {
            walk.steps.push(PathStep::Member("error"));
            walk.steps.push(PathStep::Member("code"));
            if our_code != their_code {
                walk.found(ours.shown(), theirs.shown());
            }
        }
        (AnswerKind::Result(_), AnswerKind::Refused { .. })
        | (AnswerKind::Refused { .. }, AnswerKind::Result(_)) => {
            walk.steps.push(PathStep::Member("answer"));
            walk.found(ours.shown(), theirs.shown());
        }
    }
    walk.differences
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Member(&'a str),
    Position(usize),
}

/// On the way through two values at once. `serde_json` bounds how deep they go.
#[derive(Default)]
struct DifferenceWalk<'a> {
    steps: Vec<PathStep<'a>>,
    differences: Vec<Difference>,
}

impl<'a> DifferenceWalk<'a> {
    fn values(&mut self, ours: Option<&'a Value>, theirs: Option<&'a Value>) {
        match (ours, theirs) {
            (Some(Value::Object(ours)), Some(Value::Object(theirs))) => self.objects(ours, theirs),
            (Some(Value::Array(ours)), Some(Value::Array(theirs))) => self.lists(ours, theirs),
            _ if ours == theirs => {}
            _ => self.found(shown(ours), shown(theirs)),
        }
    }

    fn objects(&mut self, ours: &'a Map<String, Value>, theirs: &'a Map<String, Value>) {
        let only_theirs = theirs.keys().filter(|name| !ours.contains_key(*name));
        for name in ours.keys().chain(only_theirs) {
            self.steps.push(PathStep::Member(name));
            self.values(ours.get(name), theirs.get(name));
            self.steps.pop();
        }
    }

    fn lists(&mut self, ours: &'a [Value], theirs: &'a [Value]) {
        if ours.len() != theirs.len() {
            self.steps.push(PathStep::Member("length"));
            self.found(ours.len().to_string(), theirs.len().to_string());
            self.steps.pop();
        }
        for (position, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            self.steps.push(PathStep::Position(position));
            self.values(Some(ours), Some(theirs));
            self.steps.pop();
        }
    }

    fn found(&mut self, ours: String, theirs: String) {
        let (mut path, mut pattern) = (String::new(), String::new());
        for step in &self.steps {
            if !path.is_empty() {
                path.push('.');
                pattern.push('.');
            }
            // Writing to a string cannot fail.
            let _ = match step {
                PathStep::Member(name) => path.write_str(name).and(pattern.write_str(name)),
                PathStep::Position(position) => {
                    write!(path, "{position}").and(pattern.write_char('*'))
                }
            };
        }
        let pattern = shortened(&pattern);
        self.differences.push(Difference { path: shortened(&path), pattern, ours, theirs });
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), |value| shortened(&value.to_string()))
}

/// Enough of a text to know it by, without what could steer a terminal.
fn shortened(text: &str) -> String {
    let mut letters = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut begin: String = letters.by_ref().take(SHOWN_MAX).collect();
    if letters.next().is_some() {
        begin.push_str("...");
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected` has one `path pattern: ours | theirs` for each difference.
    fn check(ours: &str, theirs: &str, expected: &[&str]) {
        let said = |text: &str| AnswerKind::parse(text.as_bytes()).unwrap();
        let found: Vec<String> = differences(&said(ours), &said(theirs))
            .iter()
            .map(|it| format!("{} {}: {} | {}", it.path, it.pattern, it.ours, it.theirs))
            .collect();
        assert_eq!(found, expected);
    }

    fn result(text: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{text}}}"#)
    }

    #[test]
    fn equal_answers_do_not_differ_whatever_the_order_of_their_members() {
        check(&result("null"), &result("null"), &[]);
        check(
            &result(r#"{"a":1,"b":[{"c":"0x1"}]}"#),
            &result(r#"{"b":[{"c":"0x1"}],"a":1}"#),
            &[],
        );
        let refused = |message| format!(r#"{{"error":{{"code":-32602,"message":"{message}"}}}}"#);
        check(&refused("no"), &refused("certainly not"), &[]);
    }

    #[test]
    fn a_difference_is_named_by_the_way_to_it() {
        let ours = result(r#"{"logs":[{"data":"0x1"},{"data":"0x2"}],"only":true,"to":null}"#);
        let theirs = result(r#"{"logs":[{"data":"0x1"},{"data":"0x3"}],"to":"0x4","more":[]}"#);
        check(
            &ours,
            &theirs,
            &[
                r#"result.logs.1.data result.logs.*.data: "0x2" | "0x3""#,
                "result.only result.only: true | absent",
                r#"result.to result.to: null | "0x4""#,
                "result.more result.more: absent | []",
            ],
        );
        check(
            &result("[1,2,3]"),
            &result("[1,9]"),
            &["result.length result.length: 3 | 2", "result.1 result.*: 2 | 9"],
        );
    }

    #[test]
    fn a_refusal_differs_from_a_result_and_from_another_refusal() {
        let refused = r#"{"id":1,"error":{"code":4444,"message":"not held"}}"#;
        check(&result("null"), refused, &["answer answer: null | error 4444: not held"]);
        let other = r#"{"id":1,"error":{"code":-32000,"message":"gone"}}"#;
        check(
            refused,
            other,
            &["error.code error.code: error 4444: not held | error -32000: gone"],
        );
    }

    #[test]
    fn long_values_are_shortened_and_cannot_steer_a_terminal() {
        let long = "f".repeat(SHOWN_MAX + 1);
        let shown = format!("\"{}...", "f".repeat(SHOWN_MAX - 1));
        let line = format!("result result: {shown} | null");
        check(&result(&format!("\"{long}\"")), &result("null"), &[&line]);
        assert_eq!(shortened("a\u{1b}[2Jb"), "a [2Jb");
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for body in ["", "[]", "{}", "<html>", r#"{"error":{"message":"no code"}}"#, "\u{fffd}"] {
            let begin = body.to_owned();
            assert_eq!(AnswerKind::parse(body.as_bytes()), Err(NotAnAnswer { begin }), "{body}");
        }
    }
}
