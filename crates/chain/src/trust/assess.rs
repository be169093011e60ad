//! From runs of proven blocks to the status of every range.
//!
//! Two runs that meet at a block either have the same hash there, and then they are one chain up
//! to it, or they contradict each other, and then at least one of them is not of this chain. What
//! is left without contradictions is, between its gaps, a single chain, and the status of a block
//! follows from the nearest trusted block above it or, if there is none, below it.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use alloy_primitives::{B256, U256};

use super::{Anchor, AnchoredBy, Anchors, LinkedTo, TrustStatus};
use crate::range::BlockRange;

mod statuses;

/// Counts comparisons, for the test that their number does not grow faster than that of the runs.
fn count_step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get().saturating_add(1)));
}

#[cfg(test)]
thread_local! {
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Consecutive blocks that were proven and joined by parent links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenRun {
    /// Which blocks.
    pub range: BlockRange,
    /// The parent hash of the first.
    pub parent_hash: B256,
    /// The hash of the last.
    pub last_hash: B256,
    /// Hashes of some of the blocks: at least of those that [`meeting_points`] names.
    pub hashes: BTreeMap<u64, B256>,
    /// The trusted accumulator epoch that the run's hashes and total difficulties gave.
    pub epoch: Option<Epoch>,
    /// Total difficulty before the first block and after the last, where it is claimed.
    pub difficulty: Option<(U256, U256)>,
}

/// A pre-merge epoch whose root is trusted and was recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Which epoch.
    pub number: u64,
    /// Its last block, which is the run's last unless the merge falls inside.
    pub last: u64,
}

/// Why a run is not believed: another says something else, and stands on firmer ground or on no
/// less firm one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustConflict {
    /// The block where they meet.
    pub number: u64,
    /// What is said of it.
    pub claims: Claims,
    /// Who says so.
    pub with: Opponent,
}

/// What this run says of a block, and what the other one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// Its hash.
    Hash(B256, B256),
    /// Total difficulty up to and including it.
    TotalDifficulty(U256, U256),
}

/// Who contradicts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opponent {
    /// A trusted hash.
    Anchor,
    /// The run at this position; whether it stands on firmer ground, or both are refused because
    /// nothing tells which one is false.
    ProvenRun(usize, TrustOrder),
}

/// How firmly one run stands against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustOrder {
    /// Firmer.
    Firmer,
    /// Equally firm.
    Equal,
}

/// What [`assess`] says of one run.
pub type Assessment = Result<Vec<(BlockRange, TrustStatus)>, TrustConflict>;

/// The numbers of the blocks whose hashes must be known of every run that holds them.
#[must_use]
pub fn meeting_points(ranges: &[BlockRange], anchors: &Anchors) -> BTreeSet<u64> {
    let ends = ranges.iter().flat_map(|range| [range.first().checked_sub(1), Some(range.last())]);
    let trusted = anchors.operator().map(|anchor| anchor.number);
    ends.flatten().chain(trusted).chain([0]).collect()
}

/// The status of every block of every run, as ranges, or why the run is refused; aligned with
/// `runs`, which may come in any order, overlap and leave gaps.
#[must_use]
pub fn assess(runs: &[ProvenRun], anchors: &Anchors) -> Vec<Assessment> {
    let mut conflicts: BTreeMap<usize, TrustConflict> = BTreeMap::new();
    for (position, run) in runs.iter().enumerate() {
        if let Some(conflict) = contradicts_anchor(run, anchors) {
            conflicts.insert(position, conflict);
        }
    }
    loop {
        let standing: Vec<usize> =
            (0..runs.len()).filter(|position| !conflicts.contains_key(position)).collect();
        let meetings = meetings(runs, &standing);
        let refused = judge(runs, &meetings, &grounds(runs, &meetings, anchors));
        if refused.is_empty() {
            let mut assessed = statuses::of(runs, &standing, anchors);
            return (0..runs.len())
                .map(|position| match conflicts.remove(&position) {
                    Some(conflict) => Err(conflict),
                    None => Ok(assessed.remove(&position).unwrap_or_default()),
                })
                .collect();
        }
        for (position, conflict) in refused {
            conflicts.entry(position).or_insert(conflict);
        }
    }
}

impl ProvenRun {
    /// The hash of one of the run's blocks or of its parent, if it is known.
    #[must_use]
    pub fn hash_at(&self, number: u64) -> Option<B256> {
        if number == self.range.last() {
            Some(self.last_hash)
        } else if number.checked_add(1) == Some(self.range.first()) {
            Some(self.parent_hash)
        } else {
            self.hashes.get(&number).copied()
        }
    }

