//! A view held against what it should show, completely.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{B256, keccak256};
use anyhow::{Context as _, Result, ensure};
use chain::trust::TrustStatus;
use chain::{Block, BlockNumber, BlockRange, Verified};
use segment::{BlockExtras, GasAndLogsBefore, Row, RowParts, RowSet, TxIndex};
use store::check::{SegmentCheck, check_layout, check_run};
use store::layout::join_ranges;
use store::manifest::SegmentEntry;
use store::read::block_on;
use store::{
    BlockFacts, HashedBlock, Reader, StoreError, StoredBlock, StoredHeader, StoredTransaction, View,
};
use testing::blocks::spec;

use super::blocks::get;
use super::compare_logs::{Shown, compare_logs};
use super::state::{HeadState, Sealed};

/// What a view can be asked about.
#[derive(Clone, Debug)]
pub(super) struct Questions {
    /// Numbers that may be held, and some that never are.
    pub(super) numbers: BlockRange,
    /// Every block of the run, of whatever branch.
    pub(super) hashes: BTreeSet<B256>,
}

/// Whether the manifest lists these blocks: cheap, to tell states apart.
pub(super) fn lists(view: &View, sealed: &Sealed) -> bool {
    let manifest = view.manifest();
    let anchors = manifest.anchors().map(|anchor| (anchor.number, anchor.hash));
    manifest.coverage() == sealed.coverage()
        && manifest.coverage_receipts() == sealed.coverage_receipts()
        && anchors.collect::<BTreeMap<_, _>>() == sealed.anchors
        && manifest.network().genesis_hash == sealed.genesis_hash
}

/// Whether the head is this one: cheap, to tell states apart.
pub(super) fn heads(view: &View, head: &HeadState) -> bool {
    let blocks = view.whole_head().blocks().iter();
    let blocks: Vec<_> =
        blocks.map(|it| (it.number().get(), it.hash(), it.block().receipts.is_some())).collect();
    let expected: Vec<_> =
        head.canonical().into_iter().map(|(number, (hash, it))| (number, hash, it)).collect();
    let base = head.base.filter(|base| base.number > 0);
    let base = base.map(|base| (BlockNumber(base.number - 1), base.parent));
    let finalized = view.finality().finalized;
    blocks == expected && view.whole_head().base() == base && finalized == head.finalized
}

/// Asks a view everything.
pub(super) fn compare(
    view: &View,
    sealed: &Sealed,
    head: &HeadState,
    questions: &Questions,
) -> Result<()> {
    compare_all(view, sealed, head, questions, &|outcome| outcome)
}

/// Asks a view everything, of a disk that lied: every answer is right, or it is an error.
pub(super) fn compare_lied(
    view: &View,
    sealed: &Sealed,
    head: &HeadState,
    questions: &Questions,
) -> Result<()> {
    compare_all(view, sealed, head, questions, &|outcome| match outcome {
        Err(error) if error.downcast_ref::<StoreError>().is_some() => Ok(()),
        outcome => outcome,
    })
}

fn compare_all(
    view: &View,
    sealed: &Sealed,
    head: &HeadState,
    questions: &Questions,
    judge: &dyn Fn(Result<()>) -> Result<()>,
) -> Result<()> {
    ensure!(lists(view, sealed), "the manifest lists {}, expected {}", text(view), ranges(sealed));
    let (found, expected) = (view.whole_head(), head.canonical());
    ensure!(heads(view, head), "the head is {found:?}, expected {expected:?}");
    compare_shown(view, sealed, head, questions, judge)
}

/// Asks a view of several folders everything.
pub(super) fn compare_union(view: &View, sealed: &Sealed, questions: &Questions) -> Result<()> {
    compare_shown(view, sealed, &HeadState::default(), questions, &|outcome| outcome)
}

/// Asks a view everything about blocks, wherever they are: their statuses are those of other sums.
pub(super) fn compare_shown_chain(
    view: &View,
    shown: &Sealed,
    questions: &Questions,
) -> Result<()> {
    compare_blocks(view, &shown.blocks, questions, &|outcome| outcome)
}

fn compare_shown(
    view: &View,
    sealed: &Sealed,
    head: &HeadState,
    questions: &Questions,
    judge: &dyn Fn(Result<()>) -> Result<()>,
) -> Result<()> {
    compare_statuses(view, sealed)?;
    compare_blocks(view, &shown(sealed, head)?, questions, judge)
}

