//! Whatever a body holds, the answer is well-formed JSON-RPC with the ids of the calls, in order; or
//! there is none, because nothing asked for one.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use chain::ChainSpec;
use libfuzzer_sys::fuzz_target;
use rpc::{Service, ServiceSettings};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let settings = ServiceSettings {
        batch_items_max: 16,
        batch_bytes_max: 65_536,
        ..ServiceSettings::default()
    };
    fuzz::service(ChainSpec::bare("fuzz", Some(1), None), settings)
});

static RUNTIME: LazyLock<Runtime> = LazyLock::new(fuzz::runtime);

/// An answer. Numbers stay text: a client may choose an id that fits into no type of ours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Error>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Error {
    code: i32,
    message: String,
    #[serde(rename = "data")]
    _held: Option<serde_json::Value>,
}

fuzz_target!(init: prepare(), |data: &[u8]| check_input(data));

/// What takes long is no input's fault.
fn prepare() {
    LazyLock::force(&SERVICE);
    LazyLock::force(&RUNTIME);
}

fn check_input(data: &[u8]) {
    let Some(answer) = RUNTIME.block_on(SERVICE.respond(data, Duration::from_secs(5))) else {
        return check_silence(data);
    };
    let body = std::str::from_utf8(data).unwrap_or_default();
    let answer = std::str::from_utf8(&answer).expect("an answer is text");
    let answers: Vec<Answer<'_>> = if answer.starts_with('[') {
        serde_json::from_str(answer).expect("a batch is a list of answers")
    } else {
        vec![serde_json::from_str(answer).expect("an answer is an object")]
    };
    assert!(!answers.is_empty());
    let mut rest = body;
    for answer in &answers {
        assert_eq!(answer.jsonrpc, "2.0");
        // A result of null counts as one: the member is there.
        let has_result = answer.result.is_some() || answer.error.is_none();
        assert_ne!(has_result, answer.error.is_some());
        if let Some(error) = &answer.error {
            assert!(!error.message.is_empty() && error.code != 0);
        }
        if answer.id.get().starts_with('"') {
            // Kept as text it would pass with half a character, which no strict reader takes.
            serde_json::from_str::<String>(answer.id.get()).expect("an id is text");
        }
        if answer.id.get() != "null" {
            let at = rest.find(answer.id.get()).expect("ids come back in the order of the calls");
            rest = &rest[at + answer.id.get().len()..];
        }
    }
}

/// Only notifications are not answered: requests without an id.
fn check_silence(data: &[u8]) {
    let body = std::str::from_utf8(data).expect("what is no text is refused");
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    // Half a character in a string stops this reader, and not ours.
    let Ok(body) = serde_json::from_str::<serde_json::Value>(body) else { return };
    let requests = body.as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
    for request in requests {
        let request = request.as_object().expect("what is no object is refused");
        assert!(request.contains_key("method") && !request.contains_key("id"), "{body}");
    }
}