    /// The highest block that an anchor of its own proves.
    fn proven_to(&self, anchors: &Anchors) -> Option<u64> {
        let mut operator = anchors.operator_between(self.range.first(), self.range.last()).rev();
        let operator = operator.find(|anchor| self.holds(*anchor)).map(|anchor| anchor.number);
        operator.max(self.trusted_epoch(anchors).map(|epoch| epoch.last))
    }

    /// Whether the run descends from a trusted block that it holds or begins after.
    fn is_rooted(&self, anchors: &Anchors) -> bool {
        let parent = self.range.first().checked_sub(1);
        let is_after_anchor = parent.is_some_and(|number| {
            anchors.expected_hash(number).is_some_and(|(hash, _)| hash == self.parent_hash)
        });
        is_after_anchor || self.holds_genesis(anchors) || self.proven_to(anchors).is_some()
    }

    fn holds(&self, anchor: Anchor) -> bool {
        count_step();
        self.range.contains(anchor.number) && self.hash_at(anchor.number) == Some(anchor.hash)
    }

    /// The verifier holds block 0 against the same anchors: where its hash is not told, it is
    /// theirs.
    fn holds_genesis(&self, anchors: &Anchors) -> bool {
        let told = self.hash_at(0);
        self.range.first() == 0
            && anchors.genesis_hash.is_some_and(|genesis| told.is_none_or(|hash| hash == genesis))
    }

    fn trusted_epoch(&self, anchors: &Anchors) -> Option<Epoch> {
        self.epoch.filter(|epoch| anchors.is_epoch_trusted(epoch.number))
    }
}

fn contradicts_anchor(run: &ProvenRun, anchors: &Anchors) -> Option<TrustConflict> {
    // The parent of the first block too.
    let first = run.range.first().saturating_sub(1);
    let genesis = anchors.expected_hash(0).map(|(hash, _)| Anchor { number: 0, hash });
    let genesis = genesis.filter(|_| first == 0);
    anchors.operator_between(first, run.range.last()).chain(genesis).find_map(|anchor| {
        count_step();
        let found = run.hash_at(anchor.number).filter(|hash| *hash != anchor.hash)?;
        let claims = Claims::Hash(found, anchor.hash);
        Some(TrustConflict { number: anchor.number, claims, with: Opponent::Anchor })
    })
}

/// A block of which two runs say something.
#[derive(Clone, Copy, Debug)]
struct RunOverlap {
    number: u64,
    /// Positions of the runs; the first one begins no later.
    lower: usize,
    upper: usize,
    claims: Claims,
}

impl RunOverlap {
    fn is_agreement(&self) -> bool {
        match self.claims {
            Claims::Hash(lower, upper) => lower == upper,
            Claims::TotalDifficulty(lower, upper) => lower == upper,
        }
    }
}

/// Where runs that overlap or follow each other meet: at the highest block that both know.
fn meetings(runs: &[ProvenRun], standing: &[usize]) -> Vec<RunOverlap> {
    let mut ordered: Vec<(usize, &ProvenRun)> =
        standing.iter().filter_map(|position| Some((*position, runs.get(*position)?))).collect();
    ordered.sort_by_key(|(position, run)| (run.range.first(), *position));
    let mut meetings = Vec::new();
    for (order, (lower, below)) in ordered.iter().enumerate() {
        let later = ordered.iter().skip(order.saturating_add(1));
        for (upper, above) in later.take_while(|(_, run)| run.range.first() <= below.range.end()) {
            count_step();
            let number = below.range.last().min(above.range.last());
            let (lower, upper) = (*lower, *upper);
            if let (Some(here), Some(there)) = (below.hash_at(number), above.hash_at(number)) {
                let claims = Claims::Hash(here, there);
                meetings.push(RunOverlap { number, lower, upper, claims });
            }
            if let (Some((_, after)), Some((before, _))) = (below.difficulty, above.difficulty)
                && above.range.first() == below.range.end()
            {
                let claims = Claims::TotalDifficulty(after, before);
                meetings.push(RunOverlap { number, lower, upper, claims });
            }
        }
    }
    meetings
}

/// What a run stands on.
#[derive(Clone, Copy, Debug, Default)]
struct RunTrust {
    /// Up to this block it is anchored, by itself or by runs that agree with it.
    proven_to: Option<u64>,
    /// It descends from a trusted block, by itself or through runs that agree with it.
    is_rooted: bool,
}

