//! Members of a node's JSON that this build does not know.
//!
//! Knows: the members that consensus commits to up to the forks of this build, and those that nodes
//! add beside them.
//! Never knows: what an unknown member means. It tells a node on a later fork from one that lies, and
//! it is looked for only in blocks that do not prove themselves.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Parts;

/// Letters of an unknown name that are shown.
const SHOWN_MAX: usize = 40;

/// The members of an object, and which of them are objects or lists of objects.
struct Shape {
    known: &'static [&'static str],
    nested: &'static [(&'static str, &'static Shape)],
}

const HEADER: Shape = Shape {
    known: &[
        "hash",
        "parentHash",
        "sha3Uncles",
        "miner",
        "stateRoot",
        "transactionsRoot",
        "receiptsRoot",
        "logsBloom",
        "difficulty",
        "number",
        "gasLimit",
        "gasUsed",
        "timestamp",
        "extraData",
        "mixHash",
        "nonce",
        "baseFeePerGas",
        "withdrawalsRoot",
        "blobGasUsed",
        "excessBlobGas",
        "parentBeaconBlockRoot",
        "requestsHash",
        "blockAccessListHash",
        "slotNumber",
        // Beside the header.
        "totalDifficulty",
        "size",
        "uncles",
        // Of Nethermind, Erigon and OpenEthereum.
        "author",
        "sealFields",
    ],
    nested: &[("transactions", &TRANSACTION), ("withdrawals", &WITHDRAWAL)],
};

const TRANSACTION: Shape = Shape {
    known: &[
        "type",
        "chainId",
        "nonce",
        "gas",
        "to",
        "value",
        "input",
        "gasPrice",
        "maxFeePerGas",
        "maxPriorityFeePerGas",
        "maxFeePerBlobGas",
        "blobVersionedHashes",
        "v",
        "yParity",
        "r",
        "s",
        // Beside what is signed.
        "hash",
        "from",
        "blockHash",
        "blockNumber",
        "blockTimestamp",
        "transactionIndex",
        // The blobs themselves, which anvil shows and no block commits to.
        "blobs",
        "commitments",
        "proofs",
        "cellProofs",
        "sidecar",
        // Of Nethermind, Besu and OpenEthereum.
        "data",
        "raw",
        "publicKey",
        "creates",
        "standardV",
        "condition",
    ],
    nested: &[("accessList", &ACCESS), ("authorizationList", &AUTHORIZATION)],
};

const ACCESS: Shape = Shape { known: &["address", "storageKeys"], nested: &[] };

const AUTHORIZATION: Shape =
    Shape { known: &["chainId", "address", "nonce", "yParity", "v", "r", "s"], nested: &[] };

const WITHDRAWAL: Shape =
    Shape { known: &["index", "validatorIndex", "address", "amount"], nested: &[] };

const RECEIPT: Shape = Shape {
    known: &[
        "type",
        "status",
        "root",
        "cumulativeGasUsed",
        "logsBloom",
        // Beside what the root commits to.
        "transactionHash",
        "transactionIndex",
        "blockHash",
        "blockNumber",
        "blockTimestamp",
        "from",
        "to",
        "gasUsed",
        "effectiveGasPrice",
        "contractAddress",
        "blobGasUsed",
        "blobGasPrice",
        // Of Nethermind and Besu.
        "error",
        "revertReason",
    ],
    nested: &[("logs", &LOG)],
};

const LOG: Shape = Shape {
    known: &[
        "address",
        "topics",
        "data",
        "blockHash",
        "blockNumber",
        "blockTimestamp",
        "transactionHash",
        "transactionIndex",
        "logIndex",
        "removed",
        // Of OpenEthereum.
        "type",
        "transactionLogIndex",
    ],
    nested: &[],
};

/// What was found in JSON that this build does not know.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UnknownMembers {
    /// The first member.
    pub(super) first: Option<String>,
    /// The first of the block itself that is a list or an object: part of a body, not a field of a
    /// header.
    pub(super) first_compound: Option<String>,
}

