//! JSON-RPC messages of a client. Results stay encoded and are not copied.

use std::borrow::Cow;
use std::fmt;

use hyper::body::Bytes;
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::address::UpstreamUrl;
use super::error::AskError;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeCall {
    pub(super) method: &'static str,
    /// The parameters as JSON: a list.
    pub(super) params: String,
}

impl NodeCall {
    pub(super) fn new(method: &'static str, params: impl Into<String>) -> Self {
        Self { method, params: params.into() }
    }
}

/// What became of one question: the result's JSON, `None` for null.
pub(super) type Answer = Result<Option<Bytes>, AskError>;

/// The body for calls whose ids count up from `first_id`; a single one is no list.
pub(super) fn encode_calls(calls: &[NodeCall], first_id: u64) -> String {
    let object = |(call, id): (&NodeCall, u64)| {
        let NodeCall { method, params } = call;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let objects: Vec<String> = calls.iter().zip(first_id..).map(object).collect();
    match objects.as_slice() {
        [only] => only.clone(),
        _ => format!("[{}]", objects.join(",")),
    }
}

/// What a node sent.
#[derive(Debug)]
pub(super) enum Message {
    /// Answers with their ids.
    Answers(Vec<(u64, Answer)>),
    /// A refusal of a whole batch, which has no id.
    Refusal(AskError),
    /// News of a subscription.
    News(Bytes),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<ErrorObject<'a>>,
    #[serde(borrow)]
    params: Option<News<'a>>,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    #[serde(default)]
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct News<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// An array of at most this many envelopes. An envelope in memory is many times as long as the `{}` that
/// it can be read from, so that an unbounded list would take far more memory than its bytes.
struct EnvelopeList {
    count_max: usize,
}

impl<'de> DeserializeSeed<'de> for EnvelopeList {
    type Value = Vec<Envelope<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeList {
    type Value = Vec<Envelope<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {} answers", self.count_max)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut envelopes = Vec::new();
        while let Some(envelope) = list.next_element()? {
            if envelopes.len() == self.count_max {
                let said = format_args!("more answers than the {} calls asked", self.count_max);
                return Err(A::Error::custom(said));
            }
            envelopes.push(envelope);
        }
        Ok(envelopes)
    }
}

/// The same without what the node repeats of its address.
pub(super) fn hide_address(
    answered: Result<Vec<Answer>, AskError>,
    url: &UpstreamUrl,
) -> Result<Vec<Answer>, AskError> {
    let hidden = |answer: Answer| answer.map_err(|error| error.hidden_by(url));
    let answers = answered.map_err(|error| error.hidden_by(url))?;
    Ok(answers.into_iter().map(hidden).collect())
}

/// Reads what a node sent. A list of more than `count_max` answers is refused where it exceeds them.
pub(super) fn decode_message(body: &Bytes, count_max: usize) -> Result<Message, AskError> {
    let malformed = |error: serde_json::Error| {
        AskError::Malformed(format!("{error}: {}", AskError::begin_of(body)))
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        let mut json = serde_json::Deserializer::from_slice(body);
        let all = EnvelopeList { count_max }.deserialize(&mut json).map_err(malformed)?;
        json.end().map_err(malformed)?;
        let answer = |envelope: Envelope<'_>| Some((envelope.id?, answer_of(body, envelope)));
        return Ok(Message::Answers(all.into_iter().filter_map(answer).collect()));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(malformed)?;
    if let Some(News { result }) = envelope.params {
        return Ok(Message::News(body.slice_ref(result.get().as_bytes())));
    }
    match envelope.id {
        Some(id) => Ok(Message::Answers(vec![(id, answer_of(body, envelope))])),
        None => match answer_of(body, envelope) {
            Err(refusal) => Ok(Message::Refusal(refusal)),
            Ok(_) => Err(AskError::Malformed("it has no id".to_owned())),
        },
    }
}

fn answer_of(body: &Bytes, envelope: Envelope<'_>) -> Answer {
    match envelope.error {
        Some(ErrorObject { code, message }) => {
            let message = AskError::begin_of(message.as_bytes());
            Err(AskError::Refused { code, message })
        }
        None => Ok(envelope.result.map(|result| body.slice_ref(result.get().as_bytes()))),
    }
}

/// The answers of a message to this many calls, whose ids count up from 1.
pub(super) fn decode_answers(body: &Bytes, count: usize) -> Result<Vec<Answer>, AskError> {
    match decode_message(body, count)? {
        Message::Answers(answers) => in_order(answers, 1, count),
        Message::Refusal(refusal) => Err(refusal),
        Message::News(_) => Err(AskError::Malformed("a notification, not a response".to_owned())),
    }
}

/// The answers in the order of the calls, each of which must have one.
pub(super) fn in_order(
    mut answers: Vec<(u64, Answer)>,
    first_id: u64,
    count: usize,
) -> Result<Vec<Answer>, AskError> {
    // Some refuse a whole batch in the name of its first call.
    if let [(_, Err(refusal))] = answers.as_slice()
        && count > 1
    {
        return Err(refusal.clone());
    }
    answers.sort_by_key(|(id, _)| *id);
    let ids = answers.iter().map(|(id, _)| *id);
    if answers.len() != count || !ids.eq((first_id..).take(count)) {
        let said = format!("{count} calls were answered by {} of other ids", answers.len());
        return Err(AskError::Malformed(said));
    }
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &'static str, count: usize) -> Result<Vec<Answer>, AskError> {
        match decode_message(&Bytes::from_static(body.as_bytes()), count)? {
            Message::Answers(answers) => in_order(answers, 7, count),
            Message::Refusal(refusal) => Err(refusal),
            Message::News(_) => Err(AskError::Malformed("news".to_owned())),
        }
    }

    #[test]
    fn answers_come_in_the_order_of_their_calls() {
        let found =
            check(r#" [{"id":8,"result":null},{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}]"#, 2);
        let found = found.unwrap();
        assert_eq!(found[0], Ok(Some(Bytes::from_static(br#"{"a":[1]}"#))));
        assert_eq!(found[1], Ok(None));
        let refused = check(r#"{"id":7,"error":{"code":-32601,"message":"no such"}}"#, 1).unwrap();
        assert!(refused[0].as_ref().unwrap_err().is_unknown_method());
    }

    #[test]
    fn answers_to_other_calls_are_refused() {
        assert!(check(r#"[{"id":7,"result":1}]"#, 2).is_err());
        assert!(check(r#"[{"id":7,"result":1},{"id":7,"result":2}]"#, 2).is_err());
        assert!(check(r#"{"id":6,"result":1}"#, 1).is_err());
        assert!(check(r#"{"result":1}"#, 1).is_err());
        assert!(check(r#"{"id":7,"resu"#, 1).is_err());
        let whole = check(r#"{"id":null,"error":{"code":-32600,"message":"no batches"}}"#, 2);
        assert!(matches!(whole, Err(AskError::Refused { code: -32600, .. })));
    }

    #[test]
    fn a_list_is_read_no_further_than_the_calls_that_were_asked() {
        // What follows is not JSON: a reader that went on would report that instead.
        let body = Bytes::from_static(b"[{},{\"id\":7,\"result\":1},{},nonsense");
        let refused = decode_message(&body, 2).unwrap_err().to_string();
        assert!(refused.contains("more answers than the 2 calls asked"), "{refused}");
        let after = check(r#"[{"id":7,"result":1}] nonsense"#, 1);
        assert!(after.is_err(), "{after:?}");
    }

    #[test]
    fn one_call_is_an_object_and_several_are_a_list() {
        let call = NodeCall::new("eth_chainId", "[]");
        let one = r#"{"jsonrpc":"2.0","id":3,"method":"eth_chainId","params":[]}"#;
        assert_eq!(encode_calls(std::slice::from_ref(&call), 3), one);
        let two = encode_calls(&[call.clone(), call], 3);
        assert_eq!(two, format!("[{one},{}]", one.replace(":3", ":4")));
    }
}
