//! The `OpenRPC` document: well-formed, complete, and true of every golden answer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Map, Value, json};

use crate::golden::case::Case;
use crate::golden::names;
use crate::harness::hosted::Hosted;
use crate::harness::live::{Live, logged_branch};
use crate::harness::served::Served;
use crate::harness::stores;

/// What is served, in the words of the interface.
const METHODS: [&str; 57] = [
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getTransactionByHash",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionReceipt",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByNumber",
    "eth_getBlockTransactionCountByHash",
    "eth_getUncleCountByBlockNumber",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getHeaderByNumber",
    "eth_getHeaderByHash",
    "debug_getRawHeader",
    "debug_getRawBlock",
    "debug_getRawTransaction",
    "debug_getRawReceipts",
    "eth_getRawTransactionByHash",
    "eth_getRawTransactionByBlockNumberAndIndex",
    "eth_getRawTransactionByBlockHashAndIndex",
    "eth_getBlockAccessList",
    "debug_getRawBlockAccessList",
    "eth_getLogs",
    "eth_newFilter",
    "eth_newBlockFilter",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_uninstallFilter",
    "quipu_proveTransaction",
    "quipu_proveReceipt",
    "quipu_proveLog",
    "quipu_proveBlock",
    "quipu_proveLogs",
    "erigon_getHeaderByNumber",
    "ots_getApiLevel",
    "ots_getBlockDetails",
    "ots_getBlockDetailsByHash",
    "ots_getBlockTransactions",
    "eth_chainId",
    "net_version",
    "net_listening",
    "net_peerCount",
    "eth_blockNumber",
    "eth_syncing",
    "web3_clientVersion",
    "web3_sha3",
    "rpc_modules",
    "eth_capabilities",
    "eth_config",
    "eth_baseFee",
    "eth_blobBaseFee",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_maxPriorityFeePerGas",
    "rpc.discover",
];

/// Those that only a WebSocket has: their answers are in the tests of sockets.
const SOCKET_METHODS: [&str; 2] = ["eth_subscribe", "eth_unsubscribe"];

/// Those whose answers depend on calls before them.
const FILTER_METHODS: [&str; 5] = [
    "eth_newFilter",
    "eth_newBlockFilter",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_uninstallFilter",
];

/// Those that are answered only while a node is followed: their answers are in the tests of services.
const FOLLOWING_METHODS: [&str; 2] = ["eth_gasPrice", "eth_maxPriorityFeePerGas"];

/// Those that only a node answers.
const NODE_METHODS: [&str; 2] = ["eth_getBlockAccessList", "debug_getRawBlockAccessList"];

/// Those whose answers a verifier reads: they are in the tests of proofs.
const PROOF_METHODS: [&str; 5] = [
    "quipu_proveTransaction",
    "quipu_proveReceipt",
    "quipu_proveLog",
    "quipu_proveBlock",
    "quipu_proveLogs",
];

fn document() -> Value {
    let served = stores::serve("sample", &[]);
    let document = served.get("/openrpc.json").json();
    assert_eq!(served.result("rpc.discover", &Value::Array(Vec::new())), document);
    document
}

/// The members of an object that must have some, and may have others.
fn members<'a>(
    place: &str,
    value: &'a Value,
    must: &[&str],
    may: &[&str],
) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("{place}: {value}"));
    for name in must {
        assert!(object.contains_key(*name), "{place}: no {name}");
    }
    for name in object.keys() {
        assert!(must.contains(&name.as_str()) || may.contains(&name.as_str()), "{place}: {name}");
    }
    object
}

