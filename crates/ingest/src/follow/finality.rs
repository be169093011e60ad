//! What is safe and what is final, and sealing it.

use std::time::Duration;

use chain::BlockNumber;
use chain::trust::Anchor;
use futures_util::future::join_all;
use node::{BlockTag, CLAIMS_MAX, CLAIMS_PER_STEP, HeaderClaim, UpstreamsError};
use store::{BlockId, CommitFacts, Finality, StoreError, YOUNG_SLOT_BLOCKS};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{BlockNumberAndHash, FollowError, Follower};
use crate::import::network_of;

/// After this long no more headers are requested on the way from a final block down to the tip.
const WALK_TIME: Duration = Duration::from_secs(2);

impl Follower {
    /// Asks what is final if it is time to, tells readers, and seals. Tells whether there is more to
    /// seal.
    pub(super) async fn refresh_finality(&mut self, is_behind: bool) -> Result<bool, FollowError> {
        // What is final changes every few minutes: it need not be asked with every block.
        let ask_every = self.settings.poll_every.saturating_mul(2);
        let is_due = self.finality_asked.is_none_or(|asked| asked.elapsed() >= ask_every);
        if !is_due && !is_behind {
            return self.seal();
        }
        let Some(tip) = self.tip()? else { return Ok(false) };
        let told = match self.settings.finality_depth {
            Some(depth) => self.by_depth(tip, depth).await,
            None => self.by_word(tip).await,
        };
        self.finality_asked = Some(Instant::now());
        match told {
            Ok(told) => {
                self.board.told_finality();
                self.writer.set_finality(told)?;
            }
            // The tip is followed all the same, and what is final stays what it was.
            Err(FollowError::Upstreams(error)) => {
                if self.board.silent_about_finality(&error) {
                    warn!(%error, "nobody whose word counts says what is final");
                }
            }
            Err(error) => return Err(error),
        }
        self.seal()
    }

    /// The block this far below the newest of ours that the tips of those that decide descend from.
    async fn by_depth(
        &mut self,
        tip: BlockNumberAndHash,
        depth: u64,
    ) -> Result<Finality, FollowError> {
        let number = self.shared(BlockTag::Latest, tip).await?;
        let finalized = self.id_at(number.map(|number| number.saturating_sub(depth)))?;
        Ok(Finality { safe: finalized, finalized })
    }

    /// A block by the word of those that decide what is final.
    pub(super) async fn fetch_decided(
        &self,
        tag: BlockTag,
    ) -> Result<Option<HeaderClaim>, UpstreamsError> {
        self.upstreams.fetch_decided(tag, Duration::ZERO).await
    }

    /// What the nodes say, as far as it is of our chain.
    async fn by_word(&mut self, tip: BlockNumberAndHash) -> Result<Finality, FollowError> {
        let safe = self.upstreams.fetch_words(BlockTag::Safe).await?;
        let safe: Result<Vec<_>, _> =
            safe.into_iter().map(|(_, claim)| self.number_of_ours(claim)).collect();
        let safe = self.quorum_highest(safe?);
        let finalized = self.shared(BlockTag::Finalized, tip).await?;
        Ok(Finality { safe: self.id_at(safe)?, finalized: self.id_at(finalized)? })
    }

    /// The newest block of ours that is seen to be, or to be an ancestor of, the block that as many
    /// nodes as must agree have under a name.
    async fn shared(
        &mut self,
        tag: BlockTag,
        tip: BlockNumberAndHash,
    ) -> Result<Option<u64>, FollowError> {
        let claims = self.upstreams.fetch_words(tag).await?;
        let mut known = std::mem::take(&mut self.final_paths);
        let (above, others): (Vec<_>, Vec<_>) =
            claims.into_iter().partition(|(_, claim)| claim.number > tip.0);
        let walks = above.into_iter().map(|(member_index, claim)| {
            let known = known.remove(&member_index).unwrap_or_default();
            let walk = self.walk_to_tip(tip, member_index, claim, known);
            async move { (member_index, walk.await) }
        });
        let mut numbers = Vec::new();
        for (member_index, (is_descendant, path)) in join_all(walks).await {
            numbers.push(is_descendant.then_some(tip.0));
            known.insert(member_index, path);
        }
        for (member_index, claim) in others {
            known.remove(&member_index);
            numbers.push(self.number_of_ours(claim)?);
        }
        self.final_paths = known;
        Ok(self.quorum_highest(numbers))
    }

