//! One segment from blocks that are proven on the way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use chain::{Block, BlockNumber, BlockRange, Verified};
use pool::map_in_order;
use store::layout::HeldRange;
use store::{Census, Draft, Drafting, NewSegment, count_block, counted_blocks, groups};

use super::blocks::Joined;
use super::{ImportError, PIECE_BLOCKS_MAX, PIECE_BYTES_MAX};
use crate::prove::{Blocks, Facts, Prover};

/// Builds one segment.
pub(super) struct Builder<'a, B> {
    pub(super) drafting: &'a Drafting,
    pub(super) prover: Prover<'a>,
    pub(super) source: &'a Joined<'a, B>,
    pub(super) target: HeldRange,
}

impl<B: Blocks> Builder<'_, B>
where
    ImportError: From<B::Error>,
{
    /// Builds the segment; `add` hears of every block in order.
    pub(super) fn build(
        &self,
        add: &mut impl FnMut(Facts) -> Result<(), ImportError>,
    ) -> Result<NewSegment, ImportError> {
        let range = self.target.range;
        // Counted blocks are proven once: at most 256 of them wait here for the second pass.
        let kept: RefCell<BTreeMap<u64, (Verified<Block>, Facts)>> = RefCell::default();
        let count = |census: &mut Census| {
            for_each_piece(
                self.prover.threads,
                counted_pieces(range),
                |piece| self.prover.prove_piece(self.source, piece, &BTreeMap::new()),
                |proven| {
                    for (block, facts) in proven {
                        count_block(census, &block);
                        kept.borrow_mut().insert(facts.number, (block, facts));
                    }
                    Ok(())
                },
            )
        };
        self.drafting.build(self.target, count, |draft| self.fill(draft, &kept.take(), add))
    }

    /// The second pass.
    fn fill(
        &self,
        draft: &mut Draft,
        kept: &BTreeMap<u64, (Verified<Block>, Facts)>,
        add: &mut impl FnMut(Facts) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let encoder = draft.encoder().clone();
        for_each_piece(
            self.prover.threads,
            pieces(self.target.range, self.source),
            |piece| {
                let proven = self.prover.prove_piece(self.source, piece, kept)?;
                let (blocks, facts): (Vec<_>, Vec<_>) = proven.into_iter().unzip();
                let is_same_group = |one: &Verified<Block>, next: &Verified<Block>| {
                    group_of(one.header.number) == group_of(next.header.number)
                };
                let groups = blocks.chunk_by(is_same_group).map(|group| encoder.encode(group));
                Ok((groups.collect::<Result<Vec<_>, _>>()?, facts))
            },
            |(groups, facts)| {
                facts.into_iter().try_for_each(&mut *add)?;
                Ok(groups.into_iter().try_for_each(|group| draft.push(group))?)
            },
        )
    }
}

/// Runs `work` on every piece over all threads and hands the results to `consume` in order.
pub(super) fn for_each_piece<T: Send>(
    threads: NonZeroUsize,
    pieces: Vec<BlockRange>,
    work: impl Fn(BlockRange) -> Result<T, ImportError> + Sync,
    mut consume: impl FnMut(T) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let outcome =
        map_in_order(threads, pieces.into_iter(), work, |done| match done.and_then(&mut consume) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
    match outcome {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Counted blocks that are proven together. The second pass begins when the last of them is done:
/// with few, no thread waits long for another.
const COUNTED_PIECE_BLOCKS: u64 = 4;

/// The counted blocks, a few of those that follow each other together.
fn counted_pieces(range: BlockRange) -> Vec<BlockRange> {
    let counted: Vec<u64> = counted_blocks(range).map(BlockNumber::get).collect();
    let piece_of = |number: u64| number / COUNTED_PIECE_BLOCKS;
    let is_same =
        |one: &u64, next: &u64| one.saturating_add(1) == *next && piece_of(*one) == piece_of(*next);
    let ends = |piece: &[u64]| BlockRange::from_ends(*piece.first()?, *piece.last()?);
    counted.chunk_by(is_same).filter_map(ends).collect()
}

/// Whole groups, several of them where blocks are small.
pub(super) fn pieces(range: BlockRange, source: &impl Blocks) -> Vec<BlockRange> {
    let mut pieces: Vec<BlockRange> = Vec::new();
    let mut bytes = 0_u64;
    for group in groups(range) {
        let group_bytes: u64 = (group.first()..group.end()).map(|it| source.block_bytes(it)).sum();
        let fits = |piece: &mut BlockRange| {
            bytes.saturating_add(group_bytes) <= PIECE_BYTES_MAX
                && piece.count().saturating_add(group.count()) <= PIECE_BLOCKS_MAX
        };
        let grown = pieces
            .pop_if(fits)
            .and_then(|piece| BlockRange::from_ends(piece.first(), group.last()));
        bytes = if grown.is_some() { bytes.saturating_add(group_bytes) } else { group_bytes };
        pieces.push(grown.unwrap_or(group));
    }
    pieces
}

fn group_of(number: u64) -> u64 {
    number / store::GROUP_BLOCKS
}
