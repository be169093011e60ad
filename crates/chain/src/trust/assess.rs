//! From runs of proven blocks to the status of every range.
//!
//! Knows: which runs join, and that trust goes down by parent links and never up.
//! Never knows: blocks, only the two ends of each run and what was met inside.
//!
//! A run knows two hashes by their numbers: its parent's and its last block's. Runs that share one
//! of these points join there. A hash fixes everything below it, so an anchor reaches down through
//! every run that ends at a point it has reached; what stands above an anchor is only linked.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use thiserror::Error;

use super::{Anchor, AnchoredBy, Anchors, LinkedTo, Status};
use crate::range::BlockRange;

/// Consecutive blocks that were proven and joined by parent links.
///
/// A run that begins with block 0 was verified against the same anchors, so its block 0 has the
/// genesis hash if the anchors name one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which blocks.
    pub range: BlockRange,
    /// The parent hash of the first.
    pub parent_hash: B256,
    /// The hash of the last.
    pub last_hash: B256,
    /// The operator's anchors inside, each with the hash that its block has.
    pub anchors_met: Vec<Anchor>,
    /// The accumulator epoch whose trusted root the run's hashes and total difficulties gave.
    pub epoch: Option<u64>,
    /// The last block that the epoch covers where that is not the run's last: the merge fell
    /// inside mainnet's last epoch.
    pub epoch_last: Option<u64>,
}

/// Two runs that are adjacent and do not join, or a run that does not join the anchor below it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("block {above} has parent {parent_hash}, but block {below} is {below_hash}")]
pub struct BrokenLink {
    /// The lower block.
    pub below: u64,
    /// Its hash.
    pub below_hash: B256,
    /// The block after it.
    pub above: u64,
    /// The parent hash which that block has.
    pub parent_hash: B256,
}

/// The status of every block of every run, as ranges; the result is aligned with `runs`.
///
/// The runs may come in any order, overlap and leave gaps.
pub fn assess(
    runs: &[Run],
    anchors: &Anchors,
) -> Result<Vec<Vec<(BlockRange, Status)>>, BrokenLink> {
    check_links(runs, anchors)?;
    let marks: Vec<Vec<Mark>> = runs.iter().map(|run| marks_inside(run, anchors)).collect();
    let reached_from_above = spread_down(runs, &marks, anchors);
    let standing_on = spread_up(runs, &marks, &reached_from_above, anchors);
    let mut assessed = Vec::with_capacity(runs.len());
    for (run, marks) in runs.iter().zip(&marks) {
        let above = reached_from_above.get(&run.upper_point()).map(|mark| mark.by);
        let below = run.lower_point().and_then(|point| standing_on.get(&point));
        let below = below.map(|footing| footing.to);
        assessed.push(statuses(run, marks, above, below, anchors));
    }
    Ok(assessed)
}

/// A trusted block: everything at or below it is anchored by `by`.
#[derive(Clone, Copy)]
struct Mark {
    number: u64,
    by: AnchoredBy,
}

/// A trusted block as those above it see it.
#[derive(Clone, Copy)]
struct Footing {
    number: u64,
    to: LinkedTo,
}

impl Run {
    fn upper_point(&self) -> Anchor {
        Anchor { number: self.range.last(), hash: self.last_hash }
    }

    /// The parent of the first block; block 0 has none.
    fn lower_point(&self) -> Option<Anchor> {
        let number = self.range.first().checked_sub(1)?;
        Some(Anchor { number, hash: self.parent_hash })
    }

    fn holds_genesis(&self, anchors: &Anchors) -> bool {
        let is_other = self.range.last() == 0 && anchors.genesis_hash != Some(self.last_hash);
        self.range.first() == 0 && anchors.genesis_hash.is_some() && !is_other
    }
}

impl Mark {
    /// How a block above this one is linked, when it is known by the point where it begins. If the
    /// trusted block stands higher, on another branch, then the point itself is the trusted
    /// ancestor.
    fn footing_at(self, point: Anchor) -> Footing {
        let to = match self.by {
            AnchoredBy::Operator(anchor) if anchor == point => LinkedTo::Anchor(anchor),
            AnchoredBy::Epoch(epoch) if self.number == point.number => LinkedTo::Epoch(epoch),
            AnchoredBy::Genesis => LinkedTo::Genesis,
            AnchoredBy::Operator(_) | AnchoredBy::Epoch(_) => LinkedTo::Anchor(point),
        };
        Footing { number: point.number, to }
    }

    fn footing(self) -> Footing {
        let to = match self.by {
            AnchoredBy::Operator(anchor) => LinkedTo::Anchor(anchor),
            AnchoredBy::Epoch(epoch) => LinkedTo::Epoch(epoch),
            AnchoredBy::Genesis => LinkedTo::Genesis,
        };
        Footing { number: self.number, to }
    }
}

/// Every run that ends where others begin must be the parent of one of them.
fn check_links(runs: &[Run], anchors: &Anchors) -> Result<(), BrokenLink> {
    let mut parents: BTreeMap<u64, Vec<B256>> = BTreeMap::new();
    for run in runs {
        parents.entry(run.range.first()).or_default().push(run.parent_hash);
    }
    for run in runs {
        let above = run.range.end();
        let parents_above = parents.get(&above).map_or(&[][..], Vec::as_slice);
        if let Some(parent_hash) = parents_above.first()
            && !parents_above.contains(&run.last_hash)
        {
            return Err(BrokenLink {
                below: run.range.last(),
                below_hash: run.last_hash,
                above,
                parent_hash: *parent_hash,
            });
        }
        if let Some(parent) = run.lower_point()
            && let Some((below_hash, _)) = anchors.expected_hash(parent.number)
            && below_hash != parent.hash
        {
            return Err(BrokenLink {
                below: parent.number,
                below_hash,
                above: run.range.first(),
                parent_hash: parent.hash,
            });
        }
    }
    Ok(())
}

