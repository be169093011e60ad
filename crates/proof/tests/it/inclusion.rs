//! Proofs of one transaction: which are accepted, and what no path may look like.

use alloy_primitives::{B256, hex, keccak256};
use proof::ProvenClaim;

use crate::builder::{Random, TestBlock, check, quoted, refused, short_way, trie};

#[test]
fn every_transaction_of_blocks_of_any_length_is_proven() {
    let mut random = Random::new(2);
    for count in (1..20).chain([127, 128, 129, 257, 400]) {
        let block = TestBlock::random(count, B256::ZERO, count, &mut random);
        let way = short_way(&block);
        let all = 0..usize::try_from(count).unwrap();
        for at in all.filter(|at| count < 100 || at % 7 == 0 || *at + 2 > block.logs.len()) {
            let verdict = check(&block.bundle(at, &way)).unwrap_or_else(|no| panic!("{at}: {no}"));
            let ProvenClaim::Transaction { index, hash, transaction, receipt, log, .. } =
                verdict.claim
            else {
                panic!("a transaction was claimed")
            };
            assert_eq!(usize::try_from(index).unwrap(), at);
            assert_eq!(hash.0, keccak256(&block.transactions[at]).0);
            assert_eq!(transaction, block.transactions[at]);
            assert_eq!(receipt.as_ref(), Some(&block.receipts[at]));
            let expected = &block.logs[at];
            assert_eq!(log.is_some(), !expected.is_empty());
            if let Some(log) = log {
                let expected = &expected[at % expected.len()];
                assert_eq!(log.address, expected.address.0.0);
                assert_eq!(log.data, expected.data.data.to_vec());
                let topics: Vec<B256> = log.topics.iter().map(|topic| B256::new(topic.0)).collect();
                assert_eq!(topics, expected.topics());
            }
        }
    }
}

#[test]
fn a_verdict_says_what_was_checked_and_what_is_left_to_trust() {
    let block = block(3);
    let header = block.header_member();
    let bundle =
        format!("{{\"version\":1,{header},{},{}}}", block.transaction_member(1), short_way(&block));
    let verdict = check(&bundle).unwrap();
    let (hash, root) = (block.hash(), block.header.transactions_root);
    let transaction = keccak256(&block.transactions[1]);
    let nodes = trie(&block.transactions, Some(1)).1.len();
    let size = block.transactions[1].len();
    assert_eq!(
        verdict.to_string(),
        format!(
            "header hash: the header of block 5: {hash}\n\
             transaction path: {nodes} nodes to index 1: {root}\n\
             transaction bytes: {size} bytes in the leaf: {transaction}\n\
             header links: 0 headers name each other as parents: {hash}\n\
             anchor: the way ends at block 5: {hash}\n\
             proven: transaction {transaction} is at index 1 of block 5 with hash {hash}\n\
             anchor 5:{hash}: untrusted; this is proven if that is canonical, which you have to \
             know from somebody else"
        )
    );
}

fn block(count: u64) -> TestBlock {
    TestBlock::random(5, B256::ZERO, count, &mut Random::new(3))
}

/// The proof of one transaction under the index of another.
#[test]
fn a_proof_of_one_transaction_does_not_pass_for_another() {
    let block = block(140);
    let way = short_way(&block);
    for (of, for_other) in [(0, 1), (1, 0), (1, 2), (127, 128), (128, 0), (130, 13), (13, 130)] {
        let honest = block.bundle(of, &way);
        let index = format!("\"index\":{of},");
        // Two short leaves of one branch have the same nodes: then it is the bytes that differ.
        refused(&honest.replace(&index, &format!("\"index\":{for_other},")), "transaction ");
        let receipt_alone = honest.replacen(&index, "\"index\":#,", 1);
        let receipt_alone = receipt_alone.replace(&index, &format!("\"index\":{for_other},"));
        let receipt_alone = receipt_alone.replace("\"index\":#,", &index);
        refused(&receipt_alone, "receipt path: index ");
        // The other's bytes at the end of this one's path.
        let (own, other) = (&block.transactions[of], &block.transactions[for_other]);
        let rlp = |bytes: &[u8]| format!("\"rlp\":{}", quoted(bytes));
        refused(&honest.replacen(&rlp(own), &rlp(other), 1), "transaction bytes: `rlp` has ");
        // The path of the receipt for that of the transaction.
        let crossed = honest
            .replace("\"transaction\"", "\"#\"")
            .replace("\"receipt\"", "\"transaction\"")
            .replace("\"#\"", "\"receipt\"");
        refused(&crossed, "text: ");
    }
}

/// Cuts, repeats, swaps and pads the nodes of a path in every way that one change can.
#[test]
fn a_path_is_neither_shortened_nor_padded_nor_reordered() {
    let block = block(140);
    let way = short_way(&block);
    for index in [0, 1, 130] {
        let honest = block.bundle(index, &way);
        let nodes = trie(&block.transactions, Some(index)).1;
        assert!(nodes.len() >= 2, "long enough to change");
        let quoted_nodes: Vec<String> = nodes.iter().map(|node| quoted(node)).collect();
        let joined = format!("[{}]", quoted_nodes.join(","));
        assert!(honest.contains(&joined));
        let with =
            |nodes: &[String]| honest.replacen(&joined, &format!("[{}]", nodes.join(",")), 1);
        let mut others = Vec::new();
        for at in 0..=nodes.len() {
            for node in quoted_nodes.iter().chain(&[String::from("\"0x80\"")]) {
                let mut padded = quoted_nodes.clone();
                padded.insert(at, node.clone());
                others.push(padded);
            }
        }
        for at in 0..nodes.len() {
            let mut cut = quoted_nodes.clone();
            cut.remove(at);
            others.push(cut);
            for other in 0..at {
                let mut swapped = quoted_nodes.clone();
                swapped.swap(at, other);
                others.push(swapped);
            }
        }
        others.push(Vec::new());
        for other in others.into_iter().filter(|other| *other != quoted_nodes) {
            refused(&with(&other), "transaction path: ");
        }
    }
}

