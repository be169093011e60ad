//! Answers for Otterscan, an explorer that asks a node and has no database of its own.

use alloy_consensus::Header;
use alloy_primitives::{U256, keccak256};
use chain::{Issuance, TxFields, decode_header};
use store::{GasAndLogsBefore, StoredBlock, TxIndex};

use super::transactions::count_receipt;
use super::{Answering, CallFailure, CallResult, Context, null};
use crate::json::NotABlock;
use crate::json::block::{facts_of, list_items};
use crate::json::otterscan::{PagedTransaction, put_block_details, put_block_transactions};
use crate::params::BlockRef;
use crate::refusal::Refusal;

/// The level of the interface whose forms these methods have, and the least that Otterscan takes.
const API_LEVEL: &[u8] = b"8";

impl Context<'_> {
    #[expect(clippy::unused_async, reason = "the functions of all methods have one form")]
    pub(super) async fn ots_api_level(&self, on: &mut Answering<'_>) -> CallResult {
        on.out.extend_from_slice(API_LEVEL);
        Ok(None)
    }

    pub(super) async fn ots_block_details(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> CallResult {
        let Some(block) = self.block_with_receipts(on, block).await? else { return null(on.out) };
        let header = decode_header(&block.header.rlp).map_err(|_| NotABlock)?;
        let issued = self.issuance(&block, &header)?;
        let fees = fees_of(&block, &header)?;
        put_block_details(on.out, &block, &header, issued, &fees)?;
        Ok(None)
    }

    /// Pages count from the last transaction backwards; inside a page the order is the block's.
    pub(super) async fn ots_block_transactions(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        page_number: u64,
        page_size: u64,
    ) -> CallResult {
        let Some(block) = self.block_with_receipts(on, block).await? else { return null(on.out) };
        let header = decode_header(&block.header.rlp).map_err(|_| NotABlock)?;
        let facts = facts_of(&block.header, &header);
        let page = page_of(&block, page_number, page_size)?;
        put_block_transactions(on.out, self.spec, &block, (&header, &facts), &page)?;
        Ok(None)
    }

    fn issuance(&self, block: &StoredBlock, header: &Header) -> Result<Issuance, CallFailure> {
        let uncles = list_items(&block.extras.ommers)?;
        let numbers = uncles.into_iter().map(|uncle| Ok(decode_header(uncle)?.number));
        let numbers: Result<Vec<u64>, chain::HeaderError> = numbers.collect();
        let numbers = numbers.map_err(|_| NotABlock)?;
        let issued = self.spec.issuance(header, &numbers);
        issued.ok_or_else(|| self.unknown(Refusal::IssuanceUnknown))
    }
}

/// What all transactions paid for gas, the part that is burnt included. Blob gas has its own price
/// and does not count.
fn fees_of(block: &StoredBlock, header: &Header) -> Result<U256, NotABlock> {
    let mut sum = U256::ZERO;
    for row in &block.rows {
        let fields = TxFields::read(row.encoded).map_err(|_| NotABlock)?;
        let gas = U256::from(row.receipt.ok_or(NotABlock)?.gas_used);
        let price = U256::from(fields.effective_gas_price(header.base_fee_per_gas));
        sum = sum.saturating_add(gas.saturating_mul(price));
    }
    Ok(sum)
}

fn page_of(
    block: &StoredBlock,
    page_number: u64,
    page_size: u64,
) -> Result<Vec<PagedTransaction<'_>>, NotABlock> {
    let count = u64::try_from(block.rows.len()).unwrap_or(u64::MAX);
    let end = count.saturating_sub(page_number.saturating_mul(page_size));
    let page = end.saturating_sub(page_size)..end;
    let mut before = GasAndLogsBefore::default();
    let mut entries = Vec::new();
    for (row, index) in block.rows.iter().zip(0..) {
        let receipt = row.receipt.ok_or(NotABlock)?;
        if page.contains(&index) {
            let hash = keccak256(row.encoded);
            entries.push(PagedTransaction { row, receipt, hash, index: TxIndex(index), before });
        }
        count_receipt(&mut before, receipt);
    }
    Ok(entries)
}
