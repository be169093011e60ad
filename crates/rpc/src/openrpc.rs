//! The method table as an `OpenRPC` document.

use serde_json::{Value, json};

use crate::methods::{JsonShape, METHODS, MethodRow};

/// The document, as `rpc.discover` and `/openrpc.json` give it.
pub(crate) fn document() -> Vec<u8> {
    let methods: Vec<Value> = METHODS.iter().map(method).collect();
    let document = json!({
        "openrpc": "1.4.1",
        "info": {
            "title": "Quipu",
            "description": "Ethereum history: blocks, transactions and receipts, proven before they were stored.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "methods": methods,
        "components": { "schemas": schemas() },
    });
    document.to_string().into_bytes()
}

fn method(row: &MethodRow) -> Value {
    let params: Vec<Value> = row
        .params
        .iter()
        .map(|param| {
            // Only subscriptions to logs have a filter.
            let is_required =
                !matches!(param.shape, JsonShape::SubscriptionFilter | JsonShape::OptionalBlock);
            json!({ "name": param.name, "required": is_required, "schema": schema(param.shape) })
        })
        .collect();
    json!({
        "name": row.name,
        "summary": row.summary,
        "paramStructure": "by-position",
        "params": params,
        "result": { "name": "result", "schema": schema(row.result) },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Null where what was asked for does not exist.
fn or_null(schema: &Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn schema(shape: JsonShape) -> Value {
    match shape {
        JsonShape::BlockNumberOrTag => reference("BlockNumberOrTag"),
        JsonShape::OptionalBlock => or_null(&reference("BlockNumberOrTag")),
        JsonShape::BlockNumberTagOrHash => {
            json!({ "oneOf": [reference("BlockNumberOrTag"), reference("Hash")] })
        }
        JsonShape::Hash | JsonShape::BlockHash => reference("Hash"),
        JsonShape::Index | JsonShape::Count => {
            json!({ "oneOf": [{ "type": "integer", "minimum": 0 }, reference("Quantity")] })
        }
        JsonShape::Flag => json!({ "type": "boolean" }),
        JsonShape::Percentiles => or_null(&list(&json!({ "type": "number", "minimum": 0 }))),
        JsonShape::SubscriptionKind => json!({ "type": "string", "enum": ["newHeads", "logs"] }),
        JsonShape::Bytes => reference("Data"),
        JsonShape::Number => reference("Number"),
        JsonShape::Quantity => or_null(&reference("Quantity")),
        JsonShape::Text | JsonShape::SubscriptionId | JsonShape::FilterId => {
            json!({ "type": "string" })
        }
        JsonShape::Data => or_null(&reference("Data")),
        JsonShape::AccessList => or_null(&list(&json!({ "type": "object" }))),
        JsonShape::DataList => or_null(&list(&reference("Data"))),
        JsonShape::Block => or_null(&reference("Block")),
        JsonShape::Header => or_null(&reference("Header")),
        JsonShape::ErigonHeader => or_null(&reference("ErigonHeader")),
        JsonShape::OtsBlockDetails => or_null(&reference("OtsBlockDetails")),
        JsonShape::OtsBlockTransactions => or_null(&reference("OtsBlockTransactions")),
        JsonShape::Transaction => or_null(&reference("Transaction")),
        JsonShape::Receipt => or_null(&reference("Receipt")),
        JsonShape::Receipts => or_null(&list(&reference("Receipt"))),
        JsonShape::LogFilter | JsonShape::SubscriptionFilter => reference("LogFilter"),
        JsonShape::FilterChanges => {
            json!({ "anyOf": [list(&reference("Log")), list(&reference("Hash"))] })
        }
        JsonShape::Proof => or_null(&reference("Proof")),
        JsonShape::Logs => list(&reference("Log")),
        JsonShape::Syncing => json!({ "oneOf": [{ "const": false }, reference("Syncing")] }),
        JsonShape::Config => reference("Config"),
        JsonShape::FeeHistory => reference("FeeHistory"),
        JsonShape::Capabilities | JsonShape::Modules | JsonShape::Document => {
            json!({ "type": "object" })
        }
    }
}

fn pattern(title: &str, pattern: &str) -> Value {
    json!({ "title": title, "type": "string", "pattern": pattern })
}

fn schemas() -> Value {
    let tags = ["latest", "earliest", "safe", "finalized", "pending"];
    json!({
        "Quantity": pattern("A number in hex without leading zeros", "^0x(0|[1-9a-f][0-9a-f]*)$"),
        "Data": pattern("Bytes in hex", "^0x([0-9a-f]{2})*$"),
        "Hash": pattern("32 bytes in hex", "^0x[0-9a-f]{64}$"),
        "Address": pattern("20 bytes in hex", "^0x[0-9a-f]{40}$"),
        "BlockNumberOrTag": {
            "title": "A block number or a tag",
            "oneOf": [reference("Quantity"), { "type": "string", "enum": tags }],
        },
        "Header": object(HEADER, HEADER_OPTIONAL),
        "Block": object(&[HEADER, BLOCK].concat(), &[HEADER_OPTIONAL, BLOCK_OPTIONAL].concat()),
        "ErigonHeader": object(&[HEADER, ERIGON_HEADER].concat(), &[SLOT_NUMBER]),
        "OtsBlock": ots_block(&[]),
        "OtsFullBlock": ots_block(&[("transactions", "[Transaction]")]),
        "OtsReceipt": object(
            &[&without(RECEIPT, &["logs", "logsBloom"])[..], OTS_NULL_LOGS].concat(),
            RECEIPT_OPTIONAL,
        ),
        "OtsBlockDetails": object(OTS_BLOCK_DETAILS, &[]),
        "OtsBlockTransactions": object(OTS_BLOCK_TRANSACTIONS, &[]),
        "Issuance": object(ISSUANCE, &[]),
        "Null": { "type": "null" },
        "Text": { "type": "string" },
        "Transaction": object(TRANSACTION, TRANSACTION_OPTIONAL),
        "Receipt": object(RECEIPT, RECEIPT_OPTIONAL),
        "Log": object(LOG, &[]),
        "LogFilter": log_filter(),
        "Proof": object(PROOF, PROOF_OPTIONAL),
        "IndexedProof": object(INDEXED_PROOF, &[]),
        "ProofAnchor": object(PROOF_ANCHOR, PROOF_ANCHOR_OPTIONAL),
        "ProofFilter": { "type": "object" },
        "LogPlace": object(LOG_PLACE, &[]),
        "SearchedBlock": object(SEARCHED_BLOCK, SEARCHED_BLOCK_OPTIONAL),
        "Syncing": object(SYNCING, &[]),
        "Config": object(CONFIG, &[]),
        "ForkConfig": object(FORK_CONFIG, &[]),
        "BlobSchedule": object(BLOB_SCHEDULE, &[]),
        "FeeHistory": object(FEE_HISTORY, FEE_HISTORY_OPTIONAL),
        "Rewards": list(&reference("Quantity")),
        "Contracts": { "type": "object" },
        "Number": { "type": "number", "minimum": 0 },
        "Withdrawal": object(WITHDRAWAL, &[]),
        "AccessListItem": object(ACCESS_LIST_ITEM, &[]),
        "Authorization": object(AUTHORIZATION, &[]),
    })
}

/// A filter: every member may be left out or null.
fn log_filter() -> Value {
    let one_or_more = |name: &str| json!({ "oneOf": [reference(name), list(&reference(name)), { "type": "null" }] });
    let end = or_null(&reference("BlockNumberOrTag"));
    json!({
        "title": "Which logs are asked for: those of a range of blocks, or of one by its hash",
        "type": "object",
        "properties": {
            "fromBlock": end,
            "toBlock": end,
            "blockHash": or_null(&reference("Hash")),
            "address": one_or_more("Address"),
            "topics": or_null(&list(&one_or_more("Hash"))),
        },
    })
}

/// A member's name and its schema's.
type SchemaMembers<'a> = &'a [(&'a str, &'a str)];

const HEADER: SchemaMembers<'_> = &[
    ("hash", "Hash"),
    ("parentHash", "Hash"),
    ("sha3Uncles", "Hash"),
    ("miner", "Address"),
    ("stateRoot", "Hash"),
    ("transactionsRoot", "Hash"),
    ("receiptsRoot", "Hash"),
    ("logsBloom", "Data"),
    ("difficulty", "Quantity"),
    ("number", "Quantity"),
    ("gasLimit", "Quantity"),
    ("gasUsed", "Quantity"),
    ("timestamp", "Quantity"),
    ("extraData", "Data"),
    ("mixHash", "Hash"),
    ("nonce", "Data"),
];
const HEADER_OPTIONAL: SchemaMembers<'_> = &[
    ("baseFeePerGas", "Quantity"),
    ("withdrawalsRoot", "Hash"),
    ("blobGasUsed", "Quantity"),
    ("excessBlobGas", "Quantity"),
    ("parentBeaconBlockRoot", "Hash"),
    ("requestsHash", "Hash"),
    ("blockAccessListHash", "Hash"),
    SLOT_NUMBER,
];
const SLOT_NUMBER: (&str, &str) = ("slotNumber", "Quantity");
/// What Erigon writes as null before its fork.
const ERIGON_HEADER: SchemaMembers<'_> = &[
    ("baseFeePerGas", "Quantity?"),
    ("withdrawalsRoot", "Hash?"),
    ("blobGasUsed", "Quantity?"),
    ("excessBlobGas", "Quantity?"),
    ("parentBeaconBlockRoot", "Hash?"),
    ("requestsHash", "Hash?"),
    ("blockAccessListHash", "Hash?"),
];
const BLOCK: SchemaMembers<'_> = &[("size", "Quantity"), ("uncles", "[Hash]")];
const BLOCK_OPTIONAL: SchemaMembers<'_> =
    &[("transactions", "[Hash|Transaction]"), ("withdrawals", "[Withdrawal]")];
const OTS_BLOCK: SchemaMembers<'_> = &[("logsBloom", "Null"), ("transactionCount", "Number")];
const OTS_NULL_LOGS: SchemaMembers<'_> = &[("logs", "Null"), ("logsBloom", "Null")];
const OTS_BLOCK_DETAILS: SchemaMembers<'_> =
    &[("block", "OtsBlock"), ("issuance", "Issuance"), ("totalFees", "Quantity")];
const OTS_BLOCK_TRANSACTIONS: SchemaMembers<'_> =
    &[("fullblock", "OtsFullBlock"), ("receipts", "[OtsReceipt]")];
const ISSUANCE: SchemaMembers<'_> =
    &[("blockReward", "Quantity"), ("uncleReward", "Quantity"), ("issuance", "Quantity")];
const SYNCING: SchemaMembers<'_> =
    &[("startingBlock", "Quantity"), ("currentBlock", "Quantity"), ("highestBlock", "Quantity")];

const CONFIG: SchemaMembers<'_> =
    &[("current", "ForkConfig?"), ("next", "ForkConfig?"), ("last", "ForkConfig?")];
const FORK_CONFIG: SchemaMembers<'_> = &[
    ("activationTime", "Number"),
    ("blobSchedule", "BlobSchedule?"),
    ("chainId", "Quantity"),
    ("forkId", "Data"),
    ("precompiles", "Contracts"),
    ("systemContracts", "Contracts"),
];
const BLOB_SCHEDULE: SchemaMembers<'_> =
    &[("target", "Number"), ("max", "Number"), ("baseFeeUpdateFraction", "Number")];
const FEE_HISTORY: SchemaMembers<'_> =
    &[("oldestBlock", "Quantity"), ("gasUsedRatio", "[Number]?")];
const FEE_HISTORY_OPTIONAL: SchemaMembers<'_> = &[
    ("reward", "[Rewards]"),
    ("baseFeePerGas", "[Quantity]"),
    ("baseFeePerBlobGas", "[Quantity]"),
    ("blobGasUsedRatio", "[Number]"),
];
const WITHDRAWAL: SchemaMembers<'_> = &[
    ("index", "Quantity"),
    ("validatorIndex", "Quantity"),
    ("address", "Address"),
    ("amount", "Quantity"),
];
const TRANSACTION: SchemaMembers<'_> = &[
    ("type", "Quantity"),
    ("nonce", "Quantity"),
    ("gas", "Quantity"),
    ("gasPrice", "Quantity"),
    ("to", "Address?"),
    ("value", "Quantity"),
    ("input", "Data"),
    ("r", "Quantity"),
    ("s", "Quantity"),
    ("v", "Quantity"),
    ("hash", "Hash"),
    ("blockHash", "Hash"),
    ("blockNumber", "Quantity"),
    ("transactionIndex", "Quantity"),
    ("from", "Address"),
    ("blockTimestamp", "Quantity"),
];
const TRANSACTION_OPTIONAL: SchemaMembers<'_> = &[
    ("chainId", "Quantity"),
    ("maxFeePerGas", "Quantity"),
    ("maxPriorityFeePerGas", "Quantity"),
    ("accessList", "[AccessListItem]"),
    ("blobVersionedHashes", "[Hash]"),
    ("maxFeePerBlobGas", "Quantity"),
    ("authorizationList", "[Authorization]"),
    ("yParity", "Quantity"),
];
const ACCESS_LIST_ITEM: SchemaMembers<'_> = &[("address", "Address"), ("storageKeys", "[Hash]")];
const AUTHORIZATION: SchemaMembers<'_> = &[
    ("chainId", "Quantity"),
    ("address", "Address"),
    ("nonce", "Quantity"),
    ("yParity", "Quantity"),
    ("r", "Quantity"),
    ("s", "Quantity"),
];
const RECEIPT: SchemaMembers<'_> = &[
    ("type", "Quantity"),
    ("cumulativeGasUsed", "Quantity"),
    ("logs", "[Log]"),
    ("logsBloom", "Data"),
    ("transactionHash", "Hash"),
    ("transactionIndex", "Quantity"),
    ("blockHash", "Hash"),
    ("blockNumber", "Quantity"),
    ("gasUsed", "Quantity"),
    ("effectiveGasPrice", "Quantity"),
    ("from", "Address"),
    ("to", "Address?"),
    ("contractAddress", "Address?"),
];
const RECEIPT_OPTIONAL: SchemaMembers<'_> = &[
    ("status", "Quantity"),
    ("root", "Hash"),
    ("blobGasUsed", "Quantity"),
    ("blobGasPrice", "Quantity"),
];
const LOG: SchemaMembers<'_> = &[
    ("address", "Address"),
    ("topics", "[Hash]"),
    ("data", "Data"),
    ("blockHash", "Hash"),
    ("blockNumber", "Quantity"),
    ("blockTimestamp", "Quantity"),
    ("transactionHash", "Hash"),
    ("transactionIndex", "Quantity"),
    ("logIndex", "Quantity"),
    ("removed", "bool"),
];

