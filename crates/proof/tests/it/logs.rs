//! Complete lists of logs: held against a naive scan, and what no list may leave out.

use alloy_primitives::keccak256;
use proof::{ProvenClaim, ProvenLog};

use crate::builder::{Random, TestBlock, TestFilter, address, chain, check, quoted_list, refused};
use crate::builder::{receipt_bytes, short_way, topic};

fn random_filter(random: &mut Random) -> TestFilter {
    let addresses = (0..random.below(3)).map(|_| address(random.below(9))).collect();
    let positions = random.below(4);
    let topics = (0..positions)
        .map(|_| {
            let count = random.below(3);
            (0..count).map(|_| topic(random.below(9))).collect()
        })
        .collect();
    TestFilter { addresses, topics }
}

fn proven_logs(text: &str) -> Vec<ProvenLog> {
    let verdict = check(text).unwrap_or_else(|refusal| panic!("{refusal}"));
    let ProvenClaim::Logs { logs, .. } = verdict.claim else { panic!("logs were claimed") };
    logs
}

/// Block, transaction, position in the block and in the receipt.
type Place = (u64, u64, Option<u64>, u64);

fn naive(filter: &TestFilter, blocks: &[TestBlock]) -> Vec<Place> {
    let mut found = Vec::new();
    for block in blocks {
        let mut log_index = 0;
        for (transaction, logs) in (0..).zip(&block.logs) {
            for (position, log) in (0..).zip(logs) {
                if filter.matches(log) {
                    found.push((block.header.number, transaction, Some(log_index), position));
                }
                log_index += 1;
            }
        }
    }
    found
}

#[test]
fn a_list_of_logs_is_what_a_scan_of_all_blocks_finds() {
    let mut random = Random::new(20);
    let (mut excluded, mut found) = (0, 0);
    for round in 0..60 {
        let counts: Vec<u64> = (0..8).map(|_| random.below(4)).collect();
        let blocks = chain(1000 + round, &counts, &mut random);
        let filter = random_filter(&mut random);
        let text = filter.bundle(&blocks);
        excluded += blocks.len() - text.matches("\"receipts\"").count();
        let logs = proven_logs(&text);
        let places: Vec<Place> = logs
            .iter()
            .map(|log| (log.block_number, log.transaction_index, log.log_index, log.position))
            .collect();
        assert_eq!(places, naive(&filter, &blocks), "{filter:?}");
        found += places.len();
    }
    assert!(excluded > 100 && found > 100, "{excluded} blocks excluded, {found} logs found");
}

#[test]
fn a_verdict_has_the_question_its_answer_and_what_comes_before() {
    let (filter, blocks) = searched();
    let verdict = check(&filter.bundle(&blocks)).unwrap();
    let text = verdict.to_string();
    let ProvenClaim::Logs { filter: asked, parent, logs, .. } = verdict.claim else {
        panic!("logs were claimed")
    };
    assert!(filter.bundle(&blocks).contains(&format!("\"filter\":{asked},")), "{asked}");
    assert_eq!(parent.0, blocks[0].header.parent_hash.0);
    for part in [asked.to_string(), format!("whose parent is {parent}, up to")] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!logs.is_empty());
    for log in logs {
        assert!(text.contains(&format!("\n  {log}\n")), "{log}: {text}");
    }
}

#[test]
fn all_lists_together_are_bounded() {
    let (filter, blocks) = searched();
    let honest = filter.bundle(&blocks);
    let list = format!("\"receipts\":[{}\"0x00\"]", "\"0x00\",".repeat(600_000));
    let start = honest.find("\"receipts\":[").unwrap();
    let end = start + honest[start..].find(']').unwrap() + 1;
    let header = &honest[honest.find("{\"header\"").unwrap()..start];
    let block = format!("{header}{list}}}");
    let (before, after) = (honest.find("\"blocks\":[").unwrap() + 10, &honest[end..]);
    let text = format!("{}[{block},{block}{}", &honest[..before - 1], &after[1..]);
    refused(&text, "expected at most 1048576 items in all lists");
}

fn searched() -> (TestFilter, Vec<TestBlock>) {
    let blocks = chain(50, &[6, 0, 7, 6], &mut Random::new(21));
    let addresses = vec![address(1), address(2), address(3)];
    let filter = TestFilter { addresses, topics: Vec::new() };
    let with_logs = |block: &TestBlock| !filter.is_excluded_by(&block.header.logs_bloom);
    assert!(with_logs(&blocks[0]) && with_logs(&blocks[2]) && with_logs(&blocks[3]));
    (filter, blocks)
}