fn compare_blocks(
    view: &View,
    shown: &Shown,
    questions: &Questions,
    judge: &dyn Fn(Result<()>) -> Result<()>,
) -> Result<()> {
    let one = |(number, _): (&u64, _)| BlockRange::from_count(*number, 1);
    let with_receipts = shown.iter().filter(|(_, (_, has_receipts))| *has_receipts);
    ensure!(view.coverage() == join_ranges(shown.iter().filter_map(one)), "coverage");
    ensure!(
        view.coverage_receipts() == join_ranges(with_receipts.filter_map(one)),
        "coverage with receipts"
    );
    ensure!(view.tip() == shown.keys().last().copied().map(BlockNumber), "tip");
    let mut reader = Reader::new()?;
    for number in questions.numbers.first()..questions.numbers.end() {
        let expected = shown.get(&number).map(|(hash, has_receipts)| get(*hash, *has_receipts));
        let outcome = compare_number(view, &mut reader, number, expected.as_ref());
        judge(outcome.with_context(|| format!("block {number}")))?;
    }
    compare_logs(view, &mut reader, shown, judge)?;
    compare_absent(view, &mut reader, shown, questions, judge)
}

/// What can be read of both together. Where both hold a block, they hold the same.
fn shown(sealed: &Sealed, head: &HeadState) -> Result<Shown> {
    let mut shown = sealed.blocks.clone();
    for (number, (hash, has_receipts)) in head.canonical() {
        let known = shown.entry(number).or_insert((hash, has_receipts));
        ensure!(known.0 == hash, "block {number} is {hash} in the head, {} was sealed", known.0);
        known.1 |= has_receipts;
    }
    Ok(shown)
}

fn compare_statuses(view: &View, sealed: &Sealed) -> Result<()> {
    let statuses = view.statuses_with(None)?;
    for number in sealed.blocks.keys() {
        let found = statuses.iter().find(|(range, _)| range.contains(*number));
        let found = match found {
            Some((_, TrustStatus::Anchored(_))) => 'a',
            Some((_, TrustStatus::Linked(_))) => 'l',
            Some((_, TrustStatus::Unanchored)) => 'u',
            None => ' ',
        };
        let expected = sealed.status(*number);
        ensure!(found == expected, "status of block {number} is {found:?}, expected {expected:?}");
    }
    Ok(())
}

fn compare_number(
    view: &View,
    reader: &mut Reader,
    number: u64,
    expected: Option<&Verified<Block>>,
) -> Result<()> {
    let stored = block_on(view.read_block(reader, BlockNumber(number), RowParts::Receipt))?;
    ensure!(
        block_on(view.read_hash(reader, BlockNumber(number)))? == expected.map(|it| it.hash),
        "hash"
    );
    let header = block_on(view.read_header(reader, BlockNumber(number)))?;
    let candidate = block_on(view.read_candidate(reader, BlockNumber(number)))?;
    let with_hashes = block_on(view.read_hashes(reader, BlockNumber(number)))?;
    let Some(block) = expected else {
        ensure!(stored.is_none() && header.is_none() && candidate.is_none(), "is held");
        ensure!(with_hashes.is_none(), "its hashes are held");
        ensure!(
            block_on(view.read_transaction(
                reader,
                BlockNumber(number),
                TxIndex(0),
                RowParts::Receipt
            ))?
            .is_none(),
            "has a row"
        );
        return Ok(());
    };
    let expected = stored_block(block);
    ensure!(header.as_ref() == Some(&expected.header), "header: {header:?}");
    let brief = |it: &StoredBlock| {
        let receipts = it.rows.iter().filter(|row| row.receipt.is_some()).count();
        format!("{} of {} rows, {receipts} with receipts", it.header.hash, it.rows.len())
    };
    ensure!(
        stored.as_ref() == Some(&expected),
        "is {:?}, expected {}",
        stored.as_ref().map(brief),
        brief(&expected)
    );
    let hashes = block.transactions.iter().map(|it| keccak256(&it.encoded)).collect();
    let StoredBlock { header, extras, .. } = expected;
    let expected = HashedBlock { header, extras, hashes };
    ensure!(with_hashes == Some(expected), "with hashes: {with_hashes:?}");
    let has_receipts = candidate.as_ref().is_some_and(|it| it.receipts.is_some());
    ensure!(has_receipts == block.receipts.is_some(), "receipts are told to be {has_receipts}");
    ensure!(candidate == Some(block.to_candidate()), "candidate");
    ensure!(block_on(view.find_block(reader, block.hash))? == Some(BlockNumber(number)), "by hash");
    for index in (0..block.transactions.len()).map(TxIndex::from_usize) {
        let expected = stored_transaction(block, index);
        let by_place =
            block_on(view.read_transaction(reader, BlockNumber(number), index, RowParts::Receipt))?;
        ensure!(
            by_place.as_ref() == Some(&expected),
            "transaction {index} is {by_place:?}, expected {expected:?}"
        );
        let hash = keccak256(expected.row.view().encoded);
        let by_hash = block_on(view.find_transaction(reader, hash, RowParts::Receipt))?;
        ensure!(by_hash == by_place, "transaction {index} by its hash is {by_hash:?}");
    }
    let past = TxIndex::from_usize(block.transactions.len());
    ensure!(
        block_on(view.read_transaction(reader, BlockNumber(number), past, RowParts::Receipt))?
            .is_none(),
        "has more rows"
    );
    Ok(())
}

