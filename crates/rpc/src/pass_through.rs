//! Methods that are not served here and go to a node: which may, and what becomes of the answer.
//!
//! Knows: which names may never go, how an answer is taken apart, and that it is not ours.
//! Never knows: where the node is, or how it is asked.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use tracing::warn;

use crate::envelope::Call;
use crate::json::{Object, put_text};
use crate::refusal::Refusal;
use crate::scan::{Token, TokenKind, scan_deep};

/// Values inside values of an answer. Traces of calls are deep: two levels for each call.
const ANSWER_DEPTH_MAX: usize = 512;

/// Asks a node in our place. Whoever implements it makes sure that the node follows our chain: what it
/// says goes to clients as if we had said it.
pub trait PassThrough: fmt::Debug + Send + Sync {
    /// Sends a request, one JSON-RPC object, and gives back the body of the answer, refused if it is
    /// longer than `answer_bytes_max`. It may be dropped at any moment: time is the caller's matter.
    fn ask(&self, request: Vec<u8>, answer_bytes_max: usize) -> Passing<'_>;

    /// Subscribes with these parameters, a list as JSON. A node that is not asked over a WebSocket
    /// offers nothing.
    fn subscribe(&self, params: String) -> Subscribing<'_> {
        drop(params);
        Box::pin(std::future::ready(Err(PassThroughError::NoSubscriptions)))
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

/// A name, or the beginning of names: `eth_call`, `eth_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern<'a> {
    Name(&'a str),
    Prefix(&'a str),
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Self {
        text.strip_suffix('*').map_or(Self::Name(text), Self::Prefix)
    }

    fn is_match(self, method: &str) -> bool {
        match self {
            Self::Name(name) => name == method,
            Self::Prefix(prefix) => method.starts_with(prefix),
        }
    }

    /// Whether all that the other matches is matched by this.
    fn contains(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Name(name)) => self.is_match(name),
            (Self::Prefix(prefix), Self::Prefix(other)) => other.starts_with(prefix),
            (Self::Name(_), Self::Prefix(_)) => false,
        }
    }
}

/// What never goes to a node, whatever is allowed: it would sign with its keys, or have it managed by
/// whoever asks us.
const FORBIDDEN: &[&str] = &[
    // Signs or sends with keys of the node. A raw transaction is signed already.
    "eth_sign*",
    "eth_sendTransaction",
    "eth_resend",
    "eth_accounts",
    "personal_*",
    "account_*",
    "signer_*",
    "wallet_*",
    "parity_*",
    "eea_*",
    "priv_*",
    // Has it mine or vote.
    "eth_submit*",
    "eth_getWork",
    "eth_setEtherbase",
    "miner_*",
    "clique_*",
    "istanbul_*",
    "ibft_*",
    "qbft_*",
    // Drives it, or changes its settings, peers, files or chain.
    "engine_*",
    "admin_*",
    "perm_*",
    "plugins_*",
    "les_*",
    "vflux_*",
    "db_*",
    "shh_*",
    "dev_*",
    "test_*",
    "testing_*",
    "anvil_*",
    "hardhat_*",
    "evm_*",
];

/// A namespace in which most methods manage the node: only these of it may go.
const DEBUG: (&str, &[&str]) = (
    "debug_*",
    &[
        "debug_trace*",
        "debug_get*",
        "debug_storageRangeAt",
        "debug_accountRange",
        "debug_dumpBlock",
    ],
);

fn is_forbidden(method: Pattern<'_>) -> bool {
    let is_in = |pattern: &&str| Pattern::new(pattern).contains(method);
    let is_managing = is_in(&DEBUG.0) && !DEBUG.1.iter().any(|allowed| may_meet(allowed, method));
    FORBIDDEN.iter().any(is_in) || is_managing
}

/// Whether something can match both.
fn may_meet(allowed: &str, method: Pattern<'_>) -> bool {
    let allowed = Pattern::new(allowed);
    let text = match allowed {
        Pattern::Name(text) | Pattern::Prefix(text) => text,
    };
    allowed.contains(method) || matches!(method, Pattern::Prefix(it) if text.starts_with(it))
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
}

