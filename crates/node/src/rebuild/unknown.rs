//! Keys of a node's JSON that this build does not know: the sign of a later fork.
//!
//! They are looked for only in blocks that do not match their hashes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Parts;

/// Characters of an unknown key that are shown.
const SHOWN_MAX: usize = 40;

/// Keys of a block: its header, its body, and what nodes add to them. `author` and `sealFields` are of
/// Nethermind, Erigon and `OpenEthereum`.
const BLOCK_KEYS: &str = "hash parentHash sha3Uncles miner stateRoot transactionsRoot receiptsRoot \
    logsBloom difficulty number gasLimit gasUsed timestamp extraData mixHash nonce baseFeePerGas \
    withdrawalsRoot blobGasUsed excessBlobGas parentBeaconBlockRoot requestsHash blockAccessListHash \
    slotNumber transactions withdrawals uncles totalDifficulty size author sealFields";

/// Keys of a receipt, and what nodes add to them. `error` and `revertReason` are of Nethermind and Besu.
const RECEIPT_KEYS: &str = "type status root cumulativeGasUsed logs logsBloom transactionHash \
    transactionIndex blockHash blockNumber blockTimestamp from to gasUsed effectiveGasPrice \
    contractAddress blobGasUsed blobGasPrice error revertReason";

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// A key that this build does not know.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    /// Shortened, without control characters.
    pub(super) name: String,
    /// Whether its value is an array or an object: a part of a body, not a header field.
    pub(super) is_compound: bool,
}

/// The unknown keys of a block or header; none if the text is not an object.
pub(super) fn in_block(text: &[u8]) -> Vec<UnknownKey> {
    serde_json::from_slice(text).map(|object| unknown_keys(object, BLOCK_KEYS)).unwrap_or_default()
}

/// The first unknown key of a block, its ommers or its receipts.
pub(super) fn in_parts(parts: &Parts<'_>) -> Option<String> {
    let blocks = std::iter::once(parts.block).chain(parts.ommers.iter().map(AsRef::as_ref));
    let receipts = parts.receipts.iter().flat_map(|text| {
        let list = if parts.is_receipt_list {
            serde_json::from_slice::<Vec<Object<'_>>>(text)
        } else {
            serde_json::from_slice(text).map(|one| vec![one])
        };
        list.unwrap_or_default().into_iter().flat_map(|it| unknown_keys(it, RECEIPT_KEYS))
    });
    blocks.flat_map(in_block).chain(receipts).next().map(|key| key.name)
}

fn unknown_keys(object: Object<'_>, known: &str) -> Vec<UnknownKey> {
    let is_known = |name: &str| known.split_ascii_whitespace().any(|key| key == name);
    let unknown = object.into_iter().filter(|(name, _)| !is_known(name));
    let shown = |(name, value): (String, &RawValue)| UnknownKey {
        name: name.chars().filter(|it| !it.is_control()).take(SHOWN_MAX).collect(),
        is_compound: value.get().starts_with(['[', '{']),
    };
    unknown.map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_of_a_block_are_found() {
        let found = |text: &str| {
            let keys = in_block(text.as_bytes());
            keys.into_iter().map(|key| (key.name, key.is_compound)).collect::<Vec<_>>()
        };
        let known =
            r#"{"hash":"0x1","size":"0x2","totalDifficulty":null,"transactions":[{"a":1}]}"#;
        assert_eq!(found(known), []);
        let keys = found(r#"{"hash":"0x1","newRoot":"0x2","more":[]}"#);
        assert_eq!(keys, [("more".to_owned(), true), ("newRoot".to_owned(), false)]);
        assert_eq!(found("7"), []);
        let long = format!(r#"{{"a\u0007{}":1}}"#, "b".repeat(100));
        assert_eq!(found(&long), [(format!("a{}", "b".repeat(39)), false)]);
    }

    #[test]
    fn unknown_keys_of_receipts_are_found_in_lists_and_alone() {
        let one = hyper::body::Bytes::from_static(br#"{"status":"0x1","gasBurnt":{"a":1}}"#);
        let list = hyper::body::Bytes::from([b"[{\"logs\":[]},".as_slice(), &one, b"]"].concat());
        for (receipts, is_receipt_list) in [([one.clone()], false), ([list], true)] {
            let parts = Parts { block: b"{}", receipts: &receipts, is_receipt_list, ommers: &[] };
            assert_eq!(in_parts(&parts).as_deref(), Some("gasBurnt"));
        }
    }
}
