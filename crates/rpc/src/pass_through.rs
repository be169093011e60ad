//! Methods that are not served here and go to a node: which may, and what becomes of the answer.

mod policy;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use hyper::body::Bytes;
use thiserror::Error;
use tracing::warn;

use crate::budget::{Budget, ByteLease, LeasedFor, OutOfBudget};
use crate::envelope::Call;
use crate::json::{Object, put_text};
use crate::method_pattern::Pattern;
use crate::refusal::Refusal;
use crate::reply::{EMPTY_BYTES_MAX, give_back_room, overload_refusal};
use crate::scan::{Token, TokenKind, scan_deep};
use crate::spare;

use policy::{is_refused, may_pass, may_pass_beginning, needs_state, split};

/// Values inside values of an answer. Traces of calls are deep: two levels for each call.
const ANSWER_DEPTH_MAX: usize = 512;

/// Asks a node in our place. Whoever implements it makes sure that the node follows our chain: what it
/// says goes to clients as if we had said it.
pub trait PassThrough: fmt::Debug + Send + Sync {
    /// Sends a request, one JSON-RPC object, and gives back the body of the answer, refused if it is
    /// longer than `room` has it, or where that has no room. It may be dropped at any moment: time is
    /// the caller's matter.
    fn ask<'a>(&'a self, request: Vec<u8>, room: &'a mut AnswerRoom) -> Passing<'a>;

    /// Subscribes with these parameters, a list as JSON. A node that is not asked over a WebSocket
    /// offers nothing.
    fn subscribe(&self, params: String) -> Subscribing<'_> {
        drop(params);
        Box::pin(std::future::ready(Err(PassThroughError::NoSubscriptions)))
    }
}

/// Room for the answer to one request, in the budget that all answers share.
#[derive(Debug)]
pub struct AnswerRoom {
    bytes_max: usize,
    budget: Arc<Budget>,
    lease: ByteLease,
    /// The request's own: it is held until it is answered.
    request_bytes: usize,
}

impl AnswerRoom {
    fn new(
        budget: &Arc<Budget>,
        bytes_max: usize,
        request_bytes: usize,
    ) -> Result<Self, OutOfBudget> {
        let lease = ByteLease::of(budget, request_bytes, LeasedFor::Answer)?;
        Ok(Self { bytes_max, budget: Arc::clone(budget), lease, request_bytes })
    }

    /// Bytes of the answer at the most.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Tells whether so many bytes may be held of the answer, and counts them if they may. To be asked
    /// before they are.
    #[must_use]
    pub fn holds(&mut self, bytes: usize) -> bool {
        // A short answer is never counted, whatever its request takes: the node has done what it says.
        if bytes <= spare::BYTES {
            return true;
        }
        let bytes = bytes.saturating_add(self.request_bytes);
        self.lease.resize(&self.budget, bytes, LeasedFor::Answer).is_ok()
    }

    /// The answer is there, in a buffer of so many bytes: what they are counted as.
    fn end(mut self, bytes: usize) -> Result<ByteLease, OutOfBudget> {
        self.lease.resize(&self.budget, bytes, LeasedFor::Answer)?;
        Ok(self.lease)
    }
}

/// A subscription at a node, in a client's place. Nothing is read ahead of who takes it; dropped, it is
/// gone.
pub trait NodeSubscription: fmt::Debug + Send {
    /// The node's next message, whole; none when it has ended. It may be dropped at any moment.
    fn next(&mut self) -> NextMessage<'_>;

    /// Ends it at the node.
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A message that is waited for.
pub type NextMessage<'a> = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send + 'a>>;

/// A subscription that is on its way.
pub type Subscribing<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn NodeSubscription>, PassThroughError>> + Send + 'a>>;

/// An answer that is on its way.
pub type Passing<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, PassThroughError>> + Send + 'a>>;

/// Why a node gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PassThroughError {
    /// The answer is longer than it may be.
    #[error("the answer is too long")]
    TooLarge,
    /// There is no room for the answer now.
    #[error("there is no room for the answer")]
    NoRoom,
    /// The node follows another chain, or nobody knows which is ours; for the client.
    #[error("{0}")]
    Foreign(String),
    /// The node offers no subscriptions.
    #[error("the node offers no subscriptions")]
    NoSubscriptions,
    /// As many subscriptions as may be are passed to the node.
    #[error("{count_max} subscriptions are passed to the node")]
    TooManySubscriptions {
        /// So many.
        count_max: usize,
    },
    /// The node's own refusal of a subscription; for the client.
    #[error("refused with {code}: {message}")]
    Refused {
        /// Its code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// Anything else; for the log.
    #[error("{0}")]
    Failed(String),
}

/// One method that may go to a node, or all that begin in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassThroughMethod(String);

/// Why a method cannot be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PassThroughMethodError {
    /// Neither a name nor the beginning of one.
    #[error("write a method such as eth_call, or a beginning with its namespace such as eth_*")]
    NotAName,
    /// Nothing of it may ever go.
    #[error("{0} is never passed on: it signs with a node's keys or manages the node")]
    Forbidden(String),
    /// Nobody knows what it does.
    #[error("{0} is not passed on: it is not among the methods that are known to be harmless")]
    NotKnown(String),
}

