//! What is safe and what is final, and sealing it.
//!
//! Knows: that the word of those that decide counts for blocks that are ours, and that what is final
//! leaves the head. That it never goes back, also after a restart, is the store's to keep.
//! Never knows: how a segment is built.

use std::time::Duration;

use chain::BlockNumber;
use chain::trust::Anchor;
use store::BlockId;
use store::{CommitFacts, Finality, YOUNG_SLOT_BLOCKS};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{FollowError, Follower};
use crate::import::network_of;
use crate::upstream::{BlockTag, HeaderClaim, UpstreamsError};

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
            Some(depth) => self.by_depth(tip.0, depth).await,
            None => self.by_word(tip.0).await,
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

    /// So many blocks below the tip, as far as those that decide have the same block there.
    async fn by_depth(&self, tip: u64, depth: u64) -> Result<Finality, FollowError> {
        let Some(theirs) = self.fetch_decided(BlockTag::Latest).await? else {
            return Ok(Finality::default());
        };
        let number = BlockTag::Number(tip.min(theirs.number).saturating_sub(depth));
        let finalized = self.ours(self.fetch_decided(number).await?)?.map(id_of);
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
    async fn by_word(&self, tip: u64) -> Result<Finality, FollowError> {
        let safe = self.fetch_decided(BlockTag::Safe).await?;
        let finalized = match self.fetch_decided(BlockTag::Finalized).await? {
            // All that is here is older than what is final there, if it is of that chain.
            Some(claim) if claim.number > tip => self.fetch_decided(BlockTag::Number(tip)).await?,
            told => told,
        };
        let (safe, finalized) = (self.ours(safe)?, self.ours(finalized)?);
        Ok(Finality { safe: safe.map(id_of), finalized: finalized.map(id_of) })
    }

    /// The claim if its block is ours.
    fn ours(&self, claim: Option<HeaderClaim>) -> Result<Option<HeaderClaim>, FollowError> {
        let Some(claim) = claim else { return Ok(None) };
        let hash = self.hash_at(claim.number)?;
        Ok(Some(claim).filter(|claim| hash == Some(claim.hash)))
    }

    /// Seals the lowest 256 blocks that are final: no more in one step, so that the tip never waits
    /// for more than one young segment. Tells whether there are others.
    fn seal(&mut self) -> Result<bool, FollowError> {
        let view = self.writer.view();
        let Some(finalized) = view.finalized() else { return Ok(false) };
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

fn id_of(claim: HeaderClaim) -> BlockId {
    BlockId { number: BlockNumber(claim.number), hash: claim.hash }
}
