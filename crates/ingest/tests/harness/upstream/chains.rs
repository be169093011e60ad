//! Sample chains, also such that leave each other at a block.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes};
use chain::trust::Anchors;
use chain::{Block, Candidate, ChainSpec, Start, Verified, Verifier};
use sample::{CHAIN_ID, NETWORK_NAME, Payload, SampleChain, SampleSettings, Sealer};
use serde_json::json;

use super::told::Told;
use crate::harness::made::{blocks, relinked, spec};

/// Few transactions, so that the tests are quick, but of all types and with logs.
pub(crate) fn settings(block_count: u64) -> SampleSettings {
    SampleSettings {
        seed: 5,
        block_count,
        txs_per_block: 2,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

pub(crate) fn sample_spec() -> ChainSpec {
    spec(&settings(1))
}

/// A chain as a node tells it.
pub(crate) type Chain = Vec<Arc<Told>>;

/// The first blocks of the sample chain.
pub(crate) fn chain(block_count: u64) -> Chain {
    forked(block_count, block_count, 0)
}

/// The sample chain up to and including `fork_point`, and from there on another one for every letter.
pub(crate) fn forked(block_count: u64, fork_point: u64, letter: u64) -> Chain {
    let own = settings(block_count);
    let other = SampleSettings { seed: 1000 + letter, ..own.clone() };
    let (own_chain, other_chain) = (SampleChain::new(&own), SampleChain::new(&other));
    let mut sealer = Sealer::new(&own);
    let mut candidates = Vec::new();
    for (place, other_place) in own_chain.places().zip(other_chain.places()) {
        let is_own = candidates.len() as u64 <= fork_point;
        let draft = if is_own { own_chain.draft(place) } else { other_chain.draft(other_place) };
        candidates.push(sealer.seal(draft));
    }
    prove(candidates).into_iter().map(|block| Arc::new(Told::of(&block))).collect()
}

/// The sample chain with another header of block `number`, which whoever does not know the chain's
/// forks takes for true.
pub(crate) fn invented(block_count: u64, number: usize, change: impl FnOnce(&mut Header)) -> Chain {
    let blocks = relinked(blocks(&settings(block_count)), number, change);
    let bare = ChainSpec::bare(NETWORK_NAME, Some(CHAIN_ID), sample_spec().genesis_hash());
    prove_by(&bare, blocks).into_iter().map(|block| Arc::new(Told::of(&block))).collect()
}

fn prove(candidates: Vec<Candidate>) -> Vec<Verified<Block>> {
    prove_by(&sample_spec(), candidates)
}

fn prove_by(spec: &ChainSpec, candidates: Vec<Candidate>) -> Vec<Verified<Block>> {
    let anchors = Anchors::of(spec);
    let mut verifier = Verifier::new(spec, &anchors, Start::At(0));
    candidates.into_iter().map(|candidate| verifier.verify(candidate).unwrap()).collect()
}

/// A chain whose headers have one field more than this build knows, from block `first` on, which is one
/// of the newest fork that the chain's genesis file tells.
pub(crate) fn future(block_count: u64, first: u64) -> Chain {
    let spec = sample_spec();
    let anchors = Anchors::of(&spec);
    let mut chain: Chain = chain(block_count);
    for index in usize::try_from(first).unwrap()..chain.len() {
        let (number, hash) = (index as u64 - 1, chain[index - 1].hash());
        let before = &chain[index].verified;
        let mut header = before.header.clone();
        header.parent_hash = hash;
        header.block_access_list_hash.get_or_insert(B256::repeat_byte(0x24));
        header.slot_number.get_or_insert(number);
        let candidate = Candidate { header: with_field(&header), ..before.to_candidate() };
        let mut verifier = Verifier::new(&spec, &anchors, Start::After { number, hash });
        let mut told = Told::of(&verifier.verify(candidate).unwrap());
        for json in [&mut told.block, &mut told.header] {
            json["futureRoot"] = json!(B256::repeat_byte(0x25));
        }
        chain[index] = Arc::new(told);
    }
    chain
}

/// A header of 23 fields with one more.
fn with_field(header: &Header) -> Bytes {
    let plain = alloy_rlp::encode(header);
    let mut rest = plain.as_slice();
    let payload = alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
    let field = alloy_rlp::encode(B256::repeat_byte(0x25));
    let mut rlp = Vec::new();
    let payload_length = payload.len() + field.len();
    alloy_rlp::Header { list: true, payload_length }.encode(&mut rlp);
    rlp.extend_from_slice(payload);
    rlp.extend_from_slice(&field);
    rlp.into()
}

/// A chain that has another block at `first`, as `change` makes it, and goes on above that.
pub(crate) fn changed(
    block_count: u64,
    first: u64,
    change: impl Fn(&mut Header, &mut Told),
) -> Chain {
    let mut chain = chain(block_count);
    let first = usize::try_from(first).unwrap();
    for index in first..chain.len() {
        let mut header = chain[index].verified.header.clone();
        header.parent_hash = chain[index - 1].hash();
        let mut told = (*chain[index]).clone();
        if index == first {
            change(&mut header, &mut told);
        }
        chain[index] = Arc::new(told.with_header(&header));
    }
    chain
}
