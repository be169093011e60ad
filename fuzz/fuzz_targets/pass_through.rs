//! Whatever an operator allows and whatever a client calls its method: what goes to the node is a
//! plain name that some rule covers, that a client of Ethereum has, and that is not refused in any
//! spelling.
//!
//! The input is `RULE,RULE,...|METHOD`. The rules that parse are asked directly; the method is then
//! sent, as JSON, to a service that allows all that can be allowed.

#![no_main]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use chain::ChainSpec;
use libfuzzer_sys::fuzz_target;
use rpc::{AnswerRoom, PassThrough, PassThroughMethod, Passing, Service, ServiceSettings};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Every method of five clients, one a line, with those that have it.
const NODE_METHODS: &str = include_str!("../../crates/rpc/src/pass_through/node-methods.txt");

/// Namespaces that sign, mine, manage or drive a node. Written down here once more: a table cannot
/// be held against itself.
const CLOSED: &[&str] = &[
    "account", "admin", "anvil", "clique", "dev", "engine", "hardhat", "miner", "personal",
    "signer", "test", "wallet",
];
/// The same of methods beside others that only read.
const REFUSED: &[&str] = &[
    "debug_chaindbCompact",
    "debug_cpuProfile",
    "debug_dbGet",
    "debug_resetHead",
    "debug_setHead",
    "debug_standardTraceBlockToFile",
    "debug_startGoTrace",
    "debug_traceBlockFromFile",
    "debug_writeMemProfile",
    "eth_accounts",
    "eth_getWork",
    "eth_resend",
    "eth_sendTransaction",
    "eth_sign",
    "eth_signTransaction",
    "eth_signTypedData",
    "eth_submitWork",
    "parity_setEngineSigner",
];

static LISTED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines = NODE_METHODS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
});
static LISTED_LOWER: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| LISTED.iter().map(|method| method.to_ascii_lowercase()).collect());
static NAMESPACES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    LISTED_LOWER.iter().filter_map(|method| method.split('_').next()).map(str::to_owned).collect()
});

/// A node that answers everything, and remembers what it was asked.
#[derive(Debug, Default)]
struct RecordingNode(Mutex<Vec<Vec<u8>>>);

impl PassThrough for RecordingNode {
    fn ask<'a>(&'a self, request: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
        self.0.lock().expect("one thread").push(request);
        Box::pin(std::future::ready(Ok(br#"{"id":1,"result":"0x1"}"#.to_vec())))
    }
}

static NODE: LazyLock<Arc<RecordingNode>> = LazyLock::new(Arc::default);

/// All that can be allowed: whole namespaces, as far as any of their methods may go.
static ALL: LazyLock<Vec<PassThroughMethod>> = LazyLock::new(|| {
    let rules = NAMESPACES.iter().map(|namespace| format!("{namespace}_*"));
    rules.filter_map(|rule| rule.parse().ok()).collect()
});

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let spec = ChainSpec::bare("fuzz", Some(1), None);
    let node: Arc<RecordingNode> = Arc::clone(&NODE);
    fuzz::service(spec, ServiceSettings::default()).with_pass_through(ALL.clone(), node)
});
static RUNTIME: LazyLock<Runtime> = LazyLock::new(fuzz::runtime);

fuzz_target!(init: prepare(), |text: &str| check_input(text));

/// What takes long is no input's fault.
fn prepare() {
    LazyLock::force(&ALL);
    LazyLock::force(&SERVICE);
    LazyLock::force(&RUNTIME);
}

fn check_input(text: &str) {
    let Some((rules, method)) = text.split_once('|') else { return };
    let rules: Vec<(&str, PassThroughMethod)> =
        rules.split(',').filter_map(|rule| Some((rule, rule.parse().ok()?))).collect();
    for (rule, allowed) in &rules {
        check_rule(rule);
        if allowed.covers(method) {
            check_passed(method);
            assert!(is_match(rule, method), "{rule:?} covers {method:?}");
            check_spelling(method, |spelling| allowed.covers(spelling));
        }
    }
    check_service(method);
}

/// A rule is a name or the beginning of one, and opens nothing that is closed.
fn check_rule(rule: &str) {
    let name = rule.strip_suffix('*').unwrap_or(rule);
    assert!(is_plain(name), "{rule:?}");
    let namespace = name.split('_').next().unwrap_or_default().to_ascii_lowercase();
    assert!(!CLOSED.contains(&namespace.as_str()), "{rule:?}");
    let is_refused = REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(rule));
    assert!(!is_refused, "{rule:?}");
}

/// What goes to a node, whichever rule let it go.
fn check_passed(method: &str) {
    assert!(is_plain(method), "{method:?}");
    let lower = method.to_ascii_lowercase();
    let namespace = lower.split('_').next().unwrap_or_default();
    assert!(!CLOSED.contains(&namespace), "{method:?}");
    assert!(!REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(&lower)), "{method:?}");
    // Namespaces that no client has, as those of rollups, are the operator's matter.
    let is_known = !NAMESPACES.contains(namespace) || LISTED_LOWER.contains(&lower);
    assert!(is_known, "{method:?} is passed on, and no client has it");
}

fn is_plain(name: &str) -> bool {
    name.contains('_') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_match(rule: &str, method: &str) -> bool {
    let (rule, method) = (rule.to_ascii_lowercase(), method.to_ascii_lowercase());
    rule.strip_suffix('*').map_or(rule == method, |prefix| method.starts_with(prefix))
}

/// A method that passes in one spelling does in the one that clients write.
fn check_spelling(method: &str, passes: impl Fn(&str) -> bool) {
    let canonical = LISTED.iter().find(|listed| listed.eq_ignore_ascii_case(method));
    for spelling in canonical
        .map(String::as_str)
        .into_iter()
        .chain([method.to_ascii_lowercase().as_str(), method.to_ascii_uppercase().as_str()])
    {
        assert!(passes(spelling), "{method:?} is passed on, and {spelling:?} is not");
    }
}

/// The same through the service: what the node gets is what the rules cover, however it is written.
fn check_service(method: &str) {
    let plain = serde_json::to_string(method).expect("text");
    let mut escaped = String::from("\"");
    for unit in method.encode_utf16() {
        write!(escaped, "\\u{unit:04x}").expect("text");
    }
    escaped.push('"');
    let is_covered = ALL.iter().any(|allowed| allowed.covers(method));
    for method_json in [&plain, &escaped] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method_json},"params":[]}}"#);
        RUNTIME.block_on(SERVICE.respond(body.as_bytes(), Duration::from_secs(5)));
        let asked = std::mem::take(&mut *NODE.0.lock().expect("one thread"));
        assert!(asked.len() <= usize::from(is_covered), "{method:?} was passed on");
        for request in asked {
            let request: Value = serde_json::from_slice(&request).expect("what is sent is JSON");
            assert_eq!(request.get("method").and_then(Value::as_str), Some(method));
            check_passed(method);
        }
    }
}
