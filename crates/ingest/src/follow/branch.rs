//! From our chain to another: down to the fork point, and up again chunk by chunk.

use std::time::Duration;

use alloy_primitives::B256;
use chain::{Block, BlockNumber, BlockRange, Verified};
use node::{BlockTag, CLAIMS_PER_STEP, HeaderClaim, NodeBlock, UpstreamsError, WantedBlock};

use super::error::FinalityConflict;
use super::{BlockNumberAndHash, FollowError, Follower, sealed_tip};

/// Blocks that are asked for in one message on the way up.
const BLOCKS_PER_MESSAGE: u64 = 8;
/// Bytes of answers that are expected of one message; one block may have more.
const MESSAGE_BYTES: u64 = 16 << 20;
/// Bytes of answers that are fetched before they are proven and handed to the head. The last message
/// may go beyond.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// A branch that leaves our chain.
struct Branch {
    fork_point: BlockNumberAndHash,
    /// Lowest first.
    claims: Vec<HeaderClaim>,
}

/// The next blocks of a branch.
struct Chunk {
    /// How many of the branch's blocks it reaches over; those that the head holds are not fetched.
    claim_count: usize,
    blocks: Vec<Verified<Block>>,
    /// Bytes of the answers that they came in.
    bytes: u64,
}

impl Follower {
    /// Makes the branch that ends with `goal` ours, chunk by chunk: memory does not grow with it. Blocks
    /// above our tip can be seen with their chunk; a branch that replaces blocks of ours is gathered
    /// beside them, and readers see it as a whole.
    pub(super) async fn follow_branch(&mut self, goal: HeaderClaim) -> Result<(), FollowError> {
        let found = self.find_branch(goal).await;
        if let Err(error @ FollowError::TooDeep { .. }) = &found {
            self.stand_below(goal.number, goal.hash, error);
        }
        let Branch { fork_point, mut claims } = found?;
        let tip = self.tip()?.map_or(fork_point.0, |(number, _)| number);
        let head = self.writer.view().head().tip().map(|tip| tip.number().get());
        if head.is_some_and(|head| head < fork_point.0) {
            self.leave_head().await?; // sealed blocks have passed it
        }
        if self.writer.view().head().tip().is_none() {
            self.stand_on(fork_point)?;
        }
        let is_extension =
            self.writer.view().head().tip().is_none_or(|tip| tip.hash() == fork_point.1);
        let mut unknown = None;
        let mut done = 0_usize;
        while let Some(rest) = claims.get(done..).filter(|rest| !rest.is_empty()) {
            let chunk = match self.fetch_chunk(rest).await {
                Ok(chunk) => chunk,
                Err(error) if error.is_unknown_here() => continue, // another node is asked
                Err(error) => {
                    let number = error.unknown_fork();
                    let position = claims.iter().position(|claim| Some(claim.number) == number);
                    let position = position.filter(|position| *position >= done);
                    let Some((position, claim)) =
                        position.and_then(|it| Some((it, *claims.get(it)?)))
                    else {
                        return Err(error);
                    };
                    // What lies below it is followed.
                    self.stand_below(claim.number, claim.hash, &error);
                    claims.truncate(position);
                    unknown = Some(error);
                    continue;
                }
            };
            done = done.saturating_add(chunk.claim_count);
            let reached = done.checked_sub(1).and_then(|last| claims.get(last));
            let is_last = done == claims.len();
            let tip = reached.filter(|_| is_extension || is_last).map(|claim| claim.hash);
            self.adopt(chunk, tip, is_extension)?;
        }
        if let Some(last) = claims.last() {
            self.writer.adopt(Vec::new(), Some(last.hash))?;
            self.tell_reorg(fork_point, tip.saturating_sub(fork_point.0), claims.len());
        }
        unknown.map_or(Ok(()), Err)
    }

    /// Hands a chunk to the head, with the tip that it reaches if readers may see it.
    fn adopt(
        &mut self,
        chunk: Chunk,
        tip: Option<B256>,
        is_extension: bool,
    ) -> Result<(), FollowError> {
        if chunk.bytes <= self.writer.head_room_bytes() {
            return Ok(self.writer.adopt(chunk.blocks, tip)?);
        }
        // What still fits may be what is sealed next.
        for block in chunk.blocks {
            let own_tip = is_extension.then_some(block.hash);
            self.writer.adopt(vec![block], own_tip)?;
        }
        Ok(self.writer.adopt(Vec::new(), tip)?)
    }

