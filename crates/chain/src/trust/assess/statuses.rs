//! The status of every block, once no run contradicts another.

use std::collections::BTreeMap;

use super::{
    Anchor, AnchoredBy, Anchors, BlockRange, LinkedTo, ProvenRun, TrustStatus, count_step,
};

/// A trusted block: everything at or below it, down to the next gap, is anchored by it.
#[derive(Clone, Copy)]
struct Mark {
    number: u64,
    by: AnchoredBy,
}

/// Runs without a gap between them: one chain.
struct Stretch<'a> {
    end: u64,
    runs: Vec<(usize, &'a ProvenRun)>,
}

/// Statuses by the runs' positions.
pub(super) fn of(
    runs: &[ProvenRun],
    standing: &[usize],
    anchors: &Anchors,
) -> BTreeMap<usize, Vec<(BlockRange, TrustStatus)>> {
    let mut assessed = BTreeMap::new();
    for stretch in stretches(runs, standing) {
        let marks = marks(&stretch, anchors);
        let root = root(&stretch, anchors);
        for (position, run) in &stretch.runs {
            assessed.insert(*position, pieces(run.range, &marks, root));
        }
    }
    assessed
}

fn stretches<'a>(runs: &'a [ProvenRun], standing: &[usize]) -> Vec<Stretch<'a>> {
    let mut ordered: Vec<(usize, &ProvenRun)> =
        standing.iter().filter_map(|position| Some((*position, runs.get(*position)?))).collect();
    ordered.sort_by_key(|(position, run)| (run.range.first(), *position));
    let mut stretches: Vec<Stretch<'_>> = Vec::new();
    for (position, run) in ordered {
        match stretches.last_mut() {
            Some(stretch) if run.range.first() <= stretch.end => {
                stretch.end = stretch.end.max(run.range.end());
                stretch.runs.push((position, run));
            }
            _ => stretches.push(Stretch { end: run.range.end(), runs: vec![(position, run)] }),
        }
    }
    stretches
}

/// The trusted blocks of a stretch in rising order. An operator's anchor inside a trusted epoch
/// adds nothing to it.
fn marks(stretch: &Stretch<'_>, anchors: &Anchors) -> Vec<Mark> {
    let mut marks: BTreeMap<u64, AnchoredBy> = BTreeMap::new();
    let mut epochs = Vec::new();
    for (_, run) in &stretch.runs {
        if let Some(epoch) = run.trusted_epoch(anchors) {
            epochs.push((run.range.first(), epoch));
        }
        let held = anchors.operator_between(run.range.first(), run.range.last());
        let held = held.filter(|anchor| run.holds(*anchor));
        marks.extend(held.map(|anchor| (anchor.number, AnchoredBy::Operator(anchor))));
    }
    for (first, epoch) in &epochs {
        while let Some(number) = next_mark(&marks, *first, epoch.last) {
            marks.remove(&number);
        }
    }
    marks
        .extend(epochs.into_iter().map(|(_, epoch)| (epoch.last, AnchoredBy::Epoch(epoch.number))));
    marks.into_iter().map(|(number, by)| Mark { number, by }).collect()
}

/// The lowest mark of these blocks.
fn next_mark(marks: &BTreeMap<u64, AnchoredBy>, first: u64, last: u64) -> Option<u64> {
    let from = marks.range(first..).next().map(|(number, _)| *number);
    from.filter(|number| *number <= last)
}

/// What the lowest blocks of a stretch stand on.
#[derive(Clone, Copy)]
enum Root {
    /// Block 0 is among them.
    Genesis,
    /// They begin after a trusted block.
    After(LinkedTo),
    Nothing,
}

fn root(stretch: &Stretch<'_>, anchors: &Anchors) -> Root {
    let Some((_, lowest)) = stretch.runs.first() else { return Root::Nothing };
    let Some(number) = lowest.range.first().checked_sub(1) else {
        let is_genesis = stretch.runs.iter().any(|(_, run)| run.holds_genesis(anchors));
        return if is_genesis { Root::Genesis } else { Root::Nothing };
    };
    let hash = lowest.parent_hash;
    match anchors.expected_hash(number) {
        Some((trusted, _)) if trusted != hash => Root::Nothing,
        Some(_) if number == 0 => Root::After(LinkedTo::Genesis),
        Some(_) => Root::After(LinkedTo::Anchor(Anchor { number, hash })),
        None => Root::Nothing,
    }
}

/// A run's blocks, cut where the status changes.
fn pieces(range: BlockRange, marks: &[Mark], root: Root) -> Vec<(BlockRange, TrustStatus)> {
    let mut pieces = Vec::new();
    let mut next = range.first();
    let below = marks.partition_point(|mark| mark.number < range.first());
    for mark in marks.iter().skip(below) {
        count_step();
        let last = mark.number.min(range.last());
        if let Some(piece) = BlockRange::from_ends(next, last) {
            pieces.push((piece, TrustStatus::Anchored(mark.by)));
            next = piece.end();
        }
        if mark.number >= range.last() {
            break;
        }
    }
    let below = marks.partition_point(|mark| mark.number < next);
    let highest_below = below.checked_sub(1).and_then(|at| marks.get(at));
    let above = match (highest_below, root) {
        (Some(Mark { by: AnchoredBy::Operator(anchor), .. }), _) => {
            TrustStatus::Linked(LinkedTo::Anchor(*anchor))
        }
        (Some(Mark { by: AnchoredBy::Epoch(epoch), .. }), _) => {
            TrustStatus::Linked(LinkedTo::Epoch(*epoch))
        }
        (Some(Mark { by: AnchoredBy::Genesis, .. }), _) | (None, Root::Genesis) => {
            TrustStatus::Linked(LinkedTo::Genesis)
        }
        (None, Root::After(trusted)) => TrustStatus::Linked(trusted),
        (None, Root::Nothing) => TrustStatus::Unanchored,
    };
    if next == 0
        && matches!(root, Root::Genesis)
        && let Some(genesis) = BlockRange::from_ends(0, 0)
    {
        pieces.push((genesis, TrustStatus::Anchored(AnchoredBy::Genesis)));
        next = 1;
    }
    pieces.extend(BlockRange::from_ends(next, range.last()).map(|piece| (piece, above)));
    pieces
}
