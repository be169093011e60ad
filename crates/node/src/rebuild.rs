//! Rebuilds candidate blocks in consensus form from JSON.
//!
//! JSON is decoded straight into the fields that are encoded again. Fields that consensus does not
//! commit to (transaction hashes, senders, blooms of receipts) are ignored: they are recomputed.

mod header;
mod quantity;
mod receipt;
mod transaction;
mod unknown;

use alloy_consensus::TxType;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, Bytes};
use chain::{Body, Candidate, ChainSpec, Fork};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub(super) use header::HeaderJson;
use quantity::Quantity;
pub(super) use receipt::ReceiptJson;
use transaction::TxJson;

/// Why an answer is not the requested block.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum RebuildFault {
    /// It contradicts itself or the request, or does not parse.
    #[error("{0}")]
    Invalid(String),
    /// A transaction or receipt of a type that this build cannot encode.
    #[error("{item} {index} has type {found}, which this build does not know")]
    UnknownType { item: &'static str, index: usize, found: u64 },
    /// This receipt from before Byzantium has no post-state root.
    #[error("receipt {index} has no post-state root")]
    NoPostState { index: usize },
}

/// The parts of a block that its JSON has beside the header's fields.
#[derive(Deserialize)]
struct BodyJson {
    transactions: Vec<TxJson>,
    #[serde(default)]
    withdrawals: Option<Vec<WithdrawalJson>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithdrawalJson {
    index: Quantity<u64>,
    validator_index: Quantity<u64>,
    address: Address,
    amount: Quantity<u64>,
}

/// The type of a transaction or of a receipt, whatever else it has.
#[derive(Deserialize)]
struct TypeJson {
    r#type: Option<Quantity<u64>>,
}

#[derive(Deserialize)]
struct TypedBodyJson {
    transactions: Vec<TypeJson>,
}

/// The answers that make one block.
pub(super) struct Parts<'a> {
    pub(super) block: &'a [u8],
    /// A list of all, or one after the other.
    pub(super) receipts: &'a [hyper::body::Bytes],
    pub(super) is_receipt_list: bool,
    pub(super) ommers: &'a [hyper::body::Bytes],
}

/// Rebuilds the block of this number from a header whose hash is right and the node's answers.
pub(super) fn rebuild(
    spec: &ChainSpec,
    number: u64,
    header_rlp: &Bytes,
    parts: &Parts<'_>,
) -> Result<Candidate, RebuildFault> {
    let header = chain::decode_header(header_rlp)
        .map_err(|error| RebuildFault::Invalid(error.to_string()))?;
    if header.number != number {
        return Err(RebuildFault::Invalid(format!("the header is of block {}", header.number)));
    }
    let body = parse_body(parts.block)?;
    let mut transactions = Vec::with_capacity(body.transactions.len());
    for (index, tx) in body.transactions.into_iter().enumerate() {
        transactions.push(tx.encode(index)?);
    }
    let is_byzantium = spec.is_active(Fork::Byzantium, number, header.timestamp);
    let mut receipts = Vec::with_capacity(transactions.len());
    for (index, receipt) in parse_receipts(parts)?.into_iter().enumerate() {
        receipts.push(receipt.into_receipt(index, is_byzantium)?);
    }
    Ok(Candidate {
        header: header_rlp.clone(),
        body: Body {
            transactions,
            ommers: encode_ommers(parts.ommers)?,
            withdrawals: body.withdrawals.map(encode_withdrawals),
        },
        receipts: Some(receipts),
        total_difficulty: None,
    })
}

/// What this build does not know of a block. Called only for blocks that fail verification.
pub(super) fn find_unknown(header_rlp: &[u8], parts: &Parts<'_>) -> Option<String> {
    let is_header_known = chain::decode_header(header_rlp)
        .is_ok_and(|header| alloy_rlp::encode(&header) == *header_rlp);
    if !is_header_known {
        return Some("its header has fields that this build does not know".to_owned());
    }
    let name = unknown::in_parts(parts)?;
    Some(format!("it has a key `{name}`, which this build does not know"))
}

/// The first key of a block's JSON that this build does not know.
pub(super) fn find_unknown_key(block: &[u8]) -> Option<String> {
    unknown::in_block(block).into_iter().next().map(|key| key.name)
}

/// The first part of a block's body that this build does not know.
pub(super) fn find_unknown_body(block: &[u8]) -> Option<String> {
    unknown::in_block(block).into_iter().find(|key| key.is_compound).map(|key| key.name)
}

/// The body. A transaction of a type that is not known may lack what the others have.
fn parse_body(block: &[u8]) -> Result<BodyJson, RebuildFault> {
    parse("body", block).map_err(|fault| {
        let types = parse::<TypedBodyJson>("types", block).ok();
        let unknown = types.and_then(|types| unknown_type(&types.transactions));
        unknown.map_or(fault, |(index, found)| {
            let item = "transaction";
            RebuildFault::UnknownType { item, index, found }
        })
    })
}

/// The receipts, listed or alone. One of an unknown type may lack what the others have.
fn parse_receipts(parts: &Parts<'_>) -> Result<Vec<ReceiptJson>, RebuildFault> {
    let mut receipts = Vec::new();
    for (position, text) in parts.receipts.iter().enumerate() {
        let parsed = if parts.is_receipt_list {
            parse("receipts", text)
        } else {
            parse("receipt", text).map(|receipt| vec![receipt])
        };
        receipts.extend(parsed.map_err(|fault| {
            let types = if parts.is_receipt_list {
                parse::<Vec<TypeJson>>("types", text)
            } else {
                parse("type", text).map(|only| vec![only])
            };
            let unknown = types.ok().and_then(|types| unknown_type(&types));
            unknown.map_or(fault, |(index, found)| {
                let index = index.saturating_add(if parts.is_receipt_list { 0 } else { position });
                RebuildFault::UnknownType { item: "receipt", index, found }
            })
        })?);
    }
    Ok(receipts)
}

/// The first of these types that this build does not know, and where it is.
fn unknown_type(types: &[TypeJson]) -> Option<(usize, u64)> {
    let found = types.iter().map(|it| it.r#type.map_or(0, |found| found.0)).enumerate();
    found.into_iter().find(|(_, found)| !is_known_type(*found))
}

fn is_known_type(found: u64) -> bool {
    u8::try_from(found).is_ok_and(|found| TxType::try_from(found).is_ok())
}

/// Decodes an answer.
pub(super) fn parse<T: DeserializeOwned>(
    what: &'static str,
    text: &[u8],
) -> Result<T, RebuildFault> {
    serde_json::from_slice(text).map_err(|error| RebuildFault::Invalid(format!("{what}: {error}")))
}

fn encode_ommers(texts: &[hyper::body::Bytes]) -> Result<Bytes, RebuildFault> {
    let mut ommers = Vec::with_capacity(texts.len());
    for text in texts {
        let ommer: HeaderJson = parse("ommer", text)?;
        ommers.push(ommer.into_header());
    }
    Ok(alloy_rlp::encode(ommers).into())
}

fn encode_withdrawals(withdrawals: Vec<WithdrawalJson>) -> Bytes {
    let plain = withdrawals.into_iter().map(|it| Withdrawal {
        index: it.index.0,
        validator_index: it.validator_index.0,
        address: it.address,
        amount: it.amount.0,
    });
    alloy_rlp::encode(plain.collect::<Vec<_>>()).into()
}