const PROOF: SchemaMembers<'_> =
    &[("version", "Number"), ("status", "Text"), ("anchor", "ProofAnchor")];
const PROOF_OPTIONAL: SchemaMembers<'_> = &[
    ("header", "Data"),
    ("transaction", "IndexedProof"),
    ("receipt", "IndexedProof"),
    ("log", "LogPlace"),
    ("transactions", "[Data]"),
    ("receipts", "[Data]"),
    ("ommers", "Data"),
    ("withdrawals", "[Data]"),
    ("filter", "ProofFilter"),
    ("filterHash", "Hash"),
    ("blocks", "[SearchedBlock]"),
];
const INDEXED_PROOF: SchemaMembers<'_> =
    &[("index", "Number"), ("rlp", "Data"), ("proof", "[Data]")];
const PROOF_ANCHOR: SchemaMembers<'_> = &[("hash", "Hash"), ("by", "Text"), ("path", "[Data]")];
const PROOF_ANCHOR_OPTIONAL: SchemaMembers<'_> = &[("number", "Number")];
const LOG_PLACE: SchemaMembers<'_> = &[("position", "Number"), ("after", "Number")];
const SEARCHED_BLOCK: SchemaMembers<'_> = &[("header", "Data")];
const SEARCHED_BLOCK_OPTIONAL: SchemaMembers<'_> = &[("receipts", "[Data]")];