/// The trusted blocks inside a run, lowest first.
fn marks_inside(run: &Run, anchors: &Anchors) -> Vec<Mark> {
    let epoch = run.epoch.filter(|epoch| anchors.expected_epoch_root(*epoch).is_some());
    let epoch_mark = epoch.map(|epoch| Mark {
        number: run.epoch_last.unwrap_or(run.range.last()).min(run.range.last()),
        by: AnchoredBy::Epoch(epoch),
    });
    let met = run.anchors_met.iter().copied().chain([run.upper_point()]);
    let mut operator: Vec<Anchor> = met
        .filter(|anchor| run.range.contains(anchor.number) && anchors.is_operator_anchor(anchor))
        // The epoch proves these already, and one status reads better than three.
        .filter(|anchor| epoch_mark.is_none_or(|epoch| anchor.number > epoch.number))
        .collect();
    operator.sort_unstable();
    operator.dedup();
    let operator = operator
        .into_iter()
        .map(|anchor| Mark { number: anchor.number, by: AnchoredBy::Operator(anchor) });
    epoch_mark.into_iter().chain(operator).collect()
}

/// For each point at or below a trusted block: the nearest such block.
fn spread_down(runs: &[Run], marks: &[Vec<Mark>], anchors: &Anchors) -> BTreeMap<Anchor, Mark> {
    let own = |anchor: Anchor| Mark { number: anchor.number, by: AnchoredBy::Operator(anchor) };
    let mut reached: BTreeMap<Anchor, Mark> =
        anchors.operator().map(|anchor| (anchor, own(anchor))).collect();
    let mut ordered: Vec<(&Run, &Vec<Mark>)> = runs.iter().zip(marks).collect();
    // From the top: when a run's turn comes, every run above its last block has had its own.
    ordered.sort_by_key(|(run, _)| std::cmp::Reverse(run.range.last()));
    for (run, marks) in ordered {
        let highest = marks.last().filter(|mark| mark.number == run.range.last());
        if let Some(mark) = highest {
            reached.insert(run.upper_point(), *mark);
        }
        let nearest = marks.first().or_else(|| reached.get(&run.upper_point())).copied();
        if let (Some(point), Some(nearest)) = (run.lower_point(), nearest) {
            let known = reached.entry(point).or_insert(nearest);
            if nearest.number < known.number {
                *known = nearest;
            }
        }
    }
    reached
}

/// For each point above or at a trusted block: the nearest such block.
fn spread_up(
    runs: &[Run],
    marks: &[Vec<Mark>],
    reached_from_above: &BTreeMap<Anchor, Mark>,
    anchors: &Anchors,
) -> BTreeMap<Anchor, Footing> {
    let mut standing: BTreeMap<Anchor, Footing> =
        reached_from_above.iter().map(|(point, mark)| (*point, mark.footing_at(*point))).collect();
    let genesis = Footing { number: 0, to: LinkedTo::Genesis };
    if let Some(hash) = anchors.genesis_hash {
        standing.insert(Anchor { number: 0, hash }, genesis);
    }
    let mut ordered: Vec<(&Run, &Vec<Mark>)> = runs.iter().zip(marks).collect();
    // From the bottom: when a run's turn comes, every run that ends at its parent has had its own.
    ordered.sort_by_key(|(run, _)| run.range.first());
    for (run, marks) in ordered {
        let inside = marks.last().map(|mark| mark.footing());
        let below = run.lower_point().and_then(|point| standing.get(&point).copied());
        let own_genesis = run.holds_genesis(anchors).then_some(genesis);
        if let Some(nearest) = inside.or(below).or(own_genesis) {
            let known = standing.entry(run.upper_point()).or_insert(nearest);
            if nearest.number > known.number {
                *known = nearest;
            }
        }
    }
    standing
}

/// One run's statuses, lowest first, neighbours that are equal merged.
fn statuses(
    run: &Run,
    marks: &[Mark],
    above: Option<AnchoredBy>,
    below: Option<LinkedTo>,
    anchors: &Anchors,
) -> Vec<(BlockRange, Status)> {
    let mut pieces: Vec<(BlockRange, Status)> = Vec::with_capacity(marks.len() + 2);
    let mut next = run.range.first();
    let mut extend_to = |last: u64, status: Status| {
        let Some(mut piece) = BlockRange::from_ends(next, last) else { return };
        next = piece.end();
        if let Some((previous, _)) = pieces.pop_if(|(_, before)| *before == status) {
            piece = BlockRange::from_ends(previous.first(), last).unwrap_or(piece);
        }
        pieces.push((piece, status));
    };
    for mark in marks {
        extend_to(mark.number, Status::Anchored(mark.by));
    }
    let rest = if let Some(by) = above {
        Status::Anchored(by)
    } else if let Some(mark) = marks.last() {
        Status::Linked(mark.footing().to)
    } else if run.holds_genesis(anchors) {
        extend_to(0, Status::Anchored(AnchoredBy::Genesis));
        Status::Linked(LinkedTo::Genesis)
    } else if let Some(to) = below {
        Status::Linked(to)
    } else {
        Status::Unanchored
    };
    extend_to(run.range.last(), rest);
    pieces
}
