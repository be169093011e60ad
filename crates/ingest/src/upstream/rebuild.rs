//! A block as JSON-RPC tells it becomes a candidate in consensus form.
//!
//! Knows: how nodes write headers, transactions, receipts and withdrawals, and that what they leave
//! out cannot be made up.
//! Never knows: whether the block is true: hashes and roots are the verifier's to recompute.
//!
//! JSON is decoded straight into the fields that are encoded again, without a tree between. Fields
//! that consensus does not commit to (hashes of transactions, senders, blooms of receipts) are passed
//! over: they are recomputed wherever they are wanted.

mod header;
mod quantity;
mod receipt;
mod transaction;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, Bytes};
use chain::{Body, Candidate, ChainSpec, Fork};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub(super) use header::HeaderJson;
use quantity::Quantity;
pub(super) use receipt::ReceiptJson;
use transaction::TxJson;

/// Why an answer is not the block that was asked for.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RebuildFault {
    /// It does not parse.
    #[error("{what}: {reason}")]
    Json {
        /// What does not.
        what: &'static str,
        /// Why, and where.
        reason: String,
    },
    /// A transaction lacks a field that its type has.
    #[error("transaction {index} of type {tx_type} has no {field}")]
    TxField {
        /// Position in the block.
        index: usize,
        /// Its type.
        tx_type: u64,
        /// The field.
        field: &'static str,
    },
    /// A transaction of a type that this build cannot encode.
    #[error("transaction {index} has type {found}, which this build does not know")]
    TxType {
        /// Position in the block.
        index: usize,
        /// Its type.
        found: u64,
    },
    /// A receipt lacks its outcome, or has something else in its place.
    #[error("receipt {index}: {what}")]
    Receipt {
        /// Position in the block.
        index: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A receipt from before Byzantium without the root that consensus commits to.
    #[error("this upstream cannot give post-state roots before Byzantium (receipt {index})")]
    NoPostState {
        /// Position in the block.
        index: usize,
    },
    /// The header is not the one whose hash was asked for.
    #[error("the header's fields give hash {found}, asked was {expected}")]
    Hash {
        /// What its fields give.
        found: B256,
        /// What was asked, or what the answer itself says.
        expected: B256,
    },
    /// The header is of another number.
    #[error("the header is of block {found}")]
    Number {
        /// Its number.
        found: u64,
    },
}

impl RebuildFault {
    /// Whether it says what is not true, as opposed to what this build or that node cannot say.
    #[must_use]
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Json { .. }
            | Self::TxField { .. }
            | Self::Receipt { .. }
            | Self::Hash { .. }
            | Self::Number { .. } => true,
            Self::TxType { .. } | Self::NoPostState { .. } => false,
        }
    }
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

/// The answers that make one block.
pub(super) struct Parts<'a> {
    pub(super) block: &'a [u8],
    /// A list of all, or one after the other.
    pub(super) receipts: &'a [hyper::body::Bytes],
    pub(super) is_receipt_list: bool,
    pub(super) ommers: &'a [hyper::body::Bytes],
}

/// What is claimed to be the block of this number, and of this hash if it is known beforehand.
pub(super) fn rebuild(
    spec: &ChainSpec,
    number: u64,
    expected: Option<B256>,
    parts: &Parts<'_>,
) -> Result<Candidate, RebuildFault> {
    let header_json: HeaderJson = parse("header", parts.block)?;
    let expected = expected.unwrap_or(header_json.hash);
    let header = header_json.into_header();
    if header.number != number {
        return Err(RebuildFault::Number { found: header.number });
    }
    let header_rlp = alloy_rlp::encode(&header);
    let found = chain::hash_header(&header_rlp);
    if found != expected {
        return Err(RebuildFault::Hash { found, expected });
    }
    let body: BodyJson = parse("body", parts.block)?;
    let mut transactions = Vec::with_capacity(body.transactions.len());
    for (index, tx) in body.transactions.into_iter().enumerate() {
        transactions.push(tx.encode(index)?);
    }
    let mut receipts_json: Vec<ReceiptJson> = Vec::with_capacity(transactions.len());
    for text in parts.receipts {
        if parts.is_receipt_list {
            receipts_json = parse("receipts", text)?;
        } else {
            receipts_json.push(parse("receipt", text)?);
        }
    }
    let is_byzantium = spec.is_active(Fork::Byzantium, number, header.timestamp);
    let mut receipts = Vec::with_capacity(receipts_json.len());
    for (index, receipt) in receipts_json.into_iter().enumerate() {
        receipts.push(receipt.into_receipt(index, is_byzantium)?);
    }
    Ok(Candidate {
        header: header_rlp.into(),
        body: Body {
            transactions,
            ommers: encode_ommers(parts.ommers)?,
            withdrawals: body.withdrawals.map(encode_withdrawals),
        },
        receipts: Some(receipts),
        total_difficulty: None,
    })
}

/// Decodes an answer.
pub(super) fn parse<T: DeserializeOwned>(
    what: &'static str,
    text: &[u8],
) -> Result<T, RebuildFault> {
    serde_json::from_slice(text)
        .map_err(|error| RebuildFault::Json { what, reason: error.to_string() })
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
