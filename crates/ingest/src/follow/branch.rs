//! From our chain to another: down to the fork point, and up again in one change.
//!
//! Knows: how to find where two chains part, and that only blocks which are not here are fetched.
//! Never knows: which chain is the better one; nodes say that, down to what is final.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use alloy_primitives::B256;
use chain::{Block, Start, Verified, Verifier};
use tracing::error;

use super::status::Conflict;
use super::{FollowError, Follower, Place};
use crate::pool::map_in_order;
use crate::upstream::{BlockTag, Fetched, HeaderClaim, Which};

/// Headers that are asked for at once on the way down.
const CLAIMS_PER_STEP: u64 = 32;
/// Blocks that are asked for in one message on the way up.
const BLOCKS_PER_MESSAGE: usize = 8;

/// A branch that leaves our chain.
struct Branch {
    fork_point: Place,
    /// Lowest first.
    claims: Vec<HeaderClaim>,
}

impl Follower {
    /// Makes the branch that ends with `goal` ours, in one change that readers see as a whole.
    pub(super) async fn follow_branch(&mut self, goal: HeaderClaim) -> Result<(), FollowError> {
        let branch = self.find_branch(goal).await?;
        let blocks = self.fetch_branch(&branch).await?;
        let fork_point = branch.fork_point;
        let tip = self.tip()?.map_or(fork_point.0, |(number, _)| number);
        let added = blocks.len();
        if self.writer.view().head().tip().is_none() {
            self.stand_on(fork_point)?;
        }
        self.writer.reorg(fork_point.1, blocks)?;
        Self::tell_reorg(fork_point, tip.saturating_sub(fork_point.0), added);
        Ok(())
    }

    /// Walks down by parent hashes until a block is ours.
    async fn find_branch(&self, goal: HeaderClaim) -> Result<Branch, FollowError> {
        let floor = self.floor();
        let mut claims = vec![goal];
        let mut lowest = goal;
        loop {
            let Some(below) = lowest.number.checked_sub(1) else {
                let ours = self.hash_at(0)?.unwrap_or_default();
                return Err(self.refuse_branch(0, ours, goal.hash).await);
            };
            let ours = self.hash_at(below)?;
            if ours == Some(lowest.parent_hash) {
                claims.reverse();
                return Ok(Branch { fork_point: (below, lowest.parent_hash), claims });
            }
            if below <= floor {
                let ours = ours.unwrap_or_default();
                return Err(self.refuse_branch(below, ours, lowest.parent_hash).await);
            }
            let first = below.saturating_sub(CLAIMS_PER_STEP).max(floor.saturating_add(1));
            lowest = self.walk_down(first, lowest, &mut claims).await?;
        }
    }

    /// Adds the claims from below `lowest` down to `first`, as far as they are needed; tells the last.
    async fn walk_down(
        &self,
        first: u64,
        mut lowest: HeaderClaim,
        claims: &mut Vec<HeaderClaim>,
    ) -> Result<HeaderClaim, FollowError> {
        for claim in self.upstreams.fetch_ancestors(lowest, first).await? {
            lowest = claim;
            claims.push(lowest);
            let below = lowest.number.checked_sub(1);
            let ours = below.map_or(Ok(None), |below| self.hash_at(below))?;
            if ours == Some(lowest.parent_hash) {
                break;
            }
        }
        Ok(lowest)
    }

    /// The highest block of ours that is never replaced: what is final or sealed, what the head stands
    /// on, or the first block of all.
    fn floor(&self) -> u64 {
        let view = self.writer.view();
        let base = view.head().base().map(|(number, _)| number);
        let sealed = view.manifest().segments().last().map(|entry| entry.range.last());
        let first = view.head().blocks().first().map(|block| block.number());
        view.finalized().max(base).max(sealed).or(first).unwrap_or(0)
    }