#[test]
fn a_log_is_at_its_place_of_the_receipt_alone() {
    let block = block(30);
    let index = block.logs.iter().position(|logs| logs.len() == 3).unwrap();
    let way = short_way(&block);
    let honest = block.bundle(index, &way);
    let own = format!("\"log\":{{\"position\":{},\"after\":{}}}", index % 3, 2 - index % 3);
    assert!(honest.contains(&own));
    for (position, after) in
        [(0, 1), (1, 0), (3, 0), (0, 3), (1, 2), (9_007_199_254_740_991_u64, 0)]
    {
        let other = format!("\"log\":{{\"position\":{position},\"after\":{after}}}");
        refused(&honest.replace(&own, &other), "but the receipt has 3 logs");
    }
    for (position, after) in [(0, 2), (1, 1), (2, 0)] {
        let other = format!("\"log\":{{\"position\":{position},\"after\":{after}}}");
        check(&honest.replace(&own, &other)).unwrap();
    }
}

/// Nodes that no client writes, under a header made for them: the verifier does not interpret them.
#[test]
fn malformed_nodes_are_refused_even_under_a_root_of_their_own() {
    let check = |nodes: &[&[u8]], expected: &str| {
        let mut block = block(1);
        block.header.transactions_root = keccak256(nodes[0]);
        let path: Vec<String> = nodes.iter().map(|node| quoted(node)).collect();
        let bundle = format!(
            "{{\"version\":1,{},\"transaction\":{{\"index\":0,\"rlp\":\"0x01\",\"proof\":[{}]}},{}}}",
            block.header_member(),
            path.join(","),
            short_way(&block)
        );
        if expected.is_empty() {
            check(&bundle).unwrap();
        } else {
            refused(&bundle, &format!("transaction path: {expected}"));
        }
    };
    // [0x208 0, 1]: a leaf with the whole key 0x80.
    check(&[&hex!("c4 82 20 80 01")], "");
    check(&[&hex!("80")], "node 0, byte 0: a list was expected");
    check(&[&hex!("c0")], "node 0: it has 0 items, not 2 or 17");
    check(&[&hex!("c4 82 20 80 01 00")], "node 0, byte 5: bytes are left over");
    check(&[&hex!("c5 82 20 80 81 01")], "node 0, byte 4: a byte below 0x80");
    check(&[&hex!("c4 82 21 80 01")], "node 0: its part of the path is malformed");
    check(&[&hex!("c4 82 40 80 01")], "node 0: its part of the path is malformed");
    check(&[&hex!("c2 80 01")], "node 0: its part of the path is malformed");
    check(&[&hex!("c3 c1 20 01")], "node 0: its part of the path is malformed");
    check(&[&hex!("c4 82 20 81 01")], "node 0: the path leads elsewhere");
    check(&[&hex!("c2 38 01")], "the path ends in a leaf before the index does");
    check(&[&hex!("c5 82 20 80 c1 01")], "the leaf holds a list, not bytes");
    check(&[&hex!("c2 00 80")], "node 0: an extension without a part of the path");
    check(&[&hex!("c4 82 00 80 80")], "node 0: the trie has nothing at this index");
    check(&[&hex!("c4 82 00 80 01")], "node 0: a child is neither hash nor node");
    // An extension to a leaf inside of it, with the rest of the key.
    check(&[&hex!("c4 18 c2 30 01")], "");
    check(&[&hex!("c5 18 c3 20 01 01")], "node 0: it has 3 items, not 2 or 17");
    // The branch behind the whole key.
    let branch = [hex!("d7 82 00 80 d1").as_slice(), &[0x80; 17]].concat();
    check(&[&branch], "node 0, byte 0: an item is cut off");
    let branch = [hex!("d5 82 00 80 d1").as_slice(), &[0x80; 17]].concat();
    check(&[&branch], "node 0: the path ends in a branch");
    // A node of its own that is short enough to stand in its parent.
    let leaf = hex!("c4 82 20 80 01");
    let parent = [hex!("e2 00 a0").as_slice(), keccak256(leaf).as_slice()].concat();
    check(&[&parent, &leaf], "node 0: an extension without a part of the path");
    let leaf = hex!("c2 30 01");
    let parent = [hex!("e2 18 a0").as_slice(), keccak256(leaf).as_slice()].concat();
    check(&[&parent, &leaf], "node 1 has 3 bytes and belongs into its parent");
    // A node that stands in its parent although it is long.
    let leaf = [hex!("e3 30 a1").as_slice(), &[0xff; 33]].concat();
    let parent = [hex!("e5 18").as_slice(), &leaf].concat();
    check(&[&parent], "node 0: a child that is long enough for a hash stands in its parent");
}