impl FromStr for PassThroughMethod {
    type Err = PassThroughMethodError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (Pattern::Name(name) | Pattern::Prefix(name)) = Pattern::new(text);
        if split(name).is_none() {
            return Err(PassThroughMethodError::NotAName);
        }
        let is_possible = match Pattern::new(text) {
            Pattern::Name(name) => may_pass(name),
            Pattern::Prefix(prefix) => may_pass_beginning(prefix),
        };
        if is_possible {
            return Ok(Self(text.to_owned()));
        }
        let is_refused = is_refused(name);
        let error = if is_refused {
            PassThroughMethodError::Forbidden
        } else {
            PassThroughMethodError::NotKnown
        };
        Err(error(text.to_owned()))
    }
}

impl PassThroughMethod {
    /// Whether it lets this method go to a node. What the table refuses does not, whatever is allowed.
    #[must_use]
    pub fn covers(&self, method: &str) -> bool {
        Pattern::new(&self.0).is_match(method) && may_pass(method)
    }
}

/// A node, and the methods that go to it.
#[derive(Debug)]
pub(crate) struct Forwarding {
    methods: Vec<PassThroughMethod>,
    node: Arc<dyn PassThrough>,
}

impl Forwarding {
    pub(crate) fn new(methods: Vec<PassThroughMethod>, node: Arc<dyn PassThrough>) -> Self {
        Self { methods, node }
    }

    /// Whether a method goes to the node.
    pub(crate) fn takes(&self, method: &str) -> bool {
        self.methods.iter().any(|allowed| allowed.covers(method))
    }

    /// What the node says to a call, in so many bytes at the most.
    pub(crate) async fn ask(
        &self,
        call: &Call<'_>,
        budget: &Arc<Budget>,
        bytes_max: usize,
    ) -> Result<PassedAnswer, NotPassed> {
        let request = request(call);
        let mut room = AnswerRoom::new(budget, bytes_max, request.capacity())?;
        let mut body = match self.node.ask(request, &mut room).await {
            Ok(body) => body,
            Err(PassThroughError::NoRoom) => return Err(NotPassed::NoRoom),
            Err(error) => return Err(refusal_of(error, call).into()),
        };
        give_back_room(&mut body);
        let held_bytes = body.capacity();
        let lease = room.end(held_bytes)?;
        let Some((member, mut value)) = outcome(&body.into()) else {
            let error = PassThroughError::Failed("what came is no JSON-RPC answer".to_owned());
            return Err(refusal_of(error, call).into());
        };
        // A short part of a long body would keep all of it.
        if held_bytes.saturating_sub(value.len()) > EMPTY_BYTES_MAX {
            value = Bytes::copy_from_slice(&value);
        }
        Ok(PassedAnswer { member, value, lease })
    }

    /// Subscribes at the node as a call asks for it.
    pub(crate) async fn subscribe(
        &self,
        call: &Call<'_>,
    ) -> Result<Box<dyn NodeSubscription>, Refusal> {
        let params = call.params.map_or("[]", Token::text).to_owned();
        self.node.subscribe(params).await.map_err(|error| refusal_of(error, call))
    }
}

/// The member of an answer that is an error.
pub(crate) const ERROR_MEMBER: &str = "\"error\":";

/// What a node said to a call. Its bytes stay where they came to.
#[derive(Debug)]
pub(crate) struct PassedAnswer {
    /// `"result":` or `"error":`.
    pub(crate) member: &'static str,
    /// As the node wrote it.
    pub(crate) value: Bytes,
    /// What it is counted as.
    pub(crate) lease: ByteLease,
}

/// Why a call has no answer of a node.
#[derive(Debug)]
pub(crate) enum NotPassed {
    /// As the client is told.
    Refused(Refusal),
    /// There is no room for the answer.
    NoRoom,
}