#[test]
fn the_openrpc_document_has_the_form_that_openrpc_asks_for() {
    let document = document();
    let may = ["servers", "components", "externalDocs"];
    members("document", &document, &["openrpc", "info", "methods"], &may);
    assert_eq!(document["openrpc"], "1.4.1");
    let may = ["description", "termsOfService", "contact", "license"];
    let about = members("info", &document["info"], &["title", "version"], &may);
    assert!(about["title"].is_string() && about["version"] == env!("CARGO_PKG_VERSION"));
    members("license", &about["license"], &["name"], &["url"]);
    for method in document["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        let must = ["name", "params", "result", "summary", "paramStructure"];
        members(name, method, &must, &[]);
        assert_eq!(method["paramStructure"], "by-position");
        let mut seen = BTreeSet::new();
        for param in method["params"].as_array().unwrap() {
            let param = members(name, param, &["name", "schema", "required"], &[]);
            assert!(seen.insert(param["name"].as_str().unwrap()), "{name}: a name twice");
            let is_filter = name == "eth_subscribe" && param["name"] == "filter";
            let is_optional = is_filter || param["name"] == "anchor";
            assert_eq!(param["required"], !is_optional, "{name}: {}", param["name"]);
            check_schema(&document, &param["schema"]);
        }
        let result = members(name, &method["result"], &["name", "schema"], &[]);
        check_schema(&document, &result["schema"]);
    }
    for schema in document["components"]["schemas"].as_object().unwrap().values() {
        check_schema(&document, schema);
    }
}

#[test]
fn every_method_is_in_the_openrpc_document_once_and_is_served() {
    let document = document();
    let found: Vec<&str> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, [&METHODS[..], &SOCKET_METHODS].concat());
    let served = stores::serve("empty", &[]);
    for name in found {
        let answer = served.call(name, &Value::Array(Vec::new()));
        let is_refused = answer["error"]["message"] == "notifications not supported";
        assert_eq!(is_refused, SOCKET_METHODS.contains(&name), "{name}");
        assert!(is_refused || answer["error"]["code"] != -32601, "{name}");
    }
}