    /// Walks down by parent hashes until a block is ours.
    async fn find_branch(&self, goal: HeaderClaim) -> Result<Branch, FollowError> {
        let floor = self.floor();
        if goal.number <= floor {
            return Err(self.refuse_low(goal).await?);
        }
        let mut claims = vec![goal];
        let mut lowest = goal;
        loop {
            let below = lowest.number.saturating_sub(1);
            let ours = self.hash_at(below)?;
            if ours == Some(lowest.parent_hash) {
                claims.reverse();
                return Ok(Branch { fork_point: (below, lowest.parent_hash), claims });
            }
            if below <= floor {
                let ours = ours.ok_or(FollowError::Moved { number: below })?;
                return Err(self.refuse_branch(below, ours, lowest.parent_hash).await);
            }
            let claims_max = self.claims_max();
            if goal.number.saturating_sub(below) >= claims_max {
                return Err(FollowError::TooDeep { number: goal.number, claims_max });
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

    /// The highest block of ours that is never replaced: what is final, sealed or published, what the
    /// head stands on, or the first block of all.
    pub(super) fn floor(&self) -> u64 {
        let view = self.writer.view();
        let base = view.head().base().map(|(number, _)| number);
        let first = view.head().blocks().first().map(|block| block.number());
        view.finalized().max(base).max(sealed_tip(&view)).or(first).map_or(0, BlockNumber::get)
    }

    /// Why a tip that is not above what is final here, and not ours, is not followed: it contradicts a
    /// block that is held, or nothing is held that it could be compared with.
    async fn refuse_low(&self, tip: HeaderClaim) -> Result<FollowError, FollowError> {
        let number = tip.number;
        if let Some(ours) = self.hash_at(number)? {
            return Ok(self.refuse_branch(number, ours, tip.hash).await);
        }
        let view = self.writer.view();
        let held = view.coverage();
        let below = held.iter().map(BlockRange::last).filter(|last| *last < number).max();
        if let Some(below) = below
            && let Some(ours) = self.hash_at(below)?
            && let Some(theirs) = self.upstreams.fetch_agreed(BlockTag::Number(below)).await?
            && theirs.hash != ours
        {
            return Ok(self.refuse_branch(below, ours, theirs.hash).await);
        }
        let above = held.iter().map(BlockRange::first).filter(|first| *first > number).min();
        Ok(FollowError::Below { number, held: above.unwrap_or(number) })
    }

    /// What is final here is contradicted. If a more preferred node has our block, or as many nodes as
    /// must agree, whoever contradicts it is set aside; otherwise it is for a human to say. Neither
    /// proves that anybody lied: what is held may be of another branch.
    async fn refuse_branch(&self, number: u64, ours: B256, theirs: B256) -> FollowError {
        let claims = self.upstreams.ask_all(BlockTag::Number(number)).await;
        let conflict = FinalityConflict { number, ours, theirs };
        let (with_us, against_us): (Vec<_>, Vec<_>) =
            claims.into_iter().partition(|(_, claim)| claim.hash == ours);
        let witness = with_us.iter().map(|(member_index, _)| *member_index).min();
        let first_against = against_us.iter().map(|(member_index, _)| *member_index).min();
        // What is final here may be so by the word of a node that stood in for the preferred one.
        let is_outranked = if self.upstreams.quorum() == 1 {
            first_against.zip(witness).is_some_and(|(against, with)| against < with)
        } else {
            with_us.len() < self.upstreams.quorum()
        };
        if witness.is_none() || is_outranked {
            return FollowError::Conflict(conflict);
        }
        for (member_index, claim) in &against_us {
            let theirs = claim.hash;
            self.upstreams
                .outvoted(*member_index, &FinalityConflict { number, ours, theirs }.to_string());
        }
        FollowError::Moved { number }
    }

    /// The next blocks of a branch, proven, as many as may be under way at once.
    async fn fetch_chunk(&mut self, claims: &[HeaderClaim]) -> Result<Chunk, FollowError> {
        let mut fetched = Vec::new();
        let (mut claim_count, mut bytes) = (0_usize, 0_u64);
        loop {
            let rest = claims.get(claim_count..).unwrap_or_default();
            let known = rest.iter().take_while(|claim| self.writer.is_known(&claim.hash)).count();
            claim_count = claim_count.saturating_add(known);
            let rest = rest.get(known..).unwrap_or_default();
            let expected = bytes.saturating_add(self.block_bytes.unwrap_or_default());
            if rest.is_empty() || (!fetched.is_empty() && expected > CHUNK_BYTES_MAX) {
                break;
            }
            let missing = rest.iter().take_while(|claim| !self.writer.is_known(&claim.hash));
            let asked: Vec<HeaderClaim> = missing.take(self.message_blocks()).copied().collect();
            let which =
                |claim: &HeaderClaim| WantedBlock::Hash { number: claim.number, hash: claim.hash };
            let wanted: Vec<WantedBlock> = asked.iter().map(which).collect();
            let (member_index, blocks) =
                match self.upstreams.fetch_blocks(&wanted, Duration::ZERO).await {
                    Ok(answered) => answered,
                    // What came before is of use; the next chunk meets the error again.
                    Err(UpstreamsError::UnknownFork { .. }) if !fetched.is_empty() => break,
                    Err(error) => {
                        // It may have been too much at once.
                        self.block_bytes = None;
                        return Err(error.into());
                    }
                };
            self.block_bytes = blocks.iter().map(NodeBlock::bytes).max();
            bytes = blocks.iter().map(NodeBlock::bytes).fold(bytes, u64::saturating_add);
            claim_count = claim_count.saturating_add(asked.len());
            fetched
                .extend(blocks.into_iter().zip(asked).map(|(block, it)| (member_index, block, it)));
        }
        let senders: Vec<usize> = fetched.iter().map(|(sender, ..)| *sender).collect();
        let blocks = self.prove(fetched)?;
        self.check_headers(&blocks, &senders)?;
        Ok(Chunk { claim_count, blocks, bytes })
    }

    /// How many blocks are asked for in one message: one until it is known how large they are.
    fn message_blocks(&self) -> usize {
        let count = self.block_bytes.map_or(1, |bytes| MESSAGE_BYTES / bytes.max(1));
        usize::try_from(count.clamp(1, BLOCKS_PER_MESSAGE)).unwrap_or(1)
    }
}
