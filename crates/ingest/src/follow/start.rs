//! Where following begins: above what is held, or, if that is too far below, at what is final.

use std::time::Duration;

use alloy_primitives::B256;
use chain::{Block, BlockNumber, BlockRange, Verified};
use node::{BlockTag, CLAIMS_PER_STEP, HeaderClaim, UpstreamsError, WantedBlock};
use store::{BlockId, StoreError};
use tracing::{info, warn};

use super::{BlockNumberAndHash, FinalityConflict, FollowError, Follower};

/// How often the same headers are requested again from nodes that have others in their places.
const WALK_TRIES: u32 = 3;

impl Follower {
    /// Our tip, from which `target` can be reached. `None` if following has just begun elsewhere.
    pub(super) async fn begin(
        &mut self,
        target: HeaderClaim,
    ) -> Result<Option<BlockNumberAndHash>, FollowError> {
        self.check_lost(target).await?;
        let Some(ours) = self.tip()? else {
            let first = self.final_claim(target).await?;
            self.check_ancestor(first, target).await?;
            let blocks = self.fetch_first(first).await?;
            self.begin_at(first, blocks)?;
            return Ok(None);
        };
        let near = ours.0.saturating_add(self.settings.gap_max);
        if target.number <= near {
            return Ok(Some(ours));
        }
        // What is final may be far below the tip: no gap is left that would have to be left again.
        let first = self.final_claim(target).await?;
        if first.number <= near {
            return Ok(Some(ours));
        }
        self.check_ancestor(first, target).await?;
        match self.leave_gap(ours, first).await {
            // What is final there cannot be begun with; blocks below it may still be followed.
            Err(error) if error.unknown_fork().is_some() => Ok(Some(ours)),
            left => left.map(|()| None),
        }
    }

    /// An error unless headers lead from the tip down to the block to begin with, which is never
    /// reorganised: behind one address, nodes of two branches may have named the two.
    async fn check_ancestor(
        &self,
        first: HeaderClaim,
        tip: HeaderClaim,
    ) -> Result<(), FollowError> {
        let (number, claims_max) = (tip.number, self.claims_max());
        if number.saturating_sub(first.number) > claims_max {
            return Err(FollowError::TooDeep { number, claims_max });
        }
        let mut lowest = Some(tip);
        let mut tries = 0_u32;
        while let Some(above) = lowest.filter(|it| it.number > first.number) {
            let end = above.number.saturating_sub(CLAIMS_PER_STEP).max(first.number);
            match self.upstreams.fetch_ancestors(above, end).await {
                // Another node behind the same address may have answered.
                Err(UpstreamsError::NotThere { .. }) if tries < WALK_TRIES => {
                    tries = tries.saturating_add(1);
                }
                below => (lowest, tries) = (below?.last().copied(), 0),
            }
        }
        let is_ancestor = lowest.is_some_and(|it| it.hash == first.hash);
        if is_ancestor { Ok(()) } else { Err(FollowError::Moved { number: first.number }) }
    }

    /// A conflict if the nodes have another block in the place of the newest that is final here.
    async fn check_final(&self) -> Result<(), FollowError> {
        let Some(number) = self.writer.view().finalized() else { return Ok(()) };
        let Some(ours) = self.hash_at(number.get())? else { return Ok(()) };
        // A node without old history cannot tell.
        self.fetch_same(number, ours).await.map(drop)
    }

    /// The nodes' block of this number, which must be ours: another one is a conflict. `None` if they have
    /// none.
    async fn fetch_same(
        &self,
        number: BlockNumber,
        ours: B256,
    ) -> Result<Option<HeaderClaim>, FollowError> {
        let number = number.get();
        match self.fetch_decided(BlockTag::Number(number)).await? {
            Some(claim) if claim.hash != ours => {
                Err(FollowError::Conflict(FinalityConflict { number, ours, theirs: claim.hash }))
            }
            found => Ok(found),
        }
    }

    /// A conflict if the nodes have another block in the place of the newest that was held here and lost.
    async fn check_lost(&mut self, target: HeaderClaim) -> Result<(), FollowError> {
        let lost = self.writer.view().manifest().lost_hashes().next_back();
        let Some(BlockId { number, hash: ours }) = lost.filter(|it| self.lost_checked != Some(*it))
        else {
            return Ok(());
        };
        match self.fetch_same(number, ours).await? {
            Some(_) => {
                self.lost_checked = lost;
                Ok(())
            }
            // What lies below it is not known to be of its chain: nothing of it becomes final.
            None if target.number < number.get() => {
                Err(FollowError::Below { number: target.number, held: number.get() })
            }
            // A node without old history cannot tell.
            None => Ok(()),
        }
    }

