//! The sample chain: a chain for everyone who has no mainnet at hand.
//!
//! Knows: how to make, from a seed, any number of blocks that are valid for everything
//! [`chain::Verifier`] checks: real signatures, transactions, receipts and withdrawals roots,
//! ommers hashes, blooms, gas sums, parent links.
//! Never knows: an EVM, or how the blocks are stored.
//!
//! # What is real and what is made up
//!
//! Nothing is executed. State roots, post-state roots, outcomes, logs, gas of execution, proofs of
//! work, randomness, beacon roots, requests hashes, hashes of block access lists, blob hashes and the
//! contents of calldata are made up. So is difficulty, which follows a slow wave and not its rule.
//! Balances are not kept: an account may send more than it has. Hashes, signatures and sums over all
//! of that are real, senders' nonces count up without gaps, fees are at or above the base fee, and
//! gas limit, base fee and excess blob gas follow their rules. No block uses more than half of its
//! gas limit, so the base fee falls from a gwei to its least, 7 wei.
//!
//! # The same everywhere
//!
//! Equal settings give equal bytes on every machine and with any number of threads. A block
//! depends on its number, its ancestors and the settings without the block count: a longer chain
//! begins with the shorter one. Therefore the work is split in two: [`SampleChain::draft`] makes
//! and signs a block's contents, for any block and on any thread, and [`Sealer::seal`] links the
//! drafts in order. [`generate`] does both.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use alloy_consensus::Header;
use chain::Candidate;
use pool::map_in_order;

mod accounts;
mod call;
mod call_kind;
mod draft;
mod events;
mod genesis;
mod random;
mod schedule;
mod seal;
mod transaction;
mod world;

pub use draft::BlockDraft;
pub use genesis::genesis;
pub use seal::Sealer;

use world::World;

/// What the chain is called where networks have names.
pub const NETWORK_NAME: &str = "sample";

/// The id of the chain that is made unless told otherwise. Nobody else's, as far as public lists know.
pub const CHAIN_ID: u64 = 20_260_101;
/// Where the ids of chains of other seeds begin. They stay below 2^53, which every client can count to.
const OTHER_CHAIN_IDS: u64 = 2_026_010_100_000_000;
/// So many seeds have ids of their own.
const SEED_COUNT: u64 = 100_000_000;

/// The seed of the chain that is made unless told otherwise.
const SEED_DEFAULT: u64 = 1;

/// Which sample chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSettings {
    /// Another seed is another chain.
    pub seed: u64,
    /// Its id.
    pub chain_id: u64,
    /// How many blocks, block 0 included.
    pub block_count: u64,
    /// How many transactions a block has on average, but for those that are empty or full (200)
    /// on purpose.
    pub txs_per_block: u32,
    /// How large transactions are.
    pub payload: Payload,
}

/// An id for the chain of a seed, so that whoever looks at ids tells chains apart that differ by their
/// seed.
#[must_use]
pub fn chain_id_of_seed(seed: u64) -> u64 {
    if seed == SEED_DEFAULT { CHAIN_ID } else { OTHER_CHAIN_IDS + seed % SEED_COUNT }
}

impl Default for SampleSettings {
    fn default() -> Self {
        Self {
            seed: SEED_DEFAULT,
            chain_id: CHAIN_ID,
            block_count: 1024,
            txs_per_block: 20,
            payload: Payload::Small,
        }
    }
}

/// How calldata and logs are shaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Few bytes: good to look at and quick to move.
    #[default]
    Small,
    /// Sizes and repetition as in mainnet's blocks, rollup batches included.
    Mainnet,
}

/// One block's place in the chain, and how many transactions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPosition {
    number: u64,
    first_ordinal: u64,
    tx_count: u32,
}

/// A sample chain, ready to be drafted.
#[derive(Debug)]
pub struct SampleChain {
    settings: SampleSettings,
    genesis: Header,
    world: World,
}

impl SampleChain {
    /// Prepares the accounts. Takes some hundredths of a second.
    #[must_use]
    pub fn new(settings: &SampleSettings) -> Self {
        let genesis = chain::genesis_header(&genesis(settings))
            .unwrap_or_else(|error| unreachable!("our own genesis: {error}"));
        Self { settings: settings.clone(), genesis, world: World::new(settings) }
    }

    /// The places of all blocks, in order.
    pub fn places(&self) -> impl Iterator<Item = BlockPosition> + Send + use<> {
        let settings = self.settings.clone();
        (0..settings.block_count).scan(0, move |next_ordinal, number| {
            let tx_count = schedule::tx_count(&settings, number);
            let first_ordinal = *next_ordinal;
            *next_ordinal += u64::from(tx_count);
            Some(BlockPosition { number, first_ordinal, tx_count })
        })
    }

    /// Makes and signs the contents of a block.
    #[must_use]
    pub fn draft(&self, place: BlockPosition) -> BlockDraft {
        if place.number == 0 {
            return BlockDraft::genesis(self.genesis.clone());
        }
        BlockDraft::new(&self.settings, &self.world, place)
    }
}

/// Makes the chain on `threads` threads and hands its blocks to `consume` in order, until it
/// fails. A few blocks per thread are in memory at a time.
///
/// Blocks with proof of work tell their total difficulty; later ones do not.
pub fn generate<E>(
    settings: &SampleSettings,
    threads: NonZeroUsize,
    mut consume: impl FnMut(Candidate) -> Result<(), E>,
) -> Result<(), E> {
    let sample = SampleChain::new(settings);
    let mut sealer = Sealer::new(settings);
    let ended = map_in_order(
        threads,
        sample.places(),
        |place| sample.draft(place),
        |draft| match consume(sealer.seal(draft)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        },
    );
    match ended {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}
