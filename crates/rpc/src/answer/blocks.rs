//! Answers about blocks: whole ones, headers, uncles.

use chain::decode_header;
use store::{BlockExtras, Reader, RowParts, StoredHeader};

use super::{Answering, CallFailure, CallResult, Context, null, put_or_null};
use crate::cache::{CacheKey, CacheSubject};
use crate::json::block::{
    list_items, put_erigon_header, put_full_block, put_hashed_block, put_header, put_uncle,
};
use crate::json::{put_data, put_quantity};
use crate::params::BlockRef;
use crate::raw;
use crate::refusal::Refusal;
use crate::reply::CachedResult;

impl Context<'_> {
    pub(super) async fn block(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        is_full: bool,
    ) -> CallResult {
        let Answering { reader, out, .. } = on;
        let Some(number) = self.requested(reader, block).await?.found()? else { return null(out) };
        let subject = if is_full { CacheSubject::FullBlock } else { CacheSubject::Block };
        let hash = self.view.read_hash(reader, number).await?;
        let key = hash.map(|hash| CacheKey::new(subject, hash));
        // The view has just told that this is the hash of that number.
        if let Some(key) = key
            && let Some(kept) = self.cache.find(key)
        {
            return Ok(Some(CachedResult { key, kept }));
        }
        let begin = out.len();
        if is_full {
            let block = self.view.read_block(reader, number, RowParts::Transaction).await?;
            put_or_null(out, block, |out, block| Ok(put_full_block(out, &block)?))?;
        } else {
            let block = self.view.read_hashes(reader, number).await?;
            put_or_null(out, block, |out, block| Ok(put_hashed_block(out, &block)?))?;
        }
        if let (Some(key), Some(hash)) = (key, hash) {
            self.cache.offer(key, number, hash, out.get(begin..).unwrap_or_default());
        }
        Ok(None)
    }

    pub(super) async fn raw_block(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        let Answering { reader, out, .. } = on;
        let Some(number) = self.requested(reader, block).await?.found()? else { return null(out) };
        let block = self.view.read_block(reader, number, RowParts::Transaction).await?;
        put_or_null(out, block, |out, block| {
            put_data(out, &raw::block(&block));
            Ok(())
        })
    }

    pub(super) async fn header(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        self.put_of_header(on, block, |out, header| Ok(put_header(out, &header)?)).await
    }

    pub(super) async fn erigon_header(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> CallResult {
        self.put_of_header(on, block, |out, header| Ok(put_erigon_header(out, &header)?)).await
    }

    pub(super) async fn raw_header(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        self.put_of_header(on, block, |out, header| {
            put_data(out, &header.rlp);
            Ok(())
        })
        .await
    }

    pub(super) async fn block_access_list(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> CallResult {
        match self.find_access_list(on.reader, block).await? {
            Some(refusal) => Err(refusal.into()),
            None => null(on.out),
        }
    }

    pub(super) async fn raw_block_access_list(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> CallResult {
        let found = self.find_access_list(on.reader, block).await?;
        let unknown = || Refusal::ResourceNotFound { reason: "unknown block".to_owned() };
        Err(found.unwrap_or_else(unknown).into())
    }

    /// Why the access list of a block has no answer here; `None` if there is no such block. No list is
    /// stored, so a node that may be asked has the answer to all of it.
    async fn find_access_list(
        &self,
        reader: &mut Reader,
        block: BlockRef,
    ) -> Result<Option<Refusal>, CallFailure> {
        if self.node.is_some() {
            return Err(CallFailure::AskNode);
        }
        let Some(number) = self.requested(reader, block).await?.found()? else { return Ok(None) };
        let stored = self.view.read_header(reader, number).await?.ok_or(CallFailure::NotABlock)?;
        let header = decode_header(&stored.rlp).map_err(|_| CallFailure::NotABlock)?;
        let number = number.get();
        Ok(Some(match header.block_access_list_hash {
            Some(_) => Refusal::AccessListNotHeld { number },
            None => Refusal::ResourceNotFound {
                reason: format!("block {number} predates Amsterdam and has no access list"),
            },
        }))
    }

    pub(super) async fn transaction_count(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
    ) -> CallResult {
        self.put_of_header(on, block, |out, header| {
            put_quantity(out, header.transaction_count);
            Ok(())
        })
        .await
    }

    pub(super) async fn uncle_count(&self, on: &mut Answering<'_>, block: BlockRef) -> CallResult {
        self.put_of_extras(on, block, |out, extras| {
            let count = list_items(&extras.ommers)?.len();
            put_quantity(out, u64::try_from(count).unwrap_or(u64::MAX));
            Ok(())
        })
        .await
    }

    pub(super) async fn uncle(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        index: u64,
    ) -> CallResult {
        self.put_of_extras(on, block, |out, extras| {
            let uncles = list_items(&extras.ommers)?;
            match usize::try_from(index).ok().and_then(|index| uncles.get(index)) {
                Some(uncle) => Ok(put_uncle(out, uncle)?),
                None => null(out).map(|_| ()),
            }
        })
        .await
    }

    async fn put_of_header(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        put: impl FnOnce(&mut Vec<u8>, StoredHeader) -> Result<(), CallFailure>,
    ) -> CallResult {
        let Answering { reader, out, .. } = on;
        let Some(number) = self.requested(reader, block).await?.found()? else { return null(out) };
        put_or_null(out, self.view.read_header(reader, number).await?, put)
    }

    /// Of what lies beside a block's transactions: those are not read.
    async fn put_of_extras(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        put: impl FnOnce(&mut Vec<u8>, BlockExtras) -> Result<(), CallFailure>,
    ) -> CallResult {
        let Answering { reader, out, .. } = on;
        let Some(number) = self.requested(reader, block).await?.found()? else { return null(out) };
        put_or_null(out, self.view.read_extras(reader, number).await?, put)
    }
}
