//! Proofs: bundles by which whoever asks can check an answer without trusting this server.

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use chain::accumulator::{EPOCH_BLOCKS, EpochRoots, EpochTree, mainnet_epoch_blocks};
use chain::trust::Anchors;
use chain::{BlockNumber, BlockRange, OrderedTrie, decode_header};
use store::{BlockExtras, BloomQuery, Reader, RowParts, StoredBlock, StoredHeader};

use super::{Answering, CallFailure, CallResult, Context, null};
use crate::budget::ByteLease;
use crate::json::block::list_items;
use crate::json::proof::{
    IndexedPath, LogInReceipt, WayToAnchor, begin_bundle, put_all_data, put_filter, put_indexed,
    put_log_place, put_way,
};
use crate::json::{NotABlock, Object};
use crate::log_filter::LogFilter;
use crate::params::BlockRef;
use crate::raw;
use crate::refusal::Refusal;
use crate::work_slice::WorkSlice;

/// Headers from a block to an anchor, and blocks that are searched for logs, at the most.
const PROOF_BLOCKS_MAX: u64 = 1000;

/// Bytes of the blocks that one answer searches for logs. A verifier takes 64 MiB, of which the way needs
/// the rest.
const SEARCHED_BYTES_MAX: usize = 48 << 20;

/// What an epoch's tree takes while it is made: a hash and a difficulty of each block, and the tree.
const EPOCH_BYTES: usize = 8192 * 5 * 32;

/// Which receipt goes with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithReceipt {
    No,
    Yes,
    /// And one of its logs.
    WithLog(LogInReceipt),
}

/// A way, counted until the bundle is written.
#[derive(Debug)]
struct LeasedWay {
    way: WayToAnchor,
    _lease: ByteLease,
}

