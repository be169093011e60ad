//! From a call to its result: what is asked is found in a view and written as JSON.
//!
//! Knows: what every method answers, and which of value, absent and not held it is.
//! Never knows: the envelope around a result, or how bytes are stored.

use alloy_primitives::{B256, keccak256};
use chain::{BlockRange, ChainSpec, decode_header};
use store::{Before, Reader, StoreError, StoredBlock, StoredTransaction, View, Wanted};

use crate::absence::{Absence, HeldHistory, Horizon, UnknownHash};
use crate::cache::{AnswerCache, CacheKey, CacheSubject};
use crate::health::CatchingUp;
use crate::json::block::{
    facts_of, list_items, put_full_block, put_hashed_block, put_header, put_uncle,
};
use crate::json::receipt::put_receipt;
use crate::json::transaction::{TransactionLocation, put_transaction};
use crate::json::{NotABlock, Object, put_data, put_list, put_quantity, put_text, try_put_list};
use crate::methods::Method;
use crate::params::{BlockRef, BlockTagName, Params};
use crate::raw;
use crate::refusal::Refusal;
use crate::reply::Shared;
use crate::suggested_tip::SuggestedTip;

const NULL: &[u8] = b"null";

/// What answers depend on beside the view.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of the server, each for other methods")]
pub(crate) struct Context<'a> {
    pub(crate) view: &'a View,
    pub(crate) spec: &'a ChainSpec,
    pub(crate) unknown_hash: UnknownHash,
    pub(crate) is_following: bool,
    /// Whether the chain is one of the public networks.
    pub(crate) is_built_in: bool,
    /// Whether a node can be asked the same, where we know of nothing.
    pub(crate) has_node: bool,
    /// Whether a node is followed and its tip is reached.
    pub(crate) is_at_tip: bool,
    pub(crate) suggested_tip: &'a SuggestedTip,
    pub(crate) catching_up: Option<CatchingUp>,
    pub(crate) document: &'a [u8],
    pub(crate) cache: &'a AnswerCache,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// It is told to the client.
    Refused(Refusal),
    /// It is logged, and the client hears that something failed.
    Store(StoreError),
    /// Stored bytes are not what a block has.
    NotABlock,
    /// A hash that is not found here, where not all of history is: a node may have it.
    AskNode,
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NotABlock> for CallFailure {
    fn from(_: NotABlock) -> Self {
        Self::NotABlock
    }
}

type CallResult = Result<(), CallFailure>;

