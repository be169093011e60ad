//! The two kinds of way to an anchor, and who is trusted at their ends.

use alloy_primitives::{B256, keccak256};
use proof::{AnchorTrust, MAINNET_ACCUMULATOR, ProofAnchor, ProofBundle, verify};

use crate::builder::{Random, TestBlock, accumulator_way, chain, check, headers_way};
use crate::builder::{quoted, refused, short_way};

fn anchor(block: &TestBlock) -> ProofAnchor {
    format!("{}:{}", block.header.number, block.hash()).parse().unwrap()
}

#[test]
fn headers_lead_from_a_block_to_a_later_one() {
    let blocks = chain(100, &[3, 0, 2, 5, 1, 0], &mut Random::new(4));
    for last in 0..blocks.len() {
        let text = blocks[0].bundle(1, &headers_way(&blocks[0], &blocks[1..=last]));
        let bundle = ProofBundle::parse(text.as_bytes()).unwrap();
        let reached = anchor(&blocks[last]);
        let verdict = verify(&bundle, &[]).unwrap();
        assert_eq!((verdict.anchor, verdict.trust), (reached, AnchorTrust::Untrusted));
        let verdict = verify(&bundle, &[MAINNET_ACCUMULATOR, reached]).unwrap();
        assert_eq!(verdict.trust, AnchorTrust::Named);
        let other = anchor(&blocks[(last + 1) % blocks.len()]);
        let refusal = verify(&bundle, &[other, MAINNET_ACCUMULATOR]).unwrap_err();
        let expected =
            format!("anchor: the proof leads to {reached}, which is not an anchor that you trust");
        assert_eq!(refusal.to_string(), expected);
    }
}

#[test]
fn headers_that_are_not_each_others_parents_are_refused() {
    let blocks = chain(100, &[3, 0, 2, 5], &mut Random::new(5));
    let with = |following: &[&TestBlock]| {
        let following: Vec<TestBlock> = following.iter().map(|block| (*block).clone()).collect();
        blocks[0].bundle(1, &headers_way(&blocks[0], &following))
    };
    let [zero, one, two, three] = blocks.as_slice() else { panic!("four blocks") };
    check(&with(&[one, two, three])).unwrap();
    refused(&with(&[two, three]), "header links: header 0: the header of block 102 names");
    refused(&with(&[one, three]), "header links: header 1: the header of block 103 names");
    refused(&with(&[two, one, three]), "header links: header 0");
    refused(&with(&[one, one, two, three]), "header links: header 1");
    refused(&with(&[zero, one, two, three]), "header links: header 0");
    // The number is the header's own claim: a hash links it, and it must count.
    let mut skipping = one.clone();
    skipping.header.number = 102;
    refused(&with(&[&skipping]), "header 0: the header of block 102 follows that of block 100");
    let honest = with(&[one, two]);
    let hash = two.hash().to_string();
    let leads = "anchor: the way from block 100 leads to 102:";
    refused(&honest.replace(&hash, &three.hash().to_string()), leads);
    refused(&honest.replace("\"number\":102", "\"number\":103"), leads);
}

#[test]
fn the_accumulators_branch_leads_from_a_block_to_its_root() {
    let mut random = Random::new(6);
    for number in [0, 1, 8191, 8192, 1_000_000, 15_537_393, 16_777_215 - 16_384] {
        let block = TestBlock::random(number, B256::ZERO, 2, &mut random);
        let (way, root) = accumulator_way(&block, &mut random);
        let text = block.bundle(1, &way);
        let bundle = ProofBundle::parse(text.as_bytes()).unwrap();
        let reached = ProofAnchor::Accumulator { root: proof::Hash32(root.0) };
        assert_eq!(verify(&bundle, &[]).unwrap().trust, AnchorTrust::Untrusted);
        assert_eq!(verify(&bundle, &[reached]).unwrap().trust, AnchorTrust::Named);
        assert!(verify(&bundle, &[MAINNET_ACCUMULATOR]).is_err());
        // Another block's header at this place.
        let mut other = block.clone();
        other.header.timestamp += 1;
        refused(&other.bundle(1, &way), "anchor: the way from block ");
        // This header at another place: the sides of the branch follow from the number.
        let mut elsewhere = block.clone();
        elsewhere.header.number ^= 1;
        refused(&elsewhere.bundle(1, &way), "anchor: the way from block ");
    }
}

