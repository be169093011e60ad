//! A candidate made of arbitrary bytes is refused, or what was verified is what was handed over.
//!
//! Guessing a trie root is hopeless, and a header that lies about its body is refused before any
//! transaction is decoded. So each body is offered twice: under the header that came with it, and
//! under one that commits to it.

#![no_main]

use alloy_consensus::{Header, proofs};
use alloy_primitives::{Bytes, keccak256};
use alloy_trie::root::ordered_trie_root_encoded;
use chain::trust::Anchors;
use chain::{Body, Candidate, ChainSpec, Receipt, Start, Verifier};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut receipts_rlp = data;
    let Some(header_rlp) = take_sized(&mut receipts_rlp) else { return };
    let Some(body_rlp) = take_sized(&mut receipts_rlp) else { return };
    let Ok(body) = Body::decode(&Bytes::copy_from_slice(body_rlp)) else { return };
    let receipts = chain::decode_receipts(receipts_rlp).ok();
    let header = chain::decode_header(header_rlp).unwrap_or_default();
    let committed = alloy_rlp::encode(commit(header.clone(), &body, receipts.as_deref()));
    for rlp in [header_rlp, &committed] {
        let candidate = Candidate {
            header: Bytes::copy_from_slice(rlp),
            body: body.clone(),
            receipts: receipts.clone(),
            total_difficulty: None,
        };
        check(header.number, &candidate);
    }
});

/// Takes a little-endian `u16` and as many bytes off the front.
fn take_sized<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = data.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *data = rest;
    Some(taken)
}

/// The same header with commitments to these parts.
fn commit(header: Header, body: &Body, receipts: Option<&[Receipt]>) -> Header {
    let withdrawals_root = body.withdrawals.as_ref().and_then(|list| {
        let withdrawals: Vec<_> = alloy_rlp::decode_exact(list).ok()?;
        Some(proofs::calculate_withdrawals_root(&withdrawals))
    });
    let receipts = receipts.unwrap_or_default();
    let blooms: Vec<_> =
        receipts.iter().map(|receipt| chain::logs_bloom(&receipt.fields.logs)).collect();
    let encoded: Vec<Vec<u8>> = receipts
        .iter()
        .zip(&blooms)
        .map(|(receipt, bloom)| {
            let mut encoded = Vec::new();
            receipt.encode_2718(bloom, &mut encoded);
            encoded
        })
        .collect();
    Header {
        transactions_root: ordered_trie_root_encoded(&body.transactions),
        ommers_hash: keccak256(&body.ommers),
        withdrawals_root,
        receipts_root: ordered_trie_root_encoded(&encoded),
        logs_bloom: blooms.iter().fold(Default::default(), |sum, bloom| sum | *bloom),
        gas_used: receipts.last().map_or(0, |receipt| receipt.fields.cumulative_gas_used),
        // A header's optional fields are positional: a withdrawals root needs a base fee before it.
        base_fee_per_gas: header.base_fee_per_gas.or(withdrawals_root.map(|_| 0)),
        ..header
    }
}

fn check(number: u64, candidate: &Candidate) {
    // With mainnet's forks, and not held to the rules of its headers, which would refuse nearly all.
    let spec = ChainSpec::bare("fuzzed", Some(1), None);
    let anchors = Anchors::none();
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(number));
    let Ok(block) = verifier.verify(candidate.clone()) else { return };
    let Candidate { header, body, receipts, .. } = candidate;
    assert_eq!(block.hash, keccak256(header));
    assert_eq!(block.header_rlp, *header);
    assert_eq!(block.ommers_rlp, body.ommers);
    assert_eq!(block.withdrawals_rlp, body.withdrawals);
    assert_eq!(block.receipts, *receipts);
    let encoded = block.transactions.iter().map(|transaction| &transaction.encoded);
    assert!(encoded.eq(&body.transactions));
}