/// A block as Otterscan has it, with these members more.
fn ots_block(more: SchemaMembers<'_>) -> Value {
    let header = without(HEADER, &["logsBloom"]);
    let optional = [HEADER_OPTIONAL, &[("withdrawals", "[Withdrawal]")]].concat();
    object(&[&header[..], BLOCK, OTS_BLOCK, more].concat(), &optional)
}

/// These members but for some.
fn without<'a>(members: SchemaMembers<'a>, names: &[&str]) -> Vec<(&'a str, &'a str)> {
    members.iter().copied().filter(|(name, _)| !names.contains(name)).collect()
}

fn object(required: SchemaMembers<'_>, optional: SchemaMembers<'_>) -> Value {
    let members = required.iter().chain(optional);
    let properties: serde_json::Map<String, Value> =
        members.map(|(name, kind)| ((*name).to_owned(), member(kind))).collect();
    let required: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn member(kind: &str) -> Value {
    if let Some(list) = kind.strip_suffix("]?") {
        return or_null(&member(&format!("{list}]")));
    }
    if let Some(items) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        // All of one kind or all of the other.
        let lists: Vec<Value> = items.split('|').map(|item| list(&reference(item))).collect();
        return match lists.as_slice() {
            [list] => list.clone(),
            lists => json!({ "anyOf": lists }),
        };
    }
    match kind.strip_suffix('?') {
        Some(name) => or_null(&reference(name)),
        None if kind == "bool" => json!({ "type": "boolean" }),
        None => reference(kind),
    }
}