#[test]
fn no_block_can_hide_its_logs() {
    let (filter, blocks) = searched();
    let honest = filter.bundle(&blocks);
    assert!(!proven_logs(&honest).is_empty());
    for block in [&blocks[0], &blocks[2], &blocks[3]] {
        let receipts = format!(",\"receipts\":{}", quoted_list(&block.receipts));
        assert!(honest.contains(&receipts));
        let number = block.header.number;
        let expected = format!("bloom: block {number} may have logs that match, but no receipts");
        refused(&honest.replace(&receipts, ""), &expected);
        refused(
            &honest.replace(&receipts, ",\"receipts\":[]"),
            "receipts root: 0 receipts of block",
        );
        let fewer = quoted_list(&block.receipts[1..]);
        refused(&honest.replace(&receipts, &format!(",\"receipts\":{fewer}")), "receipts root: ");
    }
    // Receipts that nobody needs prove as much.
    let empty = format!("{{{}", blocks[1].header_member());
    check(&honest.replace(&empty, &format!("{empty},\"receipts\":[]"))).unwrap();
}

#[test]
fn no_block_of_the_range_can_be_left_out() {
    let (filter, blocks) = searched();
    let asked = filter.members(50, 53);
    let with = |blocks: &[TestBlock]| {
        let text = filter.bundle(blocks);
        let (first, last) = (blocks[0].header.number, blocks[blocks.len() - 1].header.number);
        text.replace(&filter.members(first, last), &asked)
    };
    check(&with(&blocks)).unwrap();
    let [zero, one, two, three] =
        blocks.clone().try_into().unwrap_or_else(|_| panic!("four blocks"));
    let begins = "filter: the filter asks for blocks 50..53, the list of blocks begins with 51";
    refused(&with(&[one.clone(), two.clone(), three.clone()]), begins);
    refused(&with(&blocks[..3]), "the list of blocks ends with 52");
    refused(&with(&[zero.clone(), one.clone(), three.clone()]), "header links: header 2: ");
    refused(&with(&[zero.clone(), two, one, three]), "header links: header 1: ");
    let none = with(&blocks);
    let (before, rest) = none.split_once("\"blocks\":[").unwrap();
    let (_, after) = rest.rsplit_once("],\"status\"").unwrap();
    refused(&format!("{before}\"blocks\":[],\"status\"{after}"), "header links: no blocks");
}

#[test]
fn the_question_is_the_one_that_was_hashed() {
    let (filter, blocks) = searched();
    let honest = filter.bundle(&blocks);
    let own = address(1).to_string().to_lowercase();
    let other = address(8).to_string().to_lowercase();
    refused(&honest.replace(&own, &other), "filter: the filter's text has hash ");
    let ends = honest.replace("\"toBlock\":53", "\"toBlock\":54");
    refused(&ends, "filter: the filter's text has hash ");
    let hash = keccak256("another question").to_string();
    let (before, rest) = honest.split_once("\"filterHash\":\"").unwrap();
    refused(&format!("{before}\"filterHash\":\"{hash}{}", &rest[66..]), "filter: ");
}

/// Receipts that a root commits to and that are none.
#[test]
fn malformed_receipts_are_refused_even_under_a_root_of_their_own() {
    let (filter, _) = searched();
    let check = |receipt: &[u8], expected: &str| {
        let mut block = TestBlock::of(5, keccak256([]), vec![vec![1]], vec![Vec::new()]);
        block.receipts = vec![receipt.to_vec()];
        block.header.receipts_root = crate::builder::trie(&block.receipts, None).0;
        block.header.logs_bloom = alloy_primitives::Bloom::repeat_byte(0xff);
        let text = filter.bundle(&[block.clone()]);
        assert!(text.ends_with(&format!("{}}}", short_way(&block))));
        if expected.is_empty() {
            check(&text).unwrap();
        } else {
            refused(&text, &format!("log: receipt 0 of block 5: {expected}"));
        }
    };
    let (honest, _) = receipt_bytes(2, 5, &[]);
    check(&honest, "");
    check(&honest[1..], "");
    check(&[2], "byte 0 of its list: an item is missing");
    check(&[2, 0xc0], "it has 0 fields, not 4");
    check(&[0xc4, 0x80, 0x80, 0x80, 0x80], "byte 0 of its list: a list was expected");
    check(&[0xc5, 0x80, 0x80, 0x80, 0x80, 0xc0], "byte 0 of its list: a list has too many items");
    check(&[0xc4, 0x80, 0x80, 0x80, 0xc0], "");
    check(&[0xc5, 0x80, 0x80, 0x80, 0xc1, 0x80], "log 0: a list was expected");
    check(&[0xc5, 0x80, 0x80, 0x80, 0xc1, 0xc0], "log 0: it does not have three fields");
    let log = [0xc8, 0x80, 0x80, 0x80, 0xc4, 0xc3, 0x80, 0xc0, 0x80];
    check(&log, "log 0: its address does not have 20 bytes");
}