impl FromStr for PassThroughMethod {
    type Err = PassThroughMethodError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let has_namespace = name.find('_').is_some_and(|at| at > 0);
        if !has_namespace || !name.bytes().all(is_letter) {
            return Err(PassThroughMethodError::NotAName);
        }
        if is_forbidden(Pattern::new(text)) {
            return Err(PassThroughMethodError::Forbidden(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A node, and the methods that go to it.
#[derive(Debug)]
pub(crate) struct Forwarding {
    methods: Vec<PassThroughMethod>,
    node: Arc<dyn PassThrough>,
    answer_bytes_max: usize,
}

impl Forwarding {
    pub(crate) fn new(
        methods: Vec<PassThroughMethod>,
        node: Arc<dyn PassThrough>,
        answer_bytes_max: usize,
    ) -> Self {
        Self { methods, node, answer_bytes_max }
    }

    /// Whether a method goes to the node. What is forbidden does not, whatever is allowed.
    pub(crate) fn takes(&self, method: &str) -> bool {
        let is_allowed = self.methods.iter().any(|it| Pattern::new(&it.0).is_match(method));
        is_allowed && !is_forbidden(Pattern::Name(method))
    }

    /// What the node says to a call: `"result":...` or `"error":...`, as it wrote it.
    pub(crate) async fn ask(&self, call: &Call<'_>) -> Result<Vec<u8>, Refusal> {
        let body = self.node.ask(request(call), self.answer_bytes_max).await;
        let body = body.map_err(|error| refusal_of(error, call))?;
        outcome(&body).ok_or_else(|| {
            let error = PassThroughError::Failed("what came is no JSON-RPC answer".to_owned());
            refusal_of(error, call)
        })
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

/// What a client is told of a node that gave no answer.
fn refusal_of(error: PassThroughError, call: &Call<'_>) -> Refusal {
    match error {
        PassThroughError::TooLarge => Refusal::ResponseTooLarge,
        PassThroughError::Foreign(reason) => Refusal::NotPassed { reason },
        PassThroughError::NoSubscriptions => {
            Refusal::UnknownMethod { method: call.method.clone().into_owned() }
        }
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

/// The member of an answer that matters. Only what was checked to be JSON goes on.
fn outcome(body: &[u8]) -> Option<Vec<u8>> {
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
        (Some(error), _) => ("\"error\":", error),
        (None, result) => ("\"result\":", result?),
    };
    Some([name.as_bytes(), value.text().as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Result<PassThroughMethod, PassThroughMethodError> {
        text.parse()
    }

    #[test]
    fn methods_are_allowed_by_name_or_by_how_they_begin() {
        for text in ["eth_call", "eth_*", "eth_get*", "debug_traceTransaction", "debug_trace*"] {
            assert!(allowed(text).is_ok(), "{text}");
        }
        for text in ["debug_*", "eth_sendRawTransaction", "txpool_*", "trace_block", "net_*"] {
            assert!(allowed(text).is_ok(), "{text}");
        }
        for text in ["", "*", "e*", "eth*", "call", "_x", "eth_ca ll", "eth_*l", "eth_call,eth_x"] {
            assert_eq!(allowed(text), Err(PassThroughMethodError::NotAName), "{text}");
        }
        for text in [
            "eth_sign",
            "eth_signTypedData_v4",
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
        ] {
            let expected = PassThroughMethodError::Forbidden(text.to_owned());
            assert_eq!(allowed(text), Err(expected), "{text}");
        }
    }

    #[derive(Debug)]
    struct Silent;

    impl PassThrough for Silent {
        fn ask(&self, _: Vec<u8>, _: usize) -> Passing<'_> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn what_is_forbidden_does_not_go_whatever_is_allowed() {
        let methods = ["eth_*", "debug_*", "net_version"].map(|text| text.parse().unwrap());
        let forwarding = Forwarding::new(methods.to_vec(), Arc::new(Silent), 1);
        for method in ["eth_call", "eth_sendRawTransaction", "debug_traceCall", "net_version"] {
            assert!(forwarding.takes(method), "{method}");
        }
        for method in [
            "eth_sign",
            "eth_signTransaction",
            "eth_sendTransaction",
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
        let shown = |body: &str| outcome(body.as_bytes()).map(|it| String::from_utf8(it).unwrap());
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
        assert_eq!(outcome(b"{\"result\":\"\xff\"}"), None);
        let deep = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            shown(&format!(r#"{{"result":{open}{close}}}"#)).is_some()
        };
        assert!(deep(ANSWER_DEPTH_MAX - 1) && !deep(ANSWER_DEPTH_MAX));
    }
}
