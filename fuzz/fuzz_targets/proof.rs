//! A proof bundle is refused, or what it proves does not survive a change of one byte.
//!
//! Guessing a hash is hopeless. So what was made up is offered three times: as a text, as the root
//! node of a trie under a header that commits to it, and as a receipt of a block in a search for logs.

#![no_main]

use alloy_consensus::Header;
use alloy_primitives::{Bloom, hex, keccak256};
use alloy_trie::root::ordered_trie_root_encoded;
use libfuzzer_sys::fuzz_target;
use proof::{ProofBundle, verify};

/// What asks for every log of block 7.
const FILTER: &str = r#"{"fromBlock":7,"toBlock":7,"address":[],"topics":[]}"#;

fuzz_target!(|data: &[u8]| {
    check(data);
    let Some((index, bytes)) = data.split_first().filter(|(_, bytes)| !bytes.is_empty()) else {
        return;
    };
    let quoted = hex::encode_prefixed(bytes);
    let header = Header { number: 7, transactions_root: keccak256(bytes), ..Header::default() };
    let (header, way) = commit(&header);
    check(
        format!(
            r#"{{"version":1,{header},"transaction":{{"index":{index},"rlp":"0x01","proof":["{quoted}"]}},{way}}}"#
        )
        .as_bytes(),
    );
    let header = Header {
        number: 7,
        receipts_root: ordered_trie_root_encoded(&[bytes]),
        logs_bloom: Bloom::repeat_byte(0xff),
        ..Header::default()
    };
    let (header, way) = commit(&header);
    let hash = keccak256(FILTER);
    check(
        format!(
            r#"{{"version":1,"filter":{FILTER},"filterHash":"{hash}","blocks":[{{{header},"receipts":["{quoted}"]}}],{way}}}"#
        )
        .as_bytes(),
    );
});

/// The members of a header that is its own anchor.
fn commit(header: &Header) -> (String, String) {
    let rlp = alloy_rlp::encode(header);
    let (hash, number) = (keccak256(&rlp), header.number);
    let way = format!(
        r#""status":"linked","anchor":{{"number":{number},"hash":"{hash}","by":"headers","path":[]}}"#
    );
    (format!(r#""header":"{}""#, hex::encode_prefixed(&rlp)), way)
}

fn check(text: &[u8]) {
    let proven = |text: &[u8]| ProofBundle::parse(text).and_then(|bundle| verify(&bundle, &[]));
    let Ok(verdict) = proven(text) else { return };
    assert!(!verdict.steps.is_empty() && !verdict.to_string().is_empty());
    // Another byte at a place that the text itself decides upon, often another digit.
    let mut changed = text.to_vec();
    let place = keccak256(text);
    let at = usize::from(u16::from_be_bytes([place[0], place[1]])) % changed.len();
    changed[at] ^= 1 << (place[2] % 8);
    assert!(proven(&changed).is_err(), "{verdict}\nstands though byte {at} was changed");
}
