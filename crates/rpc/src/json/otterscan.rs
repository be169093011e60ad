//! Blocks as Otterscan asks for them: short, with a count of transactions and without blooms.

use alloy_consensus::Header;
use alloy_primitives::{B256, U256};
use chain::{ChainSpec, Issuance};
use store::{BlockFacts, GasAndLogsBefore, ReceiptView, RowView, StoredBlock, TxIndex};

use super::block::{put_header_members, put_size_and_uncles, put_withdrawals};
use super::receipt::put_receipt;
use super::transaction::{TransactionLocation, put_transaction_cut};
use super::{NotABlock, Object, try_put_list};

/// Bytes of input that a transaction in a page shows: the selector of a function.
const INPUT_BYTES_MAX: usize = 4;

/// A transaction of a page, and where it is.
#[derive(Debug)]
pub(crate) struct PagedTransaction<'a> {
    pub(crate) row: RowView<'a>,
    pub(crate) receipt: ReceiptView<'a>,
    pub(crate) hash: B256,
    pub(crate) index: TxIndex,
    pub(crate) before: GasAndLogsBefore,
}

/// Appends a block without its transactions, with what it issued and what they paid.
pub(crate) fn put_block_details(
    out: &mut Vec<u8>,
    block: &StoredBlock,
    header: &Header,
    issued: Issuance,
    fees: &U256,
) -> Result<(), NotABlock> {
    let mut object = Object::begin(out);
    put_block(object.member("block"), block, header, |_| Ok(()))?;
    let mut issuance = Object::begin(object.member("issuance"));
    issuance.quantity_u128("blockReward", issued.block_reward);
    issuance.quantity_u128("uncleReward", issued.uncle_reward);
    issuance.quantity_u128("issuance", issued.block_reward.saturating_add(issued.uncle_reward));
    issuance.end();
    object.quantity_u256("totalFees", fees);
    object.end();
    Ok(())
}

/// Appends a block with one page of its transactions, and their receipts beside it.
pub(crate) fn put_block_transactions(
    out: &mut Vec<u8>,
    spec: &ChainSpec,
    block: &StoredBlock,
    (header, facts): (&Header, &BlockFacts),
    page: &[PagedTransaction<'_>],
) -> Result<(), NotABlock> {
    let place_of = |entry: &PagedTransaction<'_>| TransactionLocation {
        block: facts,
        index: entry.index,
        hash: entry.hash,
    };
    let mut object = Object::begin(out);
    put_block(object.member("fullblock"), block, header, |object| {
        try_put_list(object.member("transactions"), page, |out, entry| {
            put_transaction_cut(out, entry.row, place_of(entry), INPUT_BYTES_MAX)
        })
    })?;
    try_put_list(object.member("receipts"), page, |out, entry| {
        let receipt = (entry.receipt, None);
        put_receipt(out, spec, entry.row, receipt, place_of(entry), entry.before)
    })?;
    object.end();
    Ok(())
}

fn put_block(
    out: &mut Vec<u8>,
    block: &StoredBlock,
    header: &Header,
    put_transactions: impl FnOnce(&mut Object<'_>) -> Result<(), NotABlock>,
) -> Result<(), NotABlock> {
    let StoredBlock { header: stored, extras, .. } = block;
    let mut object = Object::begin(out);
    put_header_members(&mut object, header, stored.hash, None);
    put_size_and_uncles(&mut object, stored, extras)?;
    put_transactions(&mut object)?;
    put_withdrawals(&mut object, extras)?;
    // A JSON number, unlike all other quantities.
    object.raw("transactionCount", &stored.transaction_count.to_string());
    object.end();
    Ok(())
}
