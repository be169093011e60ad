//! What reads give back: the same whether a block is sealed or still in the head.
//!
//! Knows: what answers need beside a row.
//! Never knows: how it is written.

use alloy_primitives::{B256, Bytes, keccak256};
use chain::{Body, Candidate, Receipt};
use segment::{HeaderRecord, Others, Row, RowPosition, RowReceipt};

use crate::head::HeadBlock;

/// A header and what answers need beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHeader {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The raw header.
    pub rlp: Bytes,
    /// The length of the RLP of the whole block.
    pub block_bytes: u64,
    /// How many transactions the block has.
    pub transaction_count: u64,
}

/// A whole block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// Its header.
    pub header: StoredHeader,
    /// Ommers and withdrawals.
    pub others: Others,
    /// Its transactions, senders and receipts in order.
    pub rows: Vec<Row>,
}

/// What a transaction's answer says of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The header's timestamp.
    pub timestamp: u64,
    /// The header's base fee, from London on.
    pub base_fee: Option<u64>,
    /// The header's excess blob gas, from Cancun on.
    pub excess_blob_gas: Option<u64>,
}

/// A transaction, its sender and its receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTransaction {
    /// The block that it is in.
    pub block: BlockFacts,
    /// Its position there.
    pub index: u64,
    /// Gas used in the block before it.
    pub gas_before: u64,
    /// Logs in the block before it.
    pub logs_before: u64,
    /// The transaction itself.
    pub row: Row,
}

impl StoredHeader {
    pub(super) fn of_record(number: u64, record: HeaderRecord) -> Self {
        let HeaderRecord { rlp, block_bytes, transaction_count } = record;
        Self { number, hash: keccak256(&rlp), rlp, block_bytes, transaction_count }
    }

    pub(super) fn of_head(head: &HeadBlock) -> Self {
        let block = head.block();
        Self {
            number: block.header.number,
            hash: block.hash,
            rlp: block.header_rlp.clone(),
            block_bytes: block.rlp_bytes(),
            transaction_count: u64::try_from(block.transactions.len()).unwrap_or(u64::MAX),
        }
    }
}

impl StoredBlock {
    /// The block as a source would give it.
    #[must_use]
    pub fn into_candidate(self, has_receipts: bool) -> Candidate {
        let mut gas_before = 0;
        let mut transactions = Vec::with_capacity(self.rows.len());
        let mut receipts = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let tx_type = row.envelope.tx_type();
            transactions.push(row.encoded);
            if let Some(receipt) = row.receipt {
                let fields = receipt.into_fields(gas_before);
                gas_before = fields.cumulative_gas_used;
                receipts.push(Receipt { tx_type, fields });
            }
        }
        let Others { ommers, withdrawals } = self.others;
        Candidate {
            header: self.header.rlp,
            body: Body { transactions, ommers, withdrawals },
            receipts: has_receipts.then_some(receipts),
            total_difficulty: None,
        }
    }

    pub(super) fn of_head(head: &HeadBlock) -> Self {
        let block = head.block();
        let count = u64::try_from(block.transactions.len()).unwrap_or(u64::MAX);
        let rows = (0..count).filter_map(|index| StoredTransaction::of_head(head, index));
        Self {
            header: StoredHeader::of_head(head),
            others: Others {
                ommers: block.ommers_rlp.clone(),
                withdrawals: block.withdrawals_rlp.clone(),
            },
            rows: rows.map(|transaction| transaction.row).collect(),
        }
    }
}

impl StoredTransaction {
    pub(super) fn of_row(position: RowPosition<'_>, row: Row) -> Self {
        let block = position.block;
        Self {
            block: BlockFacts {
                number: block.number,
                hash: block.hash,
                timestamp: block.timestamp,
                base_fee: block.base_fee,
                excess_blob_gas: block.excess_blob_gas,
            },
            index: position.index,
            gas_before: position.gas_before,
            logs_before: position.logs_before,
            row,
        }
    }

    pub(super) fn of_head(head: &HeadBlock, index: u64) -> Option<Self> {
        let block = head.block();
        let place = usize::try_from(index).ok()?;
        let transaction = block.transactions.get(place)?;
        let receipts = block.receipts.as_deref().unwrap_or_default();
        let before = receipts.get(..place).unwrap_or_default();
        let gas_before = before.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used);
        let logs_before = before.iter().map(|receipt| receipt.fields.logs.len()).sum::<usize>();
        let receipt = receipts.get(place).map(|receipt| RowReceipt {
            outcome: receipt.fields.status,
            gas_used: receipt.fields.cumulative_gas_used.wrapping_sub(gas_before),
            logs: receipt.fields.logs.clone(),
        });
        Some(Self {
            block: BlockFacts {
                number: block.header.number,
                hash: block.hash,
                timestamp: block.header.timestamp,
                base_fee: block.header.base_fee_per_gas,
                excess_blob_gas: block.header.excess_blob_gas,
            },
            index,
            gas_before,
            logs_before: u64::try_from(logs_before).unwrap_or(u64::MAX),
            row: Row {
                encoded: transaction.encoded.clone(),
                envelope: transaction.envelope.clone(),
                sender: transaction.sender,
                receipt,
            },
        })
    }
}
