//! Searches for logs, held against a look at every log.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Log};
use anyhow::{Result, ensure};
use chain::{BlockNumber, BlockRange};
use segment::TxIndex;
use store::layout::join_ranges;
use store::read::block_on;
use store::{LogQuery, Reader, View};

use super::blocks::get;
use super::dice::Dice;

/// A block that can be read: its hash, and whether its receipts can be read too.
pub(super) type Shown = BTreeMap<u64, (B256, bool)>;

/// What is asked, and looked for in every log.
#[derive(Clone, Debug)]
struct NaiveQuery {
    addresses: Vec<Address>,
    topics: Vec<Vec<B256>>,
}

/// How many searches there are each time.
const SEARCH_COUNT: u64 = 6;

/// A log with its place: block, transaction, log of the block.
type Found = (u64, TxIndex, u64, Log);

/// Searches in every range whose receipts can be read.
pub(super) fn compare_logs(
    view: &View,
    reader: &mut Reader,
    shown: &Shown,
    judge: &dyn Fn(Result<()>) -> Result<()>,
) -> Result<()> {
    let with_receipts = shown.iter().filter(|(_, (_, has_receipts))| *has_receipts);
    let one = with_receipts.filter_map(|(number, _)| BlockRange::from_count(*number, 1));
    for range in join_ranges(one) {
        let last = shown.get(&range.last()).map_or(B256::ZERO, |(hash, _)| *hash);
        let mut dice = Dice::new(u64::from_be_bytes(*last.first_chunk().unwrap()));
        for _ in 0..SEARCH_COUNT {
            let first = range.first() + dice.below(range.count());
            let count = 1 + dice.below(range.end() - first);
            let part = BlockRange::from_count(first, count).unwrap();
            let query = some_query(&mut dice, first);
            judge(search(view, reader, shown, part, &query))?;
        }
    }
    Ok(())
}

/// A question about values that the blocks of tests have, or nearly have.
fn some_query(dice: &mut Dice, near: u64) -> NaiveQuery {
    let addresses = [vec![], vec![3], vec![5], vec![6, 7], vec![99], vec![99, 5]];
    let addresses = &addresses[usize::try_from(dice.below(6)).unwrap()];
    let words = |dice: &mut Dice, at: u64| match (dice.below(3), at) {
        (0, _) => vec![],
        (1, 0) => vec![B256::repeat_byte(4)],
        (_, 0) => vec![word(dice.below(3)), B256::repeat_byte(4)],
        (1, 1) => vec![word(near / 4)],
        (_, 1) => vec![word(near / 4), word(near / 4 + 1), word(near + 1_000_000)],
        (_, _) => vec![word(u64::from(b'a') + dice.below(9))],
    };
    NaiveQuery {
        addresses: addresses.iter().map(|byte| Address::repeat_byte(*byte)).collect(),
        topics: (0..dice.below(5)).map(|at| words(dice, at)).collect(),
    }
}

fn word(number: u64) -> B256 {
    B256::left_padding_from(&number.to_be_bytes())
}

fn search(
    view: &View,
    reader: &mut Reader,
    shown: &Shown,
    range: BlockRange,
    naive: &NaiveQuery,
) -> Result<()> {
    let query = &LogQuery::new(naive.addresses.clone(), naive.topics.clone());
    let mut found: Vec<Found> = Vec::new();
    let mut search = view.search_logs(query, range, u64::MAX);
    while let Some(batch) = block_on(search.next_rows(reader))? {
        for block in batch {
            let mut log_index = block.logs_before;
            for (row, index) in block.rows.iter().zip(block.first.get()..) {
                for log in row.receipt.iter().flat_map(segment::ReceiptView::logs) {
                    if query.matches(&log) {
                        let topics = log.topics.iter().map(B256::from).collect();
                        let data = log.data.to_vec().into();
                        let log = Log::new_unchecked(log.address, topics, data);
                        found.push((block.block.number.get(), TxIndex(index), log_index, log));
                    }
                    log_index += 1;
                }
            }
        }
    }
    ensure!(
        search.searched_to() == BlockNumber(range.end()),
        "searched {:?}",
        search.searched_to()
    );
    let expected = expected(shown, range, naive);
    ensure!(found == expected, "{query:?} in {range}: {found:?}, expected {expected:?}");
    Ok(())
}

fn expected(shown: &Shown, range: BlockRange, query: &NaiveQuery) -> Vec<Found> {
    let mut logs = Vec::new();
    for (number, (hash, _)) in shown.range(range.first()..range.end()) {
        let block = get(*hash, true);
        let receipts = block.receipts.iter().flatten().zip(0..);
        let all =
            receipts.flat_map(|(it, index)| it.fields.logs.iter().map(move |log| (index, log)));
        for ((index, log), log_index) in all.zip(0..) {
            let is_asked = (query.addresses.is_empty() || query.addresses.contains(&log.address))
                && query.topics.len() <= log.topics().len()
                && query
                    .topics
                    .iter()
                    .zip(log.topics())
                    .all(|(any, topic)| any.is_empty() || any.contains(topic));
            if is_asked {
                logs.push((*number, TxIndex(index), log_index, log.clone()));
            }
        }
    }
    logs
}
