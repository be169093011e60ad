//! The verdict on a bundle: what it proves, step by step, and against which anchor.

use alloc::vec::Vec;
use core::fmt;

use crate::anchor::ProofAnchor;
use crate::filter::ProofFilter;
use crate::hash::Hash32;
use crate::receipt::ProvenLog;
use crate::step::ProofStep;

/// A bundle proves what it claims, if its anchor is canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofVerdict {
    /// What was checked, in order.
    pub steps: Vec<ProofStep>,
    /// What is proven.
    pub claim: ProvenClaim,
    /// What the proof ends at.
    pub anchor: ProofAnchor,
    /// Whether the caller trusts it.
    pub trust: AnchorTrust,
}

/// Who vouches for the anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorTrust {
    /// It is one of those that the caller trusts.
    Named,
    /// The caller named none, and it is [`crate::MAINNET_ACCUMULATOR`].
    MainnetAccumulator,
    /// The caller named none: the proof is as good as the anchor's hash.
    Untrusted,
}

/// A block by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenBlock {
    /// The number in its header.
    pub number: u64,
    /// The hash of its header.
    pub hash: Hash32,
}

/// What a bundle proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvenClaim {
    /// A block has a transaction.
    Transaction {
        /// The block.
        block: ProvenBlock,
        /// Position in the block.
        index: u64,
        /// The transaction's hash.
        hash: Hash32,
        /// Its consensus bytes.
        transaction: Vec<u8>,
        /// The consensus bytes of its receipt, if the bundle has it.
        receipt: Option<Vec<u8>>,
        /// The log that was asked for, if one was.
        log: Option<ProvenLog>,
    },
    /// All of a block.
    Block {
        /// The block.
        block: ProvenBlock,
        /// The consensus bytes of all transactions.
        transactions: Vec<Vec<u8>>,
        /// The consensus bytes of all receipts.
        receipts: Vec<Vec<u8>>,
    },
    /// These logs match a filter, and no others of its range do.
    Logs {
        /// The question: hold it against the one that you asked.
        filter: ProofFilter,
        /// The parent of the first block: the last block of the range before it, whose logs another
        /// bundle proves.
        parent: Hash32,
        /// The last block of the range.
        last: ProvenBlock,
        /// The answer, in the order of the chain.
        logs: Vec<ProvenLog>,
    },
}

impl fmt::Display for ProofVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        writeln!(f, "{}", self.claim)?;
        match self.trust {
            AnchorTrust::Named => write!(f, "anchor {}: trusted by you", self.anchor),
            AnchorTrust::MainnetAccumulator => {
                write!(f, "anchor {}: mainnet before the merge, as in EIP-7643", self.anchor)
            }
            AnchorTrust::Untrusted => write!(
                f,
                "anchor {}: untrusted; this is proven if that is canonical, which you have to know \
                 from somebody else",
                self.anchor
            ),
        }
    }
}

impl fmt::Display for ProvenClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction { block, index, hash, receipt, log, .. } => {
                write!(f, "proven: transaction {hash} is at index {index} of {block}")?;
                if receipt.is_some() {
                    write!(f, ", with its receipt")?;
                }
                log.iter().try_for_each(|log| write!(f, ", which has the log: {log}"))
            }
            Self::Block { block, transactions, .. } => {
                write!(f, "proven: all {} transactions and receipts of {block}", transactions.len())
            }
            Self::Logs { filter, parent, last, logs } => {
                write!(
                    f,
                    "proven: {} logs match the filter {filter} from block {}, whose parent is \
                     {parent}, up to {last}, and no others",
                    logs.len(),
                    filter.from_block
                )?;
                logs.iter().try_for_each(|log| write!(f, "\n  {log}"))
            }
        }
    }
}

impl fmt::Display for ProvenBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} with hash {}", self.number, self.hash)
    }
}
