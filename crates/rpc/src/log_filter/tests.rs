//! Filters against a naive comparison, against damage, and against what go-ethereum says of them.

use std::collections::BTreeSet;

use chain::{BlockNumber, BlockRange, SplitMix64};
use store::LogView;

use super::range::FilterHorizon;
use super::*;
use crate::absence::Absence;
use crate::params::Params;
use crate::refusal::Refusal;
use crate::scan::scan;

fn parsed(filter: &str) -> Result<LogFilter, String> {
    let list = format!("[{filter}]");
    let token = scan(&list, |_| {}).unwrap();
    Params::new(Some(token)).take(LogFilter::parse).map_err(|refusal| {
        assert_eq!(refusal.code(), -32602, "{filter}: {}", refusal.message());
        refusal.message()
    })
}

fn word(byte: u8) -> String {
    format!("\"0x{}\"", hex::encode([byte; 32]))
}

fn account(byte: u8) -> String {
    format!("\"0x{}\"", hex::encode([byte; 20]))
}

#[test]
fn blocks_are_a_range_of_numbers_and_tags_or_one_hash() {
    let latest = BlockRef::Tag(BlockTagName::Latest);
    let range = |from, to| Ok(FilterBlocks::Range { from, to });
    for (filter, expected) in [
        ("{}", range(latest, latest)),
        ("{\"fromBlock\":null,\"toBlock\":null,\"blockHash\":null}", range(latest, latest)),
        ("{\"fromBlock\":\"0x10\"}", range(BlockRef::Number(16), latest)),
        ("{\"toBlock\":16}", range(latest, BlockRef::Number(16))),
        (
            "{\"fromBlock\":\"earliest\",\"toBlock\":\"Finalized\"}",
            range(BlockRef::Tag(BlockTagName::Earliest), BlockRef::Tag(BlockTagName::Finalized)),
        ),
        // Go reads names of members in any case: a criterion is never passed over.
        ("{\"FROMBLOCK\":\"0x1\",\"toblock\":\"0x2\"}", {
            range(BlockRef::Number(1), BlockRef::Number(2))
        }),
        ("{\"limit\":5,\"fromBlock\":\"0x1\"}", range(BlockRef::Number(1), latest)),
    ] {
        assert_eq!(parsed(filter).map(|it| it.blocks()), expected, "{filter}");
    }
    let by_hash = parsed(&format!("{{\"blockHash\":{}}}", word(7))).unwrap();
    assert_eq!(by_hash.blocks(), FilterBlocks::Hash(B256::repeat_byte(7)));
}

#[test]
fn addresses_and_topics_are_none_one_or_many() {
    let (one, two) = (account(1), account(2));
    for (filter, expected) in [
        ("{}".to_owned(), vec![]),
        ("{\"address\":null}".to_owned(), vec![]),
        ("{\"address\":[]}".to_owned(), vec![]),
        (format!("{{\"address\":{one}}}"), vec![1]),
        (format!("{{\"address\":[{two},{one},{two}]}}"), vec![1, 2]),
    ] {
        let expected = expected.into_iter().map(Address::repeat_byte).collect();
        let expected = LogQuery::new(expected, vec![]);
        assert_eq!(*parsed(&filter).unwrap().query(), expected, "{filter}");
    }
    let (one, two) = (word(1), word(2));
    for (topics, expected) in [
        ("null".to_owned(), vec![]),
        ("[]".to_owned(), vec![]),
        ("[null]".to_owned(), vec![vec![]]),
        ("[[]]".to_owned(), vec![vec![]]),
        (format!("[{one}]"), vec![vec![[1; 32]]]),
        (format!("[[{two},{one}],null,{one},[]]"), {
            vec![vec![[1; 32], [2; 32]], vec![], vec![[1; 32]], vec![]]
        }),
        // A null among alternatives stands for every topic.
        (format!("[[{one},null]]"), vec![vec![]]),
    ] {
        let filter = parsed(&format!("{{\"topics\":{topics}}}")).unwrap();
        let expected: Vec<Vec<B256>> =
            expected.into_iter().map(|any| any.into_iter().map(B256::new).collect()).collect();
        assert_eq!(*filter.query(), LogQuery::new(vec![], expected), "{topics}");
    }
}

