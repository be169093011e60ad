//! The steps of a verification: those that were passed, and the one that failed.

use alloc::string::String;
use core::fmt;

use crate::hash::Hash32;

/// What one step of a verification looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStepName {
    /// The bundle's text has the one form that its content can have.
    Text,
    /// The header is well formed, and this is its hash.
    HeaderHash,
    /// The nodes lead from the header's transactions root to one leaf.
    TransactionPath,
    /// The leaf holds the bytes of the transaction; their hash is the transaction's.
    TransactionBytes,
    /// The nodes lead from the header's receipts root to one leaf.
    ReceiptPath,
    /// The leaf holds the bytes of the receipt.
    ReceiptBytes,
    /// The receipt has a log at the position.
    Log,
    /// All transactions of a block give the header's root.
    TransactionsRoot,
    /// All receipts of a block give the header's root.
    ReceiptsRoot,
    /// The list of ommers has the hash that the header names.
    OmmersHash,
    /// All withdrawals of a block give the header's root.
    WithdrawalsRoot,
    /// The filter of a search for logs.
    Filter,
    /// Headers name each other as parents, one number after the other.
    HeaderLinks,
    /// A header's bloom filter says that no log of the block matches.
    Bloom,
    /// The branch from a block through its epoch's accumulator up to the root of all epochs.
    AccumulatorBranch,
    /// The way ends at the anchor, and the anchor is one of those that the caller trusts.
    Anchor,
}

impl ProofStepName {
    /// The name as it is shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::HeaderHash => "header hash",
            Self::TransactionPath => "transaction path",
            Self::TransactionBytes => "transaction bytes",
            Self::ReceiptPath => "receipt path",
            Self::ReceiptBytes => "receipt bytes",
            Self::Log => "log",
            Self::TransactionsRoot => "transactions root",
            Self::ReceiptsRoot => "receipts root",
            Self::OmmersHash => "ommers hash",
            Self::WithdrawalsRoot => "withdrawals root",
            Self::Filter => "filter",
            Self::HeaderLinks => "header links",
            Self::Bloom => "bloom",
            Self::AccumulatorBranch => "accumulator branch",
            Self::Anchor => "anchor",
        }
    }

    /// This step, passed.
    pub(crate) fn pass(self, what: impl Into<String>, hash: Hash32) -> ProofStep {
        ProofStep { name: self, what: what.into(), hash }
    }

    /// A refusal at this step.
    pub(crate) fn refuse(self, why: impl Into<String>) -> ProofRefusal {
        ProofRefusal { step: self, why: why.into() }
    }
}

impl fmt::Display for ProofStepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A step that was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofStep {
    /// Which one.
    pub name: ProofStepName,
    /// What was checked.
    pub what: String,
    /// The hash that the check arrived at.
    pub hash: Hash32,
}

impl fmt::Display for ProofStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.name, self.what, self.hash)
    }
}

/// The bundle proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofRefusal {
    /// The step that failed.
    pub step: ProofStepName,
    /// What was found there, with the place: a block, a node of a path, a byte.
    pub why: String,
}

impl fmt::Display for ProofRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)
    }
}

impl core::error::Error for ProofRefusal {}
