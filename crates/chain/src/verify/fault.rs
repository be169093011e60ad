//! What can be wrong with a candidate, each with the place and both values.

use alloy_consensus::TxType;
use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_primitives::{B256, Bloom, U256};
use thiserror::Error;

use crate::header::HeaderError;
use crate::rules::RuleFault;
use crate::trust::AnchorKind;

/// A candidate that was refused, and why.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("block {number}: {fault}")]
pub struct Mismatch {
    /// The number the block should have had.
    pub number: u64,
    /// What is wrong with it.
    pub fault: Box<Fault>,
}

/// Which of a candidate's parts a fault lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPart {
    /// The header.
    Header,
    /// Transactions, ommers or withdrawals.
    Body,
    /// The receipts.
    Receipts,
}

/// What is wrong with a candidate. `found` is what the candidate's own bytes give; `expected` is
/// what its header, its parent or an anchor says.
#[derive(Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum Fault {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("number is {found}, expected {expected}")]
    Number { found: u64, expected: u64 },
    #[error("parent hash is {found}, the block before has hash {expected}")]
    ParentHash { found: B256, expected: B256 },
    #[error("hash is {found}, {kind} says {expected}")]
    Anchor { found: B256, expected: B256, kind: AnchorKind },
    #[error(transparent)]
    Rule(#[from] RuleFault),
    #[error("transactions give root {found}, header says {expected}")]
    TransactionsRoot { found: B256, expected: B256 },
    #[error("transaction {index} has type {found:#04x}, known are 0x00 to 0x04")]
    TxType { index: usize, found: u8 },
    #[error("transaction {index} does not decode: {reason}")]
    Transaction { index: usize, reason: String },
    #[error("transaction {index} ({hash}) is signed for chain {found}, this is chain {expected}")]
    ChainId { index: usize, hash: B256, found: u64, expected: u64 },
    #[error("transaction {index} ({hash}): its signature gives no sender")]
    Sender { index: usize, hash: B256 },
    #[error(
        "transaction {index} ({hash}): s of its signature is {found:#x}, from Homestead on at most \
         {SECP256K1N_HALF:#x}"
    )]
    HighS { index: usize, hash: B256, found: U256 },
    #[error("ommers hash to {found}, header says {expected}")]
    OmmersHash { found: B256, expected: B256 },
    #[error("ommers do not decode: {reason}")]
    Ommers { reason: String },
    #[error("ommer {index} does not decode: {reason}")]
    Ommer { index: usize, reason: String },
    #[error(
        "withdrawals {} the body, withdrawals root {} the header",
        if *.in_body { "are in" } else { "are not in" },
        if *.in_header { "is in" } else { "is not in" }
    )]
    WithdrawalsPresence { in_header: bool, in_body: bool },
    #[error("withdrawals do not decode: {reason}")]
    Withdrawals { reason: String },
    #[error("withdrawals give root {found}, header says {expected}")]
    WithdrawalsRoot { found: B256, expected: B256 },
    #[error("{found} receipts for {expected} transactions")]
    ReceiptCount { found: usize, expected: usize },
    #[error("receipt {index} has type {found}, its transaction {expected}")]
    ReceiptType { index: usize, found: TxType, expected: TxType },
    #[error("receipt {index}: cumulative gas {found} is below {before} of the receipt before")]
    GasOrder { index: usize, found: u64, before: u64 },
    #[error("receipts give root {found}, header says {expected}")]
    ReceiptsRoot { found: B256, expected: B256 },
    #[error("logs give bloom {found}, header says {expected}")]
    LogsBloom { found: Box<Bloom>, expected: Box<Bloom> },
    #[error("receipts sum up to {found} gas used, header says {expected}")]
    GasUsed { found: u64, expected: u64 },
    #[error(
        "receipts sum up to {found} gas used, header says {expected}: from Amsterdam on the sum is \
         at least 4/5 of the header's and at most twice it"
    )]
    GasBounds { found: u64, expected: u64 },
}

impl Fault {
    /// The part whose bytes show the fault.
    #[must_use]
    pub fn part(&self) -> BlockPart {
        match self {
            Self::Header(_)
            | Self::Number { .. }
            | Self::ParentHash { .. }
            | Self::Anchor { .. }
            | Self::Rule(_) => BlockPart::Header,
            Self::TransactionsRoot { .. }
            | Self::TxType { .. }
            | Self::Transaction { .. }
            | Self::ChainId { .. }
            | Self::Sender { .. }
            | Self::HighS { .. }
            | Self::OmmersHash { .. }
            | Self::Ommers { .. }
            | Self::Ommer { .. }
            | Self::WithdrawalsPresence { .. }
            | Self::Withdrawals { .. }
            | Self::WithdrawalsRoot { .. } => BlockPart::Body,
            Self::ReceiptCount { .. }
            | Self::ReceiptType { .. }
            | Self::GasOrder { .. }
            | Self::ReceiptsRoot { .. }
            | Self::LogsBloom { .. }
            | Self::GasUsed { .. }
            | Self::GasBounds { .. } => BlockPart::Receipts,
        }
    }
}