impl From<Refusal> for NotPassed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<OutOfBudget> for NotPassed {
    fn from(OutOfBudget: OutOfBudget) -> Self {
        Self::NoRoom
    }
}

/// The refusal of a method that is not served, here or by a node.
pub(crate) fn unknown_method(method: &str) -> Refusal {
    Refusal::UnknownMethod { method: method.to_owned(), needs_state: needs_state(method) }
}

/// What a client is told of a node that gave no answer.
fn refusal_of(error: PassThroughError, call: &Call<'_>) -> Refusal {
    match error {
        PassThroughError::NoRoom => overload_refusal(),
        PassThroughError::TooLarge => Refusal::ResponseTooLarge,
        PassThroughError::Foreign(reason) => Refusal::NotPassed { reason },
        PassThroughError::NoSubscriptions => unknown_method(&call.method),
        PassThroughError::TooManySubscriptions { count_max } => {
            Refusal::TooManySubscriptions { count_max, of: "all connections at the upstream node" }
        }
        PassThroughError::Refused { code, message } => Refusal::ByNode { code, message },
        PassThroughError::Failed(cause) => {
            warn!(method = %call.method, %cause, "the upstream node gave no answer");
            Refusal::UpstreamFailed
        }
    }
}

/// The notification of a node for a client who knows the subscription by another id; `None` if it is
/// none. Only what was checked to be JSON goes on.
pub(crate) fn notification(id: &str, message: &[u8]) -> Option<Vec<u8>> {
    let message = scan_deep(std::str::from_utf8(message).ok()?, ANSWER_DEPTH_MAX).ok()?;
    let result = find_member(find_member(message, "params")?, "result")?;
    let mut out = b"{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":".to_vec();
    let mut object = Object::begin(&mut out);
    put_text(object.member("subscription"), id);
    object.raw("result", result.text());
    object.end();
    out.push(b'}');
    Some(out)
}

/// A member of an object; none of what is no object.
fn find_member<'a>(object: Token<'a>, name: &str) -> Option<Token<'a>> {
    let mut members = object.members();
    members.find(|(key, _)| key.string().as_deref() == Some(name)).map(|(_, value)| value)
}

/// The call with an id of our own: the client's never leaves us.
fn request(call: &Call<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.raw("jsonrpc", "\"2.0\"");
    object.raw("id", "1");
    put_text(object.member("method"), &call.method);
    object.raw("params", call.params.map_or("[]", Token::text));
    object.end();
    out
}