/// The members of a header or of a block that this build does not know.
pub(super) fn find_in_block(text: &[u8]) -> UnknownMembers {
    find(&HEADER, text)
}

/// The first member of a block or of its receipts that this build does not know.
pub(super) fn find_in_parts(parts: &Parts<'_>) -> Option<String> {
    let in_block = std::iter::once(parts.block).chain(parts.ommers.iter().map(AsRef::as_ref));
    let in_block = in_block.map(|text| (&HEADER, text));
    let in_receipts = parts.receipts.iter().map(|text| (&RECEIPT, text.as_ref()));
    in_block.chain(in_receipts).find_map(|(shape, text)| find(shape, text).first)
}

fn find(shape: &'static Shape, text: &[u8]) -> UnknownMembers {
    let mut found = UnknownMembers::default();
    let mut json = serde_json::Deserializer::from_slice(text);
    // What does not parse further is told by whoever needs it; members before that place count.
    let _ = Walk { shape, is_outer: true, found: &mut found }.deserialize(&mut json);
    found
}

/// Walks through an object, a list of objects, or what is none.
struct Walk<'a> {
    shape: &'static Shape,
    is_outer: bool,
    found: &'a mut UnknownMembers,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { shape, is_outer, found } = self;
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let nested = shape.nested.iter().find(|(known, _)| *known == name);
            if let Some((_, shape)) = nested {
                map.next_value_seed(Walk { shape, is_outer: false, found })?;
            } else if shape.known.contains(&&*name) {
                map.next_value::<IgnoredAny>()?;
            } else {
                let is_compound = map.next_value_seed(IsCompound)?;
                let shown = || name.chars().filter(|it| !it.is_control()).take(SHOWN_MAX).collect();
                if is_compound && is_outer {
                    found.first_compound.get_or_insert_with(shown);
                }
                found.first.get_or_insert_with(shown);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { shape, found, .. } = self;
        while list.next_element_seed(Walk { shape, is_outer: false, found })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Passes over a value, and tells whether it was a list or an object.
struct IsCompound;

impl<'de> DeserializeSeed<'de> for IsCompound {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IsCompound {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(true)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: &'static Shape, text: &str, first: Option<&str>, compound: Option<&str>) {
        let found = find(shape, text.as_bytes());
        let expected = UnknownMembers {
            first: first.map(str::to_owned),
            first_compound: compound.map(str::to_owned),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn members_that_are_not_known_are_found_at_any_depth() {
        check(&HEADER, r#"{"hash":"0x1","size":"0x2","totalDifficulty":null}"#, None, None);
        check(
            &HEADER,
            r#"{"hash":"0x1","newRoot":"0x2","more":[]}"#,
            Some("newRoot"),
            Some("more"),
        );
        check(&HEADER, r#"{"transactions":["0x1","0x2"],"withdrawals":null}"#, None, None);
        check(&HEADER, r#"{"transactions":[{"type":"0x5","auths":[{}]}]}"#, Some("auths"), None);
        check(&HEADER, r#"{"transactions":[{"accessList":[{"slots":1}]}]}"#, Some("slots"), None);
        check(
            &RECEIPT,
            r#"[{"logs":[{"address":"0x"}]},{"logs":[{"kind":true}]}]"#,
            Some("kind"),
            None,
        );
        check(&RECEIPT, r#"{"gasBurnt":{"a":[1]}}"#, Some("gasBurnt"), Some("gasBurnt"));
    }

    #[test]
    fn what_does_not_parse_counts_up_to_that_place() {
        check(&HEADER, r#"{"newRoot":"0x2","hash":"#, Some("newRoot"), None);
        check(&HEADER, r#"{"hash":"#, None, None);
        check(&HEADER, "7", None, None);
    }

    #[test]
    fn a_name_is_shown_shortened_and_without_control_characters() {
        let text = format!(r#"{{"a\u0007{}":1}}"#, "b".repeat(100));
        check(&HEADER, &text, Some(&format!("a{}", "b".repeat(39))), None);
    }
}