#[test]
fn a_branch_has_its_length_and_no_other() {
    let mut random = Random::new(7);
    let block = TestBlock::random(20_000, B256::ZERO, 2, &mut random);
    let (way, _root) = accumulator_way(&block, &mut random);
    let honest = block.bundle(0, &way);
    let (before, path) = honest.rsplit_once("\"path\":[").unwrap();
    let siblings: Vec<&str> = path.strip_suffix("]}}").unwrap().split(',').collect();
    let with = |siblings: &[&str]| format!("{before}\"path\":[{}]}}}}", siblings.join(","));
    assert_eq!(with(&siblings), honest);
    refused(&with(&siblings[1..]), "accumulator branch: a branch has 28 siblings, not 27");
    refused(&with(&[]), "accumulator branch: a branch has 28 siblings, not 0");
    let longer = [siblings.as_slice(), &siblings[..1]].concat();
    refused(&with(&longer), "expected at most 28 items");
    for at in 1..siblings.len() {
        let mut swapped = siblings.clone();
        swapped.swap(at - 1, at);
        if swapped != siblings {
            refused(&with(&swapped), "anchor: the way from block 20000 leads to accumulator:");
        }
    }
    let late = TestBlock::random(1 << 24, B256::ZERO, 2, &mut random);
    refused(&late.bundle(0, &way), "block 16777216 is in no epoch before the merge");
}

#[test]
fn a_status_that_the_way_does_not_have_is_refused() {
    let mut random = Random::new(8);
    let block = TestBlock::random(7, B256::ZERO, 2, &mut random);
    let way = short_way(&block);
    refused(&block.bundle(0, &way.replace("linked", "anchored")), "text: byte ");
    let (way, _root) = accumulator_way(&block, &mut random);
    refused(&block.bundle(0, &way.replace("anchored", "linked")), "text: byte ");
    refused(&block.bundle(0, &way.replace("anchored", "final")), "text: byte ");
}

#[test]
fn headers_of_all_forks_are_read_and_others_are_not() {
    let mut block = TestBlock::random(9, B256::ZERO, 1, &mut Random::new(9));
    check(&block.bundle(0, &short_way(&block))).unwrap();
    block.header.blob_gas_used = Some(1);
    block.header.excess_blob_gas = Some(2);
    block.header.parent_beacon_block_root = Some(B256::repeat_byte(3));
    block.header.requests_hash = Some(B256::repeat_byte(4));
    check(&block.bundle(0, &short_way(&block))).unwrap();
    let rlp = alloy_rlp::encode(&block.header);
    let list = |items: &[Vec<u8>]| {
        let payload = items.concat();
        let mut list = Vec::new();
        alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut list);
        [list, payload].concat()
    };
    let mut payload = rlp.as_slice();
    let mut payload = alloy_rlp::Header::decode_bytes(&mut payload, true).unwrap();
    let mut fields: Vec<Vec<u8>> = Vec::new();
    while !payload.is_empty() {
        let field = alloy_rlp::Header::decode_bytes(&mut payload, false).unwrap();
        fields.push(alloy_rlp::encode(field));
    }
    let as_header = |header: &[u8]| {
        let own = (quoted(&rlp), block.hash().to_string());
        let text = block.bundle(0, &short_way(&block)).replace(&own.0, &quoted(header));
        text.replace(&own.1, &keccak256(header).to_string())
    };
    assert_eq!(list(&fields), rlp);
    // A field that a later fork may add.
    let longer = [fields.clone(), vec![alloy_rlp::encode([5_u8; 32])]].concat();
    check(&as_header(&list(&longer))).unwrap();
    refused(&as_header(&list(&fields[..14])), "header hash: a header has 14 fields, at least 15");
    refused(&as_header(&[list(&fields), vec![0]].concat()), "bytes are left over");
    let with = |index: usize, field: &[u8]| {
        let mut fields = fields.clone();
        fields[index] = field.to_vec();
        as_header(&list(&fields))
    };
    for index in [0, 1, 4, 5, 6, 16] {
        refused(&with(index, &[0x80]), &format!("header hash: field {index} of the header"));
    }
    refused(&with(8, &[0x82, 0, 9]), "field 8 of the header, number, does not have its form");
    refused(&with(8, &[0]), "field 8 of the header, number, does not have its form");
    refused(&with(8, &[0xc0]), "header hash: field 8 of the header");
    refused(&with(2, &[0xc0]), "header hash: field 2 of the header is a list");
    refused(&as_header(&[0x80]), "a list was expected");
    let many = vec![vec![0x80]; 65];
    refused(&as_header(&list(&many)), "a list has too many items");
}

#[test]
fn anchors_are_read_as_they_are_written() {
    let hash = B256::repeat_byte(0xab);
    for text in [format!("0:{hash}"), format!("17000000:{hash}"), format!("accumulator:{hash}")] {
        assert_eq!(text.parse::<ProofAnchor>().unwrap().to_string(), text);
    }
    let upper = format!("5:0x{}", "AB".repeat(32));
    assert_eq!(upper.parse::<ProofAnchor>().unwrap().to_string(), format!("5:{hash}"));
    let long = format!("5:{hash}00");
    let signed = format!("+5:{hash}");
    let hash = hash.to_string();
    for text in ["", "5", ":", "5:0x", "5:0xab", &hash, &long, &signed, "5:0xé", "latest:0xab"] {
        assert!(text.parse::<ProofAnchor>().is_err(), "{text}");
    }
}