#[test]
fn every_golden_answer_fits_the_schema_of_its_method() {
    let document = document();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = BTreeSet::new();
    for name in names() {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        for (request, answer) in Case::parse(&text).unwrap().pairs() {
            let (Some(method), Some(result)) = (request["method"].as_str(), answer.get("result"))
            else {
                continue;
            };
            let row = document["methods"].as_array().unwrap();
            let row = row.iter().find(|row| row["name"] == method).unwrap();
            let faults = faults_of(&document, &row["result"]["schema"], result);
            assert!(faults.is_empty(), "{name}: {method}: {}", faults.join("; "));
            if !result.is_null() {
                seen.insert(method.to_owned());
            }
        }
    }
    let missing: Vec<&str> = METHODS
        .into_iter()
        .filter(|name| !seen.contains(*name) && *name != "rpc.discover")
        .filter(|name| !FOLLOWING_METHODS.contains(name) && !FILTER_METHODS.contains(name))
        .filter(|name| !PROOF_METHODS.contains(name) && !NODE_METHODS.contains(name))
        .collect();
    assert!(missing.is_empty(), "no golden answer of {missing:?}");
    // A schema that everything fits would prove nothing.
    let block = &document["methods"][0]["result"]["schema"];
    for wrong in [serde_json::json!({}), serde_json::json!("0x1"), serde_json::json!([])] {
        assert!(!faults_of(&document, block, &wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn the_answers_of_filters_fit_their_schemas() {
    let document = document();
    let mut live = Live::with_blocks(1);
    let service = live.service(ServiceSettings::default());
    let served = Served::hosted(Hosted::start(service, HttpSettings::default()));
    let mut seen = BTreeSet::new();
    let mut ask = |method: &'static str, params: Value| {
        let result = served.result(method, &params);
        let rows = document["methods"].as_array().unwrap();
        let schema = &rows.iter().find(|row| row["name"] == method).unwrap()["result"]["schema"];
        let faults = faults_of(&document, schema, &result);
        assert!(faults.is_empty(), "{method}: {result}: {}", faults.join("; "));
        assert!(!faults_of(&document, schema, &json!({})).is_empty(), "{schema}");
        seen.insert(method);
        result
    };
    let logs = ask("eth_newFilter", json!([{ "fromBlock": "0x3e8" }]));
    let blocks = ask("eth_newBlockFilter", json!([]));
    live.writer.extend(logged_branch(live.tip(), 5, 1)).unwrap();
    let fork = live.chain()[3];
    for id in [&logs, &blocks] {
        assert_ne!(ask("eth_getFilterChanges", json!([id])), json!([]));
    }
    // With logs that are removed.
    live.writer.reorg(fork.1, logged_branch(fork, 1, 2)).unwrap();
    assert_eq!(ask("eth_getFilterChanges", json!([logs]))[0]["removed"], true);
    assert_ne!(ask("eth_getFilterLogs", json!([logs])), json!([]));
    ask("eth_uninstallFilter", json!([logs]));
    assert_eq!(seen, BTreeSet::from(FILTER_METHODS));
}

/// A schema uses only words that [`faults_of`] knows, and refers to what is there.
fn check_schema(document: &Value, schema: &Value) {
    for (word, value) in schema.as_object().unwrap() {
        match word.as_str() {
            "$ref" => {
                let place = value.as_str().unwrap().strip_prefix('#').unwrap();
                assert!(document.pointer(place).is_some(), "{value} is not there");
            }
            "oneOf" | "anyOf" => {
                value.as_array().unwrap().iter().for_each(|one| check_schema(document, one));
            }
            "items" => check_schema(document, value),
            "properties" => {
                value.as_object().unwrap().values().for_each(|one| check_schema(document, one));
            }
            "required" => {
                let mut names = value.as_array().unwrap().iter();
                assert!(
                    names.all(|name| schema["properties"].get(name.as_str().unwrap()).is_some())
                );
            }
            "pattern" => drop(is_match(value.as_str().unwrap(), "")),
            "title" | "type" | "const" | "enum" | "minimum" => {}
            _ => panic!("{word}: not known to this test"),
        }
    }
}

/// Why a value does not fit a schema.
fn faults_of(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let fits = |schema: &Value| faults_of(document, schema, value).is_empty();
    for (word, rule) in schema.as_object().unwrap() {
        let is_right = match word.as_str() {
            "$ref" => {
                let place = rule.as_str().unwrap().trim_start_matches('#');
                faults.extend(faults_of(document, document.pointer(place).unwrap(), value));
                true
            }
            "oneOf" => rule.as_array().unwrap().iter().filter(|one| fits(one)).count() == 1,
            "anyOf" => rule.as_array().unwrap().iter().any(fits),
            "type" => is_of_type(rule.as_str().unwrap(), value),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| is_match(rule.as_str().unwrap(), text)),
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    faults.extend(faults_of(document, rule, item));
                }
                true
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        let found = faults_of(document, rule, member);
                        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
                    }
                }
                true
            }
            "required" => rule
                .as_array()
                .unwrap()
                .iter()
                .all(|name| value.get(name.as_str().unwrap()).is_some()),
            _ => word == "title",
        };
        if !is_right {
            faults.push(format!("{word} {rule} and {value}"));
        }
    }
    faults
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        _ => panic!("type {name}: not known to this test"),
    }
}

/// The patterns of the document, which are few, without a crate for all patterns.
fn is_match(pattern: &str, text: &str) -> bool {
    let digits = text.strip_prefix("0x");
    let is_hex = digits.is_some_and(|digits| {
        digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    let digits = digits.unwrap_or_default();
    let is_fitting = match pattern {
        "^0x(0|[1-9a-f][0-9a-f]*)$" => {
            digits == "0" || !(digits.is_empty() || digits.starts_with('0'))
        }
        "^0x([0-9a-f]{2})*$" => digits.len().is_multiple_of(2),
        "^0x[0-9a-f]{64}$" => digits.len() == 64,
        "^0x[0-9a-f]{40}$" => digits.len() == 40,
        _ => panic!("pattern {pattern}: not known to this test"),
    };
    is_hex && is_fitting
}
