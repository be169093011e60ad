//! Segments from blocks that arrive, whatever their source.

use std::collections::BTreeMap;

use chain::{BlockRange, ChainSpec};
use store::layout::{HeldRange, join_ranges, subtract};
use store::manifest::Network;
use store::{Drafting, NewSegment};

use super::ImportError;
use super::blocks::Joined;
use super::build::{Builder, for_each_piece, pieces};
use crate::prove::{Blocks, Facts, Prover};

/// Builds segments from one part of a source.
pub(crate) struct Intake<'a, B> {
    pub(crate) drafting: &'a Drafting,
    pub(crate) prover: Prover<'a>,
    pub(crate) source: &'a B,
    /// What is taken of the source.
    pub(crate) part: BlockRange,
}

impl<B: Blocks> Intake<'_, B>
where
    ImportError: From<B::Error>,
{
    /// Proves the part and builds the targets, which may reach beyond it on both sides. `add` hears of
    /// every block in order.
    pub(crate) fn build_all(
        &self,
        targets: &[HeldRange],
        add: &mut impl FnMut(Facts) -> Result<(), ImportError>,
    ) -> Result<Vec<NewSegment>, ImportError> {
        let Self { drafting, prover, part, .. } = *self;
        let source = Joined { source: self.source, part, view: drafting.view() };
        let built = join_ranges(targets.iter().map(|target| target.range));
        let proven_only = subtract(&[part], &built).into_iter().map(|range| (range, None));
        let built = targets.iter().map(|target| (target.range, Some(*target)));
        let mut spans: Vec<(BlockRange, Option<HeldRange>)> = built.chain(proven_only).collect();
        spans.sort_unstable();
        let mut segments = Vec::new();
        for (range, target) in spans {
            match target {
                Some(target) => {
                    let builder = Builder { drafting, prover, source: &source, target };
                    segments.push(builder.build(add)?);
                }
                None => for_each_piece(
                    prover.threads,
                    pieces(range, &source),
                    |piece| prover.prove_piece(&source, piece, &BTreeMap::new()),
                    |proven| proven.into_iter().try_for_each(|(_, facts)| add(facts)),
                )?,
            }
        }
        Ok(segments)
    }
}

/// What a manifest is told of a chain.
#[must_use]
pub fn network_of(spec: &ChainSpec) -> Network {
    Network {
        name: Some(spec.name().to_owned()),
        chain_id: spec.chain_id(),
        genesis_hash: spec.genesis_hash(),
    }
}