impl Context<'_> {
    pub(super) async fn prove_transaction(
        &self,
        on: &mut Answering<'_>,
        hash: B256,
        anchor: Option<BlockRef>,
    ) -> CallResult {
        self.prove_by_hash(on, hash, anchor, WithReceipt::No).await
    }

    pub(super) async fn prove_receipt(
        &self,
        on: &mut Answering<'_>,
        hash: B256,
        anchor: Option<BlockRef>,
    ) -> CallResult {
        self.prove_by_hash(on, hash, anchor, WithReceipt::Yes).await
    }

    async fn prove_by_hash(
        &self,
        on: &mut Answering<'_>,
        hash: B256,
        anchor: Option<BlockRef>,
        receipt: WithReceipt,
    ) -> CallResult {
        let found = self.find_transaction(hash, on.reader, RowParts::Transaction).await?;
        let Some(found) = found else { return null(on.out) };
        let index = found.index.to_usize().ok_or(CallFailure::NotABlock)?;
        let number = found.block.number;
        if receipt != WithReceipt::No {
            self.find_receipts(on.reader, BlockRef::Number(number.get())).await?;
        }
        let way = self.way_to_anchor(on.reader, number, anchor).await?;
        let parts = match receipt {
            WithReceipt::No => RowParts::Transaction,
            WithReceipt::Yes | WithReceipt::WithLog(_) => RowParts::Receipt,
        };
        let block = self.held_block(on.reader, number, parts).await?;
        put_inclusion(on.out, &block, index, receipt, &way)
    }

    pub(super) async fn prove_log(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        log_index: u64,
        anchor: Option<BlockRef>,
    ) -> CallResult {
        let number = self.find_receipts(on.reader, block).await?;
        let Some(number) = number else { return null(on.out) };
        let way = self.way_to_anchor(on.reader, number, anchor).await?;
        let block = self.held_block(on.reader, number, RowParts::Receipt).await?;
        let mut position = log_index;
        for (row, index) in block.rows.iter().zip(0..) {
            let own = row.receipt.map_or(0, |it| u64::try_from(it.log_count()).unwrap_or(u64::MAX));
            if let Some(after) = own.checked_sub(position.saturating_add(1)) {
                let receipt = WithReceipt::WithLog(LogInReceipt { position, after });
                return put_inclusion(on.out, &block, index, receipt, &way);
            }
            position = position.saturating_sub(own);
        }
        null(on.out)
    }

    pub(super) async fn prove_block(
        &self,
        on: &mut Answering<'_>,
        block: BlockRef,
        anchor: Option<BlockRef>,
    ) -> CallResult {
        let number = self.find_receipts(on.reader, block).await?;
        let Some(number) = number else { return null(on.out) };
        let way = self.way_to_anchor(on.reader, number, anchor).await?;
        let block = self.held_block(on.reader, number, RowParts::Receipt).await?;
        let header = decoded(&block.header.rlp)?;
        let transactions = encoded_transactions(&block);
        let receipts = raw::receipts(&block);
        check_root(&transactions, header.transactions_root)?;
        check_root(&receipts, header.receipts_root)?;
        let BlockExtras { ommers, withdrawals } = &block.extras;
        if keccak256(ommers) != header.ommers_hash {
            return Err(CallFailure::NotABlock);
        }
        let withdrawals = withdrawals.as_ref().map(|list| list_items(list)).transpose()?;
        let withdrawals_root = withdrawals.as_ref().map(|list| OrderedTrie::new(list).root());
        if withdrawals_root != header.withdrawals_root {
            return Err(CallFailure::NotABlock);
        }
        let mut bundle = begin_bundle(on.out);
        bundle.data("header", &block.header.rlp);
        put_all_data(bundle.member("transactions"), &transactions);
        put_all_data(bundle.member("receipts"), &receipts);
        bundle.data("ommers", ommers);
        if let Some(withdrawals) = &withdrawals {
            put_all_data(bundle.member("withdrawals"), withdrawals);
        }
        put_way(&mut bundle, &way.way);
        bundle.end();
        Ok(None)
    }

    /// Proves the logs of the blocks that a filter names, or of as many from the first as one answer is
    /// of, or lie below the anchor. The filter of the bundle says how many: whoever wants the others asks
    /// from the next one on.
    pub(super) async fn prove_logs(
        &self,
        on: &mut Answering<'_>,
        filter: LogFilter,
        anchor: Option<BlockRef>,
    ) -> CallResult {
        let asked = self.filtered_blocks(on, &filter).await?;
        let mut end = asked.end().min(asked.first().saturating_add(PROOF_BLOCKS_MAX));
        if let Some(anchor) = anchor {
            // Before the search, which is long.
            end =
                end.min(self.anchor_above(on.reader, asked, anchor).await?.get().saturating_add(1));
        }
        let for_blooms = self.hash_for_blooms(filter.query()).await;
        let mut slice = WorkSlice::default();
        let bytes_max = self.log_limits.bytes_max.min(SEARCHED_BYTES_MAX);
        let mut lease = ByteLease::default();
        let mut blocks = vec![b'['];
        let (mut last, mut parent) = (asked.first(), None);
        for number in asked.first()..end {
            let begin = blocks.len();
            if begin > 1 {
                blocks.push(b',');
            }
            let number = BlockNumber(number);
            let searched = self.put_searched(on.reader, &mut blocks, number, &for_blooms, parent);
            parent = Some(searched.await?);
            // One block is always answered.
            if begin > 1 && blocks.len() > bytes_max {
                blocks.truncate(begin);
                break;
            }
            last = number.get();
            self.count_held(&mut lease, blocks.capacity())?;
            slice.count_request(blocks.len().saturating_sub(begin));
            slice.go_on(self.budget).await;
        }
        blocks.push(b']');
        let searched = BlockRange::from_ends(asked.first(), last).ok_or(CallFailure::NotABlock)?;
        let way = self.way_to_anchor(on.reader, BlockNumber(last), anchor).await?;
        let mut bundle = begin_bundle(on.out);
        put_filter(&mut bundle, filter.query(), searched);
        bundle.member("blocks").extend_from_slice(&blocks);
        put_way(&mut bundle, &way.way);
        bundle.end();
        Ok(None)
    }

    /// A block that is searched for logs: its receipts are there unless its bloom excludes the query. Its
    /// hash.
    async fn put_searched(
        &self,
        reader: &mut Reader,
        out: &mut Vec<u8>,
        number: BlockNumber,
        query: &BloomQuery,
        parent: Option<B256>,
    ) -> Result<B256, CallFailure> {
        let stored = self.held_header(reader, number).await?;
        let header = decoded(&stored.rlp)?;
        if parent.is_some_and(|parent| parent != header.parent_hash) {
            return Err(CallFailure::NotABlock);
        }
        let mut searched = Object::begin(out);
        searched.data("header", &stored.rlp);
        if query.may_be_in(&header.logs_bloom) {
            let block = self.held_block(reader, number, RowParts::Receipt).await?;
            let receipts = raw::receipts(&block);
            check_root(&receipts, header.receipts_root)?;
            put_all_data(searched.member("receipts"), &receipts);
        }
        searched.end();
        Ok(stored.hash)
    }

    /// A block that this view holds.
    async fn held_block(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        parts: RowParts,
    ) -> Result<StoredBlock, CallFailure> {
        let block = self.view.read_block(reader, number, parts).await?;
        block.ok_or(CallFailure::NotABlock)
    }

    async fn held_header(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<StoredHeader, CallFailure> {
        self.view.read_header(reader, number).await?.ok_or(CallFailure::NotABlock)
    }

    /// The way from a block to the anchor that is wanted; to the nearest one, if none is. It comes before
    /// the block is read: it may have to wait, and blocks are large.
    async fn way_to_anchor(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        wanted: Option<BlockRef>,
    ) -> Result<LeasedWay, CallFailure> {
        let end = match wanted {
            Some(block) => self.wanted_anchor(reader, number, block).await?,
            None => match self.way_to_accumulator(reader, number).await? {
                Some(way) => return Ok(LeasedWay { way, _lease: ByteLease::default() }),
                None => self.nearest_anchor(number),
            },
        };
        let mut hash = self.held_header(reader, number).await?.hash;
        let (mut headers, mut bytes) = (Vec::new(), 0_usize);
        let (mut slice, mut lease) = (WorkSlice::default(), ByteLease::default());
        for above in number.get()..end.get() {
            let above = self.held_header(reader, BlockNumber(above.saturating_add(1))).await?;
            if decoded(&above.rlp)?.parent_hash != hash {
                return Err(CallFailure::NotABlock);
            }
            hash = above.hash;
            bytes = bytes.saturating_add(above.rlp.len());
            self.count_held(&mut lease, bytes)?;
            slice.count_request(above.rlp.len());
            // What was read is a part of a page of headers, which it would keep in memory.
            headers.push(Bytes::copy_from_slice(&above.rlp));
            slice.go_on(self.budget).await;
        }
        Ok(LeasedWay {
            way: WayToAnchor::Headers { number: end.get(), hash, headers },
            _lease: lease,
        })
    }

    async fn wanted_anchor(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        wanted: BlockRef,
    ) -> Result<BlockNumber, CallFailure> {
        let anchor = self.requested(reader, wanted).await?.found()?;
        let refused = |reason| Err(CallFailure::Refused(Refusal::NoWayToAnchor { reason }));
        match anchor {
            None => refused("the anchor is no block that exists".to_owned()),
            Some(anchor) if anchor < number => refused(format!(
                "the anchor is block {anchor}, which does not prove block {number} above it"
            )),
            Some(anchor) if !self.is_near(number, anchor) => refused(format!(
                "the anchor is block {anchor}: from block {number} it takes more than \
                 {PROOF_BLOCKS_MAX} headers, or some that are not held"
            )),
            Some(anchor) => Ok(anchor),
        }
    }

    /// The wanted anchor of a search: none of the blocks that it may end with is refused for it later,
    /// unless an answer has to end early.
    async fn anchor_above(
        &self,
        reader: &mut Reader,
        asked: BlockRange,
        wanted: BlockRef,
    ) -> Result<BlockNumber, CallFailure> {
        let last =
            asked.last().min(asked.first().saturating_add(PROOF_BLOCKS_MAX).saturating_sub(1));
        let anchor = self.requested(reader, wanted).await?.found()?;
        let last = anchor.map_or(last, |anchor| anchor.get().clamp(asked.first(), last));
        self.wanted_anchor(reader, BlockNumber(last), wanted).await
    }

    /// The nearest block from this one on that is trusted here, or final; the block itself, if there is
    /// none near enough.
    fn nearest_anchor(&self, number: BlockNumber) -> BlockNumber {
        let operator = self.view.trusted_from(number);
        let known = operator.into_iter().chain(self.view.finalized().filter(|it| *it >= number));
        known.min().filter(|it| self.is_near(number, *it)).unwrap_or(number)
    }

    /// Whether all headers up to an anchor are held, and few enough.
    fn is_near(&self, number: BlockNumber, anchor: BlockNumber) -> bool {
        let ranges = self.view.coverage();
        let is_held = ranges.iter().any(|it| it.contains(number) && it.contains(anchor));
        is_held && anchor.get().saturating_sub(number.get()) <= PROOF_BLOCKS_MAX
    }

    /// The way up the tree of mainnet's blocks before the merge, where the whole epoch is held.
    async fn way_to_accumulator(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<WayToAnchor>, CallFailure> {
        let epoch = number.get() / EPOCH_BLOCKS;
        let roots = EpochRoots::mainnet();
        let trusted = Anchors::of(self.spec).with_epoch_roots(roots.clone());
        let Some(expected) = trusted.expected_epoch_root(epoch) else { return Ok(None) };
        let first = BlockNumber(epoch.saturating_mul(EPOCH_BLOCKS));
        let blocks = BlockRange::from_count(first, mainnet_epoch_blocks(epoch));
        let Some(blocks) = blocks.filter(|it| it.contains(number)) else { return Ok(None) };
        if !self.view.coverage().iter().any(|it| it.contains(first) && it.last() >= blocks.last()) {
            return Ok(None);
        }
        let slot = self.epoch_trees.slot(expected);
        let Some(tree) = slot.tree(self.epoch_tree(reader, blocks)).await? else { return Ok(None) };
        let hash = self.view.read_hash(reader, number).await?.ok_or(CallFailure::NotABlock)?;
        let record = number.get().saturating_sub(blocks.first());
        let record = usize::try_from(record).map_err(|_| CallFailure::NotABlock)?;
        let branch = tree.branch(record, &hash).zip(roots.branch(epoch));
        Ok(branch.map(|(mut siblings, above)| {
            siblings.extend(above);
            WayToAnchor::Accumulator { root: EpochRoots::accumulator(), siblings }
        }))
    }

    /// The tree over an epoch's blocks: their hashes, each with the total difficulty up to it.
    async fn epoch_tree(
        &self,
        reader: &mut Reader,
        blocks: BlockRange,
    ) -> Result<Option<EpochTree>, CallFailure> {
        let below = self.view.difficulty_before(reader, BlockNumber(blocks.first())).await?;
        let Some(mut total) = below else { return Ok(None) };
        let mut lease = ByteLease::default();
        self.count_held(&mut lease, EPOCH_BYTES)?;
        let mut slice = WorkSlice::default();
        let mut records = Vec::new();
        for number in blocks.first()..blocks.end() {
            let header = self.view.read_header(reader, BlockNumber(number)).await?;
            let Some(header) = header else { return Ok(None) };
            total = total.saturating_add(decoded(&header.rlp)?.difficulty);
            records.push((header.hash, total));
            slice.count_request(header.rlp.len());
            slice.go_on(self.budget).await;
        }
        Ok(Some(EpochTree::new(&records)))
    }
}

/// A transaction of a block, with its receipt and perhaps one of its logs.
fn put_inclusion(
    out: &mut Vec<u8>,
    block: &StoredBlock,
    index: usize,
    receipt: WithReceipt,
    way: &LeasedWay,
) -> CallResult {
    let header = decoded(&block.header.rlp)?;
    let transactions = encoded_transactions(block);
    let transaction = indexed_path(&transactions, index, header.transactions_root)?;
    let mut bundle = begin_bundle(out);
    bundle.data("header", &block.header.rlp);
    put_indexed(&mut bundle, "transaction", &transaction);
    if receipt != WithReceipt::No {
        let receipts = raw::receipts(block);
        let path = indexed_path(&receipts, index, header.receipts_root)?;
        put_indexed(&mut bundle, "receipt", &path);
    }
    if let WithReceipt::WithLog(place) = receipt {
        put_log_place(&mut bundle, place);
    }
    put_way(&mut bundle, &way.way);
    bundle.end();
    Ok(None)
}

fn decoded(header: &Bytes) -> Result<Header, NotABlock> {
    decode_header(header).map_err(|_| NotABlock)
}

fn encoded_transactions(block: &StoredBlock) -> Vec<&[u8]> {
    block.rows.iter().map(|row| row.encoded).collect()
}

/// The header commits to these values. Blocks that are held by their digests alone were never proven.
fn check_root<V: AsRef<[u8]>>(values: &[V], root: B256) -> Result<(), NotABlock> {
    if OrderedTrie::new(values).root() == root { Ok(()) } else { Err(NotABlock) }
}

/// A value with its path; the trie must be the one that the header commits to.
fn indexed_path<V: AsRef<[u8]>>(
    values: &[V],
    index: usize,
    root: B256,
) -> Result<IndexedPath<'_>, NotABlock> {
    let trie = OrderedTrie::new(values);
    let value = values.get(index).filter(|_| trie.root() == root).ok_or(NotABlock)?;
    Ok(IndexedPath { index, rlp: value.as_ref(), nodes: trie.path(index).ok_or(NotABlock)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_does_not_commit_to_is_not_sent() {
        let values: Vec<Vec<u8>> = (0..200_u8).map(|byte| vec![byte; 40]).collect();
        let root = OrderedTrie::new(&values).root();
        check_root(&values, root).unwrap();
        assert_eq!(indexed_path(&values, 150, root).unwrap().rlp, values[150]);
        indexed_path(&values, 200, root).unwrap_err();
        let mut changed = values.clone();
        changed[7][39] ^= 1;
        for other in [&changed[..], &values[..199], &[]] {
            check_root(other, root).unwrap_err();
            indexed_path(other, 150, root).unwrap_err();
        }
    }
}
