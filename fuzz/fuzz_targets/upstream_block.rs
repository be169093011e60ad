//! A node's answers for a block, however they were changed: they are refused, or they are the block
//! that was asked for.
//!
//! The first byte of an input chooses. Even: the rest are edits of the true answers for a block of
//! the sample chain, which is asked for by its hash; what is accepted must be that block, to the byte.
//! Odd: the rest is what the node sent, as lines: the block with its receipts, and its ommers. It is
//! asked for by number, and what is accepted must have the hash that it claims.

#![no_main]

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use chain::trust::Anchors;
use chain::{Candidate, ChainSpec, Start, Verifier};
use libfuzzer_sys::fuzz_target;
use node::{NodeBlock, WantedBlock};
use rpc::ServiceSettings;
use sample::generate;
use serde_json::{Value, json};

/// Edits of one answer: more only make it less like one.
const EDITS_MAX: usize = 8;

/// A block, and what an honest node says of it.
struct SampleBlock {
    candidate: Candidate,
    number: u64,
    hash: B256,
    messages: [Vec<u8>; 2],
}

static SPEC: LazyLock<ChainSpec> = LazyLock::new(fuzz::sample_spec);

static BLOCKS: LazyLock<Vec<SampleBlock>> = LazyLock::new(|| {
    let runtime = fuzz::runtime();
    let service = fuzz::service(fuzz::sample_spec(), ServiceSettings::default());
    let ask = |calls: &[(&str, Value)]| {
        let calls: Vec<Value> = (1..)
            .zip(calls)
            .map(|(id, (method, params))| json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}))
            .collect();
        let body = serde_json::to_vec(&calls).expect("our own JSON");
        runtime.block_on(service.respond(&body, Duration::from_secs(5))).expect("an answer")
    };
    let mut blocks = Vec::new();
    let made = generate(&fuzz::sample_settings(), NonZeroUsize::MIN, |candidate| {
        let header = chain::decode_header(&candidate.header).expect("our own header");
        let (number, hash) = (header.number, keccak256(&candidate.header));
        let block = ask(&[
            ("eth_getBlockByHash", json!([hash, true])),
            ("eth_getBlockReceipts", json!([hash])),
        ]);
        let ommer_count =
            alloy_rlp::decode_exact::<Vec<alloy_consensus::Header>>(&candidate.body.ommers);
        let ommers: Vec<_> = (0..ommer_count.expect("our own ommers").len())
            .map(|index| ("eth_getUncleByBlockHashAndIndex", json!([hash, format!("{index:#x}")])))
            .collect();
        let messages = [block, if ommers.is_empty() { Vec::new() } else { ask(&ommers) }];
        blocks.push(SampleBlock { candidate, number, hash, messages });
        Ok::<(), Infallible>(())
    });
    let Ok(()) = made;
    for block in &blocks {
        // A test that refuses everything could not fail.
        let SampleBlock { number, hash, .. } = *block;
        let asked = WantedBlock::Hash { number, hash };
        let accepted = accept(asked, block.messages.clone());
        assert!(accepted.is_some(), "the true block {number} is refused");
    }
    blocks
});

fuzz_target!(init: prepare(), |data: &[u8]| check_input(data));

/// What takes long is no input's fault.
fn prepare() {
    LazyLock::force(&SPEC);
    LazyLock::force(&BLOCKS);
}

fn check_input(data: &[u8]) {
    let [choice, which, rest @ ..] = data else { return };
    let block = &BLOCKS[usize::from(*which) % BLOCKS.len()];
    let SampleBlock { number, hash, .. } = *block;
    if choice & 1 == 1 {
        let mut lines = rest.splitn(2, |byte| *byte == b'\n').map(<[u8]>::to_vec);
        let messages = [lines.next().unwrap_or_default(), lines.next().unwrap_or_default()];
        accept(WantedBlock::Number(number), messages);
        return;
    }
    let messages = edit(&block.messages, rest);
    accept(WantedBlock::Number(number), messages.clone());
    if let Some(accepted) = accept(WantedBlock::Hash { number, hash }, messages) {
        let Candidate { header, body, receipts, .. } = &block.candidate;
        assert_eq!(accepted.header, *header);
        assert_eq!(accepted.body, *body);
        assert_eq!(accepted.receipts, *receipts);
    }
}

/// The candidate that these messages make, if it is verified too.
fn accept(which: WantedBlock, messages: [Vec<u8>; 2]) -> Option<Candidate> {
    let told = serde_json::from_slice::<Value>(&messages[0]).ok();
    let fetched = NodeBlock::from_messages(which, messages).ok()?;
    let candidate = fetched.rebuild(&SPEC).ok()?;
    let anchors = Anchors::none();
    let mut verifier = Verifier::new(&SPEC, &anchors, Start::At(which.number()));
    let block = match verifier.verify(candidate.clone()) {
        Ok(block) => block,
        Err(mismatch) => {
            // Whether a block that is refused is of a later fork, or a lie, is found out without harm.
            let _ = fetched.unknown_fork_of(&mismatch);
            return None;
        }
    };
    assert_eq!(block.hash, keccak256(&candidate.header));
    assert_eq!(block.header.number, which.number());
    assert!(which.hash().is_none_or(|hash| hash == block.hash));
    // Half a character in what nobody reads stops this reader, and not ours.
    if let Some(told) = told {
        let answer = told.as_array().into_iter().flatten().find(|answer| answer["id"] == 1);
        let claimed =
            answer.and_then(|it| serde_json::from_value(it["result"]["hash"].clone()).ok());
        assert_eq!(claimed, Some(block.hash), "another hash is claimed");
    }
    Some(candidate)
}

/// The messages with some bytes exchanged, taken out or put in.
fn edit(messages: &[Vec<u8>; 2], mut edits: &[u8]) -> [Vec<u8>; 2] {
    let mut edited = messages.clone();
    for _ in 0..EDITS_MAX {
        let Some(([kind, low, high, count], rest)) = edits.split_first_chunk() else { break };
        let message = &mut edited[usize::from(kind >> 7)];
        let begin = usize::from(u16::from_le_bytes([*low, *high])) % (message.len() + 1);
        let (bytes, rest) = rest.split_at(usize::from(*count).min(rest.len()));
        edits = rest;
        let end = match kind & 3 {
            0 => begin,
            1 | 2 => begin + bytes.len(),
            _ => begin + usize::from(*count),
        };
        let bytes = if kind & 3 == 3 { &[] } else { bytes };
        message.splice(begin..end.min(message.len()), bytes.iter().copied());
    }
    edited
}