fn grounds(runs: &[ProvenRun], meetings: &[RunOverlap], anchors: &Anchors) -> Vec<RunTrust> {
    let own = |run: &ProvenRun| RunTrust {
        proven_to: run.proven_to(anchors),
        is_rooted: run.is_rooted(anchors),
    };
    let mut footings: Vec<RunTrust> = runs.iter().map(own).collect();
    let mut agreements = vec![Vec::new(); runs.len()];
    for RunOverlap { number, lower, upper, claims } in meetings {
        if matches!(claims, Claims::Hash(here, there) if here == there) {
            for (from, to) in [(*lower, *upper), (*upper, *lower)] {
                if let Some(agreeing) = agreements.get_mut(from) {
                    agreeing.push((to, *number));
                }
            }
        }
    }
    let agreeing_with = |from: usize| agreements.get(from).into_iter().flatten().copied();
    // Highest first: a run never gives more than it has, so that what is taken first is final.
    let proven = footings.iter().enumerate().filter_map(|(at, it)| Some((it.proven_to?, at)));
    let mut proven: BinaryHeap<(u64, usize)> = proven.collect();
    while let Some((given, from)) = proven.pop() {
        if footings.get(from).is_none_or(|it| it.proven_to != Some(given)) {
            continue; // it has got more since
        }
        for (to, number) in agreeing_with(from) {
            count_step();
            // Agreeing at a block is agreeing on everything below it.
            let given = given.min(number);
            let Some((run, taken)) = runs.get(to).zip(footings.get_mut(to)) else { continue };
            if given >= run.range.first() && Some(given) > taken.proven_to {
                taken.proven_to = Some(given);
                proven.push((given, to));
            }
        }
    }
    let rooted = footings.iter().enumerate().filter(|(_, it)| it.is_rooted).map(|(at, _)| at);
    let mut rooted: Vec<usize> = rooted.collect();
    while let Some(from) = rooted.pop() {
        for (to, _) in agreeing_with(from) {
            count_step();
            let taken = footings.get_mut(to).filter(|it| !it.is_rooted);
            rooted.extend(taken.map(|taken| {
                taken.is_rooted = true;
                to
            }));
        }
    }
    footings
}

/// Refuses of every two runs that contradict each other the one on less firm ground, or both.
fn judge(
    runs: &[ProvenRun],
    meetings: &[RunOverlap],
    footings: &[RunTrust],
) -> Vec<(usize, TrustConflict)> {
    // A contradiction with firmer ground settles a run; only then do equals settle each other.
    for ground in [TrustOrder::Firmer, TrustOrder::Equal] {
        let mut refused = Vec::new();
        for meeting in meetings.iter().filter(|meeting| !meeting.is_agreement()) {
            let rank = |position: usize| rank(runs, footings, position, meeting);
            let (lower, upper) = (rank(meeting.lower), rank(meeting.upper));
            let sides = [(meeting.lower, meeting.upper, lower, upper, meeting.claims), {
                let claims = match meeting.claims {
                    Claims::Hash(here, there) => Claims::Hash(there, here),
                    Claims::TotalDifficulty(here, there) => Claims::TotalDifficulty(there, here),
                };
                (meeting.upper, meeting.lower, upper, lower, claims)
            }];
            for (position, other, own_rank, other_rank, claims) in sides {
                let is_refused = match ground {
                    TrustOrder::Firmer => own_rank < other_rank,
                    TrustOrder::Equal => own_rank == other_rank,
                };
                if is_refused {
                    let with = Opponent::ProvenRun(other, ground);
                    refused
                        .push((position, TrustConflict { number: meeting.number, claims, with }));
                }
            }
        }
        if !refused.is_empty() {
            return refused;
        }
    }
    Vec::new()
}

/// How firmly a run stands at a meeting: anchored there, rooted, or neither. Of total
/// difficulties only a sum from genesis and a trusted epoch are proven.
fn rank(runs: &[ProvenRun], footings: &[RunTrust], position: usize, meeting: &RunOverlap) -> u8 {
    let Some((run, footing)) = runs.get(position).zip(footings.get(position)) else { return 0 };
    match meeting.claims {
        Claims::Hash(..) => {
            // The upper one of two that follow each other is proven there from its first block on.
            let needed = meeting.number.max(run.range.first());
            match footing {
                RunTrust { proven_to: Some(proven), .. } if *proven >= needed => 2,
                RunTrust { is_rooted: true, .. } => 1,
                RunTrust { .. } => 0,
            }
        }
        Claims::TotalDifficulty(..) => {
            u8::from(run.epoch.is_some() || (run.range.first() == 0 && footing.is_rooted))
        }
    }
}