/// Hashes of blocks that were left, and of blocks that never were.
fn compare_absent(
    view: &View,
    reader: &mut Reader,
    shown: &Shown,
    questions: &Questions,
    judge: &dyn Fn(Result<()>) -> Result<()>,
) -> Result<()> {
    let transactions = |hash: &B256| -> Vec<B256> {
        get(*hash, true).transactions.iter().map(|tx| keccak256(&tx.encoded)).collect()
    };
    let held: BTreeSet<B256> = shown.values().map(|(hash, _)| *hash).collect();
    let held_transactions: BTreeSet<B256> = held.iter().flat_map(transactions).collect();
    let left: BTreeSet<B256> = questions.hashes.difference(&held).copied().collect();
    let left_transactions: BTreeSet<B256> = left.iter().flat_map(transactions).collect();
    let nobody = B256::repeat_byte(0x77);
    for hash in left.iter().chain([&nobody]) {
        judge(block_on(view.find_block(reader, *hash)).map_err(Into::into).and_then(|found| {
            ensure!(found.is_none(), "block {hash}, which is not canonical, is {found:?}");
            Ok(())
        }))?;
    }
    for hash in left_transactions.difference(&held_transactions).chain([&nobody]) {
        judge(
            block_on(view.find_transaction(reader, *hash, RowParts::Receipt))
                .map_err(Into::into)
                .and_then(|it| {
                    let found = it.map(|it| (it.block.number, it.index));
                    ensure!(
                        found.is_none(),
                        "transaction {hash}, which is not canonical, is {found:?}"
                    );
                    Ok(())
                }),
        )?;
    }
    Ok(())
}

/// Everything that `verify` looks at.
pub(super) fn check_all(view: &View) -> Result<()> {
    check_layout(view)?;
    let spec = spec();
    let mut logs = Vec::new();
    let mut position = 0;
    while let Some((check, mut rebuild)) = SegmentCheck::begin(view, &spec, position)? {
        for group in check.groups() {
            rebuild.take(check.examine(group)?)?;
        }
        let (found, own) = rebuild.finish(&check)?;
        logs.push(own);
        ensure!(found.block_count == check.block_count(), "blocks of {}", check.file_name());
        position += 1;
    }
    ensure!(position == view.manifest().segments().len(), "segments");
    let mut position = 0;
    while check_run(view, position, &logs)?.is_some() {
        position += 1;
    }
    ensure!(position == view.manifest().runs().len(), "runs");
    Ok(())
}

fn stored_block(block: &Block) -> StoredBlock {
    let count = u64::try_from(block.transactions.len()).unwrap();
    StoredBlock {
        header: StoredHeader {
            number: BlockNumber(block.header.number),
            hash: block.hash,
            rlp: block.header_rlp.clone(),
            block_bytes: block.rlp_bytes(),
            transaction_count: count,
        },
        extras: BlockExtras {
            ommers: block.ommers_rlp.clone(),
            withdrawals: block.withdrawals_rlp.clone(),
        },
        rows: {
            let mut rows = RowSet::default();
            (0..count).for_each(|index| rows.push(&stored_transaction(block, TxIndex(index)).row));
            rows
        },
    }
}

fn stored_transaction(block: &Block, index: TxIndex) -> StoredTransaction {
    let place = index.to_usize().unwrap();
    let transaction = &block.transactions[place];
    let receipts = block.receipts.as_deref().unwrap_or_default();
    let before = receipts.get(..place).unwrap_or_default();
    let gas_before = before.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used);
    let receipt = receipts.get(place).map(|receipt| {
        let gas_used = receipt.fields.cumulative_gas_used - gas_before;
        (receipt.fields.status, gas_used, receipt.fields.logs.as_slice())
    });
    StoredTransaction {
        block: BlockFacts {
            number: BlockNumber(block.header.number),
            hash: block.hash,
            timestamp: block.header.timestamp,
            base_fee: block.header.base_fee_per_gas,
            excess_blob_gas: block.header.excess_blob_gas,
        },
        index,
        before: receipt.map(|_| GasAndLogsBefore {
            gas: gas_before,
            logs: before.iter().map(|it| u64::try_from(it.fields.logs.len()).unwrap()).sum(),
        }),
        row: Row::new(&transaction.encoded, transaction.sender, receipt),
    }
}

/// What a manifest lists, for messages.
fn text(view: &View) -> String {
    let entry =
        |it: &SegmentEntry| format!("{}{}", it.range, if it.has_receipts { "" } else { "b" });
    view.manifest().segments().iter().map(entry).collect::<Vec<_>>().join(" ")
}

/// What should be listed, for messages.
fn ranges(sealed: &Sealed) -> String {
    let text = |ranges: Vec<BlockRange>| {
        ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    format!("{} with receipts of {}", text(sealed.coverage()), text(sealed.coverage_receipts()))
}
