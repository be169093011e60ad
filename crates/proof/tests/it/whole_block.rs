//! Proofs of all of a block.

use alloy_primitives::{B256, keccak256};
use proof::ProvenClaim;

use crate::builder::{Random, TestBlock, check, quoted, refused, short_way};

#[test]
fn all_transactions_and_receipts_are_given_back() {
    let block = TestBlock::random(9, B256::ZERO, 12, &mut Random::new(10));
    let verdict = check(&block.whole(&short_way(&block))).unwrap();
    let ProvenClaim::Block { transactions, receipts, .. } = verdict.claim else {
        panic!("a block was claimed")
    };
    assert_eq!((transactions, receipts), (block.transactions, block.receipts));
}

#[test]
fn a_block_that_lacks_something_is_refused() {
    let block = TestBlock::random(9, B256::ZERO, 12, &mut Random::new(11));
    let with = |change: &dyn Fn(&mut TestBlock)| {
        let mut other = block.clone();
        change(&mut other);
        other.whole(&short_way(&block))
    };
    check(&with(&|_| {})).unwrap();
    let transactions = "transactions root: ";
    refused(&with(&|block| drop(block.transactions.pop())), transactions);
    refused(&with(&|block| block.transactions.swap(3, 4)), transactions);
    refused(&with(&|block| block.transactions.push(vec![1])), transactions);
    refused(&with(&|block| block.transactions.clear()), transactions);
    refused(&with(&|block| drop(block.receipts.remove(0))), "receipts root: ");
    refused(&with(&|block| block.receipts.swap(0, 11)), "receipts root: ");
    let withdrawals = "withdrawals root: ";
    refused(&with(&|block| block.withdrawals.as_mut().unwrap().swap(0, 1)), withdrawals);
    refused(&with(&|block| block.withdrawals = Some(Vec::new())), withdrawals);
    refused(&with(&|block| block.withdrawals = None), "the bundle no withdrawals");
    let ommers = with(&|_| {}).replace("\"ommers\":\"0xc0\"", "\"ommers\":\"0xc1c0\"");
    refused(&ommers, "ommers hash: a list of 2 bytes give");
    let before = TestBlock::random(8, B256::ZERO, 1, &mut Random::new(12));
    assert_eq!(before.withdrawals, None);
    let mut with_withdrawals = before.clone();
    with_withdrawals.withdrawals = Some(Vec::new());
    refused(&with_withdrawals.whole(&short_way(&before)), "the header has no such root");
}

/// Two lists that are each proven, but not as many of one as of the other.
#[test]
fn a_block_has_as_many_receipts_as_transactions() {
    let mut random = Random::new(13);
    let mut block = TestBlock::random(8, B256::ZERO, 2, &mut random);
    let other = TestBlock::random(8, B256::ZERO, 3, &mut random);
    block.header.receipts_root = other.header.receipts_root;
    block.receipts = other.receipts;
    refused(&block.whole(&short_way(&block)), "receipts root: 3 receipts of 2 transactions");
}

#[test]
fn ommers_are_proven_by_their_hash() {
    let mut block = TestBlock::random(8, B256::ZERO, 2, &mut Random::new(14));
    let ommers = alloy_rlp::encode(vec![block.header.clone()]);
    block.header.ommers_hash = keccak256(&ommers);
    let bundle = block.whole(&short_way(&block));
    refused(&bundle, "ommers hash: ");
    check(&bundle.replace("\"ommers\":\"0xc0\"", &format!("\"ommers\":{}", quoted(&ommers))))
        .unwrap();
}