    /// The number of headers that are followed down a branch at most.
    pub(super) fn claims_max(&self) -> u64 {
        self.settings.gap_max.max(CLAIMS_MAX)
    }

    /// The highest number that as many nodes as must agree have reached.
    fn quorum_highest(&self, numbers: Vec<Option<u64>>) -> Option<u64> {
        let mut numbers: Vec<u64> = numbers.into_iter().flatten().collect();
        numbers.sort_unstable();
        numbers.into_iter().nth_back(self.upstreams.quorum().saturating_sub(1))
    }

    /// Whether a node's headers lead from a block above our tip down to it, and these headers.
    /// Behind one address, nodes of several branches may answer, so that only parent hashes are
    /// evidence. What was walked is kept: while the tip is caught up with, each header is fetched
    /// once. A walk that takes long goes on the next time: the tip does not wait for it.
    async fn walk_to_tip(
        &self,
        tip: BlockNumberAndHash,
        member_index: usize,
        claim: HeaderClaim,
        mut known: Vec<HeaderClaim>,
    ) -> (bool, Vec<HeaderClaim>) {
        if claim.number.saturating_sub(tip.0) > self.claims_max() {
            return (false, Vec::new());
        }
        let begun = Instant::now();
        let mut path = vec![claim];
        while let Some(lowest) = path.last().copied() {
            if let Some(place) = known.iter().position(|claim| *claim == lowest) {
                path.extend(known.drain(..).skip(place.saturating_add(1)));
                continue;
            }
            if lowest.number <= tip.0 || begun.elapsed() > WALK_TIME {
                break;
            }
            let first = lowest.number.saturating_sub(CLAIMS_PER_STEP).max(tip.0);
            match self.upstreams.fetch_ancestors_of(member_index, lowest, first).await {
                Some(below) => path.extend(below),
                None => break,
            }
        }
        let is_descendant = path.iter().any(|claim| (claim.number, claim.hash) == tip);
        (is_descendant, if path.len() < known.len() { known } else { path })
    }

    /// The number of a claim whose block is ours.
    fn number_of_ours(&self, claim: HeaderClaim) -> Result<Option<u64>, StoreError> {
        Ok((self.hash_at(claim.number)? == Some(claim.hash)).then_some(claim.number))
    }

    fn id_at(&self, number: Option<u64>) -> Result<Option<BlockId>, StoreError> {
        let Some(number) = number else { return Ok(None) };
        let hash = self.hash_at(number)?;
        Ok(hash.map(|hash| BlockId { number: BlockNumber(number), hash }))
    }

    /// Seals the lowest 256 blocks that are final: no more in one step, so that the tip never waits
    /// for more than one young segment. Tells whether there are others.
    fn seal(&mut self) -> Result<bool, FollowError> {
        let view = self.writer.view();
        let Some(finalized) = view.final_in_head() else { return Ok(false) };
        let Some(first) = view.head().blocks().first().map(|block| block.number()) else {
            return Ok(false);
        };
        let end = finalized.get().saturating_add(1) / YOUNG_SLOT_BLOCKS * YOUNG_SLOT_BLOCKS;
        let own_end =
            (first.get() / YOUNG_SLOT_BLOCKS).saturating_add(1).saturating_mul(YOUNG_SLOT_BLOCKS);
        let last = own_end.saturating_sub(1);
        if own_end > end {
            return Ok(false);
        }
        let facts = self.commit_facts(last);
        if let Some(blocks) = self.writer.seal(BlockNumber(last), facts)? {
            self.board.sealed(blocks.count());
            info!(%blocks, "blocks were sealed");
        }
        Ok(own_end < end)
    }

    /// What a manifest is told when blocks up to this one are sealed. Where several nodes must agree on
    /// what is final, the last block that is sealed is trusted as an anchor is.
    pub(super) fn commit_facts(&self, finalized: u64) -> CommitFacts {
        let view = self.writer.view();
        let end = finalized.saturating_add(1) / YOUNG_SLOT_BLOCKS * YOUNG_SLOT_BLOCKS;
        let last =
            end.checked_sub(1).and_then(|number| view.head().find_block(BlockNumber(number)));
        let last = last.filter(|_| self.upstreams.quorum() > 1);
        let anchors = last.map(|it| Anchor { number: it.number().get(), hash: it.hash() });
        CommitFacts {
            network: network_of(&self.spec),
            anchors: anchors.into_iter().collect(),
            ..CommitFacts::default()
        }
    }
}