#[test]
fn what_is_no_filter_is_refused_in_the_words_of_go_ethereum() {
    let (hash, number) = (word(1), "\"0x1\"");
    let invalid_address = "invalid address: hex has invalid length 2 after decoding; expected 20 \
                           for address";
    for (filter, reason) in [
        (format!("{{\"blockHash\":{hash},\"fromBlock\":{number}}}"), HASH_AND_RANGE),
        (format!("{{\"toBlock\":{number},\"blockHash\":{hash}}}"), HASH_AND_RANGE),
        ("{\"topics\":[null,null,null,null,null]}".to_owned(), "exceed max topics"),
        ("{\"topics\":[1]}".to_owned(), "invalid topic(s)"),
        ("{\"topics\":[[[]]]}".to_owned(), "invalid topic(s)"),
        (format!("{{\"topics\":{hash}}}"), "a string where a list of topics belongs"),
        (
            "{\"topics\":[\"0x11\"]}".to_owned(),
            "hex has invalid length 1 after decoding; expected 32 for topic",
        ),
        ("{\"topics\":[\"0x111\"]}".to_owned(), "hex string of odd length"),
        ("{\"topics\":[\"0x0x\"]}".to_owned(), "invalid hex string"),
        ("{\"topics\":[\"\\ud800\"]}".to_owned(), "string with an unpaired surrogate"),
        ("{\"topics\":[\"\"]}".to_owned(), "empty hex string"),
        ("{\"topics\":[\"11\"]}".to_owned(), "hex string without 0x prefix"),
        ("{\"address\":\"0x1122\"}".to_owned(), invalid_address),
        (
            format!("{{\"address\":[{},\"1\"]}}", account(1)),
            "invalid address at index 1: hex string without 0x prefix",
        ),
        ("{\"address\":[null]}".to_owned(), "non-string address at index 0"),
        ("{\"address\":5}".to_owned(), "invalid addresses in query"),
        ("{\"fromBlock\":\"5\"}".to_owned(), "fromBlock: hex string without 0x prefix"),
        ("{\"toBlock\":-1}".to_owned(), "toBlock: not a non-negative integer"),
        ("{\"blockHash\":\"0x1\"}".to_owned(), "blockHash: hex string of odd length"),
        ("[]".to_owned(), "an array where a filter object belongs"),
        ("null".to_owned(), "null where a filter object belongs"),
        (
            "{\"topics\":[],\"Topics\":null}".to_owned(),
            "an object in which a member of the filter stands twice",
        ),
    ] {
        assert_eq!(parsed(&filter), Err(format!("invalid argument 0: {reason}")), "{filter}");
    }
    let missing = Params::new(Some(scan("[]", |_| {}).unwrap())).take(LogFilter::parse);
    assert_eq!(missing, Err(Refusal::MissingParam { index: 0 }));
}

#[test]
fn a_thousand_alternatives_are_taken_and_one_more_is_not() {
    let list = |item: String, count: usize| format!("[{}]", vec![item; count].join(","));
    for (count, is_taken) in [(1000, true), (1001, false)] {
        let addresses = parsed(&format!("{{\"address\":{}}}", list(account(1), count)));
        let topics = parsed(&format!("{{\"topics\":[null,{}]}}", list(word(1), count)));
        if is_taken {
            let once = LogQuery::new(vec![Address::repeat_byte(1)], vec![]);
            assert_eq!(*addresses.unwrap().query(), once, "those that stand twice count once");
            let once = LogQuery::new(vec![], vec![vec![], vec![B256::repeat_byte(1)]]);
            assert_eq!(*topics.unwrap().query(), once);
        } else {
            assert_eq!(addresses, Err(format!("invalid argument 0: {TOO_MANY_ADDRESSES}")));
            assert_eq!(topics, Err(format!("invalid argument 0: {TOO_MANY_TOPICS}")));
        }
    }
    let nulls = parsed(&format!("{{\"topics\":[{}]}}", list("null".to_owned(), 1001)));
    assert_eq!(nulls, Err(format!("invalid argument 0: {TOO_MANY_TOPICS}")));
}

/// A filter as the oracle has it: plain lists, compared one by one.
struct NaiveFilter {
    addresses: Vec<u8>,
    positions: Vec<Vec<u8>>,
}