impl Context<'_> {
    /// Appends the result of a call, or tells of one that is kept. After an error, what was appended
    /// is to be taken back.
    pub(crate) async fn answer(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Shared>, CallFailure> {
        let answered = match method {
            Method::BlockByNumber | Method::BlockByHash => {
                return self.block(method, params, reader, out).await;
            }
            Method::TransactionByHash | Method::TransactionReceipt => {
                return self.transaction(method, params, reader, out).await;
            }
            Method::TransactionByBlockNumberAndIndex | Method::TransactionByBlockHashAndIndex => {
                self.transaction_at(method, params, reader, out).await
            }
            Method::BlockReceipts | Method::RawReceipts => {
                self.receipts(method, params, reader, out).await
            }
            Method::TransactionCountByNumber
            | Method::TransactionCountByHash
            | Method::HeaderByNumber
            | Method::HeaderByHash
            | Method::RawHeader => self.header(method, params, reader, out).await,
            Method::UncleCountByNumber
            | Method::UncleCountByHash
            | Method::UncleByNumberAndIndex
            | Method::UncleByHashAndIndex => self.uncles(method, params, reader, out).await,
            Method::RawBlock => self.raw_block(method, params, reader, out).await,
            Method::RawTransaction => {
                let found =
                    self.find_transaction(params.hash()?, reader, Wanted::Transaction).await?;
                with(out, found, |out, found| {
                    put_data(out, found.row.view().encoded);
                    Ok(())
                })
            }
            Method::Config
            | Method::BaseFee
            | Method::BlobBaseFee
            | Method::FeeHistory
            | Method::GasPrice
            | Method::MaxPriorityFee => self.fees(method, params, reader, out).await,
            Method::ChainId
            | Method::NetVersion
            | Method::BlockNumber
            | Method::Syncing
            | Method::ClientVersion
            | Method::Capabilities
            | Method::Discover => self.about(method, reader, out).await,
            // A connection that carries notifications answers these itself.
            Method::Subscribe | Method::Unsubscribe => {
                Err(CallFailure::Refused(Refusal::NoNotifications))
            }
        };
        answered.map(|()| None)
    }

    /// A result that is kept, if the block that it is of is canonical in this view.
    async fn kept(
        &self,
        key: CacheKey,
        reader: &mut Reader,
    ) -> Result<Option<Shared>, CallFailure> {
        let Some(kept) = self.cache.find(key) else { return Ok(None) };
        let canonical = self.view.read_hash(reader, kept.number).await?;
        let is_canonical = canonical == Some(kept.block_hash);
        Ok(is_canonical.then_some(Shared { key, kept }))
    }

    /// A transaction or its receipt, by the transaction's hash.
    async fn transaction(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Shared>, CallFailure> {
        let hash = params.hash()?;
        let (wanted, subject) = if method == Method::TransactionReceipt {
            (Wanted::Receipt, CacheSubject::Receipt)
        } else {
            (Wanted::Transaction, CacheSubject::Transaction)
        };
        let key = CacheKey::new(subject, hash);
        if let Some(kept) = self.kept(key, reader).await? {
            return Ok(Some(kept));
        }
        let begin = out.len();
        let Some(found) = self.find_transaction(hash, reader, wanted).await? else {
            return null(out).map(|()| None);
        };
        match wanted {
            Wanted::Receipt => self.put_own_receipt(out, hash, &found)?,
            Wanted::Transaction => put_found(out, hash, &found)?,
        }
        let (block, result) = (&found.block, out.get(begin..).unwrap_or_default());
        self.cache.offer(key, block.number, block.hash, result);
        Ok(None)
    }

    async fn block(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Result<Option<Shared>, CallFailure> {
        let block = self.asked_block(method, params, reader).await?;
        let is_full = params.flag()?;
        let subject = if is_full { CacheSubject::FullBlock } else { CacheSubject::Block };
        let Some(number) = block.found()? else { return null(out).map(|()| None) };
        let hash = self.view.read_hash(reader, number).await?;
        let key = hash.map(|hash| CacheKey::new(subject, hash));
        // The view has just told that this is the hash of that number.
        if let Some(key) = key
            && let Some(kept) = self.cache.find(key)
        {
            return Ok(Some(Shared { key, kept }));
        }
        let begin = out.len();
        if is_full {
            let block = self.view.read_block(reader, number, Wanted::Transaction).await?;
            with(out, block, |out, block| Ok(put_full_block(out, &block)?))?;
        } else {
            let block = self.view.read_hashes(reader, number).await?;
            with(out, block, |out, block| Ok(put_hashed_block(out, &block)?))?;
        }
        if let (Some(key), Some(hash)) = (key, hash) {
            self.cache.offer(key, number, hash, out.get(begin..).unwrap_or_default());
        }
        Ok(None)
    }

    async fn transaction_at(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> CallResult {
        let block = self.asked_block(method, params, reader).await?;
        let index = params.index()?;
        let Some(number) = block.found()? else { return null(out) };
        let wanted = Wanted::Transaction;
        let found = self.view.read_transaction(reader, number, index, wanted).await?;
        with(out, found, |out, found| put_found(out, keccak256(found.row.view().encoded), &found))
    }

    async fn raw_block(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> CallResult {
        let block = self.asked_block(method, params, reader).await?;
        let Some(number) = block.found()? else { return null(out) };
        let block = self.view.read_block(reader, number, Wanted::Transaction).await?;
        with(out, block, |out, block| {
            put_data(out, &raw::block(&block));
            Ok(())
        })
    }

    /// The block that the first parameter asks for.
    async fn asked_block(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
    ) -> Result<RequestedBlock, CallFailure> {
        let by = match method {
            Method::BlockByHash
            | Method::TransactionByBlockHashAndIndex
            | Method::TransactionCountByHash
            | Method::UncleCountByHash
            | Method::UncleByHashAndIndex
            | Method::HeaderByHash => Err(params.hash()?),
            Method::BlockReceipts | Method::RawHeader | Method::RawBlock | Method::RawReceipts => {
                params.block_or_hash()?
            }
            Method::BlockByNumber
            | Method::TransactionByBlockNumberAndIndex
            | Method::TransactionCountByNumber
            | Method::UncleCountByNumber
            | Method::UncleByNumberAndIndex
            | Method::HeaderByNumber
            | Method::TransactionByHash
            | Method::TransactionReceipt
            | Method::RawTransaction
            | Method::ChainId
            | Method::NetVersion
            | Method::BlockNumber
            | Method::Syncing
            | Method::ClientVersion
            | Method::Capabilities
            | Method::Config
            | Method::BaseFee
            | Method::BlobBaseFee
            | Method::FeeHistory
            | Method::GasPrice
            | Method::MaxPriorityFee
            | Method::Discover
            | Method::Subscribe
            | Method::Unsubscribe => Ok(params.block()?),
        };
        match by {
            Ok(id) => Ok(self.by_number(id)),
            Err(hash) => match self.view.find_block(reader, hash).await? {
                Some(number) => Ok(RequestedBlock::Held(number)),
                None => self.unknown_hash(),
            },
        }
    }

    pub(crate) fn by_number(&self, id: BlockRef) -> RequestedBlock {
        let coverage = self.view.coverage();
        let highest = coverage.last();
        let number = match id {
            BlockRef::Number(number) => Some(number),
            BlockRef::BlockTagName(BlockTagName::Latest) => highest.map(BlockRange::last),
            BlockRef::BlockTagName(BlockTagName::Earliest) => {
                coverage.first().map(BlockRange::first)
            }
            BlockRef::BlockTagName(BlockTagName::Safe) => self.view.safe(),
            BlockRef::BlockTagName(BlockTagName::Finalized) => self.view.finalized(),
            BlockRef::BlockTagName(BlockTagName::Pending) => None,
        };
        let Some(number) = number else { return RequestedBlock::Absent };
        if coverage.iter().any(|range| range.contains(number)) {
            RequestedBlock::Held(number)
        } else if highest.is_none_or(|range| number > range.last())
            && self.view.lost().last().is_none_or(|range| number > range.last())
            && self.horizon(&coverage).above_tip() == Absence::Absent
        {
            RequestedBlock::Absent
        } else {
            RequestedBlock::Refused(Refusal::BlockNotHeld { number, held: coverage })
        }
    }

    /// What is known of the chain beyond these blocks, which are all that are held.
    fn horizon(&self, held: &[BlockRange]) -> Horizon {
        Horizon {
            history: HeldHistory::of(held, !self.view.lost().is_empty()),
            is_following: self.is_following,
            is_built_in: self.is_built_in,
        }
    }

    /// What becomes of a hash that is not found.
    fn unknown_hash(&self) -> Result<RequestedBlock, CallFailure> {
        let held = self.view.coverage();
        let horizon = self.horizon(&held);
        if self.has_node && horizon.may_be_elsewhere() {
            return Err(CallFailure::AskNode);
        }
        Ok(match horizon.unknown_hash(self.unknown_hash) {
            Absence::Absent => RequestedBlock::Absent,
            Absence::NotHeld => RequestedBlock::Refused(Refusal::HashNotHeld { held }),
        })
    }

    async fn find_transaction(
        &self,
        hash: B256,
        reader: &mut Reader,
        wanted: Wanted,
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
    ) -> CallResult {
        let row = found.row.view();
        let (Some(receipt), Some(before)) = (row.receipt, found.before) else {
            return Err(self.receipts_not_held(found.block.number));
        };
        let place = TransactionLocation { block: &found.block, index: found.index, hash };
        Ok(put_receipt(out, self.spec, row, (receipt, &receipt.bloom()), place, before)?)
    }

    pub(crate) fn receipts_not_held(&self, number: u64) -> CallFailure {
        let held = self.view.coverage_receipts();
        CallFailure::Refused(Refusal::ReceiptsNotHeld { number, held })
    }

    async fn receipts(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> CallResult {
        let asked = self.asked_block(method, params, reader).await?;
        let Some(number) = asked.found()? else { return null(out) };
        let has_receipts = self.view.coverage_receipts().iter().any(|it| it.contains(number));
        if !has_receipts {
            return Err(self.receipts_not_held(number));
        }
        let block = self.view.read_block(reader, number, Wanted::Receipt).await?;
        let Some(block) = block else { return null(out) };
        if method == Method::RawReceipts {
            put_list(out, raw::receipts(&block), |out, receipt| put_data(out, &receipt));
            return Ok(());
        }
        let header = decode_header(&block.header.rlp).map_err(|_| CallFailure::NotABlock)?;
        let facts = facts_of(&block.header, &header);
        let hashes = block.rows.hashes();
        let mut before = Before::default();
        // Every row has its receipt: the block is one whose receipts are held.
        let blooms = block.rows.blooms();
        let rows = block.rows.iter().zip(hashes).zip(blooms).zip(0..);
        try_put_list(out, rows, |out, (((row, hash), bloom), index)| {
            let receipt = row.receipt.ok_or(NotABlock)?;
            let place = TransactionLocation { block: &facts, index, hash };
            put_receipt(out, self.spec, row, (receipt, &bloom), place, before)?;
            let logs = u64::try_from(receipt.log_count()).unwrap_or(u64::MAX);
            before.gas = before.gas.wrapping_add(receipt.gas_used);
            before.logs = before.logs.saturating_add(logs);
            Ok(())
        })
    }

    async fn header(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> CallResult {
        let asked = self.asked_block(method, params, reader).await?;
        let Some(number) = asked.found()? else { return null(out) };
        let header = self.view.read_header(reader, number).await?;
        with(out, header, |out, header| {
            if method == Method::RawHeader {
                put_data(out, &header.rlp);
            } else if matches!(method, Method::HeaderByNumber | Method::HeaderByHash) {
                put_header(out, &header)?;
            } else {
                put_quantity(out, header.transaction_count);
            }
            Ok(())
        })
    }

    async fn uncles(
        &self,
        method: Method,
        params: &mut Params<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> CallResult {
        let asked = self.asked_block(method, params, reader).await?;
        let is_one = matches!(method, Method::UncleByNumberAndIndex | Method::UncleByHashAndIndex);
        let index = if is_one { Some(params.index()?) } else { None };
        let Some(number) = asked.found()? else { return null(out) };
        let wanted = Wanted::Transaction;
        let block: Option<StoredBlock> = self.view.read_block(reader, number, wanted).await?;
        with(out, block, |out, block| {
            let uncles = list_items(&block.others.ommers)?;
            let Some(index) = index else {
                put_quantity(out, u64::try_from(uncles.len()).unwrap_or(u64::MAX));
                return Ok(());
            };
            match usize::try_from(index).ok().and_then(|index| uncles.get(index)) {
                Some(uncle) => Ok(put_uncle(out, uncle)?),
                None => null(out),
            }
        })
    }

    /// What is asked of the server and not of a block.
    async fn about(&self, method: Method, reader: &mut Reader, out: &mut Vec<u8>) -> CallResult {
        let chain_id = || {
            let known = self.view.manifest().network().chain_id.or(self.spec.chain_id());
            known.ok_or(CallFailure::Refused(Refusal::ChainIdUnknown))
        };
        if method == Method::Capabilities {
            return self.put_capabilities(reader, out).await;
        }
        if method == Method::ChainId {
            put_quantity(out, chain_id()?);
        } else if method == Method::NetVersion {
            put_text(out, &chain_id()?.to_string());
        } else if method == Method::BlockNumber {
            put_quantity(out, self.view.tip().unwrap_or_default());
        } else if method == Method::ClientVersion {
            put_text(out, CLIENT_VERSION);
        } else if method == Method::Discover {
            out.extend_from_slice(self.document);
        } else {
            self.put_syncing(out);
        }
        Ok(())
    }

    /// A block is shown only when it is whole: only whoever is behind a tip has something to tell.
    fn put_syncing(&self, out: &mut Vec<u8>) {
        let current = self.view.tip().unwrap_or_default();
        let Some(way) = self.catching_up.filter(|way| way.highest > current) else {
            out.extend_from_slice(b"false");
            return;
        };
        let mut object = Object::begin(out);
        object.quantity("startingBlock", way.starting);
        object.quantity("currentBlock", current);
        object.quantity("highestBlock", way.highest);
        object.end();
    }

    async fn put_capabilities(&self, reader: &mut Reader, out: &mut Vec<u8>) -> CallResult {
        let oldest = |ranges: Vec<BlockRange>| {
            let newest =
                ranges.last().copied().filter(|range| Some(range.last()) == self.view.tip());
            newest.map(|range| range.first())
        };
        let mut object = Object::begin(out);
        let tip = self.view.tip();
        let hash = match tip {
            Some(number) => self.view.read_hash(reader, number).await?,
            None => None,
        };
        let mut head = Object::begin(object.member("head"));
        head.quantity("number", tip.unwrap_or_default());
        head.data("hash", hash.unwrap_or_default().as_slice());
        head.end();
        let blocks = oldest(self.view.coverage());
        let receipts = oldest(self.view.coverage_receipts());
        for (name, oldest) in [
            ("state", None),
            ("tx", blocks),
            ("logs", None),
            ("receipts", receipts),
            ("blocks", blocks),
            ("stateproofs", None),
        ] {
            let mut part = Object::begin(object.member(name));
            part.raw("disabled", if oldest.is_some() { "false" } else { "true" });
            if let Some(oldest) = oldest {
                part.quantity("oldestBlock", oldest);
            }
            part.end();
        }
        object.end();
        Ok(())
    }
}

/// Name and version, as `web3_clientVersion` tells them.
pub(crate) const CLIENT_VERSION: &str = concat!("quipu/", env!("CARGO_PKG_VERSION"));

/// What became of the block that was asked for.
pub(crate) enum RequestedBlock {
    Held(u64),
    Absent,
    Refused(Refusal),
}

impl RequestedBlock {
    fn found(self) -> Result<Option<u64>, Refusal> {
        match self {
            Self::Held(number) => Ok(Some(number)),
            Self::Absent => Ok(None),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what every way to an answer returns")]
fn null(out: &mut Vec<u8>) -> CallResult {
    out.extend_from_slice(NULL);
    Ok(())
}

fn with<T>(
    out: &mut Vec<u8>,
    found: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T) -> CallResult,
) -> CallResult {
    match found {
        Some(found) => put(out, found),
        None => null(out),
    }
}

fn put_found(out: &mut Vec<u8>, hash: B256, found: &StoredTransaction) -> CallResult {
    let place = TransactionLocation { block: &found.block, index: found.index, hash };
    Ok(put_transaction(out, found.row.view(), place)?)
}
