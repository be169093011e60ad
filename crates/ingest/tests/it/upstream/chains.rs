//! Sample chains, also such that leave each other at a block.

use std::sync::Arc;

use chain::trust::Anchors;
use chain::{Block, Candidate, ChainSpec, Start, Verified, Verifier};
use ingest::sample::{Payload, SampleChain, Sealer, Settings};

use super::told::Told;
use crate::made::spec;

/// Few transactions, so that the tests are quick, but of all types and with logs.
pub(crate) fn settings(block_count: u64) -> Settings {
    Settings { seed: 5, block_count, txs_per_block: 2, payload: Payload::Small }
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
    let other = Settings { seed: 1000 + letter, ..own.clone() };
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

fn prove(candidates: Vec<Candidate>) -> Vec<Verified<Block>> {
    let spec = sample_spec();
    let anchors = Anchors::of(&spec);
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(0));
    candidates.into_iter().map(|candidate| verifier.verify(candidate).unwrap()).collect()
}
