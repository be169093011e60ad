//! What reads give back: the same whether a block is sealed or still in the head.

use alloy_primitives::{B256, Bytes, keccak256};
use chain::{BlockNumber, Body, Candidate, Receipt};
use segment::{
    BlockExtras, GasAndLogsBefore, HeaderRecord, Row, RowPosition, RowSet, RowView, TxIndex,
};

use crate::head::HeadBlock;

/// A header and what answers need beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHeader {
    /// The block's number.
    pub number: BlockNumber,
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
    pub extras: BlockExtras,
    /// Its transactions, senders and receipts in order.
    pub rows: RowSet,
}

/// A whole block, of its transactions the hashes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedBlock {
    /// Its header.
    pub header: StoredHeader,
    /// Ommers and withdrawals.
    pub extras: BlockExtras,
    /// The hashes of its transactions in order.
    pub hashes: Vec<B256>,
}

/// What a transaction's answer says of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// The block's number.
    pub number: BlockNumber,
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
    pub index: TxIndex,
    /// Gas used and logs in the block before it, where its receipt is held and wanted.
    pub before: Option<GasAndLogsBefore>,
    /// The transaction itself.
    pub row: Row,
}

impl BlockFacts {
    pub(super) fn of_position(position: &RowPosition) -> Self {
        Self {
            number: position.number,
            hash: position.hash,
            timestamp: position.timestamp,
            base_fee: position.base_fee,
            excess_blob_gas: position.excess_blob_gas,
        }
    }

    /// Those of a block of the head.
    #[must_use]
    pub fn of_head(head: &HeadBlock) -> Self {
        let header = &head.block().header;
        Self {
            number: head.number(),
            hash: head.hash(),
            timestamp: header.timestamp,
            base_fee: header.base_fee_per_gas,
            excess_blob_gas: header.excess_blob_gas,
        }
    }
}

impl StoredHeader {
    pub(super) fn of_record(number: BlockNumber, record: HeaderRecord) -> Self {
        let HeaderRecord { rlp, block_bytes, transaction_count } = record;
        Self { number, hash: keccak256(&rlp), rlp, block_bytes, transaction_count }
    }

    pub(super) fn of_head(head: &HeadBlock) -> Self {
        let block = head.block();
        Self {
            number: head.number(),
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
        let transactions =
            self.rows.iter().map(|row| Bytes::copy_from_slice(row.encoded)).collect();
        let receipts = has_receipts.then(|| self.receipts());
        let BlockExtras { ommers, withdrawals } = self.extras;
        Candidate {
            header: self.header.rlp,
            body: Body { transactions, ommers, withdrawals },
            receipts,
            total_difficulty: None,
        }
    }

    /// The receipts in consensus form; of rows that have them.
    #[must_use]
    pub fn receipts(&self) -> Vec<Receipt> {
        let mut gas_before = 0;
        let receipt = |row: RowView<'_>| {
            let fields = row.receipt?.to_fields(gas_before);
            gas_before = fields.cumulative_gas_used;
            Some(Receipt { tx_type: row.tx_type()?, fields })
        };
        self.rows.iter().filter_map(receipt).collect()
    }

    pub(super) fn of_head(head: &HeadBlock) -> Self {
        let block = head.block();
        let mut rows = RowSet::default();
        for row in (0..block.transactions.len()).filter_map(|place| row_of_head(head, place)) {
            rows.push(&row);
        }
        Self { header: StoredHeader::of_head(head), extras: extras_of_head(head), rows }
    }
}

impl HashedBlock {
    pub(super) fn of_head(head: &HeadBlock) -> Self {
        let transactions = &head.block().transactions;
        let hashes = transactions.iter().map(|it| *it.envelope.tx_hash()).collect();
        Self { header: StoredHeader::of_head(head), extras: extras_of_head(head), hashes }
    }
}

pub(super) fn extras_of_head(head: &HeadBlock) -> BlockExtras {
    let block = head.block();
    BlockExtras { ommers: block.ommers_rlp.clone(), withdrawals: block.withdrawals_rlp.clone() }
}

/// One row of a block. It takes the receipt before it into account and none of the earlier ones: a
/// block's rows are read in linear time.
fn row_of_head(head: &HeadBlock, place: usize) -> Option<Row> {
    let block = head.block();
    let transaction = block.transactions.get(place)?;
    let receipts = block.receipts.as_deref().unwrap_or_default();
    let receipt = receipts.get(place).map(|receipt| {
        let fields = &receipt.fields;
        let gas_used = fields.cumulative_gas_used.wrapping_sub(gas_before(receipts, place));
        (fields.status, gas_used, fields.logs.as_slice())
    });
    Some(Row::new(&transaction.encoded, transaction.sender, receipt))
}

/// The gas that a block used before one of its transactions.
fn gas_before(receipts: &[Receipt], place: usize) -> u64 {
    let previous = place.checked_sub(1).and_then(|place| receipts.get(place));
    previous.map_or(0, |receipt| receipt.fields.cumulative_gas_used)
}

impl StoredTransaction {
    pub(super) fn of_row(position: RowPosition, row: Row) -> Self {
        Self {
            block: BlockFacts::of_position(&position),
            index: position.index,
            before: position.before,
            row,
        }
    }

    pub(super) fn of_head(head: &HeadBlock, index: TxIndex) -> Option<Self> {
        let block = head.block();
        let place = index.to_usize()?;
        let row = row_of_head(head, place)?;
        let receipts = block.receipts.as_deref().unwrap_or_default();
        let before = receipts.get(..place).filter(|_| place < receipts.len()).map(|earlier| {
            let logs = earlier.iter().map(|receipt| receipt.fields.logs.len()).sum::<usize>();
            let logs = u64::try_from(logs).unwrap_or(u64::MAX);
            GasAndLogsBefore { gas: gas_before(receipts, place), logs }
        });
        Some(Self { block: BlockFacts::of_head(head), index, before, row })
    }
}