impl NaiveFilter {
    fn matches(&self, address: u8, topics: &[u8]) -> bool {
        if !self.addresses.is_empty() && !self.addresses.contains(&address) {
            return false;
        }
        if self.positions.len() > topics.len() {
            return false;
        }
        for (position, topic) in topics.iter().enumerate() {
            let wanted = self.positions.get(position);
            if wanted.is_some_and(|wanted| !wanted.is_empty() && !wanted.contains(topic)) {
                return false;
            }
        }
        true
    }

    /// Some values of few, in one of the forms that mean them.
    fn written(random: &mut SplitMix64, write: fn(u8) -> String) -> (Vec<u8>, String) {
        let values: Vec<u8> = (0..random.below(4)).map(|_| small(random)).collect();
        let texts: Vec<String> = values.iter().map(|value| write(*value)).collect();
        let text = match (texts.as_slice(), random.below(2)) {
            ([], 0) => "null".to_owned(),
            ([text], 0) => text.replace('a', "A"),
            (texts, _) => format!("[{}]", texts.join(" ,")),
        };
        (values, text)
    }

    fn random(random: &mut SplitMix64) -> (Self, String) {
        let (addresses, address_text) = Self::written(random, account);
        let (mut positions, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..random.below(5) {
            let (values, text) = Self::written(random, word);
            positions.push(values);
            texts.push(text);
        }
        let mut members =
            [format!("\"address\":{address_text}"), format!("\"topics\":[{}]", texts.join(","))];
        if random.below(2) == 0 {
            members.swap(0, 1);
        }
        (Self { addresses, positions }, format!("{{{}}}", members.join(", ")))
    }
}

fn below(random: &mut SplitMix64, count: usize) -> usize {
    usize::try_from(random.below(u64::try_from(count).unwrap())).unwrap()
}

/// Few values, so that filters meet logs.
fn small(random: &mut SplitMix64) -> u8 {
    [0x01, 0xaa, 0xff][below(random, 3)]
}

#[test]
fn random_filters_match_the_logs_that_a_naive_comparison_matches() {
    let mut random = SplitMix64::new(19);
    let (mut hits, mut misses) = (0_u32, 0_u32);
    for round in 0..5_000 {
        let (naive, text) = NaiveFilter::random(&mut random);
        let filter = parsed(&text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
        for _ in 0..10 {
            let address = small(&mut random);
            let topics: Vec<u8> = (0..random.below(5)).map(|_| small(&mut random)).collect();
            let words: Vec<[u8; 32]> = topics.iter().map(|byte| [*byte; 32]).collect();
            let log = LogView { address: Address::repeat_byte(address), topics: &words, data: &[] };
            let found = filter.query().matches(&log);
            let expected = naive.matches(address, &topics);
            assert_eq!(found, expected, "round {round}: {text}: {address:#x} {topics:x?}");
            *(if found { &mut hits } else { &mut misses }) += 1;
        }
    }
    assert!(hits > 5_000 && misses > 5_000, "{hits} hits and {misses} misses");
}

/// Whatever is written, it is a filter or refused; nothing panics.
#[test]
fn damaged_filters_are_refused_or_read() {
    let mut random = SplitMix64::new(20);
    let pieces = b"{}[]\",:0xfaA1n \\u";
    let mut refusals = BTreeSet::new();
    for _ in 0..20_000 {
        let (_, text) = NaiveFilter::random(&mut random);
        let mut bytes = text.into_bytes();
        for _ in 0..=random.below(2) {
            let at = below(&mut random, bytes.len());
            let piece = below(&mut random, pieces.len());
            bytes[at] = pieces[piece];
        }
        let text = String::from_utf8(bytes).unwrap();
        let Ok(token) = scan(&text, |_| {}) else { continue };
        if let Err(reason) = LogFilter::parse(token) {
            refusals.insert(reason);
        }
    }
    assert!(refusals.len() > 5, "{refusals:?}");
}

fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::from_ends(first, last).unwrap()
}

/// Blocks 0 to 39 and 60 to 99, receipts of the former and of 80 to 99.
fn with_gap<'a>(blocks: &'a [BlockRange], receipts: &'a [BlockRange]) -> FilterHorizon<'a> {
    FilterHorizon {
        blocks,
        receipts,
        tip: Some(BlockNumber(99)),
        safe: Some(BlockNumber(98)),
        finalized: None,
        lost: None,
        above_tip: Absence::Absent,
    }
}

#[test]
fn ranges_are_resolved_whole_or_refused() {
    let (blocks, receipts) = ([range(0, 39), range(60, 99)], [range(0, 39), range(80, 99)]);
    let horizon = with_gap(&blocks, &receipts);
    let latest = BlockRef::Tag(BlockTagName::Latest);
    let tag = BlockRef::Tag;
    let number = BlockRef::Number;
    let not_held = |number| Err(Refusal::BlockNotHeld { number, held: blocks.to_vec() });
    let without_receipts =
        |number| Err(Refusal::ReceiptsNotHeld { number, held: receipts.to_vec() });
    for (from, to, expected) in [
        (latest, latest, Ok(range(99, 99))),
        (number(0), number(39), Ok(range(0, 39))),
        (tag(BlockTagName::Earliest), number(5), Ok(range(0, 5))),
        (number(80), tag(BlockTagName::Safe), Ok(range(80, 98))),
        // A hole anywhere refuses all of it.
        (number(30), number(60), not_held(40)),
        (number(39), number(40), not_held(40)),
        (number(50), number(55), not_held(50)),
        (number(0), latest, not_held(40)),
        (number(60), latest, without_receipts(60)),
        (number(79), number(80), without_receipts(79)),
        (number(5), number(4), Err(Refusal::InvalidBlockRange)),
        (latest, number(80), Err(Refusal::InvalidBlockRange)),
        (number(100), latest, Err(Refusal::InvalidBlockRange)),
        (number(80), number(100), Err(Refusal::BlockRangeBeyondHead)),
        (number(100), number(u64::MAX), Err(Refusal::BlockRangeBeyondHead)),
        (tag(BlockTagName::Pending), latest, Err(Refusal::PendingLogs)),
        (latest, tag(BlockTagName::Pending), Err(Refusal::PendingLogs)),
        (tag(BlockTagName::Finalized), latest, Err(Refusal::TagUnknown { tag: "finalized" })),
    ] {
        assert_eq!(horizon.resolve(from, to), expected, "{from:?} to {to:?}");
    }
}

#[test]
fn above_the_tip_nothing_is_held_where_the_network_has_gone_on_or_blocks_were_lost() {
    let (blocks, receipts) = ([range(0, 39)], [range(0, 39)]);
    let at_tip = FilterHorizon { tip: Some(BlockNumber(39)), ..with_gap(&blocks, &receipts) };
    let ask = |horizon: FilterHorizon<'_>, to| {
        horizon.resolve(BlockRef::Number(38), BlockRef::Number(to))
    };
    let not_held = |number| Err(Refusal::BlockNotHeld { number, held: blocks.to_vec() });
    assert_eq!(ask(at_tip, 40), Err(Refusal::BlockRangeBeyondHead));
    let gone_on = FilterHorizon { above_tip: Absence::NotHeld, ..at_tip };
    assert_eq!(ask(gone_on, 40), not_held(40));
    assert_eq!(ask(gone_on, u64::MAX), not_held(u64::MAX));
    let lost = FilterHorizon { lost: Some(BlockNumber(45)), ..at_tip };
    assert_eq!(ask(lost, 45), not_held(40));
    assert_eq!(ask(lost, 46), Err(Refusal::BlockRangeBeyondHead));
    let empty = FilterHorizon { tip: None, blocks: &[], receipts: &[], ..at_tip };
    assert_eq!(ask(empty, 38), Err(Refusal::BlockRangeBeyondHead));
    let latest = BlockRef::Tag(BlockTagName::Latest);
    assert_eq!(empty.resolve(latest, latest), Err(Refusal::NothingHeld));
}

#[test]
fn refusals_of_blocks_have_the_codes_and_words_of_go_ethereum() {
    for (refusal, code, message) in [
        (Refusal::InvalidBlockRange, -32602, "invalid block range params"),
        (Refusal::BlockRangeBeyondHead, -32602, "block range extends beyond current head block"),
        (Refusal::PendingLogs, -32602, "pending logs are not supported"),
        (Refusal::UnknownBlock, -32000, "unknown block"),
    ] {
        assert_eq!((refusal.code(), refusal.message().as_str()), (code, message));
        assert_eq!(refusal.held(), None, "{message}");
    }
}
