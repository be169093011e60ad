//! Answers about transactions and receipts.

use alloy_primitives::{B256, keccak256};
use chain::{BlockNumber, decode_header};
use store::{
    GasAndLogsBefore, Reader, ReceiptView, RowParts, StoredBlock, StoredTransaction, TxIndex,
};

use super::{Answering, CallFailure, CallResult, Context, null, put_or_null};
use crate::cache::{CacheKey, CacheSubject};
use crate::json::block::facts_of;
use crate::json::receipt::put_receipt;
use crate::json::transaction::{TransactionLocation, put_transaction};
use crate::json::{NotABlock, put_data, put_list, try_put_list};
use crate::params::BlockRef;
use crate::raw;
use crate::reply::CachedResult;

impl Context<'_> {
    pub(super) async fn transaction(&self, on: &mut Answering<'_>, hash: B256) -> CallResult {
        self.by_hash(on, hash, RowParts::Transaction, CacheSubject::Transaction).await
    }

    pub(super) async fn receipt(&self, on: &mut Answering<'_>, hash: B256) -> CallResult {
        self.by_hash(on, hash, RowParts::Receipt, CacheSubject::Receipt).await
    }

    /// A transaction or its receipt, by the transaction's hash.
    async fn by_hash(
        &self,
        on: &mut Answering<'_>,
        hash: B256,
        wanted: RowParts,
        subject: CacheSubject,
    ) -> CallResult {
        let Answering { reader, out, .. } = on;
        let key = CacheKey::new(subject, hash);
        if let Some(kept) = self.kept(key, reader).await? {
            return Ok(Some(kept));
        }
        let begin = out.len();
        let Some(found) = self.find_transaction(hash, reader, wanted).await? else {
            return null(out);
        };
        match wanted {
            RowParts::Receipt => self.put_own_receipt(out, hash, &found)?,
            RowParts::Transaction => put_found(out, hash, &found)?,
        }
        let (block, result) = (&found.block, out.get(begin..).unwrap_or_default());
        self.cache.offer(key, block.number, block.hash, result);
        Ok(None)
    }

    /// A result that is kept, if the block that it is of is canonical in this view.
    async fn kept(&self, key: CacheKey, reader: &mut Reader) -> CallResult {
        let Some(kept) = self.cache.find(key) else { return Ok(None) };
        let canonical = self.view.read_hash(reader, kept.number).await?;
        let is_canonical = canonical == Some(kept.block_hash);
        Ok(is_canonical.then_some(CachedResult { key, kept }))
    }

    pub(super) async fn transaction_at(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        index: u64,
    ) -> CallResult {
        let found = self.find_transaction_at(on, block, index).await?;
        put_or_null(on.out, found, |out, found| {
            put_found(out, keccak256(found.row.view().encoded), &found)
        })
    }

    pub(super) async fn raw_transaction_at(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        index: u64,
    ) -> CallResult {
        let found = self.find_transaction_at(on, block, index).await?;
        put_encoded(on.out, found)
    }

    pub(super) async fn raw_transaction(&self, on: &mut Answering<'_>, hash: B256) -> CallResult {
        let found = self.find_transaction(hash, on.reader, RowParts::Transaction).await?;
        put_encoded(on.out, found)
    }

    pub(super) async fn receipts(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        let Some(block) = self.block_with_receipts(on, block).await? else { return null(on.out) };
        let header = decode_header(&block.header.rlp).map_err(|_| CallFailure::NotABlock)?;
        let facts = facts_of(&block.header, &header);
        let mut before = GasAndLogsBefore::default();
        // Every row has its receipt: the block is one whose receipts are held.
        let rows = block.rows.iter().zip(block.rows.hashes()).zip(block.rows.blooms()).zip(0..);
        try_put_list(on.out, rows, |out, (((row, hash), bloom), index)| {
            let receipt = row.receipt.ok_or(NotABlock)?;
            let place = TransactionLocation { block: &facts, index: TxIndex(index), hash };
            put_receipt(out, self.spec, row, (receipt, Some(&bloom)), place, before)?;
            count_receipt(&mut before, receipt);
            Ok::<_, CallFailure>(())
        })?;
        Ok(None)
    }

    pub(super) async fn raw_receipts(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        let block = self.block_with_receipts(on, block).await?;
        put_or_null(on.out, block, |out, block| {
            put_list(out, raw::receipts(&block), |out, receipt| put_data(out, &receipt));
            Ok(())
        })
    }

    /// A block whose receipts are held.
    pub(super) async fn block_with_receipts(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> Result<Option<StoredBlock>, CallFailure> {
        let Some(number) = self.find_receipts(on.reader, block).await? else { return Ok(None) };
        Ok(self.view.read_block(on.reader, number, RowParts::Receipt).await?)
    }

    /// The number of a block whose receipts are held.
    pub(super) async fn find_receipts(
        &self,
        reader: &mut Reader,
        block: BlockRef,
    ) -> Result<Option<BlockNumber>, CallFailure> {
        let Some(number) = self.requested(reader, block).await?.found()? else { return Ok(None) };
        let has_receipts = self.view.coverage_receipts().iter().any(|it| it.contains(number));
        if has_receipts { Ok(Some(number)) } else { Err(self.receipts_not_held(number)) }
    }

    async fn find_transaction_at(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        index: u64,
    ) -> Result<Option<StoredTransaction>, CallFailure> {
        let requested = self.requested(on.reader, block).await?;
        let Some(number) = requested.found()? else { return Ok(None) };
        let wanted = RowParts::Transaction;
        Ok(self.view.read_transaction(on.reader, number, TxIndex(index), wanted).await?)
    }

    pub(super) async fn find_transaction(
        &self,
        hash: B256,
        reader: &mut Reader,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, CallFailure> {
        match self.view.find_transaction(reader, hash, wanted).await? {
            Some(found) => Ok(Some(found)),
            None => Ok(self.unknown_hash()?.found().map(|_| None)?),
        }
    }

    fn put_own_receipt(
        &self,
        out: &mut Vec<u8>,
        hash: B256,
        found: &StoredTransaction,
    ) -> Result<(), CallFailure> {
        let row = found.row.view();
        let (Some(receipt), Some(before)) = (row.receipt, found.before) else {
            return Err(self.receipts_not_held(found.block.number));
        };
        let place = TransactionLocation { block: &found.block, index: found.index, hash };
        Ok(put_receipt(out, self.spec, row, (receipt, Some(&receipt.bloom())), place, before)?)
    }
}

/// Adds a receipt to what comes before the next one of its block.
pub(super) fn count_receipt(before: &mut GasAndLogsBefore, receipt: ReceiptView<'_>) {
    let logs = u64::try_from(receipt.log_count()).unwrap_or(u64::MAX);
    before.gas = before.gas.wrapping_add(receipt.gas_used);
    before.logs = before.logs.saturating_add(logs);
}

fn put_encoded(out: &mut Vec<u8>, found: Option<StoredTransaction>) -> CallResult {
    put_or_null(out, found, |out, found| {
        put_data(out, found.row.view().encoded);
        Ok(())
    })
}

fn put_found(out: &mut Vec<u8>, hash: B256, found: &StoredTransaction) -> Result<(), CallFailure> {
    let place = TransactionLocation { block: &found.block, index: found.index, hash };
    Ok(put_transaction(out, found.row.view(), place)?)
}
