//! Every change of one byte of a bundle is refused.

use alloy_primitives::{B256, Log};
use proof::{ProofAnchor, ProofBundle, verify};

use crate::builder::{Random, TestBlock, TestFilter, accumulator_way, address, chain, headers_way};
use crate::builder::{short_way, topic};

fn is_proven(text: &[u8]) -> bool {
    ProofBundle::parse(text).and_then(|bundle| verify(&bundle, &[])).is_ok()
}

/// Sets every byte to other values. No anchor is trusted here: the change is refused by the bundle
/// itself.
fn every_change_is_refused(name: &str, text: &str, values: &[u8]) {
    assert!(is_proven(text.as_bytes()), "{name} proves something");
    let mut changed = text.as_bytes().to_vec();
    for at in 0..changed.len() {
        let own = changed[at];
        let flipped = (0..8).map(|bit| own ^ 1 << bit);
        for other in flipped.chain(values.iter().copied()).filter(|other| *other != own) {
            changed[at] = other;
            let shown = || String::from_utf8_lossy(&changed[at.saturating_sub(20)..]).into_owned();
            assert!(!is_proven(&changed), "{name}: byte {at} is {other}: {:.60}", shown());
        }
        changed[at] = own;
    }
    // Nor may a byte be lost or doubled, but for the newline at the end of a file.
    for at in 0..text.len() {
        let (before, after) = text.split_at(at);
        assert!(!is_proven(format!("{before}{}", &after[1..]).as_bytes()), "{name}: without {at}");
        let doubled = format!("{before}{}{after}", &after[..1]);
        assert!(!is_proven(doubled.as_bytes()), "{name}: byte {at} twice");
    }
    assert!(is_proven(format!("{text}\n").as_bytes()));
    for end in ["\n\n", " ", "\r\n", "}", "\0"] {
        assert!(!is_proven(format!("{text}{end}").as_bytes()), "{name}: {end:?} at the end");
    }
}

/// What a text is made of, and what JSON has besides.
const LETTERS: &[u8] = b"05afAFx\"[]{},:+-. \t\n\\\0\xff";

#[test]
fn of_a_transaction_with_headers_to_its_anchor() {
    let blocks = chain(100, &[2, 0], &mut Random::new(30));
    let text = blocks[0].bundle(0, &headers_way(&blocks[0], &blocks[1..]));
    every_change_is_refused("headers", &text, LETTERS);
}

/// The smallest bundle, and every byte to all 255 others.
#[test]
fn of_a_transaction_alone_to_whatever_it_may_be() {
    let block = TestBlock::random(9, B256::ZERO, 2, &mut Random::new(37));
    let (header, transaction) = (block.header_member(), block.transaction_member(1));
    let text = format!("{{\"version\":1,{header},{transaction},{}}}", short_way(&block));
    let all: Vec<u8> = (0..=u8::MAX).collect();
    every_change_is_refused("transaction", &text, &all);
}

#[test]
fn of_a_transaction_with_an_accumulator_as_its_anchor() {
    let mut random = Random::new(31);
    let block = TestBlock::random(9000, B256::ZERO, 3, &mut random);
    let (way, _root) = accumulator_way(&block, &mut random);
    every_change_is_refused("accumulator", &block.bundle(2, &way), LETTERS);
}

/// Logs that are equal: only their places tell them apart.
#[test]
fn of_one_of_several_equal_logs() {
    let log = Log::new_unchecked(address(1), vec![topic(2)], vec![3].into());
    let block = TestBlock::of(100, B256::ZERO, vec![vec![1, 2]], vec![vec![log; 12]]);
    every_change_is_refused("log", &block.bundle(0, &short_way(&block)), LETTERS);
}

#[test]
fn of_all_of_a_block() {
    let block = TestBlock::random(103, B256::ZERO, 3, &mut Random::new(32));
    every_change_is_refused("block", &block.whole(&short_way(&block)), LETTERS);
}

#[test]
fn of_a_list_of_logs() {
    let blocks = chain(100, &[1, 0], &mut Random::new(33));
    let filter =
        TestFilter { addresses: vec![address(1)], topics: vec![vec![], vec![topic(2), topic(3)]] };
    every_change_is_refused("logs", &filter.bundle(&blocks), LETTERS);
}

/// Large bundles: one byte of each stretch, to one other value.
#[test]
fn of_large_bundles_at_many_places() {
    let mut random = Random::new(34);
    let blocks = chain(8000, &[200, 150, 1, 0, 90], &mut random);
    let filter = TestFilter { addresses: vec![address(1)], topics: Vec::new() };
    let texts = [
        blocks[0].bundle(199, &headers_way(&blocks[0], &blocks[1..])),
        blocks[1].whole(&short_way(&blocks[1])),
        filter.bundle(&blocks),
    ];
    for text in texts {
        assert!(is_proven(text.as_bytes()));
        let mut changed = text.clone().into_bytes();
        for _ in 0..300 {
            let at = usize::try_from(random.below(u64::try_from(changed.len()).unwrap())).unwrap();
            let own = changed[at];
            // Most of a text is hex: another digit, so that the change goes deeper than the text.
            let digits = b"0123456789abcdef";
            let digit = digits[usize::try_from(random.below(16)).unwrap()];
            changed[at] = if digit == own { own ^ 1 } else { digit };
            assert!(!is_proven(&changed), "byte {at} of {}", changed.len());
            changed[at] = own;
        }
    }
}

/// With a trusted anchor, a bundle that is whole in itself but of another chain is refused too.
#[test]
fn a_chain_of_ones_own_does_not_lead_to_a_trusted_anchor() {
    let honest = chain(100, &[2, 2], &mut Random::new(35));
    let forged = chain(100, &[2, 2], &mut Random::new(36));
    let trusted: ProofAnchor = format!("101:{}", honest[1].hash()).parse().unwrap();
    let text = forged[0].bundle(0, &headers_way(&forged[0], &forged[1..]));
    let bundle = ProofBundle::parse(text.as_bytes()).unwrap();
    assert!(verify(&bundle, &[]).is_ok());
    assert!(verify(&bundle, &[trusted]).is_err());
    let text = text.replace(&forged[1].hash().to_string(), &honest[1].hash().to_string());
    let bundle = ProofBundle::parse(text.as_bytes()).unwrap();
    assert!(verify(&bundle, &[trusted]).is_err());
}