    /// The tip is too far: what lies between is left to a backfill.
    async fn leave_gap(
        &mut self,
        ours: BlockNumberAndHash,
        begin: HeaderClaim,
    ) -> Result<(), FollowError> {
        // Before anything of the head is given up for it.
        let blocks = self.fetch_first(begin).await?;
        self.check_final().await?;
        self.leave_head().await?;
        self.begin_at(begin, blocks)?;
        let view = self.writer.view();
        let sealed = view.segments().map(|entry| entry.range.last());
        let below = sealed.filter(|last| *last < begin.number).max().unwrap_or(ours.0);
        let gap = below.checked_add(1).zip(begin.number.checked_sub(1));
        let gap = gap.and_then(|(first, last)| BlockRange::from_ends(first, last));
        if let Some(gap) = gap {
            warn!(%gap, "blocks are left out, because the tip is too far: `quipu backfill` or --backfill-to fills \
                the gap");
        }
        self.board.left_gap(gap);
        Ok(())
    }

    /// Empties the head, so that it can stand elsewhere. Its blocks are sealed if the nodes have them too,
    /// and final ones in any case.
    pub(super) async fn leave_head(&mut self) -> Result<(), FollowError> {
        let view = self.writer.view();
        let Some(tip) = view.head().tip() else { return Ok(()) };
        let theirs = self.fetch_decided(BlockTag::Number(tip.number().get())).await?;
        let is_shared = theirs.is_some_and(|claim| claim.hash == tip.hash());
        let last = if is_shared { Some(tip.number()) } else { view.final_in_head() };
        if let Some(last) = last {
            let facts = self.commit_facts(last.get());
            if let Some(blocks) = self.writer.seal_all(last, facts)? {
                self.board.sealed(blocks.count());
            }
        }
        if let Some((_, hash)) = self.writer.view().head().base() {
            self.writer.rewind(hash)?;
        }
        Ok(())
    }

    /// The block to begin with, proven.
    async fn fetch_first(&self, first: HeaderClaim) -> Result<Vec<Verified<Block>>, FollowError> {
        let wanted = [WantedBlock::Hash { number: first.number, hash: first.hash }];
        loop {
            let (member_index, blocks) =
                self.upstreams.fetch_blocks(&wanted, Duration::ZERO).await?;
            let fetched = blocks.into_iter().map(|block| (member_index, block, first)).collect();
            match self.prove(fetched) {
                // Its node is passed over from now on.
                Err(error) if error.is_unknown_here() => {}
                proven => return proven,
            }
        }
    }

    /// Begins with this block, whatever is below it.
    fn begin_at(
        &mut self,
        first: HeaderClaim,
        blocks: Vec<Verified<Block>>,
    ) -> Result<(), FollowError> {
        if let Some(number) = first.number.checked_sub(1) {
            self.stand_on((number, first.parent_hash))?;
        }
        self.writer.extend(blocks)?;
        info!(number = first.number, hash = %first.hash, "following begins with this block");
        Ok(())
    }

    /// The newest block that those that decide call final, or the tip where they call none so. A block
    /// that only a node that stands in for them has is none to begin with: what lies below it is never
    /// reorganised.
    async fn final_claim(&self, target: HeaderClaim) -> Result<HeaderClaim, FollowError> {
        let finalized = match self.settings.finality_depth {
            Some(depth) => {
                let tip = self.fetch_decided(BlockTag::Latest).await?;
                let tip = tip.map_or(target.number, |tip| tip.number.min(target.number));
                self.fetch_decided(BlockTag::Number(tip.saturating_sub(depth))).await?
            }
            None => self.fetch_decided(BlockTag::Finalized).await?,
        };
        if let Some(claim) = finalized {
            return Ok(claim);
        }
        let number = target.number;
        let decided = self.fetch_decided(BlockTag::Number(number)).await?;
        decided.filter(|claim| claim.hash == target.hash).ok_or(FollowError::Moved { number })
    }

    /// Lets a head without blocks stand on this block.
    pub(super) fn stand_on(
        &mut self,
        (number, hash): BlockNumberAndHash,
    ) -> Result<(), StoreError> {
        if self.writer.view().head().base() == Some((BlockNumber(number), hash)) {
            return Ok(());
        }
        self.writer.begin_head(BlockNumber(number), hash)
    }
}