    /// What is final here is contradicted. If another node has our block, whoever contradicts it is
    /// not believed any more; if none has, it is for a human to say.
    async fn refuse_branch(&self, number: u64, ours: B256, theirs: B256) -> FollowError {
        let claims = self.upstreams.ask_all(BlockTag::Number(number)).await;
        let conflict = Conflict { number, ours, theirs };
        if !claims.iter().any(|(_, claim)| claim.hash == ours) {
            return FollowError::Conflict(conflict);
        }
        for (place, claim) in claims.iter().filter(|(_, claim)| claim.hash != ours) {
            error!(number, hash = %claim.hash, upstream = self.upstreams.name(*place), "not our chain");
            self.upstreams.lied(*place, &conflict.to_string());
        }
        FollowError::Moved { number }
    }

    /// The blocks of a branch, proven; those that the head holds are not asked for again.
    async fn fetch_branch(&self, branch: &Branch) -> Result<Vec<Verified<Block>>, FollowError> {
        let is_missing = |claim: &&HeaderClaim| !self.writer.is_known(&claim.hash);
        let missing: Vec<HeaderClaim> = branch.claims.iter().filter(is_missing).copied().collect();
        let mut fetched = Vec::with_capacity(missing.len());
        for claims in missing.chunks(BLOCKS_PER_MESSAGE) {
            let which =
                |claim: &HeaderClaim| Which::Hash { number: claim.number, hash: claim.hash };
            let wanted: Vec<Which> = claims.iter().map(which).collect();
            let (place, blocks) = self.upstreams.fetch_blocks(&wanted, Duration::ZERO).await?;
            fetched.extend(
                blocks.into_iter().zip(claims).map(|(block, claim)| (place, block, *claim)),
            );
        }
        let senders: BTreeMap<B256, usize> =
            fetched.iter().map(|(place, _, claim)| (claim.hash, *place)).collect();
        let mut proven = self.prove(fetched)?.into_iter();
        let mut blocks = Vec::with_capacity(branch.claims.len());
        for claim in &branch.claims {
            let known = self.writer.known_block(&claim.hash);
            blocks.extend(known.or_else(|| proven.next()));
        }
        let sender_of = |hash: &B256| senders.get(hash).copied();
        self.check_headers(branch.fork_point, &blocks, sender_of)?;
        Ok(blocks)
    }

    /// Proves blocks whose hashes and parents are known beforehand, over all cores.
    pub(super) fn prove(
        &self,
        fetched: Vec<(usize, Fetched, HeaderClaim)>,
    ) -> Result<Vec<Verified<Block>>, FollowError> {
        let mut proven = Vec::with_capacity(fetched.len());
        let prove_one = |(place, block, claim): (usize, Fetched, HeaderClaim)| {
            let name = || self.upstreams.name(place).to_owned();
            let refused = |error: FollowError| (place, Box::new(error));
            let candidate = block
                .rebuild(&self.spec)
                .map_err(|cause| refused(FollowError::Fetch { name: name(), cause }))?;
            let start = match claim.number.checked_sub(1) {
                Some(number) => Start::After { number, hash: claim.parent_hash },
                None => Start::At(0),
            };
            let verified = Verifier::new(&self.spec, &self.anchors, start).verify(candidate);
            verified.map_err(|mismatch| refused(FollowError::False { name: name(), mismatch }))
        };
        let outcome =
            map_in_order(
                self.settings.threads,
                fetched.into_iter(),
                prove_one,
                |done| match done {
                    Ok(block) => {
                        proven.push(block);
                        ControlFlow::Continue(())
                    }
                    Err(refused) => ControlFlow::Break(refused),
                },
            );
        match outcome {
            ControlFlow::Continue(()) => Ok(proven),
            ControlFlow::Break((place, error)) => {
                self.blame(place, &error);
                Err(*error)
            }
        }
    }

    fn blame(&self, place: usize, error: &FollowError) {
        match error {
            FollowError::Fetch { cause, .. } if !cause.is_lie() => {
                self.upstreams.unable(place, &error.to_string());
            }
            FollowError::Fetch { .. } | FollowError::False { .. } => {
                self.upstreams.lied(place, &error.to_string());
            }
            FollowError::Upstreams(_)
            | FollowError::Store(_)
            | FollowError::Moved { .. }
            | FollowError::Conflict(_) => {}
        }
    }
}