/// The member of an answer that matters, and its value. Only what was checked to be JSON goes on.
fn outcome(body: &Bytes) -> Option<(&'static str, Bytes)> {
    let answer = scan_deep(std::str::from_utf8(body).ok()?, ANSWER_DEPTH_MAX).ok()?;
    let (mut result, mut error) = (None, None);
    for (key, value) in answer.members() {
        match key.string().as_deref() {
            Some("result") => result = Some(value),
            // Some nodes write a null beside every result.
            Some("error") if value.kind() == TokenKind::Object => error = Some(value),
            _ => {}
        }
    }
    let (name, value) = match (error, result) {
        (Some(error), _) => (ERROR_MEMBER, error),
        (None, result) => ("\"result\":", result?),
    };
    Some((name, body.slice_ref(value.text().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Result<PassThroughMethod, PassThroughMethodError> {
        text.parse()
    }

    #[test]
    fn a_short_answer_has_room_whatever_others_hold() {
        let budget = Budget::new(1 << 20);
        let mut room = AnswerRoom::new(&budget, 1 << 20, 100_000).unwrap();
        let others = ByteLease::of(&budget, 1 << 20, LeasedFor::Answer).unwrap();
        assert!(!room.holds(100_000), "{} bytes are held", budget.bytes());
        assert!(room.holds(110), "the node has sent the transaction");
        assert!(room.end(110).is_ok());
        drop(others);
    }

    #[test]
    fn methods_are_allowed_by_name_or_by_how_they_begin() {
        for text in ["eth_call", "eth_*", "eth_get*", "debug_traceTransaction", "debug_trace*"] {
            assert!(allowed(text).is_ok(), "{text}");
        }
        for text in ["debug_*", "eth_sendRawTransaction", "txpool_*", "trace_block", "net_*"] {
            assert!(allowed(text).is_ok(), "{text}");
        }
        for text in ["arb_*", "zks_getBlockDetails", "linea_estimateGas"] {
            assert!(allowed(text).is_ok(), "{text}");
        }
        for text in ["", "*", "e*", "eth*", "call", "_x", "eth_ca ll", "eth_*l", "eth_call,eth_x"] {
            assert_eq!(allowed(text), Err(PassThroughMethodError::NotAName), "{text}");
        }
        for text in [
            "eth_sign",
            "eth_signTypedData",
            "eth_sign*",
            "eth_sendTransaction",
            "personal_*",
            "personal_unlockAccount",
            "admin_peers",
            "miner_start",
            "engine_newPayloadV4",
            "debug_setHead",
            "debug_set*",
            "debug_writeMemProfile",
            "clique_propose",
            "anvil_reorg",
            "debug_traceBlockFromFile",
            "debug_standardTrace*",
            "Personal_*",
            "ADMIN_peers",
        ] {
            let expected = PassThroughMethodError::Forbidden(text.to_owned());
            assert_eq!(allowed(text), Err(expected), "{text}");
        }
        for text in [
            "eth_",
            "eth_unheardOf",
            "eth_signTypedData_v4",
            "eth_send_*",
            "trace_x*",
            "ETH_CALL",
            "Eth_Get*",
            "eth_Call",
        ] {
            let expected = PassThroughMethodError::NotKnown(text.to_owned());
            assert_eq!(allowed(text), Err(expected), "{text}");
        }
    }

    #[derive(Debug)]
    struct Silent;

    impl PassThrough for Silent {
        fn ask<'a>(&'a self, _: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn what_is_forbidden_does_not_go_whatever_is_allowed() {
        let methods = ["eth_*", "debug_*", "net_version"].map(|text| text.parse().unwrap());
        let forwarding = Forwarding::new(methods.to_vec(), Arc::new(Silent));
        for method in ["eth_call", "eth_sendRawTransaction", "debug_traceCall", "net_version"] {
            assert!(forwarding.takes(method), "{method}");
            assert!(!forwarding.takes(&method.to_uppercase()), "{method}");
        }
        for method in [
            "eth_sign",
            "eth_signTransaction",
            "eth_sendTransaction",
            "eth_sendTransaction ",
            "ETH_SENDTRANSACTION",
            "eth_sendtransaction",
            "eth_call\0",
            "eth_call ",
            "eth_\u{441}all",
            "eth_unheardOf",
            "debug_traceBlockFromFile",
            "debug_setHead",
            "debug_",
            "debug_chaindbCompact",
            "net_versions",
            "net_peerCount",
            "personal_sign",
            "eth",
            "",
        ] {
            assert!(!forwarding.takes(method), "{method}");
        }
    }

    #[test]
    fn a_notification_goes_on_under_the_id_that_the_client_knows() {
        let shown = |message: &str| {
            notification("0x7", message.as_bytes()).map(|it| String::from_utf8(it).unwrap())
        };
        let of_node = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0xabc","result": {"data":"0x1"} }}"#;
        let expected = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x7","result":{"data":"0x1"}}}"#;
        assert_eq!(shown(of_node).as_deref(), Some(expected));
        for message in
            ["", "{", "[]", r#"{"id":1,"result":true}"#, r#"{"params":{}}"#, r#"{"params":5}"#]
        {
            assert_eq!(shown(message), None, "{message}");
        }
        assert_eq!(notification("0x7", b"{\"params\":{\"result\":\"\xff\"}}"), None);
    }

    #[test]
    fn an_answer_is_taken_apart_and_what_is_none_is_not_passed_on() {
        let shown = |body: &str| {
            let (member, value) = outcome(&Bytes::copy_from_slice(body.as_bytes()))?;
            Some(format!("{member}{}", str::from_utf8(&value).unwrap()))
        };
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#, Some(r#""result":"0x1""#)),
            (r#"{"id":1,"result": null }"#, Some(r#""result":null"#)),
            (r#"{"result":{"a":[1]},"error":null}"#, Some(r#""result":{"a":[1]}"#)),
            (
                r#"{"result":null,"error":{"code":3,"message":"x"}}"#,
                Some(r#""error":{"code":3,"message":"x"}"#),
            ),
            (r#"{"id":1}"#, None),
            (r#"{"error":"text"}"#, None),
            ("[]", None),
            (r#"{"result":1"#, None),
            (r#"{"result":1} x"#, None),
            ("", None),
        ] {
            assert_eq!(shown(body).as_deref(), expected, "{body}");
        }
        assert_eq!(outcome(&Bytes::from_static(b"{\"result\":\"\xff\"}")), None);
        let deep = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            shown(&format!(r#"{{"result":{open}{close}}}"#)).is_some()
        };
        assert!(deep(ANSWER_DEPTH_MAX - 1) && !deep(ANSWER_DEPTH_MAX));
    }
}
